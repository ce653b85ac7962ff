"""The built-in resources that a cluster serves, and how their objects are stored and read.

`builtin` creates the built-in resources, `generic` stores and reads objects, `store_access` is the access of strategies to the
cluster.

Specified by: k8s.io/apiserver/pkg/registry/generic, k8s.io/kubernetes/pkg/registry.
"""
