"""Which resources a cluster serves, and how an object of each of them is written.

`resource` describes one served version of a resource and holds the table of all of them, `builtin` fills it with the built-in
resources. `strategy` is what a kind adds to a write (`status_strategy` through /status), `subresource` what stands below an
object, `cluster_access` what a strategy may ask of the cluster. `generic` stores and reads the objects.

Specified by: k8s.io/apiserver/pkg/registry/rest, pkg/registry/generic.
"""
