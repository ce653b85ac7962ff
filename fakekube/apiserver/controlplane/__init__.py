"""The control loops that run inside kube-apiserver.

Each loop writes the status of a kind that the API server manages: the conditions and the serving of CustomResourceDefinitions,
the APIServices of served group versions and their availability, the condition `Dangling` of FlowSchemas. The controllers of
kube-controller-manager are in `controllers`.

Specified by: pkg/controlplane, k8s.io/apiextensions-apiserver/pkg/controller, k8s.io/kube-aggregator/pkg/controllers.
"""
