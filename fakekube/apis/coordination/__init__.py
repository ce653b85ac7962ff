"""The kinds of coordination.k8s.io: Leases.

Specified by: pkg/apis/coordination, pkg/registry/coordination.
"""
