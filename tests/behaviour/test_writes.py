"""Writes: server-set metadata, separation of spec and status, and conflicts of concurrent writers."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.behaviour.conftest import Api, Reply

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
OTHER_UID = "11111111-2222-3333-4444-555555555555"
CONTAINERS = [{"name": "c", "image": "i"}]
LEASES = "coordination.k8s.io/v1"


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def deployment(name: str, replicas: int = 1) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": CONTAINERS}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def problem(reply: Reply) -> tuple[int, str, str]:
    return reply.status, reply.at("reason"), reply.at("message")


def revision(reply: Reply) -> str:
    return str(reply.at("metadata", "resourceVersion"))


# ---------------------------------------------------------------- create


def test_create_sets_uid_and_creation_timestamp(api: Api) -> None:
    sent = config_map("a", k="v")
    sent["metadata"] |= {"uid": OTHER_UID, "creationTimestamp": "2001-01-01T00:00:00Z", "generation": 7, "selfLink": "/x"}
    made = api.post(api.path("configmaps"), sent)
    meta = made.at("metadata")
    assert made.status == 201
    assert meta.keys() == {"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"}
    assert UUID.fullmatch(meta["uid"]) and meta["uid"] != OTHER_UID
    assert not meta["creationTimestamp"].startswith("2001")
    assert meta["generation"] == 7  # of kinds that do not count theirs, nobody takes care
    assert api.get(api.path("configmaps", "a")).json == made.json


def test_managed_fields_record_the_writer(api: Api) -> None:
    made = api.post(api.path("configmaps"), config_map("a", k="v"), headers={"User-Agent": "robot/2.0 (x)"})
    (entry,) = made.at("metadata", "managedFields")
    assert (entry["manager"], entry["operation"], entry["apiVersion"]) == ("robot", "Update", "v1")
    assert entry["fieldsV1"] == {"f:data": {".": {}, "f:k": {}}}
    changed = api.put(api.path("configmaps", "a"), config_map("a", k="v", l="w"), {"fieldManager": "hand"})
    managers = {entry["manager"]: entry["fieldsV1"] for entry in changed.at("metadata", "managedFields")}
    assert managers == {"robot": {"f:data": {".": {}, "f:k": {}}}, "hand": {"f:data": {"f:l": {}}}}


def test_create_with_existing_name_returns_409(api: Api) -> None:
    api.post(api.path("configmaps"), config_map("a"))
    again = api.post(api.path("configmaps"), config_map("a"))
    assert problem(again) == (409, "AlreadyExists", 'configmaps "a" already exists')
    assert again.at("details") == {"name": "a", "kind": "configmaps"}


def test_generate_name(api: Api) -> None:
    made = [api.post(api.path("configmaps"), {"metadata": {"generateName": "some-"}}) for _ in range(5)]
    found = {reply.at("metadata", "name") for reply in made}
    assert len(found) == 5
    assert all(re.fullmatch("some-[bcdfghjklmnpqrstvwxz2456789]{5}", name) for name in found)
    assert all(reply.at("metadata", "generateName") == "some-" for reply in made)
    long = api.post(api.path("configmaps"), {"metadata": {"generateName": "x" * 70}})
    assert re.fullmatch("x{58}[a-z0-9]{5}", long.at("metadata", "name"))
    both = api.post(api.path("configmaps"), {"metadata": {"generateName": "some-", "name": "mine"}})
    assert both.at("metadata", "name") == "mine"


def test_create_without_name_returns_422(api: Api) -> None:
    reply = api.post(api.path("configmaps"), {"metadata": {}})
    message = 'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required'
    assert problem(reply) == (422, "Invalid", message)


def test_create_with_resource_version_is_rejected(api: Api) -> None:
    sent = config_map("a")
    sent["metadata"]["resourceVersion"] = "5"
    reply = api.post(api.path("configmaps"), sent)
    assert problem(reply)[::2] == (500, "resourceVersion should not be set on objects to be created")


def test_body_must_match_namespace_kind_and_name_of_the_path(api: Api) -> None:
    collection = api.path("configmaps")
    elsewhere = config_map("a")
    elsewhere["metadata"]["namespace"] = "elsewhere"
    text = "the namespace of the provided object does not match the namespace sent on the request"
    assert problem(api.post(collection, elsewhere)) == (400, "BadRequest", text)
    secret = api.post(collection, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}})
    assert secret.status == 400
    assert secret.at("message").startswith('Secret in version "v1" cannot be handled as a ConfigMap: converting')
    wrong = api.post(collection, {"apiVersion": "v2", "kind": "ConfigMap", "metadata": {"name": "a"}})
    assert wrong.status == 400
    assert 'no kind "ConfigMap" is registered for version "v2" in scheme' in wrong.at("message")
    api.post(collection, config_map("a"))
    other = api.put(api.path("configmaps", "a"), config_map("b"))
    assert problem(other) == (400, "BadRequest", "the name of the object (b) does not match the name on the URL (a)")


def test_create_in_a_missing_namespace_returns_404(api: Api) -> None:
    reply = api.post("/api/v1/namespaces/absent/configmaps", config_map("a"))
    assert problem(reply) == (404, "NotFound", 'namespaces "absent" not found')


# ---------------------------------------------------------------- concurrent writers


def test_put_with_stale_resource_version_returns_409(api: Api) -> None:
    path = api.path("configmaps", "a")
    made = api.post(api.path("configmaps"), config_map("a", k="v")).json
    first = api.put(path, {**made, "data": {"k": "first"}})
    assert first.status == 200
    second = api.put(path, {**made, "data": {"k": "second"}})
    assert problem(second) == (409, "Conflict", f'Operation cannot be fulfilled on configmaps "a": {MODIFIED}')
    assert second.at("details") == {"name": "a", "kind": "configmaps"}
    assert api.get(path).json == first.json


def test_put_without_resource_version_overwrites(api: Api) -> None:
    path = api.path("configmaps", "a")
    api.post(api.path("configmaps"), config_map("a", k="v"))
    for text in ("", "0"):
        sent = config_map("a", k=f"new{text}")
        sent["metadata"]["resourceVersion"] = text
        assert api.put(path, sent).at("data") == {"k": f"new{text}"}


def test_put_without_resource_version_is_rejected_for_some_kinds(api: Api) -> None:
    path = api.path("leases", "a", group=LEASES)
    made = api.post(api.path("leases", group=LEASES), {"metadata": {"name": "a"}, "spec": {"holderIdentity": "me"}})
    sent = {"metadata": {"name": "a"}, "spec": {"holderIdentity": "you"}}
    text = (
        'leases.coordination.k8s.io "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update'
    )
    assert problem(api.put(path, sent)) == (422, "Invalid", text)
    sent["metadata"]["resourceVersion"] = revision(made)
    assert api.put(path, sent).status == 200


def test_put_with_non_numeric_resource_version_returns_500(api: Api) -> None:
    api.post(api.path("configmaps"), config_map("a"))
    sent = config_map("a")
    sent["metadata"]["resourceVersion"] = "x"
    reply = api.put(api.path("configmaps", "a"), sent)
    assert problem(reply)[::2] == (500, 'strconv.ParseUint: parsing "x": invalid syntax')


def test_put_with_another_uid_returns_409(api: Api) -> None:
    made = api.post(api.path("configmaps"), config_map("a"))
    sent = config_map("a")
    sent["metadata"]["uid"] = OTHER_UID
    reply = api.put(api.path("configmaps", "a"), sent)
    key = f"/registry/configmaps/{api.namespace}/a"
    uids = f"UID in precondition: {OTHER_UID}, UID in object meta: {made.at('metadata', 'uid')}"
    text = (
        f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: {uids}"
    )
    assert problem(reply) == (409, "Conflict", f'Operation cannot be fulfilled on configmaps "a": {text}')


@pytest.mark.parametrize(
    ("content_type", "patch"),
    [
        (MERGE, {"metadata": {"resourceVersion": "1"}, "data": {"k": "w"}}),
        (STRATEGIC, {"metadata": {"resourceVersion": "1"}, "data": {"k": "w"}}),
        (JSON_PATCH, [{"op": "replace", "path": "/metadata/resourceVersion", "value": "1"}]),
    ],
)
def test_patch_with_stale_resource_version_returns_409(api: Api, content_type: str, patch: Any) -> None:
    api.post(api.path("configmaps"), config_map("a", k="v"))
    reply = api.patch(api.path("configmaps", "a"), patch, content_type)
    assert problem(reply) == (409, "Conflict", f'Operation cannot be fulfilled on configmaps "a": {MODIFIED}')


def test_concurrent_patches_are_all_applied(api: Api) -> None:
    """No patch is lost: conflicting ones are retried by the server."""
    from concurrent.futures import ThreadPoolExecutor

    api.post(api.path("configmaps"), config_map("a"))
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda n: api.patch(api.path("configmaps", "a"), {"data": {f"k{n}": "v"}}, MERGE), range(16)))
    assert {reply.status for reply in replies} == {200}
    assert api.get(api.path("configmaps", "a")).at("data") == {f"k{n}": "v" for n in range(16)}


# ---------------------------------------------------------------- update


def test_update_of_a_missing_object_returns_404(api: Api) -> None:
    path = api.path("configmaps", "a")
    for reply in (api.put(path, config_map("a")), api.patch(path, {}, MERGE), api.patch(path, "{}", JSON_PATCH)):
        assert problem(reply) == (404, "NotFound", 'configmaps "a" not found')


def test_put_creates_objects_of_some_kinds(api: Api) -> None:
    path = api.path("leases", "a", group=LEASES)
    made = api.put(path, {"metadata": {"name": "a"}, "spec": {"holderIdentity": "me"}})
    assert made.status == 201
    assert api.patch(api.path("leases", "b", group=LEASES), {"spec": {}}, MERGE).status == 404
    stale = {"metadata": {"name": "c", "uid": OTHER_UID}}
    gone = api.put(api.path("leases", "c", group=LEASES), stale)
    assert (gone.status, gone.at("reason")) == (409, "Conflict")


def test_apply_creates_a_missing_object(api: Api) -> None:
    path = api.path("configmaps", "a")
    assert api.patch(path, config_map("a", k="v"), APPLY, {"fieldManager": "m"}).status == 201
    assert api.patch(path, config_map("a", k="v"), APPLY, {"fieldManager": "m"}).status == 200


def test_writes_without_changes_keep_the_resource_version(api: Api) -> None:
    path = api.path("configmaps", "a")
    made = api.post(api.path("configmaps"), config_map("a", k="v"))
    for reply in (
        api.put(path, made.json), api.put(path, config_map("a", k="v")), api.patch(path, {}, MERGE),
        api.patch(path, {"data": {"k": "v"}}, STRATEGIC), api.patch(path, [], JSON_PATCH),
    ):  # fmt: skip
        assert (reply.status, reply.json) == (200, made.json)


def test_first_update_of_a_claim_stores_its_phase(api: Api) -> None:
    """The phase of a new claim is not stored: the first update stores it, whatever it changes."""
    path = api.path("persistentvolumeclaims")
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "x"}
    made = api.post(path, {"metadata": {"name": "a"}, "spec": spec})
    first = api.patch(f"{path}/a", {}, MERGE)
    second = api.patch(f"{path}/a", {}, MERGE)
    assert made.at("status") == first.at("status") == {"phase": "Pending"}
    assert int(revision(made)) < int(revision(first)) == int(revision(second))


def test_server_managed_metadata_cannot_be_changed(api: Api) -> None:
    path = api.path("configmaps", "a")
    made = api.post(api.path("configmaps"), config_map("a", k="v")).at("metadata")
    reply = api.patch(
        path, {"metadata": {"creationTimestamp": None, "generation": 9, "selfLink": "x"}, "data": {"k": "w"}}, MERGE
    )
    assert reply.at("metadata", "creationTimestamp") == made["creationTimestamp"]
    changed = api.patch(path, {"metadata": {"uid": OTHER_UID}}, MERGE)
    assert (changed.status, changed.at("details", "causes", 0, "field")) == (422, "metadata.uid")
    deleted = api.patch(path, {"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z"}}, MERGE)
    assert "deletionTimestamp" not in deleted.at("metadata")


# ---------------------------------------------------------------- spec and status


def test_generation_counts_spec_changes(api: Api) -> None:
    path = api.path("deployments", "a", group="apps/v1")
    made = api.post(api.path("deployments", group="apps/v1"), deployment("a"))
    patches = (
        {"metadata": {"labels": {"x": "y"}}},
        {"spec": {"replicas": 2}},
        {"spec": {"replicas": 2}},
        {"spec": {"paused": True}},
    )
    replies = [made, *(api.patch(path, patch, MERGE) for patch in patches)]
    replies.append(api.patch(f"{path}/status", {"status": {"replicas": 2}}, MERGE))
    assert [reply.at("metadata", "generation") for reply in replies] == [1, 1, 2, 2, 3, 3]


def test_status_and_spec_are_updated_separately(api: Api) -> None:
    path = api.path("deployments", "a", group="apps/v1")
    sent = {**deployment("a"), "status": {"replicas": 5}}
    assert api.post(api.path("deployments", group="apps/v1"), sent).at("status") == {}
    through_status = api.patch(f"{path}/status", {"spec": {"replicas": 9}, "status": {"replicas": 3}}, MERGE)
    assert (through_status.at("spec", "replicas"), through_status.at("status", "replicas")) == (1, 3)
    through_main = api.patch(path, {"spec": {"replicas": 2}, "status": {"replicas": 8}}, MERGE)
    assert (through_main.at("spec", "replicas"), through_main.at("status", "replicas")) == (2, 3)


def test_scale_subresource_of_a_deployment(api: Api) -> None:
    path = api.path("deployments", "a", group="apps/v1")
    made = api.post(api.path("deployments", group="apps/v1"), deployment("a"))
    scale = api.get(f"{path}/scale")
    assert (scale.at("kind"), scale.at("apiVersion"), scale.at("spec")) == ("Scale", "autoscaling/v1", {"replicas": 1})
    assert scale.at("status") == {"replicas": 0, "selector": "app=a"}
    assert revision(scale) == revision(made)
    assert api.put(f"{path}/scale", {**scale.json, "spec": {"replicas": 4}}).at("spec", "replicas") == 4
    assert api.get(path).at("spec", "replicas") == 4
    stale = api.put(f"{path}/scale", {**scale.json, "spec": {"replicas": 5}})
    assert problem(stale) == (409, "Conflict", f'Operation cannot be fulfilled on deployments.apps "a": {MODIFIED}')
    negative = api.patch(f"{path}/scale", {"spec": {"replicas": -1}}, MERGE)
    assert (negative.status, negative.at("details", "causes", 0, "field")) == (422, "spec.replicas")
