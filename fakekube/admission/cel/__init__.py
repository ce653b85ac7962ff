"""Expressions in admission: match conditions of webhooks and policies, and what policies compute.

`activation` is what expressions may name in one write, `conditions` evaluates compiled expressions within a budget of
costs, `matchconditions` decides by conditions whether a webhook or a policy is asked at all.

Specified by: k8s.io/apiserver/pkg/admission/plugin/cel.
"""
