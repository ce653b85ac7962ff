"""Devices of ResourceClaims: stories that kube-scheduler 1.36 has answered, and what binds, frees and shares claims.

Each line of `devices.jsonl` has the objects of a story (slices, classes, claims), its pods, the outcome of each, and the allocations of
the claims at the end. It was recorded with two nodes: n1, whose label `disk` is `ssd`, and n2, where it is `hdd`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.controllers.scheduler import device_allocator

Object = dict[str, Any]

STORIES = (Path(__file__).parent / "devices.jsonl").read_text(encoding="utf-8").splitlines()
NAMESPACE = "ns"
CLASS: Object = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "gpu"},
    "spec": {"selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}]},
}


def node(name: str, disk: str) -> Object:
    labels = {"kubernetes.io/hostname": name, "disk": disk}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster of 1.36, or of the minor that a test names."""
    with Cluster(version=getattr(request, "param", "1.36"), nodes=0) as made:
        made.clock.hold()
        labels = {"resource.kubernetes.io/admin-access": "true"}
        made.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}})
        made.create(node("n1", "ssd"))
        made.create(node("n2", "hdd"))
        made.settle()
        yield made


def outcome_of(cluster: Cluster, name: str) -> Any:
    """Returns the node of a pod, or why it has none."""
    found = cluster.get("pods", name, namespace=NAMESPACE)
    if "nodeName" in found["spec"]:
        return ["bound", found["spec"]["nodeName"]]
    conditions = [one for one in found["status"].get("conditions") or () if one["type"] == "PodScheduled"]
    return [[one["status"], one["reason"], one["message"].replace(f"{NAMESPACE}/", "NS/")] for one in conditions]


def allocation_of(cluster: Cluster, name: str) -> Any:
    """Returns the allocation of a claim, without what chance and time decide."""
    found = cluster.get("resourceclaims", name, namespace=NAMESPACE).get("status", {}).get("allocation")
    if found is not None:
        found.pop("allocationTimestamp")
        for result in found["devices"]["results"]:
            if "shareID" in result:
                result["shareID"] = "*"
    return found


@pytest.mark.parametrize("line", STORIES, ids=map(str, range(len(STORIES))))
def test_devices_are_allocated_as_recorded(cluster: Cluster, line: str) -> None:
    story = json.loads(line)
    for one in story["objects"]:
        cluster.create(one, namespace=NAMESPACE)
    for one in story["pods"]:
        cluster.create(one, namespace=NAMESPACE)
        cluster.settle()
        name = one["metadata"]["name"]
        assert outcome_of(cluster, name) == story["outcomes"][name]
    assert {name: allocation_of(cluster, name) for name in story["allocations"]} == story["allocations"]


# --- Bounds -----------------------------------------------------------------------------------------------------------

_PLUGIN = 'running "DynamicResources" filter plugin: '
_OTHER_NODES = "0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector"
_TIMED_OUT = [
    ("1.35", "Unschedulable", f"{_OTHER_NODES}, 1 timed out trying to allocate devices. still not schedulable, preemption: "
     "0/2 nodes are available: 2 Preemption is not helpful for scheduling."),
    ("1.36", "SchedulerError", f"{_PLUGIN}node n1: timed out trying to allocate devices"),
    ("1.37", "SchedulerError", f"{_PLUGIN}node n1: timed out trying to allocate devices"),
]  # fmt: skip


@pytest.mark.parametrize(("cluster", "reason", "message"), _TIMED_OUT, indirect=["cluster"])
def test_a_search_without_end_is_given_up(cluster: Cluster, reason: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_allocator, "_FILTER_TIMEOUT", 0.02)
    made = claim("a", count=16)
    never = {"deviceClassName": "gpu", "selectors": [{"cel": {"expression": "false"}}]}
    made["spec"]["devices"]["requests"].append({"name": "q", "exactly": never})
    create(cluster, CLASS, devices(*(f"d{number}" for number in range(40))), made, on_n1(pod("p", "a")))
    assert outcome_of(cluster, "p") == [["False", reason, message]]


def test_a_pod_may_need_more_devices_than_calls_can_nest(cluster: Cluster) -> None:
    names = [f"c{number}" for number in range(32)]
    wanted = pod("p", names[0])
    wanted["spec"]["resourceClaims"] = [{"name": name, "resourceClaimName": name} for name in names]
    wanted["spec"]["containers"][0]["resources"]["claims"] = [{"name": name} for name in names]
    shared = devices(*(f"d{number}" for number in range(32)), allowMultipleAllocations=True)
    create(cluster, CLASS, shared, *(claim(name, count=32) for name in names), wanted)
    assert outcome_of(cluster, "p") == ["bound", "n1"]


def test_a_range_without_a_step_does_not_stop_the_scheduler(cluster: Cluster) -> None:
    """Slices before 1.37 may have a step of zero here; the real server drops the connection at one."""
    policy = {"default": "1Gi", "validRange": {"min": "1Gi", "step": "0"}}
    shared = devices("d", allowMultipleAllocations=True, capacity={"memory": {"value": "10Gi", "requestPolicy": policy}})
    made = claim("a")
    made["spec"]["devices"]["requests"][0]["exactly"]["capacity"] = {"requests": {"memory": "2Gi"}}
    create(cluster, CLASS, shared, made, on_n1(pod("p", "a")))
    assert outcome_of(cluster, "p") == ["bound", "n1"]


@pytest.mark.parametrize("cluster", ["1.37"], indirect=True)
def test_a_claim_has_at_most_32_devices(cluster: Cluster) -> None:
    """1.37 names the request; devices.jsonl has what 1.36 says."""
    made = claim("a", count=20)
    made["spec"]["devices"]["requests"].append({"name": "q", "exactly": {"deviceClassName": "gpu", "count": 13}})
    create(cluster, CLASS, devices("d"), made, on_n1(pod("p", "a")))
    message = f"{_PLUGIN}claim NS/a, request q: adding 13 devices exceeds the claim limit of 32, with 20 already accounted for"
    assert outcome_of(cluster, "p") == [["False", "SchedulerError", message]]


@pytest.mark.parametrize("cluster", ["1.37"], indirect=True)
def test_the_plugin_is_silent_about_claims_after_filtering(cluster: Cluster) -> None:
    """1.37 does not say that a pod with claims is still not schedulable; devices.jsonl has what 1.36 says."""
    create(cluster, CLASS, devices("d"), claim("a", count=2), on_n1(pod("p", "a")))
    message = "0/2 nodes are available: 1 cannot allocate all claims, 1 node(s) didn't match Pod's node affinity/selector."
    rest = "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    assert outcome_of(cluster, "p") == [["False", "Unschedulable", f"{message} {rest}"]]


def test_a_plugin_that_fails_while_pods_are_preempted_is_told(cluster: Cluster) -> None:
    for name, value in (("low", 1), ("high", 1000)):
        kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
        cluster.create({**kind, "metadata": {"name": name}, "value": value})
    cluster.patch("nodes", "n1", {"status": {"allocatable": {"cpu": "1", "pods": "9"}}}, subresource="status")
    low, high = (on_n1(pod(name, "bad")) for name in ("low", "high"))
    for one in (low, high):
        one["spec"]["priorityClassName"] = one["metadata"]["name"]
        one["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "800m"}
    del low["spec"]["resourceClaims"], low["spec"]["containers"][0]["resources"]["claims"]
    selector = {"cel": {"expression": 'device.attributes["gpu.example.com"].nope == "a"'}}
    create(cluster, CLASS, devices("d"), claim("bad", selectors=[selector]), low)
    create(cluster, high)
    assert outcome_of(cluster, "low") == ["bound", "n1"]
    message = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector."
    failure = f"preemption: {_PLUGIN}claim NS/bad: selector #0: CEL runtime error: no such key: nope"
    assert outcome_of(cluster, "high") == [["False", "Unschedulable", f"{message} {failure}"]]


# --- Lives of claims --------------------------------------------------------------------------------------------------


def devices(*names: str, **device: Any) -> Object:
    spec = {
        "driver": "gpu.example.com",
        "nodeName": "n1",
        "pool": {"name": "n1", "resourceSliceCount": 1, "generation": 1},
        "devices": [{"name": name, **device} for name in names],
    }
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": spec}


def claim(name: str, **request: Any) -> Object:
    requests = [{"name": "r", "exactly": {"deviceClassName": "gpu", **request}}]
    spec = {"devices": {"requests": requests}}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name}, "spec": spec}


def pod(name: str, claim_name: str) -> Object:
    container = {"name": "c", "image": "app", "resources": {"claims": [{"name": "x"}]}}
    spec = {"containers": [container], "resourceClaims": [{"name": "x", "resourceClaimName": claim_name}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def on_n1(made: Object) -> Object:
    made["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "n1"}
    return made


def create(cluster: Cluster, *objects: Object) -> None:
    for one in objects:
        cluster.create(one, namespace=NAMESPACE)
    cluster.settle()


def test_a_device_that_is_free_again_goes_to_the_next_pod(cluster: Cluster) -> None:
    create(cluster, CLASS, devices("d"), claim("a"), claim("b"), pod("p", "a"), pod("q", "b"))
    assert outcome_of(cluster, "p") == ["bound", "n1"]
    assert outcome_of(cluster, "q")[0][1] == "Unschedulable"
    cluster.delete("pods", "p", namespace=NAMESPACE)
    cluster.settle()
    assert outcome_of(cluster, "q") == ["bound", "n1"]
    assert allocation_of(cluster, "a") is None


def test_pods_share_a_claim_on_its_node(cluster: Cluster) -> None:
    create(cluster, CLASS, devices("d"), claim("a"), pod("p", "a"), pod("q", "a"))
    assert outcome_of(cluster, "q") == ["bound", "n1"]
    users = cluster.get("resourceclaims", "a", namespace=NAMESPACE)["status"]["reservedFor"]
    assert [one["name"] for one in users] == ["p", "q"]


@pytest.mark.parametrize("last", ["claim", "class", "slice"])
def test_a_pod_waits_for_its_claim_its_class_and_its_device(cluster: Cluster, last: str) -> None:
    objects = {"claim": claim("a"), "class": CLASS, "slice": devices("d")}
    create(cluster, pod("p", "a"), *(made for name, made in objects.items() if name != last))
    assert outcome_of(cluster, "p") != ["bound", "n1"]
    create(cluster, objects[last])
    assert outcome_of(cluster, "p") == ["bound", "n1"]


def test_a_pod_is_bound_when_its_device_has_its_conditions(cluster: Cluster) -> None:
    conditions = {"bindingConditions": ["Attached"], "bindingFailureConditions": ["Broken"]}
    create(cluster, CLASS, devices("d", **conditions), claim("a"), pod("p", "a"))
    assert outcome_of(cluster, "p") == []
    found = cluster.get("resourceclaims", "a", namespace=NAMESPACE)
    device = {"driver": "gpu.example.com", "pool": "n1", "device": "d"}
    met = {"type": "Attached", "status": "True", "reason": "r", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    found["status"]["devices"] = [{**device, "conditions": [met]}]
    cluster.update(found, subresource="status")
    cluster.settle()
    assert outcome_of(cluster, "p") == ["bound", "n1"]


def test_parameters_keep_their_text(cluster: Cluster) -> None:
    """The finalizer of a claim is an update of an object whose spec is immutable."""
    made = claim("a")
    made["spec"]["devices"]["config"] = [{"opaque": {"driver": "gpu.example.com", "parameters": {"a": 1}}}]
    path = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaims"
    cluster.request("POST", path, json.dumps(made, indent=1).encode())
    create(cluster, CLASS, devices("d"), pod("p", "a"))
    assert outcome_of(cluster, "p") == ["bound", "n1"]
