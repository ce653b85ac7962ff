"""The ports of kube-proxy on a node: its health, on the node itself the mode of its proxier, and the health of Services whose
traffic stays on its node.

Specified by: pkg/proxy/healthcheck/proxy_health.go and service_health.go; cmd/kube-proxy/app/server.go (serveMetrics).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Final

from fakekube.apiserver.endpoints.negotiation import PLAIN_TEXT
from fakekube.base.clock import Clock
from fakekube.base.golang.timestamps import print_time
from fakekube.base.objects import StoredObject
from fakekube.nodes.runtime.network import PROXY_HEALTH_PORT

#: The taint by which the autoscaler marks a node that it will delete.
_TO_BE_DELETED: Final = "ToBeDeletedByClusterAutoscaler"


class KubeProxy:
    """A port of kube-proxy as a WSGI application.

    Args:
        port: the port.
        node: the node.
        clock: of the cluster.
    """

    def __init__(self, port: int, node: StoredObject, clock: Clock) -> None:
        self._pages = {"/proxyMode": self._mode, "/healthz": self._ok}
        if port == PROXY_HEALTH_PORT:
            self._pages = {"/healthz": self._health, "/livez": self._alive}
        self._node, self._clock = node, clock

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        page = self._pages.get(environ["PATH_INFO"])
        status, kind, body = page() if page is not None else ("404 Not Found", PLAIN_TEXT, "404 page not found\n")
        headers = [("Content-Type", kind), ("X-Content-Type-Options", "nosniff"), ("Content-Length", str(len(body)))]
        start_response(status, headers)
        return [body.encode()]

    def _mode(self) -> tuple[str, str, str]:
        return "200 OK", PLAIN_TEXT, "iptables"

    def _ok(self) -> tuple[str, str, str]:
        return "200 OK", PLAIN_TEXT, "ok"

    def _health(self) -> tuple[str, str, str]:
        taints = self._node["spec"].get("taints") or ()
        eligible = "deletionTimestamp" not in self._node["metadata"] and all(one["key"] != _TO_BE_DELETED for one in taints)
        return "200 OK" if eligible else "503 Service Unavailable", "application/json", self._document(nodeEligible=eligible)

    def _alive(self) -> tuple[str, str, str]:
        return "200 OK", "application/json", self._document()

    def _document(self, **more: bool) -> str:
        now = print_time(self._clock.now())
        status = {"IPv4": {"lastUpdated": now, "healthy": True}}
        return json.dumps(
            {"lastUpdated": now, "currentTime": now, **more, "healthy": True, "status": status}, separators=(",", ":")
        )


class ServiceHealth:
    """The healthCheckNodePort of a Service on a node as a WSGI application: whether the node has endpoints.

    Args:
        service: the Service.
        count: returns the number of its endpoints on the node that are ready.
    """

    def __init__(self, service: StoredObject, count: Callable[[], int]) -> None:
        self._service, self._count = service, count

    def __call__(self, _environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        metadata, count = self._service["metadata"], self._count()
        names = {"namespace": metadata["namespace"], "name": metadata["name"]}
        body = json.dumps({"service": names, "localEndpoints": count, "serviceProxyHealthy": True}, indent="\t").encode()
        headers = [
            ("Content-Type", "application/json"),
            ("X-Content-Type-Options", "nosniff"),
            ("X-Load-Balancing-Endpoint-Weight", str(count)),
            ("Content-Length", str(len(body))),
        ]
        start_response("200 OK" if count else "503 Service Unavailable", headers)
        return [body]
