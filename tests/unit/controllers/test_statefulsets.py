"""StatefulSets: order, identity, claims, revisions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.controllers.statefulset.utils import is_claim_owner_up_to_date, update_claim_owner_refs
from tests.unit.controllers.workloads import image, make_ready, names, reasons, workload


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as made:
        made.clock.hold()
        yield made


def make(cluster: Cluster, **spec: Any) -> None:
    cluster.create(workload("StatefulSet", "db", **{"serviceName": "db", **spec}))
    cluster.settle()


def change(cluster: Cluster, patch: dict[str, Any]) -> None:
    cluster.patch("statefulsets", "db", patch, namespace="default")
    cluster.settle()


def images(cluster: Cluster) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["spec"]["containers"][0]["image"] for pod in cluster.list("pods", namespace="default")}


CLAIM = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}


def test_pods_are_created_in_order_and_deleted_in_reverse(cluster: Cluster) -> None:
    make(cluster, hand=True, replicas=3)
    for count in (1, 2, 3):
        assert names(cluster) == [f"db-{index}" for index in range(count)]
        make_ready(cluster, f"db-{count - 1}")
        cluster.settle()
    change(cluster, {"spec": {"replicas": 1}})
    assert names(cluster) == ["db-0"]
    pod = cluster.get("pods", "db-0", namespace="default")
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("db-0", "db")
    assert pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "0"


def test_a_partition_keeps_the_lower_ordinals(cluster: Cluster) -> None:
    make(cluster, replicas=3, updateStrategy={"rollingUpdate": {"partition": 2}})
    change(cluster, image("app:2"))
    assert images(cluster) == {"db-0": "app:1", "db-1": "app:1", "db-2": "app:2"}
    cluster.delete("pods", "db-0", namespace="default")
    cluster.settle()
    assert images(cluster)["db-0"] == "app:1"
    change(cluster, {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
    assert set(images(cluster).values()) == {"app:2"}
    status = cluster.get("statefulsets", "db", namespace="default")["status"]
    assert status["currentRevision"] == status["updateRevision"]


def test_on_delete_updates_only_deleted_pods(cluster: Cluster) -> None:
    make(cluster, replicas=2, updateStrategy={"type": "OnDelete"})
    change(cluster, image("app:2"))
    cluster.delete("pods", "db-1", namespace="default")
    cluster.settle()
    assert images(cluster) == {"db-0": "app:1", "db-1": "app:2"}


def test_claims_are_created_with_pods_and_retained_by_default(cluster: Cluster) -> None:
    make(cluster, replicas=2, volumeClaimTemplates=[CLAIM])
    assert names(cluster, "persistentvolumeclaims") == ["data-db-0", "data-db-1"]
    change(cluster, {"spec": {"replicas": 1}})
    assert names(cluster, "persistentvolumeclaims") == ["data-db-0", "data-db-1"]


def test_claims_are_deleted_with_their_pod_if_the_retention_policy_is_delete(cluster: Cluster) -> None:
    make(
        cluster,
        replicas=2,
        volumeClaimTemplates=[CLAIM],
        persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete", "whenScaled": "Delete"},
    )
    change(cluster, {"spec": {"replicas": 1}})
    assert names(cluster, "persistentvolumeclaims") == ["data-db-0"]
    cluster.delete("statefulsets", "db", namespace="default", propagationPolicy="Background")
    cluster.settle()
    assert not names(cluster, "persistentvolumeclaims") and not names(cluster)


def test_a_failed_pod_is_recreated_with_its_name(cluster: Cluster) -> None:
    make(cluster, hand=True, replicas=1)
    before = cluster.get("pods", "db-0", namespace="default")["metadata"]["uid"]
    cluster.patch("pods", "db-0", {"status": {"phase": "Failed"}}, namespace="default", subresource="status")
    cluster.settle()
    assert cluster.get("pods", "db-0", namespace="default")["metadata"]["uid"] != before
    assert {"SuccessfulCreate", "SuccessfulDelete"} <= set(reasons(cluster, "db"))


def test_a_rollback_reuses_a_revision_and_old_ones_are_truncated(cluster: Cluster) -> None:
    make(cluster, replicas=1, revisionHistoryLimit=1)
    for tag in ("app:2", "app:1", "app:3", "app:4"):
        change(cluster, image(tag))
    numbers = [one["revision"] for one in cluster.list("controllerrevisions", namespace="default")]
    assert sorted(numbers) == [4, 5]


@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("beyond", [False, True])
def test_owner_references_of_claims_follow_the_retention_policy(deleted: bool, scaled: bool, beyond: bool) -> None:
    policy = {"whenDeleted": "Delete" if deleted else "Retain", "whenScaled": "Delete" if scaled else "Retain"}
    owner = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db", "uid": "s"},
        "spec": {"persistentVolumeClaimRetentionPolicy": policy},
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "db-1", "uid": "p"}}
    claim: dict[str, Any] = {"metadata": {"name": "data-db-1"}}
    mended = update_claim_owner_refs(claim, owner, pod, beyond)
    by_set, by_pod = deleted and not (scaled and beyond), scaled and beyond
    expected = {uid for uid, owns in (("s", by_set), ("p", by_pod)) if owns}
    assert {one["uid"] for one in mended["metadata"]["ownerReferences"]} == expected
    assert is_claim_owner_up_to_date(mended, owner, pod, beyond)
    assert is_claim_owner_up_to_date(claim, owner, pod, beyond) is not bool(expected)
    stranger = {"apiVersion": "x/v1", "kind": "X", "name": "x", "uid": "x", "controller": True}
    taken = {"metadata": {"name": "data-db-1", "ownerReferences": [stranger]}}
    assert update_claim_owner_refs(taken, owner, pod, beyond) == taken
