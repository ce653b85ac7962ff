"""Addresses of load balancers and ingresses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    yield made
    made.stop()


def service(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "kind": "Service",
        "apiVersion": "v1",
        "metadata": {"name": name},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}], **spec},
    }


def addresses(cluster: Cluster, name: str) -> list[str]:
    ingress = cluster.get("services", name)["status"]["loadBalancer"].get("ingress", [])
    return [one["ip"] for one in ingress]


def test_each_load_balancer_has_an_address(cluster: Cluster) -> None:
    for name, spec in (
        ("a", {}),
        ("b", {}),
        ("asked", {"loadBalancerIP": "192.0.2.7"}),
        ("other", {"loadBalancerClass": "x.io/lb"}),
    ):
        cluster.create(service(name, **spec))
    cluster.settle()
    assert [addresses(cluster, name) for name in ("a", "b", "asked", "other")] == [
        ["172.18.255.1"],
        ["172.18.255.2"],
        ["192.0.2.7"],
        [],
    ]
    reasons = [event["reason"] for event in cluster.list("events") if event["involvedObject"]["name"] == "a"]
    assert reasons == ["EnsuringLoadBalancer", "EnsuredLoadBalancer"]


def test_the_address_is_removed_with_the_type_and_with_the_service(cluster: Cluster) -> None:
    cluster.create(service("a"))
    cluster.create(service("b"))
    cluster.settle()
    cluster.patch("services", "a", {"spec": {"type": "ClusterIP"}})
    cluster.delete("services", "b")
    cluster.settle()
    assert addresses(cluster, "a") == [] and "finalizers" not in cluster.get("services", "a")["metadata"]
    assert "b" not in [one["metadata"]["name"] for one in cluster.list("services")]


def test_only_ingresses_of_other_controllers_get_no_address(cluster: Cluster) -> None:
    for name, controller in (("ours", "fakekube.dev/ingress-controller"), ("theirs", "example.com/ingress")):
        cluster.create(
            {
                "kind": "IngressClass",
                "apiVersion": "networking.k8s.io/v1",
                "metadata": {"name": name},
                "spec": {"controller": controller},
            }
        )
    backend = {"service": {"name": "s", "port": {"number": 80}}}
    for name in ("ours", "theirs", "absent", ""):
        cluster.create(
            {
                "kind": "Ingress",
                "apiVersion": "networking.k8s.io/v1",
                "metadata": {"name": f"i-{name or 'none'}"},
                "spec": {"defaultBackend": backend, **({"ingressClassName": name} if name else {})},
            }
        )
    cluster.settle()
    found = {one["metadata"]["name"]: one["status"]["loadBalancer"].get("ingress") for one in cluster.list("ingresses")}
    assert {name for name, ingress in found.items() if ingress} == {"i-ours", "i-absent", "i-none"}
