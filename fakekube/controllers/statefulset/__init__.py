"""The StatefulSet controller: pods with a stable identity, created, updated and deleted in order.

`controller` handles events, revisions and the status; `update` processes the replicas in order; `pod_control` creates, updates
and deletes pods with their claims; `claims` builds claims and their owner references; `identity` has names, ordinals and labels.

Specified by: pkg/controller/statefulset.
"""
