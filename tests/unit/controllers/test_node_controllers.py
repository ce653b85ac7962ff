"""What becomes of nodes that are not well, and of the pods on them: the rules, and silent nodes in a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.apimachinery.selectors.nodes import (
    find_untolerated_taint,
    preferred_weight,
    required_node_affinity,
    selects_node,
    tolerates,
)
from fakekube.controllers.node_lifecycle import ZoneState, boundary_step_for, condition_taints, zone_key, zone_state
from fakekube.controllers.taint_eviction import get_matching_tolerations, get_min_toleration_time

Object = dict[str, Any]


@pytest.mark.parametrize(
    ("ready", "not_ready", "state"),
    [
        (1, 0, ZoneState.NORMAL),
        (0, 1, ZoneState.FULL),
        (1, 2, ZoneState.NORMAL),
        (2, 3, ZoneState.PARTIAL),
        (3, 3, ZoneState.NORMAL),
    ],
)
def test_the_state_of_a_zone(ready: int, not_ready: int, state: ZoneState) -> None:
    assert zone_state(ready, not_ready) is state


def test_conditions_become_taints() -> None:
    conditions = [
        {"type": "Ready", "status": "Unknown"},
        {"type": "DiskPressure", "status": "True"},
        {"type": "PIDPressure", "status": "False"},
    ]
    node = {"metadata": {"name": "n"}, "spec": {"unschedulable": True}, "status": {"conditions": conditions}}
    assert [key.removeprefix("node.kubernetes.io/") for key, _ in condition_taints(node)] == [
        "unreachable",
        "disk-pressure",
        "unschedulable",
    ]


def test_zone_keys() -> None:
    assert zone_key({"metadata": {}}) == ""
    labels = {"topology.kubernetes.io/zone": "z", "failure-domain.beta.kubernetes.io/region": "r"}
    assert zone_key({"metadata": {"labels": labels}}) == "r:\x00:z"


@pytest.mark.parametrize(("nodes", "step", "then"), [(100, 0, 0), (101, 0, 1), (95, 1, 1), (89, 1, 0), (20000, 0, 4)])
def test_the_ttl_grows_with_the_number_of_nodes(nodes: int, step: int, then: int) -> None:
    assert boundary_step_for(nodes, step) == then


FIRE = {"key": "fire", "value": "hot", "effect": "NoExecute"}


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({}, False),
        ({"operator": "Exists"}, True),
        ({"key": "fire", "value": "hot"}, True),
        ({"key": "fire"}, False),
        ({"key": "fire", "operator": "Exists", "effect": "NoSchedule"}, False),
        ({"key": "fire", "operator": "Gt", "value": "1"}, False),
    ],
)
def test_tolerations(toleration: Object, tolerated: bool) -> None:
    assert tolerates(toleration, FIRE) is tolerated
    assert (find_untolerated_taint([FIRE], [toleration]) is None) is tolerated


@pytest.mark.parametrize(
    ("tolerations", "seconds"),
    [
        ([{"operator": "Exists"}], None),
        ([{"operator": "Exists", "tolerationSeconds": 7}], 7.0),
        ([{"operator": "Exists", "tolerationSeconds": -1}], 0.0),
    ],
)
def test_min_toleration_time(tolerations: list[Object], seconds: float | None) -> None:
    assert get_matching_tolerations([FIRE], tolerations) == tolerations
    assert get_min_toleration_time(tolerations) == seconds


def test_a_taint_without_a_toleration_is_not_tolerated() -> None:
    assert get_matching_tolerations([FIRE], []) is None


NODE = {"metadata": {"name": "n", "labels": {"disk": "ssd", "size": "3"}}}


@pytest.mark.parametrize(
    ("term", "selected"),
    [
        ({}, False),
        ({"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd", "hdd"]}]}, True),
        ({"matchExpressions": [{"key": "size", "operator": "Gt", "values": ["2"]}]}, True),
        ({"matchExpressions": [{"key": "size", "operator": "Gt", "values": ["x"]}]}, False),
        ({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}, True),
        ({"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n"]}]}, False),
        ({"matchFields": [{"key": "metadata.uid", "operator": "In", "values": ["n"]}]}, False),
    ],
)
def test_node_selectors(term: Object, selected: bool) -> None:
    assert selects_node({"nodeSelectorTerms": [term]}, NODE) is selected
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    matches = required_node_affinity({"affinity": {"nodeAffinity": affinity}})
    assert matches is not None and matches(NODE) is selected
    assert preferred_weight([{"weight": 4, "preference": term}], NODE) == (4 if selected else 0)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    made.clock.hold()
    yield made
    made.stop()


def taints(cluster: Cluster, name: str) -> set[str]:
    return {
        f"{one['key'].removeprefix('node.kubernetes.io/')}:{one['effect']}"
        for one in cluster.nodes[name]["spec"].get("taints", ())
    }


def test_a_node_without_a_heartbeat_is_unknown_after_a_minute(cluster: Cluster) -> None:
    cluster.nodes.add("mute", silent=True)
    cluster.settle()
    assert taints(cluster, "mute") == set()
    cluster.clock.advance(seconds=61)
    cluster.settle()
    ready = next(one for one in cluster.nodes["mute"]["status"]["conditions"] if one["type"] == "Ready")
    assert (ready["status"], ready["reason"]) == ("Unknown", "NodeStatusNeverUpdated")
    assert taints(cluster, "mute") == {"unreachable:NoSchedule", "unreachable:NoExecute"}


def test_no_pod_is_evicted_while_all_nodes_have_failed(cluster: Cluster) -> None:
    cluster.nodes.fail("node-1")
    cluster.create(
        {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {"name": "p"},
            "spec": {"nodeName": "node-1", "containers": [{"name": "c", "image": "x"}]},
        }
    )
    cluster.clock.advance(minutes=10)
    cluster.settle()
    assert taints(cluster, "node-1") == {"unreachable:NoSchedule"}
    cluster.nodes.recover("node-1")
    cluster.settle()
    assert taints(cluster, "node-1") == set()
    assert cluster.get("pods", "p")["status"]["phase"] == "Running"


def taint(cluster: Cluster, *keys: str) -> None:
    cluster.patch("nodes", "node-1", {"spec": {"taints": [{"key": key, "effect": "NoExecute"} for key in keys]}})
    cluster.settle()


def tolerating(cluster: Cluster, **seconds: int) -> None:
    tolerations = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": value} for key, value in seconds.items()
    ]
    spec = {"nodeName": "node-1", "tolerations": tolerations, "containers": [{"name": "c", "image": "x"}]}
    cluster.create({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}, "spec": spec})
    cluster.settle()


def test_a_node_that_was_there_before_is_registered_once() -> None:
    with Cluster(nodes=2) as made:
        made.clock.hold()
        made.patch("nodes", "node-2", {"spec": {"unschedulable": True}})
        made.settle()
        registered = [one["involvedObject"]["name"] for one in made.list("events") if one["reason"] == "RegisteredNode"]
    assert sorted(registered) == ["node-1", "node-2"]


def taint_events(cluster: Cluster) -> list[str]:
    return sorted(one["message"] for one in cluster.list("events") if one["reason"] == "TaintManagerEviction")


@pytest.mark.parametrize("change", ["taints", "tolerations"])
def test_the_time_of_an_eviction_does_not_change(cluster: Cluster, change: str) -> None:
    tolerating(cluster, a=12, b=2)
    taint(cluster, "a")
    cluster.clock.advance(seconds=3)
    if change == "taints":
        taint(cluster, "a", "b")
    else:
        tolerations = cluster.get("pods", "p")["spec"]["tolerations"]
        tolerations[0]["tolerationSeconds"] = 1
        cluster.patch("pods", "p", {"spec": {"tolerations": tolerations}})
    cluster.settle()
    assert "deletionTimestamp" not in cluster.get("pods", "p")["metadata"]
    cluster.clock.advance(seconds=10)
    cluster.settle()
    assert cluster.list("pods") == []
    assert taint_events(cluster) == ["Marking for deletion Pod default/p"]


def test_a_pod_that_no_longer_tolerates_is_evicted_at_once(cluster: Cluster) -> None:
    tolerating(cluster, a=100)
    taint(cluster, "a")
    taint(cluster, "a", "b")
    assert cluster.list("pods") == []
    assert taint_events(cluster) == ["Cancelling deletion of Pod default/p", "Marking for deletion Pod default/p"]


def test_the_eviction_of_a_deleted_pod_is_cancelled(cluster: Cluster) -> None:
    tolerating(cluster, a=100)
    taint(cluster, "a")
    cluster.delete("pods", "p", gracePeriodSeconds=0)
    cluster.settle()
    assert taint_events(cluster) == ["Cancelling deletion of Pod default/p"]


def test_nodes_get_pod_cidrs_if_allocation_is_enabled() -> None:
    cluster = Cluster(nodes=2, controllers="*,node-ipam-controller")
    assert [node["spec"]["podCIDR"] for node in cluster.nodes] == ["10.244.0.0/24", "10.244.1.0/24"]
    cluster.nodes.remove("node-1")
    cluster.nodes.add("third")
    cluster.create(
        {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {"name": "p"},
            "spec": {"nodeSelector": {"kubernetes.io/hostname": "third"}, "containers": [{"name": "c", "image": "x"}]},
        }
    )
    cluster.settle()
    assert cluster.nodes["third"]["spec"]["podCIDRs"] == ["10.244.0.0/24"]
    assert cluster.get("pods", "p")["status"]["podIP"].startswith("10.244.0.")
    cluster.stop()
