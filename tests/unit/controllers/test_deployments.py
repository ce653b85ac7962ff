"""Deployments and ReplicaSets in a cluster: what they end as, whatever happens to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakekube import Cluster
from tests.unit.controllers.workloads import condition, image, make_ready, names, reasons, workload

REVISION = "deployment.kubernetes.io/revision"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as made:
        made.clock.hold()
        yield made


def deployment(cluster: Cluster, name: str = "web") -> dict[str, Any]:
    return cluster.get("deployments", name, namespace="default")


def revisions(cluster: Cluster) -> dict[str, int]:
    """Replicas by revision."""
    return {
        one["metadata"]["annotations"][REVISION]: one["spec"]["replicas"]
        for one in cluster.list("replicasets", namespace="default")
    }


def change(cluster: Cluster, patch: dict[str, Any], name: str = "web") -> None:
    cluster.patch("deployments", name, patch, namespace="default")
    cluster.settle()


def make(cluster: Cluster, **spec: Any) -> None:
    cluster.create(workload("Deployment", **spec))
    cluster.settle()


def test_it_creates_rolls_out_and_rolls_back(cluster: Cluster) -> None:
    make(cluster, replicas=3)
    assert names(cluster, "replicasets") == ["web-6979489c59"]
    assert deployment(cluster)["status"]["availableReplicas"] == 3
    change(cluster, image("app:2"))
    assert revisions(cluster) == {"1": 0, "2": 3}
    change(cluster, image("app:1"))
    assert revisions(cluster) == {"3": 3, "2": 0}
    assert condition(deployment(cluster), "Progressing") == ("True", "NewReplicaSetAvailable")


def test_a_rollback_annotation_restores_a_revision(cluster: Cluster) -> None:
    make(cluster, replicas=1)
    change(cluster, image("app:2"))
    change(cluster, {"metadata": {"annotations": {"deprecated.deployment.rollback.to": "1"}}})
    found = deployment(cluster)
    assert found["spec"]["template"]["spec"]["containers"][0]["image"] == "app:1"
    assert "deprecated.deployment.rollback.to" not in found["metadata"]["annotations"]
    assert "pod-template-hash" not in found["spec"]["template"]["metadata"]["labels"]
    change(cluster, {"metadata": {"annotations": {"deprecated.deployment.rollback.to": "9"}}})
    assert {"DeploymentRollback", "DeploymentRollbackRevisionNotFound"} <= set(reasons(cluster, "web"))


def test_max_surge_and_max_unavailable_are_kept(cluster: Cluster) -> None:
    make(cluster, hand=True, replicas=3, strategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}})
    for pod in names(cluster):
        make_ready(cluster, pod)
    change(cluster, image("app:2"))
    for step in range(3):
        fresh = [pod for pod in cluster.list("pods", namespace="default") if pod["status"]["phase"] == "Pending"]
        assert (len(fresh), len(names(cluster))) == (1, 4), step
        make_ready(cluster, fresh[0]["metadata"]["name"])
        cluster.settle()
    assert revisions(cluster) == {"1": 0, "2": 3}


def test_recreate_waits_for_the_last_old_pod(cluster: Cluster) -> None:
    make(cluster, replicas=1, strategy={"type": "Recreate"})
    (old,) = names(cluster)
    cluster.patch("pods", old, {"metadata": {"finalizers": ["example.com/wait"]}}, namespace="default")
    change(cluster, image("app:2"))
    assert names(cluster) == [old]
    cluster.patch("pods", old, {"metadata": {"finalizers": None}}, namespace="default")
    cluster.settle()
    (new,) = cluster.list("pods", namespace="default")
    assert new["spec"]["containers"][0]["image"] == "app:2"


def test_progress_deadline_exceeded_is_reported(cluster: Cluster) -> None:
    make(cluster, hand=True, replicas=1, progressDeadlineSeconds=60)
    cluster.clock.advance(seconds=59)
    assert condition(deployment(cluster), "Progressing") == ("True", "ReplicaSetUpdated")
    cluster.clock.advance(seconds=3)
    assert condition(deployment(cluster), "Progressing") == ("False", "ProgressDeadlineExceeded")
    make_ready(cluster, names(cluster)[0])
    cluster.settle()
    assert condition(deployment(cluster), "Progressing") == ("True", "NewReplicaSetAvailable")


def test_pods_are_available_after_min_ready_seconds(cluster: Cluster) -> None:
    make(cluster, replicas=1, minReadySeconds=30)
    assert "availableReplicas" not in deployment(cluster)["status"]
    cluster.clock.advance(seconds=31)
    assert deployment(cluster)["status"]["availableReplicas"] == 1


def test_refused_pods_show_in_the_conditions_and_are_created_later(cluster: Cluster) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": {"pods": "1"}},
    }
    cluster.create(quota)
    cluster.settle()
    make(cluster, replicas=3)
    assert condition(deployment(cluster), "ReplicaFailure") == ("True", "FailedCreate")
    cluster.delete("resourcequotas", "q", namespace="default")
    cluster.settle()
    cluster.clock.advance(minutes=20)
    assert condition(deployment(cluster), "ReplicaFailure") == ("", "")
    assert len(names(cluster)) == 3


def test_an_unchanged_deployment_is_not_written(cluster: Cluster) -> None:
    make(cluster, replicas=1)
    before = deployment(cluster)
    cluster.patch("pods", names(cluster)[0], {"metadata": {"annotations": {"a": "b"}}}, namespace="default")
    cluster.settle()
    assert deployment(cluster) == before


def test_a_deployment_with_recreate_that_is_scaled_during_a_rollout_does_not_go_on() -> None:
    """As seen with kube-controller-manager 1.37.2: while the replicas of a ReplicaSet are outdated, it only scales."""
    with Cluster(nodes=0) as cluster:
        make(cluster, replicas=2)
        change(cluster, image("app:2"))
        assert revisions(cluster) == {"1": 2, "2": 1}
        change(cluster, {"spec": {"replicas": 5, "strategy": {"type": "Recreate", "rollingUpdate": None}}})
        assert revisions(cluster) == {"1": 2, "2": 1}


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("scale"), st.integers(0, 5)),
        st.tuples(st.just("image"), st.integers(1, 4)),
        st.tuples(st.just("pause"), st.booleans()),
        st.tuples(st.just("delete pod"), st.integers(0, 9)),
        st.tuples(st.just("delete replica set"), st.integers(0, 9)),
        st.tuples(st.just("strategy"), st.booleans()),
        st.tuples(st.just("settle"), st.just(0)),
    ),
    max_size=12,
)


@settings(max_examples=15)
@given(OPERATIONS)
def test_random_edits_converge_to_the_last_spec(operations: list[tuple[str, Any]]) -> None:
    replicas, tag = 2, 1
    if ("strategy", True) in operations:  # one with Recreate that is scaled during a rollout does not converge
        operations = [operation for operation in operations if operation[0] != "scale"]
    with Cluster() as cluster:
        make(cluster, replicas=2, revisionHistoryLimit=2)
        for what, value in operations:
            if what == "scale":
                replicas = value
                cluster.patch("deployments", "web", {"spec": {"replicas": value}}, namespace="default")
            elif what == "image":
                tag = value
                cluster.patch("deployments", "web", image(f"app:{value}"), namespace="default")
            elif what == "pause":
                cluster.patch("deployments", "web", {"spec": {"paused": value}}, namespace="default")
            elif what == "strategy":
                strategy = {"type": "Recreate", "rollingUpdate": None} if value else {"type": "RollingUpdate"}
                cluster.patch("deployments", "web", {"spec": {"strategy": strategy}}, namespace="default")
            elif what == "settle":
                cluster.settle()
            else:
                resource = "pods" if what == "delete pod" else "replicasets"
                for name in names(cluster, resource)[value : value + 1]:
                    cluster.delete(resource, name, namespace="default", propagationPolicy="Background")
        cluster.patch("deployments", "web", {"spec": {"paused": False}}, namespace="default")
        cluster.settle()
        pods = cluster.list("pods", namespace="default")
        assert [pod["spec"]["containers"][0]["image"] for pod in pods] == [f"app:{tag}"] * replicas
        assert len({pod["metadata"]["labels"]["pod-template-hash"] for pod in pods}) <= 1
        status, sets = deployment(cluster)["status"], cluster.list("replicasets", namespace="default")
        assert status.get("availableReplicas", 0) == status.get("updatedReplicas", 0) == replicas
        assert sum(one["spec"]["replicas"] for one in sets) == replicas and len(sets) <= 3
        latest = max(sets, key=lambda one: int(one["metadata"]["annotations"][REVISION]))
        assert latest["spec"]["template"]["spec"]["containers"][0]["image"] == f"app:{tag}"
