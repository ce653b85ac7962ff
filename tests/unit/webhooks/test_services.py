"""Where the API server connects to for a Service."""

from __future__ import annotations

from typing import Any

import pytest

from fakekube import Cluster
from fakekube.registry.webhook_calls import CallError
from fakekube.webhooks.services import ForwardedServices, ServiceResolver


class ClusterAccess:
    """A cluster with one Service."""

    def __init__(self, **spec: Any) -> None:
        self._service = {"spec": {"type": "ClusterIP", "clusterIP": "10.0.0.7", "ports": [{"port": 443}], **spec}}

    def get(self, group: str, plural: str, namespace: str, name: str) -> Any:
        return self._service if (group, plural, namespace, name) == ("", "services", "n", "hook") else None


def resolver(**spec: Any) -> ServiceResolver:
    services: Any = ClusterAccess(**spec)
    return ServiceResolver(services)


@pytest.mark.parametrize(("spec", "port", "problem"), [
    ({}, 443, "dial tcp 10.0.0.7:443: connect: connection refused"),
    ({"clusterIP": "fd00::7"}, 443, "dial tcp [fd00::7]:443: connect: connection refused"),
    ({"type": "LoadBalancer"}, 443, "dial tcp 10.0.0.7:443: connect: connection refused"),
    ({}, 80, 'no service port 80 found for service "hook"'),
    ({"clusterIP": "None"}, 443, 'cannot route to service with ClusterIP "None"'),
    ({"type": "Odd"}, 443, 'unsupported service type "Odd"'),
])
def test_nothing_is_behind_a_cluster_ip(spec: dict[str, Any], port: int, problem: str) -> None:
    with pytest.raises(CallError) as caught:
        resolver(**spec).resolve("n", "hook", port)
    assert str(caught.value) == problem


def test_an_external_name_leads_outside() -> None:
    assert resolver(type="ExternalName", externalName="localhost").resolve("n", "hook", 9443) == ("localhost", 9443)


def test_a_forwarded_service_need_not_exist() -> None:
    found = resolver()
    forwarded = ForwardedServices(found)
    forwarded.forward("n/hook", 4711)
    forwarded.forward("m/absent", 4712, host="127.0.0.2")
    assert found.resolve("n", "hook", 443) == ("127.0.0.1", 4711)
    assert found.resolve("m", "absent", 80) == ("127.0.0.2", 4712)
    forwarded.forward("m/absent", None)
    with pytest.raises(CallError, match='service "absent" not found'):
        found.resolve("m", "absent", 80)


@pytest.mark.parametrize(("service", "port"), [
    ("hook", 1), ("/hook", 1), ("n/", 1), ("n/hook/x", 1), ("n/hook", 0), ("n/hook", 65536),
])
def test_what_cannot_be_forwarded(service: str, port: int) -> None:
    with pytest.raises(ValueError, match=r"namespace/name|TCP port"):
        ForwardedServices(resolver()).forward(service, port)


def test_a_fork_forwards_as_its_origin_did() -> None:
    cluster = Cluster(profile="apiserver")
    cluster.services.forward("n/hook", 4711)
    twin = cluster.fork()
    cluster.services.forward("n/hook", None)
    assert twin._machinery.resolver.resolve("n", "hook", 443) == ("127.0.0.1", 4711)
