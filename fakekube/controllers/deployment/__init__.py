"""The Deployment controller: a ReplicaSet for each pod template, and the rollout from the old ones to the new one.

`controller` handles events and decides on the next step: `rolling`, `recreate`, `rollback`, or a change of scale. `progress`
calculates the status; `utils` finds, creates, scales and cleans up ReplicaSets, and has conditions, annotations and the size of
each ReplicaSet (maxSurge, maxUnavailable, proportional scaling).

Specified by: pkg/controller/deployment.
"""
