"""Resource quota: what each object uses of the quotas of its namespace.

Specified by: pkg/quota/v1/evaluator/core, k8s.io/apiserver/pkg/quota.
"""
