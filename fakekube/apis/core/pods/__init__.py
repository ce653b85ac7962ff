"""Pods, and the pod templates of workloads.

The validation of a PodSpec is spread over modules by subject: `spec` calls `containers`, `environment`, `volumes`,
`resources` and `security_context`. `validation_options` has the rules that an update may leave broken. Writes of pods and
their subresources are in `strategy`, `update_validation`, `status_validation`, `resize`, `binding` and `eviction`.

Specified by: pkg/apis/core/validation/validation.go, pkg/api/pod, pkg/registry/core/pod,
pkg/apis/core/v1/defaults.go.
"""
