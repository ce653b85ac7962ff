"""The DaemonSet controller: one pod on each eligible node.

`controller` handles events, syncs, writes the status, manages ControllerRevisions and replaces outdated pods; `utils` builds
pods, and decides which nodes need a pod and which pods are to be deleted.

Specified by: pkg/controller/daemon.
"""
