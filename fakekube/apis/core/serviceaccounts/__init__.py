"""Service accounts: the kind (`strategy`), and the subresource that creates tokens (`token`).

Specified by: pkg/registry/core/serviceaccount.
"""
