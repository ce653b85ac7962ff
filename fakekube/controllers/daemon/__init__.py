"""The DaemonSet controller: one pod on each eligible node.

`controller` handles events, syncs, and writes the status; `placement` decides which nodes need a pod and which pods are to be
deleted; `update` selects outdated pods to replace; `revisions` manages ControllerRevisions; `template` builds pods.

Specified by: pkg/controller/daemon.
"""
