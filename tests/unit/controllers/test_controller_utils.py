"""Which pods go first, and what is available when."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from fakekube.controllers.controller_utils import (
    find_min_next_pod_availability_check,
    get_pod_from_template,
    is_pod_available,
    sort_for_deletion,
)

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


def pod(
    name: str,
    *,
    ready: str = "",
    node: str = "n",
    phase: str = "Running",
    age: str = "2026-01-01T10:00:00Z",
    cost: str = "",
    restarts: int = 0,
) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": ready}] if ready else []
    notes = {"controller.kubernetes.io/pod-deletion-cost": cost} if cost else {}
    return {
        "metadata": {"name": name, "uid": name, "creationTimestamp": age, "annotations": notes},
        "spec": {"nodeName": node} if node else {},
        "status": {"phase": phase, "conditions": conditions, "containerStatuses": [{"name": "c", "restartCount": restarts}]},
    }


EARLY, LATE = "2026-01-01T11:00:00Z", "2026-01-01T11:59:58Z"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pod("a", node=""), pod("b")),
        (pod("a", phase="Pending"), pod("b", phase="Unknown")),
        (pod("a"), pod("b", ready=EARLY)),
        (pod("a", ready=EARLY, cost="-1"), pod("b", ready=LATE)),
        (pod("a", ready=LATE), pod("b", ready=EARLY)),
        (pod("a", restarts=3), pod("b", restarts=1)),
        (pod("a", age=LATE), pod("b", age=EARLY)),
        (pod("a", cost="+5", restarts=1), pod("b", cost="4")),
        (pod("b", age=LATE), pod("c", age="2026-01-01T11:59:57Z")),
    ],
)
def test_order_of_deletion(first: dict[str, Any], second: dict[str, Any]) -> None:
    found = sort_for_deletion([second, first], [0, 0], NOW)
    assert [one["metadata"]["name"] for one in found] == [first["metadata"]["name"], second["metadata"]["name"]]


def test_pods_of_crowded_nodes_are_deleted_first() -> None:
    assert [one["metadata"]["name"] for one in sort_for_deletion([pod("a"), pod("b")], [1, 2], NOW)] == ["b", "a"]


def test_a_pod_is_available_after_min_ready_seconds() -> None:
    late = pod("a", ready=LATE)
    assert is_pod_available(late, 0, NOW) and is_pod_available(late, 2, NOW) and not is_pod_available(late, 3, NOW)
    assert not is_pod_available(pod("a"), 0, NOW)
    assert find_min_next_pod_availability_check([late, pod("b", ready=EARLY)], 10, NOW) == 8.0
    assert find_min_next_pod_availability_check([pod("b", ready=EARLY)], 10, NOW) is None


def test_a_pod_from_a_template() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web", "namespace": "ns", "uid": "u"}}
    made = get_pod_from_template({"metadata": {"labels": {"a": "b"}, "name": "no"}, "spec": {"containers": []}}, owner)
    reference = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "web",
        "uid": "u",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    assert made["metadata"] == {"generateName": "web-", "namespace": "ns", "labels": {"a": "b"}, "ownerReferences": [reference]}
