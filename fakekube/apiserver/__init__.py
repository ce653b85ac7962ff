"""The API server: HTTP application, authentication, handlers, admission and the generic registry, put together in `server`.

Specified by: k8s.io/apiserver, k8s.io/kube-aggregator, k8s.io/kubernetes/pkg/controlplane.
"""
