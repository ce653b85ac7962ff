"""Where the API server connects to for a Service: webhooks, extension servers and services/proxy all ask here.

A Service that is forwarded leads to a port of this machine, whether it exists or not. Of the others, those of type
ExternalName lead to the name they stand for; nothing is behind a cluster IP here, as on a node whose kube-proxy knows no
endpoints of the Service: nothing is dialled, and the connection is refused.

Specified by: k8s.io/apiserver/pkg/util/proxy/proxy.go (ResolveCluster); pkg/proxy (REJECT for Services without endpoints).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fakekube.golang.quoting import go_quote
from fakekube.registry.cluster_access import ClusterAccess
from fakekube.registry.webhook_calls import CallError

__all__ = ["ForwardedServices", "ServiceResolver"]

_ROUTED = ("ClusterIP", "LoadBalancer", "NodePort")

Address = tuple[str, int]
"""Host and port."""


class ServiceResolver:
    """Finds the address of a Service, for one cluster."""

    def __init__(self, services: ClusterAccess) -> None:
        self._services = services
        self.forwards: dict[tuple[str, str], Address] = {}
        """By namespace and name: where requests to a Service go instead."""

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


class ForwardedServices:
    """`Cluster.services`: which Services lead to ports of this machine."""

    def __init__(self, resolver: ServiceResolver) -> None:
        self._forwards = resolver.forwards

    def forward(self, service: str, port: int | None, *, host: str = "127.0.0.1") -> None:
        """Send what the API server itself sends to a Service to a port of this machine, whatever port of the Service is
        meant: calls of webhooks, requests for aggregated APIs, services/proxy. The Service need not exist.

        Args:
            service: `namespace/name`.
            port: a TCP port; None ends the forwarding.
            host: where the port is.

        Raises:
            ValueError: the Service is not named `namespace/name`, or the port is not between 1 and 65535.
        """
        namespace, slash, name = service.partition("/")
        if not (namespace and slash and name) or "/" in name:
            raise ValueError(f"a Service is named namespace/name, not {service!r}")
        if port is None:
            self._forwards.pop((namespace, name), None)
            return
        if not 0 < port < 65536:
            raise ValueError(f"{port} is not a TCP port")
        self._forwards[namespace, name] = (host, port)
