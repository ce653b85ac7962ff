"""The kinds of apps/v1, and ReplicationController: workloads with a pod template.

`core.podtemplates` validates pod templates, `apis.validation.checks` the numbers of a status; the scale subresource is in
`autoscaling.horizontalpodautoscalers`.

Specified by: pkg/apis/apps/validation, pkg/apis/apps/v1/defaults.go, pkg/registry/apps, pkg/registry/core.
"""
