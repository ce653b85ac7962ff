"""Deployments: a ReplicaSet for each pod template, and replicas moved from the old ones to the new one.

`controller` decides what a sync does; `replica_sets` finds, makes, scales and cleans up ReplicaSets; `strategies` moves
replicas (RollingUpdate, Recreate) and rolls back; `status` counts and judges progress. `arithmetic` and `annotations` are
functions of objects.

Specified by: pkg/controller/deployment.
"""
