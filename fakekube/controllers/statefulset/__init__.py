"""The StatefulSet controller: pods with a stable identity, created, updated and deleted in order.

`controller` handles events, revisions and the status, and processes the replicas in order; `utils` has names, ordinals, labels
and claims.

Specified by: pkg/controller/statefulset.
"""
