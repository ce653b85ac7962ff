"""The endpoints of the control API for Services of webhooks and aggregated APIs that run outside of the cluster.

    GET    services/forward
    POST   services/forward      {"service": "default/webhook", "port": 9443, "host": "127.0.0.1"}
    DELETE services/forward?service=default/webhook
    POST   services/certificate  {"service": "default/webhook"}

They are what `cluster.services` offers in Python (`cluster.testing.services`).

Invariant: only Services in the form `namespace/name` are forwarded, only to TCP ports.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fakekube.cluster.control.members import BadMembers

if TYPE_CHECKING:
    from fakekube.cluster import Cluster


Answer = tuple[int, Any]
Members = Mapping[str, Any]


def port(value: Any) -> int:
    """Checks a TCP port."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 65536:
        raise ValueError("a number from 1 to 65535")
    return value


def _describe(cluster: Cluster, service: str) -> dict[str, Any]:
    host, port = cluster.services.forwarded[service]
    return {"service": service, "host": host, "port": port}


def list_forwards(cluster: Cluster, _members: Members) -> Answer:
    return 200, {"items": [_describe(cluster, service) for service in cluster.services.forwarded]}


def forward_service(cluster: Cluster, members: Members) -> Answer:
    service = members["service"]
    try:
        cluster.services.forward(service, members["port"], host=members.get("host", "127.0.0.1"))
    except ValueError as problem:
        raise BadMembers(str(problem)) from None
    return 201, _describe(cluster, service)


def end_forward(cluster: Cluster, members: Members) -> Answer:
    """Ends one forwarding, or all without a Service."""
    chosen = [members["service"]] if "service" in members else list(cluster.services.forwarded)
    for service in chosen:
        if service not in cluster.services.forwarded:
            raise LookupError(f"{service} is not forwarded")
        cluster.services.forward(service, None)
    return list_forwards(cluster, members)


def issue_certificate(cluster: Cluster, members: Members) -> Answer:
    """Issues a certificate for a Service, with the files that a webhook server reads and the caBundle of its configuration."""
    try:
        issued = cluster.services.certificate(members["service"])
    except ValueError as problem:
        raise BadMembers(str(problem)) from None
    return 201, {"certificate": issued.certificate, "key": issued.key, "caBundle": issued.ca_bundle}
