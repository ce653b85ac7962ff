"""Requests that differences between random stories and the real servers led to: what a write leaves, and how an answer is told."""

from __future__ import annotations

from typing import Any

from tests.differential.client import APPLY, JSON_PATCH, MERGE, Client
from tests.differential.definitions import ANY, CRDS, definition, make, served, where
from tests.differential.pacing import sleep, until
from tests.differential.registry import scenario

ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
DRY = {"dryRun": "All"}

#: What the server sets itself, one at a time.
SYSTEM_FIELDS: tuple[dict[str, Any], ...] = (
    {"deletionTimestamp": "2020-01-01T00:00:00Z"}, {"selfLink": "/a"}, {"deletionGracePeriodSeconds": 3},
    {"generation": 7, "creationTimestamp": "2020-01-01T00:00:00Z", "uid": "u"}, {"creationTimestamp": "2020-01-01T00:00:00Z"},
    {"resourceVersion": "4"}, {"generateName": "a-"}, {"deletionTimestamp": "2020-01-01T00:00:00Z", "finalizers": ["example.com/x"]},
)  # fmt: skip


@scenario
def system_fields_of_an_object_that_an_apply_creates(client: Client) -> None:
    """What an apply keeps of the metadata that the server sets: nothing since 1.37, the time of the deletion before."""
    path = ROLES.format(ns=client.ns)
    for number, fields in enumerate(SYSTEM_FIELDS):
        name = f"a{number}"
        body = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": name, **fields}}
        for query in ({"fieldManager": "m", **DRY}, {"fieldManager": "m"}, {"fieldManager": "m"}):
            client.patch(f"{path}/{name}", body, APPLY, query)
        client.patch(f"{path}/{name}", {"metadata": fields}, MERGE)
        client.delete(f"{path}/{name}")


@scenario
def system_fields_of_an_object_that_a_put_creates(client: Client) -> None:
    """The same of a PUT, with kinds that it may create."""
    path = LEASES.format(ns=client.ns)
    for number, fields in enumerate(SYSTEM_FIELDS):
        name = f"a{number}"
        body = {"metadata": {"name": name, **fields}, "spec": {}}
        for query in (DRY, {}, {}):
            client.put(f"{path}/{name}", body, query)
        client.post(path, {"metadata": {"name": f"b{number}", **fields}, "spec": {}})
        client.delete(f"{path}/{name}")


@scenario
def the_last_update_of_a_deleted_object(client: Client) -> None:
    """An update that takes the last finalizer away is answered with what was sent, which was never stored."""
    path = f"/api/v1/namespaces/{client.ns}/limitranges"
    for number, body in enumerate(
        (
            {"spec": {"limits": []}},
            {"metadata": {"selfLink": "/a"}},
            {"spec": {"limits": [{"type": "Pod", "max": {"cpu": "1000m"}}]}},
        )
    ):
        name = f"l{number}"
        client.post(path, {"metadata": {"name": name, "finalizers": ["example.com/x"]}, "spec": {"limits": [{"type": "Pod"}]}})
        client.delete(f"{path}/{name}")
        change = {**body, "metadata": {**body.get("metadata", {}), "finalizers": None}}
        client.patch(f"{path}/{name}", change, MERGE, DRY)
        client.patch(f"{path}/{name}", change, MERGE)
        client.get(f"{path}/{name}")


@scenario
def times_of_taints_of_devices(client: Client) -> None:
    """A taint without a time gets that of the request, before anything compares the object with the one before."""
    name = client.name("s")
    spec = {
        "driver": "a.b", "pool": {"name": "p", "resourceSliceCount": 1, "generation": 1}, "nodeName": "n",
        "devices": [{"name": "d", "taints": [{"key": "a", "effect": "NoSchedule"}]}],
    }  # fmt: skip
    body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}
    client.patch(f"{SLICES}/{name}", body, APPLY, {"fieldManager": "m1"})
    sleep(1.2)
    client.patch(f"{SLICES}/{name}", {"spec": spec}, MERGE, {"fieldManager": "m2", **DRY})
    client.patch(f"{SLICES}/{name}", {"spec": spec}, MERGE, {"fieldManager": "m2"})
    sleep(1.2)
    client.put(f"{SLICES}/{name}", body, {"fieldManager": "m3"})
    stored = client.get(f"{SLICES}/{name}").json
    sleep(1.2)
    client.put(f"{SLICES}/{name}", stored, {"fieldManager": "m4"})
    client.delete(f"{SLICES}/{name}")


@scenario
def whole_documents_in_json_patches(client: Client) -> None:
    """A test of the whole document, or of a part of it, sorts the members of what it compares; a message shows them."""
    path = f"/api/v1/namespaces/{client.ns}/configmaps"
    client.post(path, {"metadata": {"name": "a", "labels": {"l": "m"}}, "data": {"b": "1", "a": "2"}})
    stored = client.get(f"{path}/a").json
    wrong = {"op": "add", "path": "/data", "value": "x"}
    for pointer, value in (
        ("", stored),
        ("/metadata", stored["metadata"]),
        ("/metadata/managedFields/0", stored["metadata"]["managedFields"][0]),
        ("/metadata/labels", {"l": "m"}),
        ("", {}),
        ("", None),
    ):
        client.patch(f"{path}/a", [{"op": "test", "path": pointer, "value": value}, wrong], JSON_PATCH, DRY)
        client.patch(f"{path}/a", [wrong, {"op": "test", "path": pointer, "value": value}], JSON_PATCH, DRY)


#: Names that begin with a dot are those of the expression's own variables, functions and types, not of a macro's.
DOTTED = (
    ".foo", ".foo.bar == 1", "1 + .map(k, k)", ".size('a') == 1", ".size(.object) == 1", ".object.metadata.name == 'a'", ".object.nope", ".nope(1)",
    "[1].exists(x, .x == 1)", "[1].exists(object, .object.metadata.name == 'a')", "[1].exists(object, object == 1)", "has(.object.metadata)", "has(.nope.x)",
    ".int == int", ".nope.Type{a: 1}", ".Object{a: 1}", ".type(1) == .int", ".quantity('1').nope() == 1", ".has(object.metadata)", ".all(1)", ".params",
    ".request.name == 'a'", "type(1) == .double", ".optional.of(1) == optional.of(1)", "[1].exists(.x, true)", "[1].exists(x.y, true)", ".'a'", ".1 == 1",
    "'a' in .object", ".object.metadata.labels.?a.orValue('') == ''", ".object.data.a == 'b'", ".variables.v == 'b'", "object.data.all(object, .object.data[object] == 'b')",
)  # fmt: skip


@scenario
def names_with_a_leading_dot(client: Client) -> None:
    """How names with a leading dot are resolved, and how those that are unknown are told."""
    name = client.name("p")
    rules = {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]}
    variables = [{"name": "v", "expression": ".object.data['a']"}]
    for expression in DOTTED:
        spec = {"matchConstraints": rules, "variables": variables, "validations": [{"expression": expression}]}
        client.post(POLICIES, {"metadata": {"name": name}, "spec": spec}, DRY)


@scenario
def scales_of_versions_with_paths_of_their_own(client: Client) -> None:
    """managedFields of a scale are those of the path that the version of the entry has, if it has a scale at all."""

    def scale(path: str) -> dict[str, Any]:
        return {"subresources": {"scale": {"specReplicasPath": path, "statusReplicasPath": ".status.replicas"}}}

    entries: dict[str, dict[str, Any]] = {"v1": {}, "v2": scale(".spec.replicas"), "v3": scale(".spec.size"), "v4": {}}
    body = definition(client)
    body["spec"]["versions"] = [
        {"name": name, "served": True, "storage": name == "v2", "schema": {"openAPIV3Schema": ANY}, **entry}
        for name, entry in entries.items()
    ]
    with served(client, body):
        for maker in entries:
            made = make(body, maker, maker, spec={"replicas": 1, "size": 2, "other": 3})
            client.post(where(client, body, maker), made, {"fieldManager": "first"})
        body["spec"]["versions"][3]["served"] = False
        client.patch(f"{CRDS}/{body['metadata']['name']}", {"spec": {"versions": body["spec"]["versions"]}}, MERGE)
        until(lambda: client.get(where(client, body, "v4"), silent=True).status == 404)
        for maker in entries:
            for version in ("v2", "v3"):
                path = f"{where(client, body, version)}/{maker}/scale"
                client.get(path)
                client.patch(path, {"spec": {"replicas": "x"}}, MERGE, {"fieldManager": "second"})
                client.patch(path, {"spec": {"replicas": 5}}, MERGE, {"fieldManager": "second"})
                client.get(f"{where(client, body, version)}/{maker}")
                applied = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": maker}, "spec": {"replicas": 6}}
                client.patch(path, applied, APPLY, {"fieldManager": "third"})
                client.patch(path, applied, APPLY, {"fieldManager": "third", "force": "true"})
                client.get(f"{where(client, body, version)}/{maker}")
