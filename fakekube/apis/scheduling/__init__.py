"""The kinds of scheduling.k8s.io: PriorityClasses, Workloads, and the groups of pods that belong to them.

Specified by: pkg/apis/scheduling, pkg/registry/scheduling.
"""
