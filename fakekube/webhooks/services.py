"""Where a service of the cluster is reached from outside of it: by its cluster IP, or the name it stands for.

Specified by: k8s.io/apiserver/pkg/util/proxy/proxy.go (ResolveCluster).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fakekube.errors.field import go_quote
from fakekube.resources.services import Services
from fakekube.resources.webhook_calls import CallError

__all__ = ["resolve"]

_ROUTED = ("ClusterIP", "LoadBalancer", "NodePort")


def resolve(services: Services, namespace: str, name: str, port: int) -> tuple[str, int]:
    """Host and port to connect to. Raises CallError."""
    service: Mapping[str, Any] | None = services.get("", "services", namespace, name)
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
    return spec["clusterIP"], port
