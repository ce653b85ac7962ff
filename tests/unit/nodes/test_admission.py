"""Pods that were created with a nodeName: their kubelet rejects those that do not fit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(controllers="*,-taint-eviction-controller") as made:  # which deletes rejected pods
        made.clock.hold()
        yield made


def pod(name: str, container: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    main = {"name": "main", "image": "app:1", **(container or {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"nodeName": "node-1", "containers": [main], **spec},
    }


def status_of(cluster: Cluster, name: str) -> Any:
    cluster.settle()
    return cluster.get("pods", name)["status"]


HOST_PORT = {"ports": [{"containerPort": 80, "hostPort": 8080}]}


def requesting(**requests: str) -> dict[str, Any]:
    return {"resources": {"requests": requests, "limits": requests}}


@pytest.mark.parametrize(
    ("wanted", "reason", "message"),
    [
        (
            pod("p", requesting(cpu="17")),
            "OutOfcpu",
            "Node didn't have enough resource: cpu, requested: 17000, used: 1000, capacity: 16000",
        ),
        (
            pod("p", nodeSelector={"disk": "ssd"}),
            "NodeAffinity",
            "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
        ),
        (
            pod("p", HOST_PORT),
            "NodePorts",
            "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
        ),
    ],
    ids=["resources", "node affinity", "host port"],
)
def test_a_pod_that_does_not_fit_is_rejected(cluster: Cluster, wanted: Any, reason: str, message: str) -> None:
    cluster.create(pod("first", {**HOST_PORT, **requesting(cpu="1")}))
    assert status_of(cluster, "first")["phase"] == "Running"
    cluster.create(wanted)
    found = status_of(cluster, "p")
    assert (found["phase"], found["reason"], found["message"]) == ("Failed", reason, f"Pod was rejected: {message}")
    (event,) = [one for one in cluster.list("events") if one["involvedObject"]["name"] == "p"]
    assert (event["type"], event["reason"], event["message"]) == ("Warning", reason, message)


def test_a_pod_that_another_scheduler_binds_is_rejected_if_it_does_not_fit(cluster: Cluster) -> None:
    wanted = pod("p", requesting(cpu="17"), schedulerName="mine")
    del wanted["spec"]["nodeName"]
    cluster.create(wanted)
    binding = {"kind": "Binding", "apiVersion": "v1", "metadata": {"name": "p"}, "target": {"kind": "Node", "name": "node-1"}}
    assert cluster.request("POST", "/api/v1/namespaces/default/pods/p/binding", binding).status == 201
    found = status_of(cluster, "p")
    assert (found["phase"], found["reason"]) == ("Failed", "OutOfcpu")


def test_a_pod_is_rejected_by_a_node_with_a_taint_that_it_does_not_tolerate(cluster: Cluster) -> None:
    cluster.nodes.taint("node-1", "gone", effect="NoExecute")
    cluster.create(pod("p"))
    cluster.create(pod("tolerant", tolerations=[{"operator": "Exists"}]))
    found = status_of(cluster, "p")
    message = "Pod was rejected: Predicate TaintToleration failed: node(s) had untolerated taint(s)"
    assert (found["phase"], found["reason"], found["message"]) == ("Failed", "TaintToleration", message)
    assert status_of(cluster, "tolerant")["phase"] == "Running"


def test_of_two_pods_with_the_same_host_port_one_is_admitted(cluster: Cluster) -> None:
    for name in ("one", "two"):
        cluster.create(pod(name, HOST_PORT))
    assert sorted(status_of(cluster, name)["phase"] for name in ("one", "two")) == ["Failed", "Running"]


def test_terminated_pods_do_not_count(cluster: Cluster) -> None:
    cluster.pods.on(name="first").exits(0)
    cluster.create(pod("first", HOST_PORT, restartPolicy="Never"))
    assert status_of(cluster, "first")["phase"] == "Succeeded"
    cluster.create(pod("second", HOST_PORT))
    assert status_of(cluster, "second")["phase"] == "Running"


def test_extended_resources_that_the_node_does_not_have_are_ignored(cluster: Cluster) -> None:
    cluster.create(pod("p", requesting(**{"example.com/device": "1"})))
    assert status_of(cluster, "p")["phase"] == "Running"


def test_cordoned_nodes_admit_pods(cluster: Cluster) -> None:
    cluster.nodes.cordon("node-1")
    cluster.create(pod("p"))
    assert status_of(cluster, "p")["phase"] == "Running"


@pytest.mark.parametrize(
    ("spec", "labels", "reason"),
    [
        ({"os": {"name": "windows"}}, {}, "PodOSNotSupported"),
        ({}, {"kubernetes.io/os": "windows"}, "PodOSSelectorNodeLabelDoesNotMatch"),
        ({"os": {"name": "linux"}}, {"kubernetes.io/os": "linux"}, None),
    ],
)
def test_a_pod_for_another_operating_system_is_rejected(cluster: Cluster, spec: Any, labels: Any, reason: Any) -> None:
    made = pod("p", **spec)
    made["metadata"]["labels"] = labels
    cluster.create(made)
    status = status_of(cluster, "p")
    assert (status.get("reason"), status["phase"]) == (reason, "Failed" if reason else "Running")
