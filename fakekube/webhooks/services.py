"""Resolves the address of a Service for webhooks, extension API servers and services/proxy.

A Service that is forwarded leads to a port of this machine, whether it exists or not. Of the others, those of type
ExternalName lead to the name they stand for; nothing is behind a cluster IP here, as on a node whose kube-proxy knows no
endpoints of the Service: nothing is dialled, and the connection is refused.

Specified by: k8s.io/apiserver/pkg/util/proxy/proxy.go (ResolveCluster); pkg/proxy (REJECT for Services without endpoints).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fakekube.golang.quoting import go_quote
from fakekube.registry.cluster_access import ClusterAccess
from fakekube.registry.webhook_calls import CallError

__all__ = ["Address", "ServiceResolver"]

_ROUTED = ("ClusterIP", "LoadBalancer", "NodePort")

Address = tuple[str, int]
"""Host and port."""


class ServiceResolver:
    """Finds the address of a Service, for one cluster.

    Args:
        services: what the cluster holds.
        authority: the certificate of the cluster's own CA, PEM.
    """

    def __init__(self, services: ClusterAccess, authority: Callable[[], str] = str) -> None:
        self._services = services
        self._authority = authority
        self.forwards: dict[tuple[str, str], Address] = {}
        """By namespace and name: where requests to a Service go instead."""

    def authorities(self, namespace: str, name: str) -> bytes:
        """Whom to trust, PEM, where a webhook of a Service says nothing: the cluster's own CA, if the Service is forwarded."""
        return self._authority().encode() if (namespace, name) in self.forwards else b""

    def resolve(self, namespace: str, name: str, port: int) -> Address:
        """The address to connect to for a port of a Service. Raises CallError if there is none, in Go's words."""
        forwarded = self.forwards.get((namespace, name))
        if forwarded is not None:
            return forwarded
        service: Mapping[str, Any] | None = self._services.get("", "services", namespace, name)
        if service is None:
            raise CallError(f"service {go_quote(name)} not found")
        spec = service["spec"]
        kind = spec.get("type", "ClusterIP")
        if kind == "ExternalName":
            return spec["externalName"], port
        if kind not in _ROUTED:
            raise CallError(f"unsupported service type {go_quote(kind)}")
        if kind == "ClusterIP" and spec.get("clusterIP") == "None":
            raise CallError('cannot route to service with ClusterIP "None"')
        if not any(entry.get("port") == port for entry in spec.get("ports") or ()):
            raise CallError(f"no service port {port} found for service {go_quote(name)}")
        host = spec["clusterIP"]
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        raise CallError(f"dial tcp {place}: connect: connection refused")
