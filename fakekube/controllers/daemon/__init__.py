"""The DaemonSet controller: one pod on each eligible node.

`controller` handles events, syncs, and writes the status; `update` manages ControllerRevisions and selects outdated pods to
replace; `utils` builds pods, and decides which nodes need a pod and which pods are to be deleted.

Specified by: pkg/controller/daemon.
"""
