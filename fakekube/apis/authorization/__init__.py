"""The review kinds of authentication.k8s.io and authorization.k8s.io.

Specified by: pkg/registry/authentication, pkg/registry/authorization.
"""
