"""StatefulSets: pods with a fixed identity, made, updated and deleted in order.

`controller` wakes up and syncs; `update` walks over the replicas; `pod_control` makes and deletes pods with their claims;
`claims` names claims and decides who owns them; `identity` names pods.

Specified by: pkg/controller/statefulset.
"""
