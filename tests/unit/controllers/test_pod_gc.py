"""Pods that nobody else takes away, and Jobs whose time is over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.controllers import pod_gc


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    cluster = Cluster(
        controllers="pod-garbage-collector-controller,ttl-after-finished-controller,garbage-collector-controller", nodes=0
    )
    cluster.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})
    cluster.clock.hold()
    yield cluster
    cluster.stop()


def pod(cluster: Cluster, name: str, **spec: Any) -> dict[str, Any]:
    return cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
        }
    )


def node(cluster: Cluster, name: str, **spec: Any) -> None:
    cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec})


def pods(cluster: Cluster) -> list[str]:
    cluster.settle()
    return [obj["metadata"]["name"] for obj in cluster.list("pods", namespace="default")]


def test_pods_of_a_deleted_node_are_deleted_after_the_quarantine(cluster: Cluster) -> None:
    node(cluster, "n")
    pod(cluster, "a", nodeName="n")
    cluster.settle()
    cluster.delete("nodes", "n")
    cluster.clock.advance(seconds=59)
    assert pods(cluster) == ["a"]
    cluster.clock.advance(seconds=1)
    assert pods(cluster) == []


def test_an_orphaned_pod_has_a_condition_with_the_reason(cluster: Cluster) -> None:
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "a", "finalizers": ["example.com/keep"]},
            "spec": {"nodeName": "never", "containers": [{"name": "c", "image": "i"}]},
        }
    )
    cluster.clock.advance(seconds=60)
    status = cluster.get("pods", "a")["status"]
    assert status["phase"] == "Failed"
    (condition,) = (one for one in status["conditions"] if one["type"] == "DisruptionTarget")
    assert (condition["reason"], condition["message"]) == ("DeletionByPodGC", "PodGC: node no longer exists")


def test_a_recreated_node_keeps_its_pods(cluster: Cluster) -> None:
    pod(cluster, "a", nodeName="n")
    cluster.clock.advance(seconds=30)
    node(cluster, "n")
    cluster.clock.advance(seconds=300)
    assert pods(cluster) == ["a"]


def test_a_terminating_pod_without_a_node_is_deleted(cluster: Cluster) -> None:
    """The API server itself deletes such a pod at once, unless it was marked before: a finalizer shows it."""
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "a", "finalizers": ["example.com/keep"]},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
    )
    cluster.delete("pods", "a")
    cluster.settle()
    assert cluster.get("pods", "a")["status"]["phase"] == "Pending"
    cluster.clock.advance(seconds=20)
    assert cluster.get("pods", "a")["status"]["phase"] == "Failed"


def test_terminating_pods_of_an_out_of_service_node_are_deleted(cluster: Cluster) -> None:
    taints = [{"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}]
    node(cluster, "n", taints=taints)
    pod(cluster, "a", nodeName="n")
    pod(cluster, "b", nodeName="n")
    cluster.delete("pods", "a")
    cluster.clock.advance(seconds=20)
    assert pods(cluster) == ["b"]


def test_terminated_pods_above_the_threshold_are_deleted(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_gc, "TERMINATED_PODS", 2)
    for name in "abcd":
        pod(cluster, name, nodeName="n")
        cluster.patch(
            "pods", name, {"status": {"phase": "Failed", "reason": "Evicted" if name == "d" else "x"}}, subresource="status"
        )
        cluster.clock.advance(seconds=1)
    node(cluster, "n")
    cluster.clock.advance(seconds=20)
    assert pods(cluster) == ["b", "c"]


def test_a_job_is_deleted_after_its_ttl(cluster: Cluster) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    for name, limit in (("goes", {"ttlSecondsAfterFinished": 100}), ("stays", {})):
        cluster.create(
            {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": template, **limit}}
        )
        now = cluster.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        times = {"lastTransitionTime": now, "lastProbeTime": now}
        conditions = [{"type": kind, "status": "True", **times} for kind in ("SuccessCriteriaMet", "Complete")]
        status = {
            "startTime": now,
            "completionTime": now,
            "conditions": conditions,
            "succeeded": 1,
            "uncountedTerminatedPods": {},
        }
        cluster.patch("jobs", name, {"status": status}, subresource="status")
    cluster.clock.advance(seconds=98)
    assert len(cluster.list("jobs")) == 2
    cluster.clock.advance(seconds=2)
    assert [job["metadata"]["name"] for job in cluster.list("jobs")] == ["stays"]
