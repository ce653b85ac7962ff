"""The control loops that run inside kube-apiserver itself.

Each one keeps the status of a kind that the API server owns: the conditions and the serving of
CustomResourceDefinitions, the APIServices of what is served and their availability, the condition `Dangling` of FlowSchemas.
The loops of kube-controller-manager are in `controllers`.

Specified by: pkg/controlplane, k8s.io/apiextensions-apiserver/pkg/controller, k8s.io/kube-aggregator/pkg/controllers.
"""
