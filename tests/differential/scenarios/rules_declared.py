"""Rules that types of 1.37 declare as beta, recorded with their gate and without it: paths and texts differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.differential.client import MERGE, Client
from tests.differential.registry import scenario

DRY = {"dryRun": "All"}
RESOURCE = "/apis/resource.k8s.io"
FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
CLASS = {"deviceClassName": "c"}
COUNTERS = {"counters": {"a": {"value": "1"}}}

REQUESTS: tuple[dict[str, Any], ...] = (
    {**CLASS, "selectors": [{"cel": {"expression": "true"}}] * 33}, {**CLASS, "allocationMode": "x"},
    {**CLASS, "tolerations": [{"key": "a b", "operator": "Exists"}]}, {**CLASS, "tolerations": [{"operator": "Other"}]},
    {**CLASS, "tolerations": [{"operator": "Exists", "effect": "Other"}]}, {**CLASS, "tolerations": [{}]},
    {"deviceClassName": "A_B"}, {**CLASS, "count": -1}, {}, {"adminAccess": False}, {"count": 1},
)  # fmt: skip
DEVICES: tuple[dict[str, Any], ...] = (
    {"bindsToNode": True, "bindingConditions": ["a", "b", "c", "d", "e"], "bindingFailureConditions": ["f"]},
    {"bindingConditions": ["a"], "bindingFailureConditions": ["b", "c", "d", "e", "f"]},
    {"taints": [{"key": "a", "effect": "x"}]}, {"taints": [{"key": "a"}]}, {"taints": [{"key": "a b", "effect": "NoExecute"}]},
    {"attributes": {"a": {}}}, {"attributes": {"a": {"int": 1, "string": "b"}}}, {"attributes": {"a": {"version": "x"}}},
    {"attributes": {"A B": {"int": 1}}}, {"capacity": {"a b": {"value": "1"}}},
    {"consumesCounters": [{}]}, {"consumesCounters": [{"counterSet": "a b", "counters": {"A B": {"value": "1"}}}]},
    {"consumesCounters": [{"counterSet": "a", **COUNTERS}] * 2},
    {"consumesCounters": [{"counterSet": name, **COUNTERS} for name in "abc"]},
)  # fmt: skip
POOL = {"driver": "d.example.com", "nodeName": "n", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}


@scenario
def shapes_of_devices(client: Client) -> None:
    """Paths and duplicates of devices and requests, which have another shape in v1beta1."""
    for version in ("v1beta1", "v1beta2"):
        claims = f"{RESOURCE}/{version}/namespaces/{client.ns}/resourceclaims"
        for requests in _requests(is_flat=version == "v1beta1"):
            client.post(claims, {"metadata": {"name": "x"}, "spec": {"devices": {"requests": requests}}}, DRY)
        for device in DEVICES:
            held = {"basic": device} if version == "v1beta1" else device
            body = {"metadata": {"name": client.name("x")}, "spec": {**POOL, "devices": [{"name": "d", **held}]}}
            client.post(f"{RESOURCE}/{version}/resourceslices", body, DRY)


def _requests(*, is_flat: bool) -> Iterator[list[dict[str, Any]]]:
    def one(fields: dict[str, Any]) -> dict[str, Any]:
        return {"name": "r", **fields} if is_flat else {"name": "r", "exactly": fields}

    yield from ([one(fields)] for fields in REQUESTS)
    yield [one(CLASS), one(CLASS)]
    yield [one({**CLASS, "capacity": {"requests": {}}}), one({**CLASS, "capacity": {"requests": {"a": "1"}}, "count": -1})]
    yield [{"name": "r"}, {"name": "r"}]
    yield [{"name": "r", "firstAvailable": [{"name": "s", **CLASS}] * 2}]


@scenario
def names_of_extended_resources(client: Client) -> None:
    """Names that a DeviceClass may give to an extended resource."""
    for name in ("/x", "x/", "", "x", "a.b/c", "A/b", "requests.a/b", "requests.a", "kubernetes.io/a", "a.kubernetes.io/b", "a/b/c", "a b/c", f"a/{'b' * 64}"):  # fmt: skip
        body = {"metadata": {"name": client.name("x")}, "spec": {"extendedResourceName": name}}
        client.post(f"{RESOURCE}/v1/deviceclasses", body, DRY)


@scenario
def fields_that_stay(client: Client) -> None:
    """Changes of fields that are declared as immutable."""
    name = client.name("s")
    for path, body, changes in (
        (
            "/apis/storage.k8s.io/v1/storageclasses",
            {"provisioner": "p", "parameters": {"a": "b"}},
            ({"provisioner": "q"}, {"parameters": {"a": "c"}}, {"reclaimPolicy": "Retain"}, {"volumeBindingMode": "WaitForFirstConsumer"}),
        ),
        (
            "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
            {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"}},
            ({"roleRef": {"name": "q"}},),
        ),
        ("/apis/node.k8s.io/v1/runtimeclasses", {"handler": "h"}, ({"handler": "g"}, {"handler": "x" * 64}, {"handler": None})),
        (
            "/apis/storage.k8s.io/v1/volumeattachments",
            {"spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "p"}}},
            ({"spec": {"nodeName": "m"}}, {"spec": {"attacher": "a b"}}),
        ),
    ):  # fmt: skip
        client.post(path, {"metadata": {"name": name}, **body})
        for change in changes:
            client.patch(f"{path}/{name}", change, MERGE, DRY)
    slices = f"/apis/discovery.k8s.io/v1/namespaces/{client.ns}/endpointslices"
    client.post(slices, {"metadata": {"name": "s"}, "addressType": "IPv4", "endpoints": []})
    client.patch(f"{slices}/s", {"addressType": "IPv6"}, MERGE, DRY)
    client.patch(f"{slices}/s", {"endpoints": [{"addresses": []}]}, MERGE, DRY)
    claims = f"{RESOURCE}/v1/namespaces/{client.ns}/resourceclaims"
    client.post(claims, {"metadata": {"name": "s"}, "spec": {"devices": {"requests": [{"name": "r", "exactly": CLASS}]}}})
    client.patch(f"{claims}/s", {"spec": {"devices": {"requests": []}}}, MERGE, DRY)
    constraints = [{"matchAttribute": "A B/c", "distinctAttribute": "/x"}, {"matchAttribute": "x"}]
    body = {
        "metadata": {"name": "t"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": CLASS}], "constraints": constraints}},
    }
    client.post(claims, body, DRY)


@scenario
def unions_of_levels(client: Client) -> None:
    """Parts of a priority level that go with its type, and rules without verbs."""
    levels, name = f"{FLOW}/prioritylevelconfigurations", client.name("x")
    queue = {"type": "Queue", "queuing": {"queues": 64, "handSize": 8, "queueLengthLimit": 50}}
    for spec in (
        {"type": "Limited"}, {"type": "Exempt", "limited": {"limitResponse": {"type": "Reject"}}},
        {"type": "Limited", "limited": {"limitResponse": {"type": "Queue"}}}, {"type": "Limited", "limited": {"limitResponse": {}}},
        {"type": "Limited", "limited": {"limitResponse": {**queue, "type": "Reject"}}}, {"type": "Other", "exempt": {}},
        {"type": "Limited", "exempt": {}, "limited": {"limitResponse": queue}},
        {"type": "Other", "limited": {"limitResponse": {**queue, "type": "Other"}}}, {},
    ):  # fmt: skip
        client.post(levels, {"metadata": {"name": name}, "spec": spec}, DRY)
    roles = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{client.ns}/roles"
    client.post(roles, {"metadata": {"name": "x"}, "rules": [{"apiGroups": [""], "resources": ["pods"]}]}, DRY)
