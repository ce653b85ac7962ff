"""Which changes make a pod worth another try, and in which order pods are tried."""

from __future__ import annotations

from typing import Any

import pytest

from fakekube.controllers.scheduler.framework import PodInfo
from fakekube.controllers.scheduler.queue import ClusterEvent, SchedulingQueue, is_pod_worth_requeuing

Object = dict[str, Any]


def pod(name: str = "p", priority: int = 0, **spec: Any) -> PodInfo:
    container = {"name": "c", "resources": {"requests": {"cpu": "2"}}}
    return PodInfo(
        {
            "metadata": {"name": name, "namespace": "ns", "uid": name, "labels": {"app": name}},
            "spec": {"containers": [container], "priority": priority, **spec},
        }
    )


def node(cpu: str = "4", labels: Object | None = None, **spec: Any) -> Object:
    return {"metadata": {"name": "n", "labels": labels or {}}, "spec": spec, "status": {"allocatable": {"cpu": cpu, "pods": "9"}}}


TAINT = [{"key": "k", "effect": "NoSchedule"}]


@pytest.mark.parametrize(
    ("plugin", "change", "worth"),
    [
        ("NodeResourcesFit", ClusterEvent("nodes", node(), None), True),
        ("NodeResourcesFit", ClusterEvent("nodes", node("1"), None), False),
        ("NodeResourcesFit", ClusterEvent("nodes", node("4"), node("1")), True),
        ("NodeResourcesFit", ClusterEvent("nodes", node("4", {"a": "b"}), node("4")), False),
        ("NodeResourcesFit", ClusterEvent("pods", None, pod("q").obj), True),
        ("NodeResourcesFit", ClusterEvent("pods", pod("q").obj, None), False),
        ("TaintToleration", ClusterEvent("nodes", node(), node(taints=TAINT)), True),
        ("TaintToleration", ClusterEvent("nodes", node(taints=TAINT), node()), False),
        ("NodeUnschedulable", ClusterEvent("nodes", node(), node(unschedulable=True)), True),
        ("NodeUnschedulable", ClusterEvent("nodes", node("9"), node()), False),
        ("NodeAffinity", ClusterEvent("nodes", node(labels={"disk": "ssd"}), node()), True),
        ("NodeAffinity", ClusterEvent("nodes", node(), node("9")), False),
        ("VolumeBinding", ClusterEvent("persistentvolumes", {"metadata": {}}, None), True),
        ("VolumeBinding", ClusterEvent("pods", None, pod("q").obj), False),
        ("PodTopologySpread", ClusterEvent("pods", pod("q").obj, None), False),
        ("PodTopologySpread", ClusterEvent("pods", pod("s").obj, None), True),
        ("PodTopologySpread", ClusterEvent("pods", None, pod("s").obj), True),
        ("PodTopologySpread", ClusterEvent("nodes", node(labels={"zone": "x"}), node()), True),
        ("PodTopologySpread", ClusterEvent("nodes", node(labels={"other": "x"}), node()), False),
        ("InterPodAffinity", ClusterEvent("pods", pod("db").obj, None), True),
        ("InterPodAffinity", ClusterEvent("pods", pod("q").obj, None), False),
    ],
)
def test_hints_of_plugins(plugin: str, change: ClusterEvent, worth: bool) -> None:
    affinity = {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "zone"}
            ]
        }
    }
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "s"}},
    }
    waiting = pod(nodeSelector={"disk": "ssd"}, affinity=affinity, topologySpreadConstraints=[constraint])
    assert is_pod_worth_requeuing(waiting, [plugin], change) is worth


def test_a_pod_without_rejecting_plugins_is_always_retried() -> None:
    assert is_pod_worth_requeuing(pod(), (), ClusterEvent("pods", pod("q").obj, None))


def test_the_queue_is_ordered_by_priority_and_time() -> None:
    queue = SchedulingQueue()
    for name, priority in (("a", 0), ("b", 5), ("c", 0)):
        queue.add(pod(name, priority))
    found = [queue.pop() for _ in range(4)]
    assert [one.name if one else None for one in found] == ["b", "a", "c", None]


def test_an_unschedulable_pod_is_retried() -> None:
    queue = SchedulingQueue()
    queue.add_unschedulable(pod(), ["NodeResourcesFit"])
    queue.move_all_to_active(ClusterEvent("nodes", node("1"), None))
    assert len(queue) == 0
    queue.move_all_to_active(ClusterEvent("nodes", node("4"), None))
    assert len(queue) == 1
    queue.remove("p")
    assert (len(queue), queue.pop()) == (0, None)
