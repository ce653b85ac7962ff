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
def cluster() -> Iterator[Cluster]:
    with Cluster(version="1.36", nodes=0) as made:
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
