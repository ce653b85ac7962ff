"""Quota evaluators: how much each object uses of the resource quotas of its namespace.

Specified by: pkg/quota/v1/evaluator/core, k8s.io/apiserver/pkg/quota.
"""
