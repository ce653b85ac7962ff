"""Rules of gates that nodes declare or kubelets need: devices with node allocatable resources, volumes in memory, static pods."""

from __future__ import annotations

from typing import Any

from tests.differential.client import MERGE, Client
from tests.differential.definitions import DRY
from tests.differential.registry import scenario
from tests.differential.scenarios.rules_admission import kubelet, node_user
from tests.differential.steps import until

Object = dict[str, Any]
RESOURCE = "/apis/resource.k8s.io"


def declaring_node(client: Client, *features: str) -> str:
    """A node that declares these features."""
    name = client.name(f"node{len(features)}")
    client.post("/api/v1/nodes", {"metadata": {"name": name, "labels": {"node": name}}}, silent=True)
    client.patch(f"/api/v1/nodes/{name}/status", {"status": {"declaredFeatures": sorted(features)}}, MERGE, silent=True)
    return name


@scenario
def devices_with_node_allocatable_resources(client: Client) -> None:
    """Nodes of devices with node allocatable resources exist and declare that they support them (NodeDeclaredFeatureValidator)."""
    able, unable, path = (
        declaring_node(client, "DRANodeAllocatableResources"),
        declaring_node(client),
        f"{RESOURCE}/v1/resourceslices",
    )
    device = {"name": "d", "nodeAllocatableResources": {"cpu": {"mapping": {"deviceMultiplier": "1"}}}}

    def labelled(*names: str) -> Object:
        return {"nodeSelectorTerms": [{"matchExpressions": [{"key": "node", "operator": "In", "values": [*names]}]}]}

    places: list[Object] = [
        *({"nodeName": node} for node in (able, unable, "absent")),
        *({"nodeSelector": labelled(*names)} for names in ((able,), (unable,), (able, unable), ("absent",))),
    ]

    def body(*devices: Object, **spec: Any) -> Object:
        pool = {"name": "p", "resourceSliceCount": 1, "generation": 1}
        return {"metadata": {"name": client.name("s")}, "spec": {"driver": "a.b", "pool": pool, "devices": [*devices], **spec}}

    until(lambda: client.post(path, body(device, nodeName=able), DRY, silent=True).status == 201, 10)
    for place in places:
        client.post(path, body(device, **place), DRY)
        client.post(path, body({"name": "d"}, **place), DRY)
        client.post(path, body({"name": "c", "nodeName": able}, {**device, **place}, perDeviceNodeSelection=True), DRY)
    client.post(path, body(device, allNodes=True), DRY)
    client.post(path, body({"name": "d"}, nodeName=unable))
    client.patch(f"{path}/{client.name('s')}", {"spec": {"devices": [device]}}, MERGE, DRY)
    client.delete(f"{path}/{client.name('s')}")
    for node in (able, unable):
        client.delete(f"/api/v1/nodes/{node}", silent=True)


@scenario
def sizes_of_volumes_in_memory(client: Client) -> None:
    """A new size of a volume in memory needs a node that declares that it can resize it (NodeDeclaredFeatureValidator)."""
    able = declaring_node(client, "InPlacePodVerticalScalingMemoryBackedVolumes", "Other")
    pods = f"/api/v1/namespaces/{client.ns}/pods"
    for name, node in (("a", able), ("b", "absent"), ("c", "")):
        volumes = [{"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}, {"name": "w", "emptyDir": {}}]
        spec = {"containers": [{"name": "c", "image": "i"}], "volumes": volumes, **({"nodeName": node} if node else {})}
        client.post(pods, {"metadata": {"name": name}, "spec": spec}, silent=True)
        for size in ("2Gi", "1024Mi"):
            changed = [{"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": size}}, volumes[1]]
            client.patch(f"{pods}/{name}/resize", {"spec": {"volumes": changed}}, MERGE, DRY)
    client.delete(f"/api/v1/nodes/{able}", silent=True)


@scenario
def unchanged_static_pods(client: Client) -> None:
    """A static pod is refused by subresources that it does not support, even if nothing changes."""
    path = f"/api/v1/namespaces/{client.ns}/pods"
    metadata = {"name": "p", "annotations": {"kubernetes.io/config.mirror": "x"}}
    client.post(path, {"metadata": metadata, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}}, silent=True)
    for subresource in ("ephemeralcontainers", "resize", "status"):
        for change in (
            {},
            {"metadata": {"labels": {"a": "b"}}},
            {"spec": {"ephemeralContainers": [{"name": "e", "image": "i"}]}},
        ):
            client.patch(f"{path}/p/{subresource}", change, MERGE, DRY)


@scenario
def statuses_of_csi_nodes(client: Client) -> None:
    """A node may read and write the status of its own CSINode, by the Node authorizer and NodeRestriction, but not the spec with it."""
    node, _ = node_user(client)
    path, spec = "/apis/storage.k8s.io/v1/csinodes", {"drivers": [{"name": "d.example.com", "nodeID": "n"}]}
    names = (node, client.name("other"))  # the user of the other has no rights by RBAC
    for name in names:
        client.post(path, {"metadata": {"name": name}, "spec": spec}, silent=True)
    changes: tuple[Object, ...] = (
        {"metadata": {"labels": {"a": "b"}}},
        {"spec": {"drivers": []}},
        {"status": {"storageHealth": []}},
    )
    for who in map(kubelet, names):
        for name in names:
            client.get(f"{path}/{name}/status", headers=who)
            for change in changes:
                client.patch(f"{path}/{name}/status", change, MERGE, DRY, headers=who)
            client.delete(f"{path}/{name}/status", headers=who)
    for name in names:
        client.delete(f"{path}/{name}", silent=True)
    client.delete(f"/api/v1/nodes/{node}", silent=True)
    client.delete(f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{node}", silent=True)


@scenario
def requests_for_devices(client: Client) -> None:
    """Requests with both members, whose declared rules hold nevertheless; requests for the status of pools with a default attribute."""
    claims = f"{RESOURCE}/v1/namespaces/{client.ns}/resourceclaims"
    tolerations: list[Object] = [
        {}, {"operator": "Exists", "effect": "Other"}, {"key": "a b", "operator": "Exists"}, {"operator": "Other"}, {"operator": "Exists", "value": "a"}, {"value": "a b"},
    ]  # fmt: skip
    selectors = [{"cel": {"expression": "true"}}] * 33
    for part in (
        {"tolerations": tolerations},
        {"selectors": selectors},
        {"tolerations": tolerations[1:2], "selectors": selectors},
    ):
        request = {
            "name": "r",
            "exactly": {"deviceClassName": "c"},
            "firstAvailable": [{"name": "s", "deviceClassName": "c", **part}],
        }
        client.post(claims, {"metadata": {"name": "x"}, "spec": {"devices": {"requests": [request]}}}, DRY)
        both = {**request, "exactly": {"deviceClassName": "c", **part}}
        client.post(claims, {"metadata": {"name": "x"}, "spec": {"devices": {"requests": [both]}}}, DRY)
    path, name = f"{RESOURCE}/v1alpha3/resourcepoolstatusrequests", client.name("r")
    for attribute in ("a.b/c", "a_b/c", "", None):
        client.post(
            path, {"metadata": {"name": name}, "spec": {"driver": "a.b", "defaultPartitionTypeAttribute": attribute}}, DRY
        )
    client.post(path, {"metadata": {"name": name}, "spec": {"driver": "a.b"}})
    client.patch(f"{path}/{name}", {"spec": {"defaultPartitionTypeAttribute": "a_b/c"}}, MERGE, DRY)
    client.delete(f"{path}/{name}")
