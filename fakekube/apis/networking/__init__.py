"""The kinds of networking.k8s.io: Ingresses, NetworkPolicies, IPAddresses, ServiceCIDRs.

Specified by: pkg/apis/networking, pkg/registry/networking.
"""
