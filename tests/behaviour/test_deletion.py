"""Deletion: finalizers, propagation policies, grace periods, preconditions, and responses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.behaviour.conftest import Api, Reply

MERGE = "application/merge-patch+json"
OTHER_UID = "11111111-2222-3333-4444-555555555555"
FINALIZER = "example.com/f"


def config_map(name: str, **meta: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **meta}}


def problem(reply: Reply) -> tuple[int, str, str]:
    return reply.status, reply.at("reason"), reply.at("message")


def names(api: Api, plural: str = "configmaps") -> list[str]:
    return [item["metadata"]["name"] for item in api.get(api.path(plural)).at("items")]


@pytest.fixture
def pod(api: Api) -> str:
    """The path of a pod bound to a node."""
    spec = {"nodeName": "n", "automountServiceAccountToken": False, "containers": [{"name": "c", "image": "i"}]}
    api.post(api.path("serviceaccounts"), {"metadata": {"name": "default"}})
    assert api.post(api.path("pods"), {"metadata": {"name": "p"}, "spec": spec}).status == 201
    return api.path("pods", "p")


# ---------------------------------------------------------------- responses


def test_delete_returns_a_status_for_most_kinds(api: Api) -> None:
    made = api.post(api.path("configmaps"), config_map("a"))
    reply = api.delete(api.path("configmaps", "a"))
    details = {"name": "a", "kind": "configmaps", "uid": made.at("metadata", "uid")}
    assert reply.status == 200
    assert reply.json == {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
    assert problem(api.get(api.path("configmaps", "a"))) == (404, "NotFound", 'configmaps "a" not found')
    assert problem(api.delete(api.path("configmaps", "a"))) == (404, "NotFound", 'configmaps "a" not found')


@pytest.mark.parametrize(
    ("plural", "body"),
    [
        ("services", {"spec": {"ports": [{"port": 80}]}}),
        ("serviceaccounts", {}),
        ("resourcequotas", {"spec": {"hard": {"pods": "1"}}}),
    ],
)
def test_delete_returns_the_object_for_some_kinds(api: Api, plural: str, body: dict[str, Any]) -> None:
    made = api.post(api.path(plural), {"metadata": {"name": "a"}, **body}).json
    reply = api.delete(api.path(plural, "a"))
    deleted_at = reply.at("metadata", "resourceVersion")
    assert int(deleted_at) > int(made["metadata"]["resourceVersion"])
    assert (reply.status, reply.json) == (200, {**made, "metadata": {**made["metadata"], "resourceVersion": deleted_at}})


# ---------------------------------------------------------------- preconditions


def test_delete_preconditions(api: Api) -> None:
    path = api.path("configmaps", "a")
    made = api.post(api.path("configmaps"), config_map("a")).at("metadata")
    text = 'Operation cannot be fulfilled on ConfigMap "a": the {0} in the precondition ({1}) does not match the {0} in record ({2}). '
    wrong_uid = api.delete(path, {"preconditions": {"uid": OTHER_UID}})
    told = text.format("UID", OTHER_UID, made["uid"]) + "The object might have been deleted and then recreated"
    assert problem(wrong_uid) == (409, "Conflict", told)
    wrong_revision = api.delete(path, {"preconditions": {"resourceVersion": "1"}})
    told = text.format("ResourceVersion", "1", made["resourceVersion"]) + "The object might have been modified"
    assert problem(wrong_revision) == (409, "Conflict", told)
    right = {"uid": made["uid"], "resourceVersion": made["resourceVersion"]}
    assert api.delete(path, {"preconditions": right}).status == 200


# ---------------------------------------------------------------- finalizers and dependents


def test_finalizers_delay_the_deletion(api: Api) -> None:
    path = api.path("configmaps", "a")
    made = api.post(api.path("configmaps"), config_map("a", finalizers=[FINALIZER, "example.com/g"]))
    marked = api.delete(path)
    assert marked.status == 200
    meta = marked.at("metadata")
    assert (meta["finalizers"], meta["deletionGracePeriodSeconds"]) == ([FINALIZER, "example.com/g"], 0)
    assert int(meta["resourceVersion"]) > int(made.at("metadata", "resourceVersion"))
    assert api.delete(path).at("metadata", "resourceVersion") == meta["resourceVersion"]  # nothing more to do
    again = api.post(api.path("configmaps"), config_map("a"))
    assert problem(again) == (409, "AlreadyExists", 'object is being deleted: configmaps "a" already exists')
    added = api.patch(path, {"metadata": {"finalizers": [FINALIZER, "example.com/new"]}}, MERGE)
    assert added.status == 422
    assert "no new finalizers can be added if the object is being deleted" in added.at("message")
    fewer = api.patch(path, {"metadata": {"finalizers": ["example.com/g"]}}, MERGE)
    assert (fewer.status, names(api)) == (200, ["a"])
    last = api.patch(path, {"metadata": {"finalizers": None}}, MERGE)
    assert (last.status, last.at("metadata", "uid"), names(api)) == (200, made.at("metadata", "uid"), [])


@pytest.mark.parametrize(
    ("options", "finalizers"),
    [
        ({"propagationPolicy": "Foreground"}, ["foregroundDeletion"]),
        ({"propagationPolicy": "Orphan"}, ["orphan"]),
        ({"orphanDependents": True}, ["orphan"]),
        ({"propagationPolicy": "Background"}, None),
        ({"orphanDependents": False}, None),
        ({}, None),
    ],
)
@pytest.mark.parametrize("as_query", [False, True])
def test_delete_options_set_garbage_collector_finalizers(
    api: Api, options: dict[str, Any], finalizers: list[str] | None, as_query: bool
) -> None:
    api.post(api.path("configmaps"), config_map("a"))
    query = {name: str(value).lower() if isinstance(value, bool) else value for name, value in options.items()}
    reply = api.delete(api.path("configmaps", "a"), None, query) if as_query else api.delete(api.path("configmaps", "a"), options)
    if finalizers is None:
        assert (reply.at("kind"), reply.at("status"), names(api)) == ("Status", "Success", [])
    else:
        assert reply.at("metadata", "finalizers") == finalizers
        assert "deletionTimestamp" in reply.at("metadata")


def test_later_propagation_policy_replaces_the_first(api: Api) -> None:
    api.post(api.path("configmaps"), config_map("a", finalizers=[FINALIZER]))
    path = api.path("configmaps", "a")
    assert api.delete(path, {"propagationPolicy": "Orphan"}).at("metadata", "finalizers") == [FINALIZER, "orphan"]
    assert api.delete(path, {"propagationPolicy": "Foreground"}).at("metadata", "finalizers") == [FINALIZER, "foregroundDeletion"]
    assert api.delete(path, {"propagationPolicy": "Background"}).at("metadata", "finalizers") == [FINALIZER]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"propagationPolicy": "Nope"}, 'propagationPolicy: Unsupported value: "Nope": supported values: "Foreground", "Background", "Orphan", "nil"'),
        ({"propagationPolicy": "Orphan", "orphanDependents": True}, "propagationPolicy: Invalid value: \"Orphan\": orphanDependents and deletionPropagation cannot be both set"),
        ({"dryRun": ["x"]}, 'dryRun: Unsupported value: ["x"]: supported values: "All"'),
    ],
)  # fmt: skip
def test_invalid_delete_options_return_422(api: Api, options: dict[str, Any], message: str) -> None:
    api.post(api.path("configmaps"), config_map("a"))
    reply = api.delete(api.path("configmaps", "a"), options)
    assert (reply.status, reply.at("reason")) == (422, "Invalid")
    assert message in reply.at("message")
    assert names(api) == ["a"]


@pytest.mark.parametrize("body", ["{", "[]", {"kind": "Other", "apiVersion": "v1"}, {"gracePeriodSeconds": "x"}])
def test_undecodable_delete_options_return_400(api: Api, body: Any) -> None:
    api.post(api.path("configmaps"), config_map("a"))
    reply = api.delete(api.path("configmaps", "a"), body)
    assert (reply.status, reply.at("reason")) == (400, "BadRequest")
    assert names(api) == ["a"]


# ---------------------------------------------------------------- grace periods


def test_pod_deletion_uses_the_grace_period(api: Api, pod: str) -> None:
    marked = api.delete(pod)
    assert (marked.status, marked.at("metadata", "deletionGracePeriodSeconds")) == (200, 30)
    assert (marked.at("metadata", "generation"), names(api, "pods")) == (2, ["p"])
    sooner = api.delete(pod, {"gracePeriodSeconds": 5})
    assert sooner.at("metadata", "deletionGracePeriodSeconds") == 5
    assert sooner.at("metadata", "deletionTimestamp") <= marked.at("metadata", "deletionTimestamp")
    later = api.delete(pod, {"gracePeriodSeconds": 60})
    assert later.at("metadata", "deletionGracePeriodSeconds") == 5
    gone = api.delete(pod, {"gracePeriodSeconds": 0})
    assert (gone.status, gone.at("kind"), names(api, "pods")) == (200, "Pod", [])


def test_unscheduled_pod_is_deleted_immediately(api: Api) -> None:
    spec = {"automountServiceAccountToken": False, "containers": [{"name": "c", "image": "i"}]}
    api.post(api.path("serviceaccounts"), {"metadata": {"name": "default"}})
    api.post(api.path("pods"), {"metadata": {"name": "p"}, "spec": spec})
    reply = api.delete(api.path("pods", "p"))
    assert (reply.status, reply.at("kind"), names(api, "pods")) == (200, "Pod", [])


def test_negative_grace_period_becomes_one_second(api: Api, pod: str) -> None:
    assert api.delete(pod, {"gracePeriodSeconds": -1}).at("metadata", "deletionGracePeriodSeconds") == 1


def test_grace_period_is_ignored_for_other_kinds(api: Api) -> None:
    api.post(api.path("configmaps"), config_map("a"))
    assert api.delete(api.path("configmaps", "a"), {"gracePeriodSeconds": 30}).at("status") == "Success"
    assert names(api) == []


# ---------------------------------------------------------------- dry runs and collections


def test_dry_run_delete_keeps_the_object(api: Api) -> None:
    made = api.post(api.path("configmaps"), config_map("a"))
    for reply in (
        api.delete(api.path("configmaps", "a"), None, {"dryRun": "All"}),
        api.delete(api.path("configmaps", "a"), {"dryRun": ["All"]}),
    ):
        assert (reply.status, reply.at("status")) == (200, "Success")
    marked = api.delete(api.path("configmaps", "a"), {"dryRun": ["All"], "propagationPolicy": "Foreground"})
    assert marked.at("metadata", "finalizers") == ["foregroundDeletion"]
    assert api.get(api.path("configmaps", "a")).json == made.json


def test_delete_collection(api: Api) -> None:
    for name, app in (("a", "x"), ("b", "x"), ("c", "y")):
        api.post(api.path("configmaps"), config_map(name, labels={"app": app}))
    dry = api.delete(api.path("configmaps"), None, {"dryRun": "All"})
    assert (dry.at("kind"), [item["metadata"]["name"] for item in dry.at("items")]) == ("ConfigMapList", ["a", "b", "c"])
    assert names(api) == ["a", "b", "c"]
    some = api.delete(api.path("configmaps"), None, {"labelSelector": "app=x", "fieldSelector": "metadata.name!=b"})
    assert ([item["metadata"]["name"] for item in some.at("items")], names(api)) == (["a"], ["b", "c"])
    held = api.delete(api.path("configmaps"), {"propagationPolicy": "Orphan"})
    assert [item["metadata"].get("finalizers") for item in held.at("items")] == [None, None]  # as they were
    assert [item["metadata"]["finalizers"] for item in api.get(api.path("configmaps")).at("items")] == [["orphan"], ["orphan"]]
    nothing = api.delete(api.path("secrets"))
    assert (nothing.status, nothing.at("items")) == (200, [])


def test_delete_collection_with_invalid_selector_deletes_nothing(api: Api) -> None:
    api.post(api.path("configmaps"), config_map("a"))
    assert api.delete(api.path("configmaps"), None, {"labelSelector": "x y"}).status == 400
    assert names(api) == ["a"]


# ---------------------------------------------------------------- namespaces


def test_namespace_is_removed_after_finalize(api: Api) -> None:
    name = api.name("dying")
    path = f"/api/v1/namespaces/{name}"
    held = {"name": "held", "finalizers": [FINALIZER]}
    api.post("/api/v1/namespaces", {"metadata": {"name": name}})
    api.post(f"{path}/configmaps", {"metadata": held})
    reply = api.delete(path)
    assert (reply.status, reply.at("kind"), reply.at("status", "phase")) == (200, "Namespace", "Terminating")
    assert reply.at("spec") == {"finalizers": ["kubernetes"]}
    refused = api.post(f"{path}/secrets", {"metadata": {"name": "a"}})
    while refused.status == 201:  # a real server hears of it in its own time
        refused = api.post(f"{path}/secrets", {"metadata": {"generateName": "a-"}})
    text = f"unable to create new content in namespace {name} because it is being terminated"
    assert (refused.status, refused.at("reason")) == (403, "Forbidden")
    assert refused.at("message").endswith(text)
    cause = {"reason": "NamespaceTerminating", "message": f"namespace {name} is being terminated", "field": "metadata.namespace"}
    assert refused.at("details", "causes") == [cause]
    changed = api.patch(f"{path}/configmaps/held", {"data": {"k": "v"}, "metadata": {"finalizers": None}}, MERGE)
    assert changed.status == 200
    finalized = api.put(f"{path}/finalize", {**api.get(path).json, "spec": {"finalizers": []}})
    assert finalized.status == 200
    assert api.get(path).status == 404


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_system_namespaces_cannot_be_deleted(api: Api, name: str) -> None:
    reply = api.delete(f"/api/v1/namespaces/{name}", {"dryRun": ["All"]})
    text = f'namespaces "{name}" is forbidden: this namespace may not be deleted'
    assert problem(reply) == (403, "Forbidden", text)
