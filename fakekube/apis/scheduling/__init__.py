"""The kinds of scheduling.k8s.io: PriorityClasses.

Specified by: pkg/apis/scheduling, pkg/registry/scheduling.
"""
