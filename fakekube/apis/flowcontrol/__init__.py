"""The kinds of flowcontrol.apiserver.k8s.io: FlowSchemas and PriorityLevelConfigurations.

Specified by: pkg/apis/flowcontrol, pkg/registry/flowcontrol.
"""
