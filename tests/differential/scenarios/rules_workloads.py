"""Groups of pods of a workload, with the gate GenericWorkload: what pods may name, priorities, and the finalizer."""

from __future__ import annotations

from typing import Any

from tests.differential.client import MERGE, Client
from tests.differential.registry import scenario
from tests.differential.steps import pod

DRY = {"dryRun": "All"}
GANG: dict[str, Any] = {"gang": {"minCount": 2}}
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
SELECTION = "/apis/scheduling.k8s.io"


def served(client: Client, plural: str) -> str:
    """The path of a resource in the version that the minor serves beside v1."""
    versions = [one["version"] for one in client.get(SELECTION).json["versions"]]
    return f"{SELECTION}/{next(one for one in versions if one != 'v1')}/namespaces/{client.ns}/{plural}"


def group(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"schedulingPolicy": GANG, **spec}}


@scenario
def pods_in_groups(client: Client) -> None:
    """The names of groups and workloads in pods, which each minor has in another field."""
    pods = f"/api/v1/namespaces/{client.ns}/pods"
    for name in ("a", "a.b", "A_", "", None):
        client.post(pods, pod(schedulingGroup={} if name is None else {"podGroupName": name}), DRY)
    for reference in (
        {"name": "a.b", "podGroup": "c"},
        {"name": "a", "podGroup": "b.c"},
        {"name": "A_", "podGroup": "B_", "podGroupReplicaKey": "C_"},
        {"name": "a", "podGroup": "b", "podGroupReplicaKey": "0"},
        {},
    ):
        client.post(pods, pod(workloadRef=reference), DRY)
    client.post(pods, pod(schedulingGroup={"podGroupName": "a"}))
    client.patch(f"{pods}/p", {"spec": {"schedulingGroup": {"podGroupName": "b"}}}, MERGE)


@scenario
def finalizers_of_groups(client: Client) -> None:
    """A group has a finalizer, which nothing removes without controllers."""
    groups = served(client, "podgroups")
    client.post(groups, group("a"))
    client.post(groups, {**group("b"), "metadata": {"name": "b", "finalizers": ["a.b/c"]}})
    client.post(groups, {**group("c"), "metadata": {"name": "c", "finalizers": ["scheduling.k8s.io/podgroup-protection"]}})
    client.delete(f"{groups}/a")
    client.get(f"{groups}/a")
    client.patch(f"{groups}/a", {"metadata": {"finalizers": None}}, MERGE)
    client.get(f"{groups}/a")


@scenario
def priorities_of_groups(client: Client) -> None:
    """The priority of a group is that of its class."""
    groups = served(client, "podgroups")
    for name, policy in (("high", "Never"), ("low", "PreemptLowerPriority")):
        body = {"metadata": {"name": f"{client.ns}-{name}"}, "value": 7, "preemptionPolicy": policy}
        client.post(CLASSES, body)
        client.post(groups, group(f"g-{name}", priorityClassName=f"{client.ns}-{name}"))
        client.post(groups, group("g", priorityClassName=f"{client.ns}-{name}", priority=8), DRY)
        client.post(groups, group("g", priorityClassName=f"{client.ns}-{name}", priority=7, preemptionPolicy="Never"), DRY)
    client.post(groups, group("g", priorityClassName="nobody"), DRY)
    client.post(groups, group("g", priorityClassName="system-node-critical"), DRY)
    client.post(groups, group("g", priority=1), DRY)
    client.post(groups, group("g", priority=0), DRY)
    for name in ("high", "low"):
        client.delete(f"{CLASSES}/{client.ns}-{name}")


@scenario
def groups_of_workloads(client: Client) -> None:
    """The workload of a group, and the template in it; 1.36 rejects groups of none."""
    groups = served(client, "podgroups")
    client.post(
        groups.replace("podgroups", "workloads"),
        {"metadata": {"name": "w"}, "spec": {"podGroupTemplates": [{"name": "t", "schedulingPolicy": GANG}]}},
    )
    for workload, template in (("w", "t"), ("w", "x"), ("x", "t")):
        reference = {"workloadName": workload, "podGroupTemplateName": template}
        client.post(groups, group("g", podGroupTemplateRef={"workload": reference}), DRY)
        client.post(groups, group("g", workloadRef={"workloadName": workload, "templateName": template}), DRY)
