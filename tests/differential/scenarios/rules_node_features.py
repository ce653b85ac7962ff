"""Rules of gates that nodes declare or kubelets need: node allocatable resources, volumes and owners of their files, static pods."""

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
def owners_of_files(client: Client) -> None:
    """The users that own the files of volumes are not negative, and have 31 bits."""
    files: list[Object] = [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}]
    keys: list[Object] = [{"key": "a", "path": "p", "mode": 0o1000}]
    certificate = {"signerName": "a.b/c", "keyType": "x", "keyPath": "k"}
    for user in (-1, 0, 2**31 - 1, 2**31):
        owner = {"user": user}
        projected: list[Object] = [
            {"secret": {"name": "x", "items": [{**keys[0], **owner}]}},
            {"downwardAPI": {"items": [{**files[0], **owner}]}},
            {"serviceAccountToken": {"path": "t", **owner}},
            {"clusterTrustBundle": {"name": "b", "path": "", **owner}},
            {"podCertificate": {**certificate, **owner}},
        ]
        sources: list[Object] = [
            {"secret": {"secretName": "x", "defaultUser": user, "items": [{**keys[0], **owner}]}},
            {"configMap": {"name": "x", "defaultMode": -1, "defaultUser": user, "items": [{**keys[0], **owner}]}},
            {"downwardAPI": {"defaultUser": user, "items": [{**files[0], **owner}]}},
            {"projected": {"defaultUser": user, "sources": projected}},
        ]
        volumes = [{"name": f"v{number}", **source} for number, source in enumerate(sources)]
        body = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}], "volumes": volumes}}
        client.post(f"/api/v1/namespaces/{client.ns}/pods", body, DRY)


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
    derived: list[Object] = [{"name": "a-", "expression": "1"}, {}, {"name": "a.b/c", "expression": "x"}]
    parts: tuple[Object, ...] = (
        {"tolerations": tolerations}, {"selectors": selectors}, {"tolerations": tolerations[1:2], "selectors": selectors}, {"derivedAttributes": derived},
    )  # fmt: skip
    for part in parts:
        request = {
            "name": "r",
            "exactly": {"deviceClassName": "c"},
            "firstAvailable": [{"name": "s", "deviceClassName": "c", **part}],
        }
        client.post(claims, {"metadata": {"name": "x"}, "spec": {"devices": {"requests": [request]}}}, DRY)
        both = {**request, "exactly": {"deviceClassName": "c", **part}}
        client.post(claims, {"metadata": {"name": "x"}, "spec": {"devices": {"requests": [both]}}}, DRY)
    flat = {"name": "r", "selectors": selectors[:1], "firstAvailable": [{"name": "s", "deviceClassName": "c"}]}
    for version in ("v1beta1", "v1beta2"):
        body = {"metadata": {"name": "x"}, "spec": {"devices": {"requests": [flat]}}}
        client.post(f"{RESOURCE}/{version}/namespaces/{client.ns}/resourceclaims", body, DRY)
    path, name = f"{RESOURCE}/v1beta1/resourceslices", client.name("s")
    spec = {"driver": "a.b", "nodeName": "n", "pool": {"name": "p", "resourceSliceCount": 1, "generation": 1}}
    for attribute in ({"versions": ["x"]}, {"version": "x"}, {}, {"strings": [""], "ints": []}):
        device = {"name": "d", "basic": {"attributes": {"a": attribute}}}
        client.post(path, {"metadata": {"name": name}, "spec": {**spec, "devices": [device]}}, DRY)
    for groups in (["a"], [], [""], ["1Gi", "https://a.b"], ["a", "a"], ["a", "b", "c"], ["a" * 64]):
        counters = {"counterSet": "c", "counters": {"x": {"value": "1"}}, "compatibilityGroups": groups}
        for counter in (counters, {**counters, "counterSet": "10%"}):
            device = {"name": "d", "basic": {"consumesCounters": [counter]}}
            client.post(path, {"metadata": {"name": name}, "spec": {**spec, "devices": [device]}}, DRY)
    path, name = f"{RESOURCE}/v1alpha3/resourcepoolstatusrequests", client.name("r")
    for attribute in ("a.b/c", "a_b/c", "", None):
        client.post(
            path, {"metadata": {"name": name}, "spec": {"driver": "a.b", "defaultPartitionTypeAttribute": attribute}}, DRY
        )
    client.post(path, {"metadata": {"name": name}, "spec": {"driver": "a.b"}})
    client.patch(f"{path}/{name}", {"spec": {"defaultPartitionTypeAttribute": "a_b/c"}}, MERGE, DRY)
    client.delete(f"{path}/{name}")
