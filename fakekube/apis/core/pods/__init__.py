"""Pods, and the pod templates of everything that makes pods.

The rules of a PodSpec are a sum of checks, spread over modules by subject: `spec` adds them up;
`containers`, `probes`, `environment`, `mounts`, `volumes`, `projections`, `security`, `scheduling` know one
part each. `tolerance` says what of it an update may leave as it was. What is a pod's own (create, update,
status, subresources) is in `strategy`, `updating`, `statuses`, `resizing`, `binding`, `eviction`,
`connecting`.

Specified by: pkg/apis/core/validation/validation.go, pkg/api/pod, pkg/registry/core/pod,
pkg/apis/core/v1/defaults.go.
"""
