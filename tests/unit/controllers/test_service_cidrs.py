"""ServiceCIDRs are ready at once and stay while addresses come from them alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    cluster = Cluster(controllers="service-cidr-controller")
    cluster.clock.hold()
    yield cluster
    cluster.stop()


def make(cluster: Cluster, name: str, cidr: str) -> None:
    cluster.create(
        {"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "metadata": {"name": name}, "spec": {"cidrs": [cidr]}}
    )
    cluster.settle()


def service(cluster: Cluster, name: str, address: str) -> None:
    spec = {"clusterIP": address, "ports": [{"port": 80}]}
    cluster.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})


def ready(cluster: Cluster, name: str) -> dict[str, Any]:
    cluster.settle()
    (condition,) = cluster.get("servicecidrs", name)["status"]["conditions"]
    return {field: condition[field] for field in ("type", "status", "reason", "message")}


def is_there(cluster: Cluster, name: str) -> bool:
    return any(one["metadata"]["name"] == name for one in cluster.list("servicecidrs"))


READY = {"type": "Ready", "status": "True", "reason": "", "message": "Kubernetes Service CIDR is ready"}


def test_a_new_service_cidr_is_ready_and_protected(cluster: Cluster) -> None:
    make(cluster, "more", "10.9.0.0/24")
    assert ready(cluster, "more") == READY
    assert cluster.get("servicecidrs", "more")["metadata"]["finalizers"] == ["networking.k8s.io/service-cidr-finalizer"]


def test_an_unused_service_cidr_is_deleted_after_ten_seconds(cluster: Cluster) -> None:
    make(cluster, "more", "10.9.0.0/24")
    cluster.delete("servicecidrs", "more")
    cluster.clock.advance(seconds=9)
    assert is_there(cluster, "more")
    cluster.clock.advance(seconds=2)
    assert not is_there(cluster, "more")


def test_a_service_cidr_in_use_is_kept(cluster: Cluster) -> None:
    make(cluster, "more", "10.9.0.0/24")
    service(cluster, "s", "10.9.0.7")
    cluster.delete("servicecidrs", "more")
    cluster.clock.advance(seconds=20)
    assert ready(cluster, "more") == {
        "type": "Ready",
        "status": "False",
        "reason": "Terminating",
        "message": "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR",
    }
    cluster.delete("services", "s")
    cluster.clock.advance(seconds=20)
    assert not is_there(cluster, "more")


def test_a_service_cidr_within_another_is_deleted_although_in_use(cluster: Cluster) -> None:
    make(cluster, "small", "10.9.0.0/24")
    make(cluster, "large", "10.9.0.0/16")
    service(cluster, "s", "10.9.0.7")
    cluster.delete("servicecidrs", "small")
    cluster.clock.advance(seconds=20)
    assert not is_there(cluster, "small")
