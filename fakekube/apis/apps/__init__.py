"""What makes pods from a template and keeps them: the kinds of apps/v1, ReplicationController and
PodTemplate.

`templates` has the rules of a pod template and how it may change, `counters` those of the numbers in a
status, `scale` the window through which replicas are changed; each kind is a module of its own.

Specified by: pkg/apis/apps/validation, pkg/apis/apps/v1/defaults.go, pkg/registry/apps, pkg/registry/core.
"""
