"""The scheduler in a cluster: preemption, gates, claims that wait for a pod, and what its events say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster

Object = dict[str, Any]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster(nodes=0)
    made.clock.hold()
    made.nodes.add("n", cpu=2)
    made.settle()
    yield made
    made.stop()


def pod(name: str, cpu: str = "1", **spec: Any) -> Object:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def run(cluster: Cluster, *pods: Object) -> None:
    for one in pods:
        cluster.create(one)
    cluster.settle()


def node_of(cluster: Cluster, name: str) -> str | None:
    found: str | None = cluster.get("pods", name)["spec"].get("nodeName")
    return found


def events(cluster: Cluster, reason: str) -> list[Object]:
    return [one for one in cluster.list("events.events.k8s.io") if one["reason"] == reason]


def test_a_preempting_pod_is_nominated_and_then_bound(cluster: Cluster) -> None:
    cluster.create({"kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1", "metadata": {"name": "high"}, "value": 1000})
    cluster.pods.on(name="low").terminates(after=5)
    run(cluster, pod("low", "2"))
    run(cluster, pod("high", "2", priorityClassName="high"))
    assert cluster.get("pods", "high")["status"]["nominatedNodeName"] == "n"
    low = cluster.get("pods", "low")
    condition = next(one for one in low["status"]["conditions"] if one["type"] == "DisruptionTarget")
    assert (condition["reason"], "deletionTimestamp" in low["metadata"]) == ("PreemptionByScheduler", True)
    (said,) = events(cluster, "Preempted")
    uid = cluster.get("pods", "high")["metadata"]["uid"]
    assert (said["note"], said["action"], said["related"]["name"]) == (f"Preempted by pod {uid} on node n", "Preempting", "high")
    cluster.clock.advance(seconds=5)
    cluster.settle()
    assert (node_of(cluster, "high"), [one["metadata"]["name"] for one in cluster.list("pods")]) == ("n", ["high"])


def test_scheduling_gates(cluster: Cluster) -> None:
    run(cluster, pod("gated", schedulingGates=[{"name": "example.com/a"}]))
    assert node_of(cluster, "gated") is None and not events(cluster, "FailedScheduling")
    cluster.patch("pods", "gated", {"spec": {"schedulingGates": None}})
    cluster.settle()
    assert node_of(cluster, "gated") == "n"


def test_a_pod_waits_until_its_status_names_the_claims_of_templates(cluster: Cluster) -> None:
    claims = [{"name": "c", "resourceClaimTemplateName": "missing"}]
    run(cluster, pod("claiming", resourceClaims=claims))
    assert node_of(cluster, "claiming") is None and not events(cluster, "FailedScheduling")
    status = {"status": {"resourceClaimStatuses": [{"name": "c"}]}}  # no claim is needed
    cluster.patch("pods", "claiming", status, subresource="status")
    cluster.settle()
    assert node_of(cluster, "claiming") == "n"


def test_equal_failures_become_an_event_series(cluster: Cluster) -> None:
    run(cluster, pod("large", "8"))
    for number in range(3):  # each time one goes, the large one is tried again
        run(cluster, pod(f"p{number}"))
        cluster.delete("pods", f"p{number}")
        cluster.settle()
    first, second = sorted(events(cluster, "FailedScheduling"), key=lambda one: "series" in one)  # the clock is held
    assert first["note"].startswith("0/1 nodes are available: 1 Insufficient cpu.") and "series" not in first
    assert (second["series"]["count"], second["reportingController"]) == (2, "default-scheduler")


@pytest.mark.parametrize("refused", [False, True])
def test_a_wait_for_first_consumer_claim_is_bound_with_its_pod(cluster: Cluster, refused: bool) -> None:
    cluster.create(
        {
            "kind": "StorageClass",
            "apiVersion": "storage.k8s.io/v1",
            "metadata": {"name": "late"},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        }
    )
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n"]}]}]
    cluster.create(
        {
            "kind": "PersistentVolume",
            "apiVersion": "v1",
            "metadata": {"name": "v"},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "late",
                "hostPath": {"path": "/x"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
            },
        }
    )
    cluster.create(
        {
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "metadata": {"name": "c"},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "late", "resources": {"requests": {"storage": "1Gi"}}},
        }
    )
    cluster.settle()
    assert cluster.get("pvc", "c")["status"]["phase"] == "Pending"
    if refused:
        cluster.faults.on("create", "pods/binding", own=True).status(500, times=1)
    run(cluster, pod("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]))
    if refused:
        cluster.clock.advance(seconds=10)
        cluster.settle()
    assert (cluster.get("pvc", "c")["spec"]["volumeName"], node_of(cluster, "p")) == ("v", "n")


def test_a_pod_that_cannot_be_bound_is_tried_again_after_a_back_off(cluster: Cluster) -> None:
    refuses = cluster.faults.on("create", "pods/binding", own=True).status(500)
    run(cluster, pod("a"))
    first = refuses.hits
    cluster.clock.advance(seconds=1)
    cluster.settle()
    refuses.remove()
    assert node_of(cluster, "a") is None
    assert first < 3 < refuses.hits < 30  # after 5 ms, 10 ms, 20 ms …
    cluster.clock.advance(minutes=1)
    cluster.settle()
    assert node_of(cluster, "a") == "n"


@pytest.mark.parametrize("where", ["schedule_pod", "preempt", "VolumeBinder.bind"])
def test_a_pod_is_tried_again_after_an_unexpected_error(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("division by zero")

    cluster.patch("nodes", "n", {"spec": {"unschedulable": where == "preempt"}})
    with monkeypatch.context() as patched:
        patched.setattr(f"fakekube.controllers.scheduler.scheduler.{where}", fail)
        run(cluster, pod("p"))
    cluster.patch("nodes", "n", {"spec": {"unschedulable": False}})
    (condition,) = cluster.get("pods", "p")["status"]["conditions"]
    assert [condition[name] for name in ("type", "status", "reason", "message")] == [
        "PodScheduled", "False", "SchedulerError", "division by zero",
    ]  # fmt: skip
    assert node_of(cluster, "p") is None
    cluster.clock.advance(seconds=1)
    cluster.settle()
    assert node_of(cluster, "p") == "n"


def test_a_pod_waits_for_a_node_whose_kubelet_declares_the_features_that_it_needs() -> None:
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [5]}}
    made = pod("p")
    made["spec"]["containers"][0] |= {"restartPolicy": "Never", "restartPolicyRules": [rule]}
    with Cluster(version="1.36", nodes=0) as cluster:
        cluster.clock.hold()
        node = cluster.nodes.add("n", silent=True)
        ready = [{"type": "Ready", "status": "True", "reason": "r", "message": "m"}]
        cluster.patch("nodes", "n", {"status": {"conditions": ready}}, subresource="status")
        cluster.settle()
        run(cluster, made)
        assert node_of(cluster, "p") is None
        assert [one["note"] for one in events(cluster, "FailedScheduling")] == [  # recorded with kube-scheduler 1.36.3
            "0/1 nodes are available: 1 node(s) didn't match Pod's required features. no new claims to deallocate, preemption: "
            "0/1 nodes are available: 1 Preemption is not helpful for scheduling."
        ]
        features = {"declaredFeatures": ["RestartAllContainersOnContainerExits"]}
        cluster.patch("nodes", node["metadata"]["name"], {"status": features}, subresource="status")
        cluster.settle()
        assert node_of(cluster, "p") == "n"
