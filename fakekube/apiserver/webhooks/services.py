"""Resolves the addresses of Services that webhooks and APIServices name.

A forwarded Service resolves to a port of this machine, whether the Service exists or not. Of the others, a Service of type
ExternalName resolves to its external name. No server listens at a cluster IP here, so for all others the connection is
refused without dialing, as kube-proxy refuses it for a Service without endpoints.

Specified by: k8s.io/apiserver/pkg/util/proxy/proxy.go (ResolveCluster); pkg/proxy (REJECT for Services without endpoints).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from fakekube.apis.rest.cluster_access import CallError, ClusterAccess
from fakekube.base.golang.strconv import go_quote
from fakekube.base.golang.urls import refused_dial

_log = logging.getLogger(__name__)

#: The error of a service without an address.
HEADLESS = 'cannot route to service with ClusterIP "None"'
ROUTED_TYPES = ("ClusterIP", "LoadBalancer", "NodePort")


Address = tuple[str, int]
"""Host and port."""


class ServiceResolver:
    """Resolves the addresses of the Services of one cluster.

    Args:
        services: access to the stored Services.
        authority: returns the certificate of the cluster's CA in PEM.
    """

    def __init__(self, services: ClusterAccess, authority: Callable[[], str] = str) -> None:
        self._services = services
        self._authority = authority
        self.forwards: dict[tuple[str, str], Address] = {}
        """(namespace, name) of a Service → the address that it is forwarded to."""

        self.route: Callable[[str, str, int], Address | None] | None = None
        """Returns the address that leads to an endpoint of a port of a Service; None if there is none."""
        self._unreachable: set[tuple[str, str]] = set()
        """The Services for which a warning was logged."""

    def authorities(self, namespace: str, name: str) -> bytes:
        """Returns the default CA bundle in PEM for a Service: the CA of the cluster if the Service is forwarded, else empty."""
        return self._authority().encode() if (namespace, name) in self.forwards else b""

    def resolve(self, namespace: str, name: str, port: int) -> Address:
        """Returns the address of a port of a Service. Raises CallError if there is none; the first time, it is logged."""
        try:
            return self._resolve(namespace, name, port)
        except CallError as error:
            if (namespace, name) not in self._unreachable:
                self._unreachable.add((namespace, name))
                service = f"{namespace}/{name}"
                _log.warning(
                    "the Service %s does not lead anywhere: %s; to call a program of this machine in its place, use "
                    "--forward %s=PORT, cluster.services.forward(%r, PORT), or POST /fakekube/v1/services/forward",
                    *(service, error, service, service),
                )
            raise

    def _resolve(self, namespace: str, name: str, port: int) -> Address:
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
        if kind not in ROUTED_TYPES:
            raise CallError(f"unsupported service type {go_quote(kind)}")
        if kind == "ClusterIP" and spec.get("clusterIP") == "None":
            raise CallError(HEADLESS)
        if not any(entry.get("port") == port for entry in spec.get("ports") or ()):
            raise CallError(f"no service port {port} found for service {go_quote(name)}")
        host = spec["clusterIP"]
        found = self.route(namespace, name, port) if self.route is not None else None
        if found is not None:
            return found
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        raise CallError(refused_dial(place))
