"""DaemonSets: on which nodes, and how they roll."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.controllers.daemon import (
    Backoff,
    DaemonSetController,
    create_pod_template,
    get_target_node_name,
    node_should_run_daemon_pod,
    rolling_update,
)
from tests.unit.controllers.workloads import condition, image, reasons, workload

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as made:
        made.clock.hold()
        for name in "ab":
            made.nodes.add(name)
        made.settle()
        yield made


def make(cluster: Cluster, **spec: Any) -> None:
    cluster.create(workload("DaemonSet", "agent", **spec))
    cluster.settle()


def where(cluster: Cluster) -> list[str]:
    return sorted(pod["spec"].get("nodeName", "?") for pod in cluster.list("pods", namespace="default"))


def status(cluster: Cluster) -> dict[str, Any]:
    found: dict[str, Any] = cluster.get("daemonsets", "agent", namespace="default")["status"]
    return found


def test_every_node_gets_a_pod(cluster: Cluster) -> None:
    make(cluster)
    assert where(cluster) == ["a", "b", "node-1"]
    assert status(cluster)["numberAvailable"] == status(cluster)["desiredNumberScheduled"] == 3
    cluster.nodes.add("c")
    cluster.settle()
    assert where(cluster) == ["a", "b", "c", "node-1"]


def test_node_labels_and_taints_select_nodes(cluster: Cluster) -> None:
    make(cluster, pod={"nodeSelector": {"role": "edge"}})
    assert where(cluster) == []
    cluster.patch("nodes", "a", {"metadata": {"labels": {"role": "edge"}}})
    cluster.settle()
    assert where(cluster) == ["a"]
    cluster.patch("nodes", "a", {"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}})
    cluster.settle()
    assert where(cluster) == []


@pytest.mark.parametrize(
    ("strategy", "tags"),
    [
        ({"type": "RollingUpdate"}, {"app:2"}),
        ({"type": "OnDelete"}, {"app:1"}),
        ({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}, {"app:2"}),
    ],
)
def test_a_rolling_update_replaces_all_pods(cluster: Cluster, strategy: dict[str, Any], tags: set[str]) -> None:
    make(cluster, updateStrategy=strategy)
    cluster.patch("daemonsets", "agent", image("app:2"), namespace="default")
    cluster.settle()
    assert {pod["spec"]["containers"][0]["image"] for pod in cluster.list("pods", namespace="default")} == tags
    assert where(cluster) == ["a", "b", "node-1"]
    assert [one["revision"] for one in cluster.list("controllerrevisions", namespace="default")] == [1, 2]
    assert status(cluster).get("updatedNumberScheduled", 0) == (0 if tags == {"app:1"} else 3)


def test_a_failed_pod_is_replaced(cluster: Cluster) -> None:
    make(cluster, hand=True, pod={"nodeSelector": {"kubernetes.io/hostname": "a"}})
    (pod,) = cluster.list("pods", namespace="default")
    cluster.patch("pods", pod["metadata"]["name"], {"status": {"phase": "Failed"}}, namespace="default", subresource="status")
    cluster.settle()
    (again,) = cluster.list("pods", namespace="default")
    assert again["metadata"]["uid"] != pod["metadata"]["uid"]
    assert "FailedDaemonPod" in reasons(cluster, "agent")
    assert condition(again, "Ready") == ("", "")


# ---------------------------------------------------------------- functions


def daemon_set(surge: int = 0, unavailable: int | str = 1, **spec: Any) -> dict[str, Any]:
    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "d", "uid": "u"},
        "spec": {
            "template": {"metadata": {}, "spec": spec},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
        },
    }


def node(name: str, *taints: dict[str, str]) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"taints": list(taints)}}


def pod(name: str, hash_: str, ready: bool = True) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return {
        "metadata": {"name": name, "labels": {"controller-revision-hash": hash_}},
        "spec": {},
        "status": {"conditions": conditions},
    }


@pytest.mark.parametrize(
    ("taint", "found"),
    [
        ({"key": "k", "effect": "NoSchedule"}, (False, True)),
        ({"key": "k", "effect": "NoExecute"}, (False, False)),
        ({"key": "k", "effect": "PreferNoSchedule"}, (True, True)),
        ({"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}, (True, True)),
        ({"key": "node.kubernetes.io/network-unavailable", "effect": "NoSchedule"}, (False, True)),
    ],
)
def test_taints_tolerated_by_daemon_pods(taint: dict[str, str], found: tuple[bool, bool]) -> None:
    assert node_should_run_daemon_pod(node("a", taint), daemon_set()) == found


def test_node_affinity_selects_the_node_by_name() -> None:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": []}]}}
    made = create_pod_template(daemon_set(affinity={"nodeAffinity": required}, hostNetwork=True), "a", "h")
    assert get_target_node_name(made) == "a" and made["metadata"]["labels"] == {"controller-revision-hash": "h"}
    assert len(made["spec"]["tolerations"]) == 7


@pytest.mark.parametrize(
    ("surge", "unavailable", "deleted", "made"),
    [
        (0, 1, ["b"], []),
        (0, 2, ["b", "a"], []),
        (0, "100%", ["b", "a", "d"], []),
        (1, 0, [], ["b", "a"]),
        (2, 0, [], ["b", "a", "d"]),
    ],
)
def test_the_next_step_of_an_update(surge: int, unavailable: int | str, deleted: list[str], made: list[str]) -> None:
    nodes = [node(name) for name in "abcd"]
    pods = {"a": [pod("a", "old")], "b": [pod("b", "old", ready=False)], "c": [pod("c", "new")], "d": [pod("d", "old")]}
    gone, names = rolling_update(daemon_set(surge, unavailable), nodes, pods, "new", NOW)
    assert ([one["metadata"]["name"] for one in gone], names) == (deleted, made)


def test_recreation_of_failed_pods_backs_off() -> None:
    backoff, key, now, waits = Backoff(), ("u", 1, "a"), NOW, []
    for _ in range(4):
        assert backoff.seconds_until_retry(key, now) == 0.0
        backoff.next(key, now)
        waits.append(backoff.seconds_until_retry(key, now))
        now += timedelta(seconds=waits[-1])
    assert waits == [1, 2, 4, 8]


def test_an_equal_revision_of_a_client_is_merged_by_the_next_sync_and_not_before(cluster: Cluster) -> None:
    make(cluster)
    (first,) = cluster.list("controllerrevisions", namespace="default")
    metadata = {name: first["metadata"][name] for name in ("namespace", "labels", "ownerReferences")}
    cluster.create(first | {"metadata": metadata | {"name": "copy"}, "revision": 2})
    cluster.settle()
    assert [one["revision"] for one in cluster.list("controllerrevisions", namespace="default")] == [1, 2]
    cluster.patch("daemonsets", "agent", {"metadata": {"annotations": {"a": "b"}}}, namespace="default")
    cluster.settle()
    assert [one["revision"] for one in cluster.list("controllerrevisions", namespace="default")] == [2]


@pytest.mark.parametrize("kind", ["DaemonSet", "StatefulSet"])
def test_the_revision_of_a_template_with_a_number_in_its_image_is_found_again(kind: str) -> None:
    container = {"name": "c", "image": "app:1.27"}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    with Cluster(nodes=1) as cluster:
        cluster.create({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "s"}, "spec": spec})
        cluster.settle()
        cluster.patch(f"{kind.lower()}s.apps", "s", {"metadata": {"labels": {"again": "yes"}}})
        cluster.settle()
        assert len(cluster.list("controllerrevisions.apps")) == 1
        created = cluster.requests.where(verb="create", resource="controllerrevisions.apps", own=True)
        assert [one.status for one in created] == [201]


def test_a_label_of_a_revision_starts_no_sync_that_would_merge_equal_revisions() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u", "controller": True}
    old: dict[str, Any] = {"metadata": {"name": "r", "namespace": "default", "ownerReferences": [owner]}, "revision": 1}
    controller: Any = DaemonSetController()
    controller.cache = None  # an owned revision needs none
    for change in ({"labels": {"a": "b"}}, {"annotations": {"a": "b"}}):
        new = {**old, "metadata": {**old["metadata"], **change}}
        assert not controller.keys("controllerrevisions.apps", "MODIFIED", new, old)
    assert list(controller.keys("controllerrevisions.apps", "MODIFIED", {**old, "revision": 2}, old)) == [("default", "d")]
