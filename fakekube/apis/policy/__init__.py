"""The kinds of policy: PodDisruptionBudgets. Evictions are with the pods (`apis.core.pods.eviction`).

Specified by: pkg/apis/policy, pkg/registry/policy.
"""
