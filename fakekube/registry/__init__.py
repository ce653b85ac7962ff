"""The resources that a cluster serves, and the strategies by which their objects are written.

`resource` describes one served version of a resource and contains the registry of resources, `builtin` creates the
built-in ones. `strategy` defines the hooks of a kind for a write (`status_strategy` those for /status), `subresource` the
subresources, `cluster_access` the interface of strategies to the cluster. `generic` stores and reads the objects.

Specified by: k8s.io/apiserver/pkg/registry/rest, pkg/registry/generic.
"""
