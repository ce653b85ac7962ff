"""The kinds of rbac.authorization.k8s.io: Roles, ClusterRoles and their bindings.

Specified by: pkg/apis/rbac, pkg/registry/rbac.
"""
