"""The kinds of apps/v1, and ReplicationController: workloads with a pod template.

`core.pod_template_spec` validates pod templates, `apis.validation.checks` the numbers of a status, and `autoscaling.scale`
is the scale subresource; each kind has a module.

Specified by: pkg/apis/apps/validation, pkg/apis/apps/v1/defaults.go, pkg/registry/apps, pkg/registry/core.
"""
