"""The addresses of the API server that pods reach: Endpoints and EndpointSlice of the Service `kubernetes`.

A kube-apiserver that listens on loopback only has none; that of a cluster with nodes has its address in the network of the nodes.

Specified by: pkg/controlplane/reconcilers/endpointsadapter.go, pkg/controlplane/reconcilers/helpers.go.
"""

from __future__ import annotations

from typing import Any, Final

#: The first address of the network of the nodes.
_ADDRESS: Final = "172.18.0.1"
_PORT: Final[dict[str, Any]] = {"name": "https", "port": 6443, "protocol": "TCP"}

API_SERVER_ENDPOINTS: Final[tuple[dict[str, Any], ...]] = (
    {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
        "subsets": [{"addresses": [{"ip": _ADDRESS}], "ports": [_PORT]}],
    },
    {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": {"kubernetes.io/service-name": "kubernetes"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [_ADDRESS], "conditions": {"ready": True}}],
        "ports": [_PORT],
    },
)
