"""Workloads of 1.35, v1alpha1, whose groups of pods are in them."""

from __future__ import annotations

from typing import Any

from tests.differential.client import MERGE, Client
from tests.differential.registry import scenario
from tests.differential.steps import pod

DRY = {"dryRun": "All"}
BASIC: dict[str, Any] = {"basic": {}}


def workload(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"podGroups": [{"name": "g", "policy": BASIC}], **spec}}


@scenario
def specs_of_workloads(client: Client) -> None:
    """References to controllers, the number and the names of groups, and their policies."""
    path = f"/apis/scheduling.k8s.io/v1alpha1/namespaces/{client.ns}/workloads"
    for name in ("a.b", "A", "a" * 254):
        client.post(path, workload(name), DRY)
    for reference in (
        {"apiGroup": "A_", "kind": "a/b", "name": ".."},
        {"apiGroup": "", "kind": "", "name": ""},
        {"kind": "K%", "name": "n"},
    ):
        client.post(path, workload("w", controllerRef=reference), DRY)
    for groups in (None, [], *([{"name": f"g{index}", "policy": BASIC} for index in range(count)] for count in (8, 9))):
        client.post(path, workload("w", podGroups=groups), DRY)
    for policy in (None, {}, BASIC, {"gang": {}}, {**BASIC, "gang": {"minCount": 0}}):
        client.post(path, workload("w", podGroups=[{"name": "g", "policy": policy}]), DRY)
    for count in (-1, 0, 1):
        client.post(path, workload("w", podGroups=[{"name": "g", "policy": {"gang": {"minCount": count}}}]), DRY)
    for name in ("", "a.b", "A", "a" * 64):
        client.post(path, workload("w", podGroups=[{"name": name, "policy": BASIC}, {"name": name, "policy": {}}]), DRY)


@scenario
def changes_of_workloads(client: Client) -> None:
    """The reference may be set once; the groups stay."""
    path = f"/apis/scheduling.k8s.io/v1alpha1/namespaces/{client.ns}/workloads"
    reference = {"apiGroup": "a.b", "kind": "K", "name": "n"}
    client.post(path, workload("w"))
    client.post(path, workload("owned", controllerRef=reference))
    for name in ("w", "owned"):
        for spec in (
            {"controllerRef": {**reference, "name": "m"}},
            {"controllerRef": None},
            {"podGroups": None},
            {"podGroups": [{"name": "g", "policy": {"gang": {"minCount": 1}}}]},
            {"podGroups": [{"name": "h", "policy": BASIC}], "controllerRef": {**reference, "kind": "L"}},
        ):
            client.patch(f"{path}/{name}", {"spec": spec}, MERGE, DRY)
        client.put(f"{path}/{name}", workload(name), DRY)


@scenario
def pods_of_workloads(client: Client) -> None:
    """The reference of a pod to its workload."""
    pods = f"/api/v1/namespaces/{client.ns}/pods"
    for reference in (
        {"name": "a.b", "podGroup": "c"},
        {"name": "a", "podGroup": "b.c"},
        {"name": "A_", "podGroup": "B_", "podGroupReplicaKey": "C_"},
        {"name": "a", "podGroup": "b", "podGroupReplicaKey": "0"},
        {},
    ):
        client.post(pods, pod(workloadRef=reference), DRY)
    client.post(pods, pod(workloadRef={"name": "a", "podGroup": "b"}))
    client.patch(f"{pods}/p", {"spec": {"workloadRef": {"podGroup": "c"}}}, MERGE)
