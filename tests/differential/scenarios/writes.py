"""Create, get, update and delete of single objects: names, revisions, preconditions, immutability, bookkeeping."""

from __future__ import annotations

import json
from typing import Any

from tests.differential.client import APPLY, JSON_PATCH, MERGE, STRATEGIC, Client
from tests.differential.registry import scenario

GROUPS = {
    "deployments": "apps/v1",
    "jobs": "batch/v1",
    "leases": "coordination.k8s.io/v1",
    "roles": "rbac.authorization.k8s.io/v1",
    "rolebindings": "rbac.authorization.k8s.io/v1",
    "clusterroles": "rbac.authorization.k8s.io/v1",
    "poddisruptionbudgets": "policy/v1",
    "priorityclasses": "scheduling.k8s.io/v1",
}
CLUSTER = {"nodes", "namespaces", "clusterroles", "priorityclasses"}
CONTAINER = {"name": "c", "image": "busybox"}
TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [CONTAINER]}}
SPECS: dict[str, dict[str, Any]] = {
    "configmaps": {"data": {"k": "v"}},
    "secrets": {"data": {"k": "dg=="}},
    "pods": {"spec": {"containers": [CONTAINER]}},
    "services": {"spec": {"ports": [{"port": 80}]}},
    "serviceaccounts": {"automountServiceAccountToken": True},
    "events": {"involvedObject": {"kind": "Pod", "name": "p"}, "reason": "R", "message": "m"},
    "deployments": {"spec": {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE}},
    "jobs": {"spec": {"template": {"spec": {"containers": [CONTAINER], "restartPolicy": "Never"}}}},
    "leases": {"spec": {"holderIdentity": "h", "leaseDurationSeconds": 10}},
    "roles": {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]},
    "rolebindings": {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}},
    "poddisruptionbudgets": {"spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "a"}}}},
    "nodes": {"spec": {"unschedulable": True}},
    "namespaces": {},
    "clusterroles": {"rules": [{"nonResourceURLs": ["/y"], "verbs": ["get"]}]},
    "priorityclasses": {"value": 7},
}


def at(c: Client, plural: str, *rest: str) -> str:
    root = f"/apis/{GROUPS[plural]}" if plural in GROUPS else "/api/v1"
    return "/".join([root + ("" if plural in CLUSTER else f"/namespaces/{c.ns}"), plural, *rest])


def make(c: Client, plural: str, name: str, meta: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    body: dict[str, Any] = {**SPECS[plural], **fields, "metadata": {"name": name, **(meta or {})}}
    if plural == "events":
        body["involvedObject"] = {**body["involvedObject"], "namespace": c.ns}
    return json.loads(json.dumps(body))


@scenario
def one_configmap_from_create_to_delete(c: Client) -> None:
    """201, 200, 200 with a new revision, 200 with a Status, then 404."""
    one = at(c, "configmaps", "one")
    made = c.post(at(c, "configmaps"), make(c, "configmaps", "one", {"labels": {"a": "b"}}))
    c.get(one)
    body = made.json
    body["data"]["k"] = "w"
    c.put(one, body)
    c.get(one)
    c.delete(one)
    c.get(one)
    c.delete(one)
    c.post(at(c, "configmaps"), make(c, "configmaps", "one"))


@scenario
def kind_and_version_may_be_left_out_of_a_body(c: Client) -> None:
    """Every namespaced sample is accepted without kind and apiVersion, and comes back with both."""
    for plural in SPECS:
        if plural not in CLUSTER:
            c.post(at(c, plural), make(c, plural, "n"))
            c.get(at(c, plural, "n"))


@scenario
def cluster_scoped_objects_live_without_namespace(c: Client) -> None:
    """Create, get, update and delete of every cluster-scoped sample."""
    for plural in sorted(CLUSTER):
        name = c.name("x")
        made = c.post(at(c, plural), make(c, plural, name))
        c.get(at(c, plural, name))
        body = made.json or {"metadata": {"name": name}}
        body["metadata"]["labels"] = {"l": "1"}
        c.put(at(c, plural, name), body)
        c.delete(at(c, plural, name))
        c.get(at(c, plural, name), silent=plural == "namespaces")


@scenario
def names_follow_the_rule_of_their_kind(c: Client) -> None:
    """Subdomain, label, path segment: each kind refuses in its own words."""
    for plural in ("configmaps", "services", "roles", "pods", "serviceaccounts", "poddisruptionbudgets"):
        for name in ("UPPER", "a.b", "a_b", "-x", "system:x"):
            c.post(at(c, plural), make(c, plural, name))
    for name in ("a" * 64, "a" * 254, "a..b", "a/b", ".", "..", "", "a%b", "é"):
        c.post(at(c, "configmaps"), make(c, "configmaps", name))
    c.post(at(c, "services"), make(c, "services", "1-starts-with-digit"))
    c.post(at(c, "services"), make(c, "services", "s" * 64))
    c.post(at(c, "roles"), make(c, "roles", "a%b"))
    c.post(at(c, "roles"), make(c, "roles", ".."))


@scenario
def a_name_is_required(c: Client) -> None:
    """Neither name nor generateName is an Invalid, whatever the kind."""
    for plural in ("configmaps", "pods", "deployments", "leases", "events"):
        body = make(c, plural, "x")
        del body["metadata"]["name"]
        c.post(at(c, plural), body)
    c.post(at(c, "configmaps"), {})
    c.post(at(c, "configmaps"), {"metadata": None})
    c.post(at(c, "configmaps"), {"metadata": {"name": None}})


@scenario
def generate_name_appends_five_characters(c: Client) -> None:
    """A generated name is prefix and suffix; a long prefix is cut; a name given as well wins."""
    for prefix in ("made-", "a-b", "x" * 58, "x" * 59, "x" * 70, "dot.", "UP-", "a_b_", "-start"):
        body = make(c, "configmaps", "x")
        body["metadata"] = {"generateName": prefix}
        c.post(at(c, "configmaps"), body)
    c.post(at(c, "configmaps"), make(c, "configmaps", "both", {"generateName": "g-"}))
    c.post(at(c, "configmaps"), make(c, "configmaps", "both", {"generateName": "g-"}))
    c.post(at(c, "pods"), {**make(c, "pods", "x"), "metadata": {"generateName": "pod-"}})
    c.post(at(c, "services"), {**make(c, "services", "x"), "metadata": {"generateName": "svc-"}})


@scenario
def creating_twice_is_a_conflict(c: Client) -> None:
    """409 AlreadyExists names the resource, its group and the object."""
    for plural in ("configmaps", "pods", "deployments", "leases", "roles", "events"):
        c.post(at(c, plural), make(c, plural, "n"), silent=True)
        c.post(at(c, plural), make(c, plural, "n"))
    c.post(at(c, "namespaces"), make(c, "namespaces", c.ns))


@scenario
def an_absent_object_is_not_found(c: Client) -> None:
    """GET, DELETE and PATCH of what is not there."""
    for plural in ("secrets", "deployments", "nodes", "clusterroles"):
        path = at(c, plural, c.name("absent"))
        c.get(path)
        c.delete(path)
        c.patch(path, {"metadata": {"labels": {"a": "b"}}}, MERGE)
        c.patch(path, [], JSON_PATCH)


@scenario
def put_creates_only_where_the_kind_allows_it(c: Client) -> None:
    """PUT to an absent name is 201 for some kinds and 404 for the others."""
    for plural in SPECS:
        name = c.name("put") if plural in CLUSTER else "put"
        c.put(at(c, plural, name), make(c, plural, name))
        if plural in CLUSTER:
            c.delete(at(c, plural, name), silent=True)


@scenario
def put_that_would_create_minds_revision_and_uid(c: Client) -> None:
    """A revision or a uid in the body says that the object should exist."""
    for meta in (
        {"resourceVersion": "1"},
        {"uid": "11111111-2222-3333-4444-555555555555"},
        {"resourceVersion": "0"},
        {"resourceVersion": ""},
        {"generateName": "g-"},
        {"resourceVersion": "x"},
    ):
        c.put(at(c, "leases", "l"), make(c, "leases", "l", meta))
        c.delete(at(c, "leases", "l"), silent=True)
        c.put(at(c, "configmaps", "l"), make(c, "configmaps", "l", meta))


@scenario
def an_update_without_revision_overwrites_where_allowed(c: Client) -> None:
    """Unconditional updates are a matter of the kind."""
    for plural in SPECS:
        name = c.name("u") if plural in CLUSTER else "u"
        c.post(at(c, plural), make(c, plural, name), silent=True)
        c.put(at(c, plural, name), make(c, plural, name, {"labels": {"v": "2"}}))
        if plural in CLUSTER:
            c.delete(at(c, plural, name), silent=True)


@scenario
def an_update_with_a_stale_revision_is_a_conflict(c: Client) -> None:
    """409 Conflict asks to apply the changes to the latest version."""
    for plural in ("configmaps", "deployments", "services", "leases"):
        old = c.post(at(c, plural), make(c, plural, "s"), silent=True).json
        c.patch(at(c, plural, "s"), {"metadata": {"labels": {"n": "1"}}}, MERGE)
        c.put(at(c, plural, "s"), old)
        old["metadata"]["resourceVersion"] = "1"
        c.put(at(c, plural, "s"), old)


@scenario
def two_writers_and_one_revision(c: Client) -> None:
    """The first of two updates made from one read wins, the second reads again."""
    path = at(c, "configmaps", "shared")
    c.post(at(c, "configmaps"), make(c, "configmaps", "shared"))
    first, second = c.get(path).json, c.get(path).json
    first["data"]["first"] = "1"
    c.put(path, first)
    second["data"]["second"] = "2"
    c.put(path, second)
    again = c.get(path).json
    again["data"]["second"] = "2"
    c.put(path, again)
    c.get(path)


@scenario
def odd_revisions_in_an_update(c: Client) -> None:
    """What is no number is refused; a number from the future is a conflict."""
    c.post(at(c, "configmaps"), make(c, "configmaps", "o"), silent=True)
    for rv in ("abc", "-1", "1.5", "99999999999", "99999999999999999999999", " ", "0x10", "01"):
        c.put(at(c, "configmaps", "o"), make(c, "configmaps", "o", {"resourceVersion": rv}))
    for rv in (5, None, True, "0"):
        c.put(at(c, "configmaps", "o"), make(c, "configmaps", "o", {"resourceVersion": rv}))


@scenario
def a_foreign_uid_is_a_failed_precondition(c: Client) -> None:
    """An update for another incarnation of the name is a 409 that shows both uids."""
    path = at(c, "configmaps", "u")
    old = c.post(at(c, "configmaps"), make(c, "configmaps", "u")).json
    c.delete(path)
    c.post(at(c, "configmaps"), make(c, "configmaps", "u"))
    del old["metadata"]["resourceVersion"]
    c.put(path, old)
    c.patch(path, {"metadata": {"uid": old["metadata"]["uid"]}}, MERGE)
    c.patch(path, {"metadata": {"uid": "not-a-uid"}}, STRATEGIC)
    c.patch(path, [{"op": "replace", "path": "/metadata/uid", "value": old["metadata"]["uid"]}], JSON_PATCH)
    c.get(path)


@scenario
def a_patch_may_carry_a_revision(c: Client) -> None:
    """metadata.resourceVersion makes a patch conditional."""
    path = at(c, "configmaps", "p")
    first = c.post(at(c, "configmaps"), make(c, "configmaps", "p")).rv
    second = c.patch(path, {"data": {"a": "1"}, "metadata": {"resourceVersion": first}}, MERGE).rv
    c.patch(path, {"data": {"a": "2"}, "metadata": {"resourceVersion": first}}, MERGE)
    c.patch(path, {"data": {"a": "3"}, "metadata": {"resourceVersion": first}}, STRATEGIC)
    c.patch(path, [{"op": "replace", "path": "/metadata/resourceVersion", "value": first}], JSON_PATCH)
    c.patch(
        path,
        [{"op": "test", "path": "/metadata/resourceVersion", "value": second}, {"op": "add", "path": "/data/b", "value": "4"}],
        JSON_PATCH,
    )
    c.patch(path, {"metadata": {"resourceVersion": ""}, "data": {"c": "5"}}, MERGE)
    c.patch(path, {"metadata": {"resourceVersion": None}, "data": {"d": "6"}}, MERGE)


@scenario
def creating_with_a_revision_is_refused(c: Client) -> None:
    """resourceVersion must not be set on objects to be created."""
    for plural in ("configmaps", "pods", "deployments", "leases"):
        c.post(at(c, plural), make(c, plural, "r", {"resourceVersion": "12"}))
    c.post(at(c, "configmaps"), make(c, "configmaps", "r0", {"resourceVersion": "0"}))
    c.post(at(c, "configmaps"), make(c, "configmaps", "r1", {"resourceVersion": ""}))
    c.post(at(c, "configmaps"), make(c, "configmaps", "r2", {"resourceVersion": 5}))


@scenario
def the_server_owns_some_metadata(c: Client) -> None:
    """uid, creationTimestamp, deletionTimestamp, generation and selfLink sent by a client are not kept."""
    meta = {
        "uid": "11111111-2222-3333-4444-555555555555",
        "creationTimestamp": "2001-01-01T00:00:00Z",
        "generation": 9,
        "deletionTimestamp": "2001-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 9,
        "selfLink": "/x",
    }
    for plural in ("configmaps", "pods", "deployments"):
        c.post(at(c, plural), make(c, plural, "m", meta))
        c.put(at(c, plural, "m"), make(c, plural, "m", {k: v for k, v in meta.items() if k != "uid"}))
        c.patch(at(c, plural, "m"), {"metadata": dict.fromkeys(meta)}, MERGE)
        c.patch(at(c, plural, "m"), {"metadata": {"generation": 77, "creationTimestamp": None, "selfLink": "/y"}}, MERGE)
    c.post(at(c, "configmaps"), make(c, "configmaps", "t", {"creationTimestamp": "yesterday"}))
    c.post(at(c, "configmaps"), make(c, "configmaps", "t", {"creationTimestamp": 5}))


@scenario
def generation_counts_changes_of_the_spec(c: Client) -> None:
    """Labels and status leave the generation alone, the spec moves it."""
    path = at(c, "deployments", "g")
    c.post(at(c, "deployments"), make(c, "deployments", "g"))
    c.patch(path, {"metadata": {"labels": {"l": "1"}}}, MERGE)
    c.patch(path, {"spec": {"replicas": 4}}, MERGE)
    c.patch(path, {"spec": {"replicas": 4}}, MERGE)
    c.patch(path + "/status", {"status": {"replicas": 4, "observedGeneration": 2}}, MERGE)
    c.patch(path + "/scale", {"spec": {"replicas": 5}}, MERGE)
    c.patch(path, {"spec": {"template": {"metadata": {"annotations": {"a": "1"}}}}}, MERGE)
    c.patch(path, {"metadata": {"annotations": {"a": "1"}}}, MERGE)
    c.get(path)


@scenario
def status_belongs_to_its_subresource(c: Client) -> None:
    """Create and update drop the status; the subresource drops everything else."""
    for plural, status in (
        ("deployments", {"replicas": 3}),
        ("pods", {"phase": "Running", "podIP": "1.2.3.4"}),
        ("jobs", {"active": 1, "startTime": "2026-01-01T00:00:00Z"}),
        ("poddisruptionbudgets", {"disruptionsAllowed": 2, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 3}),
    ):
        path = at(c, plural, "st")
        body = c.post(at(c, plural), make(c, plural, "st", status=status)).json
        c.put(path, {**body, "status": status})
        del body["metadata"]["resourceVersion"]
        body["metadata"]["labels"] = {"from": "status"}
        body["metadata"]["annotations"] = {"from": "status"}
        c.put(path + "/status", {**body, "status": status})
        c.patch(path + "/status", {"metadata": {"finalizers": ["example.com/f"]}, "spec": {"paused": True}}, MERGE)
        c.get(path + "/status")


@scenario
def immutable_fields_stay(c: Client) -> None:
    """A change of what may not change is a 422 with the field's path."""
    for plural, document in (
        (
            "deployments",
            {"spec": {"selector": {"matchLabels": {"app": "b"}}, "template": {"metadata": {"labels": {"app": "b"}}}}},
        ),
        ("jobs", {"spec": {"completions": 5}}),
        ("jobs", {"spec": {"template": {"spec": {"restartPolicy": "OnFailure"}}}}),
        ("secrets", {"type": "example.com/other"}),
        ("services", {"spec": {"clusterIP": "10.0.200.201"}}),
        ("rolebindings", {"roleRef": {"name": "other"}}),
        ("pods", {"spec": {"nodeName": "n1"}}),
        ("pods", {"spec": {"restartPolicy": "Never"}}),
        ("pods", {"spec": {"containers": [{"name": "c", "image": "other"}]}}),
        ("pods", {"spec": {"containers": []}}),
        ("pods", {"spec": {"activeDeadlineSeconds": 5}}),
        ("pods", {"spec": {"activeDeadlineSeconds": 9}}),
        ("configmaps", {"metadata": {"name": "other"}}),
        ("configmaps", {"metadata": {"namespace": "other"}}),
        ("events", {"involvedObject": {"namespace": "other"}}),
    ):
        c.post(at(c, plural), make(c, plural, "i"), silent=True)
        c.patch(at(c, plural, "i"), document, MERGE)


@scenario
def an_immutable_configmap_cannot_change_its_data(c: Client) -> None:
    """immutable: true freezes data and itself, not the metadata."""
    path = at(c, "configmaps", "frozen")
    c.post(at(c, "configmaps"), make(c, "configmaps", "frozen", immutable=True))
    c.patch(path, {"data": {"k": "other"}}, MERGE)
    c.patch(path, {"immutable": False}, MERGE)
    c.patch(path, {"immutable": None}, MERGE)
    c.patch(path, {"binaryData": {"b": "AA=="}}, MERGE)
    c.patch(path, {"metadata": {"labels": {"still": "possible"}}}, MERGE)
    c.put(path, make(c, "configmaps", "frozen"))
    c.delete(path)


@scenario
def an_update_that_changes_nothing_keeps_the_revision(c: Client) -> None:
    """No write, no new revision, no change of managedFields."""
    path = at(c, "configmaps", "same")
    body = c.post(at(c, "configmaps"), make(c, "configmaps", "same")).json
    c.put(path, body)
    c.put(path, make(c, "configmaps", "same"))
    c.patch(path, {"data": {"k": "v"}}, MERGE)
    c.patch(path, {"data": {"absent": None}}, MERGE)
    c.patch(path, [], JSON_PATCH)
    c.patch(path, {}, STRATEGIC)
    c.patch(path, [{"op": "test", "path": "/data/k", "value": "v"}], JSON_PATCH)
    c.put(path, body, {"fieldManager": "another"})
    c.get(path)


@scenario
def managed_fields_remember_who_wrote(c: Client) -> None:
    """Plain writes are tracked per manager, operation and subresource."""
    path = at(c, "deployments", "mf")
    c.post(at(c, "deployments"), make(c, "deployments", "mf"), {"fieldManager": "maker"})
    c.patch(path, {"spec": {"replicas": 2}}, MERGE, {"fieldManager": "scaler"})
    c.patch(path, {"metadata": {"labels": {"a": "1"}}}, STRATEGIC)
    c.patch(path + "/status", {"status": {"replicas": 2}}, MERGE, {"fieldManager": "scaler"})
    c.patch(path + "/scale", {"spec": {"replicas": 3}}, MERGE, {"fieldManager": "hand"})
    c.patch(path, {"metadata": {"labels": None}}, MERGE, {"fieldManager": "maker"})
    c.get(path)
    c.get(path, headers={"User-Agent": "other/9"})
    c.patch(path, {"metadata": {"labels": {"b": "1"}}}, MERGE, headers={"User-Agent": "curl/8.0 (x)"})
    c.patch(path, {"metadata": {"labels": {"c": "1"}}}, MERGE, headers={"User-Agent": "plain"})


@scenario
def managed_fields_may_be_cleared_and_not_forged(c: Client) -> None:
    """An empty entry resets them; nonsense is ignored or refused."""
    path = at(c, "configmaps", "mf")
    c.post(at(c, "configmaps"), make(c, "configmaps", "mf"))
    c.patch(path, {"metadata": {"managedFields": [{}]}}, MERGE)
    c.patch(path, {"metadata": {"labels": {"a": "1"}}}, MERGE)
    c.patch(path, {"metadata": {"managedFields": []}, "data": {"n": "1"}}, MERGE)
    c.patch(
        path,
        {
            "metadata": {
                "managedFields": [
                    {
                        "manager": "fake",
                        "operation": "Apply",
                        "apiVersion": "v1",
                        "fieldsType": "FieldsV1",
                        "fieldsV1": {"f:data": {"f:k": {}}},
                    }
                ]
            }
        },
        MERGE,
    )
    c.patch(
        path,
        {"metadata": {"managedFields": [{"manager": "fake", "operation": "Nope", "apiVersion": "v1", "fieldsType": "FieldsV1"}]}},
        MERGE,
    )
    c.patch(
        path,
        {
            "metadata": {
                "managedFields": [
                    {"manager": "fake", "operation": "Update", "apiVersion": "v1", "fieldsType": "Other", "fieldsV1": {}}
                ]
            }
        },
        MERGE,
    )
    c.post(at(c, "configmaps"), make(c, "configmaps", "mf2", {"managedFields": [{"manager": "x", "operation": "Update"}]}))
    c.post(at(c, "configmaps"), make(c, "configmaps", "mf3"), {"fieldManager": "x" * 128})
    c.post(at(c, "configmaps"), make(c, "configmaps", "mf4"), {"fieldManager": "x" * 129})
    c.post(at(c, "configmaps"), make(c, "configmaps", "mf5"), {"fieldManager": "tab\there"})
    c.post(at(c, "configmaps"), make(c, "configmaps", "mf6"), {"fieldManager": ""})


@scenario
def labels_and_annotations_are_validated(c: Client) -> None:
    """Keys are qualified names, label values are short and plain, annotations together at most 256 KiB."""
    for labels in (
        {"": "x"},
        {"a/b/c": "x"},
        {"UP.example.com/a": "x"},
        {"a" * 64: "x"},
        {"ok": "-x"},
        {"ok": "a" * 64},
        {"ok": "é"},
        {"-k": "v"},
        {"example.com/": "v"},
        {"one": "a b"},
    ):
        c.post(at(c, "configmaps"), make(c, "configmaps", "l", {"labels": labels}))
    for annotated in ({"a/b/c": "x"}, {"UPPER": "anything at all ☃"}, {"b c": ""}):
        c.post(at(c, "configmaps"), make(c, "configmaps", "a", {"annotations": annotated}))
    c.post(at(c, "configmaps"), make(c, "configmaps", "big", {"annotations": {"a": "x" * 262144}}))
    c.post(at(c, "configmaps"), make(c, "configmaps", "n", {"labels": {"a": None}}))
    c.post(at(c, "configmaps"), make(c, "configmaps", "n", {"labels": ["a"]}))
    c.post(at(c, "configmaps"), make(c, "configmaps", "n", {"labels": {"a": 1}}))


@scenario
def owner_references_are_validated(c: Client) -> None:
    """apiVersion, kind, name and uid are required, one controller at most."""
    good = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "11111111-2222-3333-4444-555555555555"}
    for references in (
        [good],
        [{**good, "uid": ""}],
        [{**good, "name": ""}],
        [{**good, "kind": ""}],
        [{**good, "apiVersion": ""}],
        [{}],
        [{**good, "apiVersion": "a/b/c"}],
        [{**good, "controller": True}, {**good, "controller": True, "name": "two"}],
        [good, good],
        [{**good, "apiVersion": "v1", "kind": "Event"}],
        [{**good, "blockOwnerDeletion": "x"}],
    ):
        c.post(at(c, "secrets"), make(c, "secrets", "owned", {"ownerReferences": references}))
        c.delete(at(c, "secrets", "owned"), silent=True)


@scenario
def finalizers_must_be_qualified(c: Client) -> None:
    """A finalizer is a qualified name with a domain, or one of the standard ones."""
    for finalizers in (
        ["kubernetes"],
        ["orphan"],
        ["foregroundDeletion"],
        ["plain"],
        ["a/b/c"],
        [""],
        ["ex ample.com/x"],
        ["example.com/ok", "example.com/ok"],
    ):
        made = c.post(at(c, "configmaps"), make(c, "configmaps", "f", {"finalizers": finalizers}))
        if made.status == 201:
            c.patch(at(c, "configmaps", "f"), {"metadata": {"finalizers": None}}, MERGE)
            c.delete(at(c, "configmaps", "f"), silent=True)


@scenario
def url_and_body_must_agree(c: Client) -> None:
    """Name, namespace, kind and version in the body are held against the path."""
    c.post(at(c, "configmaps"), make(c, "configmaps", "b"), silent=True)
    path = at(c, "configmaps", "b")
    for body in (
        {"metadata": {"name": "c"}},
        {"metadata": {}},
        {},
        {"metadata": {"name": "b", "namespace": "other"}},
        {"metadata": {"name": "b"}, "kind": "Secret", "apiVersion": "v1"},
        {"metadata": {"name": "b"}, "kind": "ConfigMap", "apiVersion": "v2"},
        {"metadata": {"name": "b"}, "kind": "ConfigMap"},
        {"metadata": {"name": "b"}, "apiVersion": "apps/v1"},
        {"metadata": {"name": "b", "namespace": ""}},
        {"metadata": {"name": ""}},
    ):
        c.put(path, body)
    c.post(at(c, "configmaps"), {"metadata": {"name": "x", "namespace": "elsewhere"}})
    c.post(at(c, "nodes"), {"metadata": {"name": c.name("n"), "namespace": c.ns}})
    c.delete(at(c, "nodes", c.name("n")), silent=True)
    c.post("/api/v1/configmaps", make(c, "configmaps", "x"))
    c.post("/api/v1/configmaps", make(c, "configmaps", "x", {"namespace": c.ns}))
    c.put("/api/v1/configmaps/x", make(c, "configmaps", "x"))
    c.get("/api/v1/configmaps/b")


@scenario
def a_namespace_must_exist(c: Client) -> None:
    """Creating in an absent namespace is a 404 for the namespace; reading is a 404 for the object or an empty list."""
    root = "/api/v1/namespaces/" + c.name("nowhere")
    c.post(root + "/configmaps", make(c, "configmaps", "x"))
    c.post(root + "/pods", make(c, "pods", "x"))
    c.post(root + "/configmaps", make(c, "configmaps", "BAD"))
    c.get(root + "/configmaps/x")
    c.get(root + "/configmaps")
    c.delete(root + "/configmaps/x")
    c.put(f"/apis/coordination.k8s.io/v1/namespaces/{c.name('nowhere')}/leases/l", make(c, "leases", "l"))


@scenario
def secrets_encode_and_check_their_data(c: Client) -> None:
    """stringData becomes data; typed secrets need their keys; keys and base64 are checked."""
    for body in (
        {"stringData": {"a": "b", "k": "wins"}},
        {"data": {"k": "not base64!"}},
        {"data": {"bad key": "dg=="}},
        {"type": "kubernetes.io/tls", "data": {}},
        {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "bm90IGpzb24="}},
        {"type": "kubernetes.io/basic-auth", "data": {}},
        {"type": "kubernetes.io/ssh-auth"},
        {"type": "kubernetes.io/service-account-token"},
        {"data": {"k": None}},
        {"data": {"k": ""}},
        {"data": {"k": 5}},
        {"type": "any.thing/goes"},
        {"data": {"..": "dg=="}},
    ):
        c.post(at(c, "secrets"), make(c, "secrets", "s", **body))
        c.delete(at(c, "secrets", "s"), silent=True)


@scenario
def configmaps_check_their_keys(c: Client) -> None:
    """A key is in data or binaryData, and made of plain characters."""
    for body in (
        {"data": {"a": "1"}, "binaryData": {"a": "AA=="}},
        {"data": {"a b": "1"}},
        {"data": {".": "1"}},
        {"data": {"..x": "1"}},
        {"binaryData": {"b": "AAEC"}},
        {"binaryData": {"b": "?"}},
        {"data": {"x" * 254: ""}},
        {"data": {"k": 1}},
        {"data": None},
        {"data": {}},
        {"data": {"k": "line\nline\ttab \u0000 <&> \u2028 é ☃ 😀"}},
    ):
        c.post(at(c, "configmaps"), make(c, "configmaps", "k", **body))
        c.delete(at(c, "configmaps", "k"), silent=True)


@scenario
def quantities_come_back_canonical(c: Client) -> None:
    """0.5 is 500m, 1024Mi is 1Gi, and limits become requests."""
    for cpu, memory in (
        ("0.5", "1024Mi"),
        ("1000m", "1e3"),
        (1, 1048576),
        ("1.5", "1.5Gi"),
        ("100u", "128974848"),
        ("1k", "12E"),
        (0.1, "0"),
        ("-1", "1"),
        ("1x", "1"),
        ("", "1"),
        ("0.0001", "0.5"),
    ):
        c.post(
            at(c, "pods"),
            make(c, "pods", "q", spec={"containers": [{**CONTAINER, "resources": {"limits": {"cpu": cpu, "memory": memory}}}]}),
        )
        c.delete(at(c, "pods", "q"), None, {"gracePeriodSeconds": "0"}, silent=True)


@scenario
def one_event_through_two_groups(c: Client) -> None:
    """core/v1 and events.k8s.io/v1 show the same objects with other field names."""
    new = f"/apis/events.k8s.io/v1/namespaces/{c.ns}/events"
    c.post(
        at(c, "events"),
        make(c, "events", "old", count=3, firstTimestamp="2026-01-01T00:00:00Z", source={"component": "s", "host": "h"}),
    )
    c.get(new + "/old")
    body = {
        "metadata": {"name": "new"},
        "eventTime": "2026-01-01T00:00:00.123456Z",
        "reportingController": "example.com/c",
        "reportingInstance": "i",
        "action": "A",
        "reason": "R",
        "type": "Normal",
        "note": "n",
        "regarding": {"kind": "Pod", "name": "p", "namespace": c.ns},
    }
    c.post(new, body)
    c.get(at(c, "events", "new"))
    for gone in ("eventTime", "reportingController", "action", "type", "reason", "reportingInstance"):
        c.post(new, {**{k: v for k, v in body.items() if k != gone}, "metadata": {"name": "miss"}})
    c.delete(new + "/old")
    c.get(at(c, "events", "old"))


@scenario
def the_namespace_default_and_its_neighbours_are_there(c: Client) -> None:
    """A fresh server has four namespaces."""
    for name in ("default", "kube-system", "kube-public", "kube-node-lease"):
        c.get(at(c, "namespaces", name))
    c.post(at(c, "namespaces"), make(c, "namespaces", "default"))
    c.delete(at(c, "namespaces", "kube-system"), None, {"dryRun": "All"})


@scenario
def yaml_bodies_are_as_good_as_json(c: Client) -> None:
    """application/yaml is read and, if asked for, written."""
    c.post(at(c, "configmaps"), "metadata: {name: y}\n", ctype="application/yaml")  # y is true
    text = "metadata:\n  name: y1\n  labels: {a: 'b'}\ndata:\n  n: \"1\"\n  multi: |\n    one\n    two\n"
    c.post(at(c, "configmaps"), text, ctype="application/yaml")
    c.get(at(c, "configmaps", "y1"))
    c.put(at(c, "configmaps", "y1"), text.replace("one", "three"), ctype="application/yaml")
    c.post(at(c, "configmaps"), "metadata: {name: y2}\ndata: {n: 1}\n", ctype="application/yaml")
    c.post(at(c, "configmaps"), "metadata: {name: y3}\ndata: {n: yes}\n", ctype="application/yaml")
    c.post(at(c, "configmaps"), "metadata: {name: y4}\n---\nmetadata: {name: y5}\n", ctype="application/yaml")
    c.post(at(c, "configmaps"), "metadata: [", ctype="application/yaml")
    c.post(at(c, "configmaps"), "a: &x {name: y6}\nmetadata: *x\n", ctype="application/yaml")
    c.post(at(c, "configmaps"), "", ctype="application/yaml")


@scenario
def apply_creates_what_is_not_there(c: Client) -> None:
    """For server-side apply an absent object is a create (201), a present one a patch (200)."""
    path = at(c, "configmaps", "applied")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"a": "1"}}
    c.patch(path, body, APPLY, {"fieldManager": "m"})
    c.patch(path, {**body, "data": {"a": "2"}}, APPLY, {"fieldManager": "m"})
    c.patch(path, {**body, "data": {"a": "3"}}, APPLY, {"fieldManager": "n"})
    c.patch(path, {**body, "data": {"a": "3"}}, APPLY, {"fieldManager": "n", "force": "true"})
    c.patch(
        path, {**body, "metadata": {"name": "applied", "resourceVersion": "1"}}, APPLY, {"fieldManager": "m", "force": "true"}
    )
    c.patch(at(c, "configmaps", "no"), {**body, "metadata": {"name": "no", "uid": "1"}}, APPLY, {"fieldManager": "m"})
    c.patch(at(c, "configmaps", "no"), {**body, "metadata": {"name": "no", "resourceVersion": "1"}}, APPLY, {"fieldManager": "m"})
