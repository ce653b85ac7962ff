"""What a served resource is, and the hooks of a kind when its objects are written.

`resource` describes one served version of a resource and contains the registry of resources. `strategy` defines the hooks of a
kind for a write and for /status, and the subresources, `cluster_access` the interface of strategies to the cluster.

Specified by: k8s.io/apiserver/pkg/registry/rest.
"""
