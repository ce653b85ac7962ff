"""CEL expressions in admission: match conditions of webhooks and policies, and the expressions of policies.

`activation` provides the variables of one write, `conditions` evaluates compiled expressions within a cost budget, and
`matchconditions` decides whether a webhook or a policy is called.

Specified by: k8s.io/apiserver/pkg/admission/plugin/cel.
"""
