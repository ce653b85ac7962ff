"""DaemonSets: one pod on each node that will have one.

`controller` wakes up and syncs; `placement` says which nodes run a pod and which pods are wrong there; `update` replaces
outdated pods; `revisions` keeps ControllerRevisions; `template` makes the pods.

Specified by: pkg/controller/daemon.
"""
