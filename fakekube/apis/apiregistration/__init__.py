"""The kinds of apiregistration.k8s.io: APIServices.

Specified by: k8s.io/kube-aggregator/pkg/apis/apiregistration.
"""
