"""The Deployment controller: a ReplicaSet for each pod template, and the rollout from the old ones to the new one.

`controller` handles events and syncs; `replica_sets` finds, creates, scales and cleans up ReplicaSets; `strategies` implements
RollingUpdate, Recreate and rollback; `status` calculates the status with its conditions; `replica_counts` calculates the size
of each ReplicaSet (maxSurge, maxUnavailable, proportional scaling); `annotations` reads and sets revisions.

Specified by: pkg/controller/deployment.
"""
