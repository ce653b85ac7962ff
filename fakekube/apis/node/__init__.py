"""The kinds of node.k8s.io: RuntimeClasses.

Specified by: pkg/apis/node, pkg/registry/node.
"""
