"""Budgets: how many pods may be disrupted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import ApiError, Cluster
from fakekube.base.golang.strings import label_selector_string
from tests.unit.controllers.workloads import condition, make_ready, names, reasons, workload


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as made:
        made.clock.hold()
        yield made


def budget(cluster: Cluster, **spec: Any) -> dict[str, Any]:
    cluster.create(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "b", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
        }
    )
    cluster.settle()
    return status(cluster)


def status(cluster: Cluster) -> dict[str, Any]:
    found: dict[str, Any] = cluster.get("poddisruptionbudgets", "b", namespace="default")["status"]
    return found


def evict(cluster: Cluster, name: str) -> None:
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"}}
    cluster.call("POST", f"/api/v1/namespaces/default/pods/{name}/eviction", eviction)


@pytest.mark.parametrize(
    ("rule", "allowed"),
    [
        ({"minAvailable": 3}, 2),
        ({"minAvailable": "50%"}, 2),
        ({"maxUnavailable": "30%"}, 2),
        ({"maxUnavailable": 1}, 1),
        ({"minAvailable": "100%"}, 0),
    ],
)
def test_percentages_are_of_the_expected_pods(cluster: Cluster, rule: dict[str, Any], allowed: int) -> None:
    cluster.create(workload("Deployment", replicas=5))
    cluster.settle()
    found = budget(cluster, **rule)
    assert (found["expectedPods"], found["disruptionsAllowed"]) == (5, allowed)
    assert condition({"status": found}, "DisruptionAllowed")[1] == ("SufficientPods" if allowed else "InsufficientPods")


def test_an_eviction_uses_the_budget_until_another_pod_is_ready(cluster: Cluster) -> None:
    cluster.create(workload("ReplicaSet", replicas=2, hand=True))
    cluster.settle()
    first, second = names(cluster)
    for pod in (first, second):
        make_ready(cluster, pod)
    assert budget(cluster, minAvailable=1)["disruptionsAllowed"] == 1
    evict(cluster, first)
    cluster.settle()
    with pytest.raises(ApiError) as refused:
        evict(cluster, second)
    assert refused.value.code == 429
    make_ready(cluster, next(name for name in names(cluster) if name != second))
    cluster.settle()
    assert status(cluster)["disruptionsAllowed"] == 1


def test_percentages_ignore_pods_without_a_controller(cluster: Cluster) -> None:
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "default", "labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "x"}]},
        }
    )
    found = budget(cluster, maxUnavailable="50%")
    assert (found["expectedPods"], found["disruptionsAllowed"], found["currentHealthy"]) == (0, 0, 1)
    assert "UnmanagedPods" in reasons(cluster, "b")


def test_pods_of_a_controller_without_a_scale_make_it_fail_safe(cluster: Cluster) -> None:
    owner = cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner", "namespace": "default"}})
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"], "controller": True}
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "spec": {"containers": [{"name": "c", "image": "x"}]},
            "metadata": {"name": "p", "namespace": "default", "labels": {"app": "web"}, "ownerReferences": [reference]},
        }
    )
    found = budget(cluster, maxUnavailable=1)
    (failed,) = found["conditions"]
    assert (failed["reason"], failed["message"]) == ("SyncFailed", "configmaps does not implement the scale subresource")
    assert found["disruptionsAllowed"] == 0


def test_a_stale_disruption_target_condition_is_removed(cluster: Cluster) -> None:
    cluster.create(workload("ReplicaSet", replicas=1, hand=True))
    cluster.settle()
    (pod,) = cluster.list("pods", namespace="default")
    make_ready(cluster, pod["metadata"]["name"])
    now = cluster.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    mark = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "lastTransitionTime": now}
    cluster.patch("pods", pod["metadata"]["name"], {"status": {"conditions": [mark]}}, namespace="default", subresource="status")
    cluster.settle()
    cluster.clock.advance(seconds=119)
    assert cluster.list("pods", namespace="default")[0]["status"]["conditions"][0]["status"] == "True"
    cluster.clock.advance(seconds=2)
    assert cluster.list("pods", namespace="default")[0]["status"]["conditions"][0]["status"] == "False"


def test_a_selector_prints_as_in_go() -> None:
    expressions = [{"key": "k", "operator": "In", "values": ["a", "b"]}]
    assert label_selector_string({"matchLabels": {"b": "2", "a": "1"}, "matchExpressions": expressions}) == (
        "&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},"
        "MatchExpressions:[]LabelSelectorRequirement{LabelSelectorRequirement{Key:k,Operator:In,Values:[a b],},},}"
    )
