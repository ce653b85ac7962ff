"""Pods that are deleted while their programs handle SIGTERM, and what traffic and probes see meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster

SERVES = ["netexec", "--http-port=80", "--delay-shutdown=20"]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as made:
        made.clock.hold()
        yield made


def start(cluster: Cluster, name: str = "p", grace: int = 30, labels: dict[str, str] | None = None, **main: Any) -> None:
    container = {"name": "main", "image": "busybox", **main}
    metadata = {"name": name, "labels": labels or {}}
    spec = {"containers": [container], "terminationGracePeriodSeconds": grace}
    cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    cluster.settle()


def shell(script: str) -> dict[str, Any]:
    return {"command": ["sh", "-c", script]}


def names(cluster: Cluster) -> list[str]:
    return [one["metadata"]["name"] for one in cluster.list("pods")]


def advance(cluster: Cluster, seconds: float) -> None:
    cluster.clock.advance(seconds=seconds)
    cluster.settle()


def delete(cluster: Cluster, name: str = "p") -> None:
    cluster.delete("pods", name)
    cluster.settle()


def test_a_program_without_a_handler_ends_at_once(cluster: Cluster) -> None:
    start(cluster, **shell("sleep 1000"))
    delete(cluster)
    assert names(cluster) == []


def test_a_trap_runs_and_its_end_is_waited_for(cluster: Cluster) -> None:
    start(cluster, **shell("trap 'echo bye; sleep 5; exit 3' TERM; while true; do sleep 1; done"))
    delete(cluster)
    assert cluster.pods.get("p").logs() == "bye\n"
    advance(cluster, 4)
    assert names(cluster) == ["p"]
    advance(cluster, 2)
    assert names(cluster) == []


def test_a_program_that_takes_longer_than_the_grace_period_is_killed(cluster: Cluster) -> None:
    start(cluster, grace=4, **shell("trap 'sleep 100' TERM; while true; do sleep 1; done"))
    delete(cluster)
    advance(cluster, 3)
    assert names(cluster) == ["p"]
    advance(cluster, 2)
    assert names(cluster) == []


def test_a_pod_that_shuts_down_serves_on_and_is_not_ready(cluster: Cluster) -> None:
    probe = {"httpGet": {"port": 80, "path": "/readyz"}, "periodSeconds": 1, "failureThreshold": 1}
    start(cluster, image="agnhost", args=SERVES, labels={"app": "a"}, readinessProbe=probe)
    start(cluster, "client", image="busybox", **shell("sleep 1000"))
    service = {"selector": {"app": "a"}, "ports": [{"port": 80}]}
    cluster.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": service})
    cluster.settle()
    delete(cluster)
    advance(cluster, 2)
    conditions = {one["type"]: one["status"] for one in cluster.get("pods", "p")["status"]["conditions"]}
    assert conditions["Ready"] == "False"
    address = cluster.get("pods", "p")["status"]["podIP"]
    client = cluster.pods.get("client")
    assert client.exec(f"wget -q -O - http://{address}/hostname").stdout == "p"
    assert client.exec("wget -q -O - http://s/hostname").code == 1, "it does not even serve as a terminating endpoint"
    advance(cluster, 20)
    assert names(cluster) == ["client"]


def test_traffic_goes_to_terminating_endpoints_if_there_are_no_others(cluster: Cluster) -> None:
    start(cluster, image="agnhost", args=SERVES, labels={"app": "a"})
    start(cluster, "client", image="busybox", **shell("sleep 1000"))
    service = {"selector": {"app": "a"}, "ports": [{"port": 80}]}
    cluster.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": service})
    cluster.settle()
    delete(cluster)
    assert cluster.pods.get("client").exec("wget -q -O - http://s/hostname").stdout == "p"


def test_readiness_gates_make_a_pod_with_a_known_program_ready(cluster: Cluster) -> None:
    spec = {"containers": [{"name": "main", "image": "agnhost"}], "readinessGates": [{"conditionType": "example.com/gate"}]}
    cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
    cluster.settle()

    def ready() -> str:
        conditions = {one["type"]: one["status"] for one in cluster.get("pods", "p")["status"]["conditions"]}
        return str(conditions["Ready"])

    assert ready() == "False"
    pod = cluster.get("pods", "p")
    gate = {"type": "example.com/gate", "status": "True"}
    cluster.patch("pods", "p", {"status": {"conditions": [*pod["status"]["conditions"], gate]}}, subresource="status")
    cluster.settle()
    assert ready() == "True"


@pytest.mark.parametrize("label", ["service-proxy-name", "headless"])
def test_a_service_that_is_left_to_another_proxy_is_not_reachable(cluster: Cluster, label: str) -> None:
    start(cluster, image="agnhost", args=SERVES, labels={"app": "a"})
    labels = {f"service.kubernetes.io/{label}": ""}
    service = {"selector": {"app": "a"}, "ports": [{"port": 80}]}
    cluster.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "labels": labels}, "spec": service})
    cluster.settle()
    address = cluster.get("services", "s")["spec"]["clusterIP"]
    inside = cluster.pods.get("p")
    assert inside.exec(f"wget -q -O - http://{address}/hostname").code == 1
    cluster.patch("services", "s", {"metadata": {"labels": {next(iter(labels)): None}}})
    cluster.settle()
    assert inside.exec(f"wget -q -O - http://{address}/hostname").stdout == "p"
