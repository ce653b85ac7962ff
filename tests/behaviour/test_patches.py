"""JSON patch, merge patch and strategic merge patch: results and error messages."""

from __future__ import annotations

import json
from typing import Any

import pytest

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
PATCH_TYPES = [JSON_PATCH, MERGE_PATCH, STRATEGIC]

REJECTED = "the server rejected our request due to an error in our request"
LOCKED = "the object has been modified; please apply your changes to the latest version and try again"


def labelled(content_type: str, value: str) -> Any:
    """A patch of each type that sets one label."""
    if content_type == JSON_PATCH:
        return [{"op": "add", "path": "/metadata/labels", "value": {"a": value}}]
    return {"metadata": {"labels": {"a": value}}}


@pytest.fixture
def config(api) -> str:
    """The path of a config map."""
    made = api.post(api.path("configmaps"), {"metadata": {"name": "c", "labels": {"a": "0"}}, "data": {"a": "1", "b": "2"}})
    assert made.status == 201, made.body
    return api.path("configmaps", "c")


def container(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "image": "i", **more}


@pytest.fixture
def deployment(api) -> str:
    """The path of a deployment of two containers."""
    first = container("one", env=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}], args=["x", "y"])
    template = {
        "metadata": {"labels": {"app": "a"}},
        "spec": {"containers": [first, container("two")], "tolerations": [{"key": "k", "operator": "Exists"}]},
    }
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "a"}}, "template": template}
    path = api.path("deployments", group="apps/v1")
    made = api.post(path, {"metadata": {"name": "d", "finalizers": ["example.com/a", "example.com/b"]}, "spec": spec})
    assert made.status == 201, made.body
    yield f"{path}/d"
    api.patch(f"{path}/d", {"metadata": {"finalizers": None}}, MERGE_PATCH)


# ---------------------------------------------------------------- all patch types


@pytest.mark.parametrize("content_type", PATCH_TYPES)
def test_patch_changes_only_the_named_fields(api, config: str, content_type: str) -> None:
    before = api.get(config)
    reply = api.patch(config, labelled(content_type, "1"), content_type)
    assert reply.status == 200
    assert reply.at("metadata", "labels") == {"a": "1"}
    assert reply.at("data") == {"a": "1", "b": "2"}
    assert int(reply.at("metadata", "resourceVersion")) > int(before.at("metadata", "resourceVersion"))


@pytest.mark.parametrize("content_type", PATCH_TYPES)
def test_patch_without_changes_does_not_write(api, config: str, content_type: str) -> None:
    before = api.get(config)
    assert api.patch(config, labelled(content_type, "0"), content_type).json == before.json


@pytest.mark.parametrize("content_type", PATCH_TYPES)
def test_dry_run_patch_does_not_change_the_object(api, config: str, content_type: str) -> None:
    before = api.get(config)
    reply = api.patch(config, labelled(content_type, "1"), content_type, {"dryRun": "All"})
    assert reply.at("metadata", "labels") == {"a": "1"}
    assert api.get(config).json == before.json


@pytest.mark.parametrize("content_type", PATCH_TYPES)
def test_field_manager_of_a_patch_owns_changed_fields(api, config: str, content_type: str) -> None:
    reply = api.patch(config, labelled(content_type, "1"), content_type, {"fieldManager": "patcher"})
    owned = {entry["manager"]: entry["fieldsV1"] for entry in reply.at("metadata", "managedFields")}
    assert owned["patcher"] == {"f:metadata": {"f:labels": {"f:a": {}}}}
    assert "f:a" not in owned["tests"].get("f:metadata", {}).get("f:labels", {})


@pytest.mark.parametrize("content_type", PATCH_TYPES)
def test_patch_must_be_json_before_the_object_is_looked_for(api, content_type: str) -> None:
    reply = api.patch(api.path("configmaps", "none"), "{", content_type)
    assert (reply.status, reply.at("message")) == (400, "invalid JSON patch")
    reply = api.patch(api.path("configmaps", "none"), "5", content_type)
    assert (reply.status, reply.at("message")) == (404, 'configmaps "none" not found')


@pytest.mark.parametrize("content_type", PATCH_TYPES)
def test_resource_version_in_a_patch_is_a_precondition(api, config: str, content_type: str) -> None:
    revision = api.get(config).at("metadata", "resourceVersion")

    def patch(value: str) -> Any:
        if content_type == JSON_PATCH:
            replace = {"op": "replace", "path": "/metadata/resourceVersion", "value": revision}
            return [replace, *labelled(content_type, value)]
        return {"metadata": {"resourceVersion": revision, "labels": {"a": value}}}

    assert api.patch(config, patch("1"), content_type).status == 200
    stale = api.patch(config, patch("2"), content_type)
    assert (stale.status, stale.at("reason")) == (409, "Conflict")
    assert stale.at("message") == f'Operation cannot be fulfilled on configmaps "c": {LOCKED}'


@pytest.mark.parametrize("content_type", PATCH_TYPES)
@pytest.mark.parametrize("name", ["other", ""])
def test_patch_cannot_change_the_name(api, config: str, content_type: str, name: str) -> None:
    rename = [{"op": "replace", "path": "/metadata/name", "value": name}]
    reply = api.patch(config, rename if content_type == JSON_PATCH else {"metadata": {"name": name}}, content_type)
    assert reply.status == 400
    assert reply.at("message") == (
        f"the name of the object ({name}) does not match the name on the URL (c)"
        if name
        else "the name of the object (c based on URL) was undeterminable: name must be provided"
    )


@pytest.mark.parametrize("content_type", PATCH_TYPES)
def test_patch_content_type_may_have_parameters(api, config: str, content_type: str) -> None:
    assert api.patch(config, labelled(content_type, "1"), f"{content_type}; charset=utf-8").status == 200


@pytest.mark.parametrize("content_type", ["application/json", "text/plain", "application/json-patch+yaml"])
def test_unsupported_patch_content_types_return_415(api, config: str, content_type: str) -> None:
    reply = api.patch(config, "{}", content_type)
    assert (reply.status, reply.at("reason")) == (415, "UnsupportedMediaType")
    assert reply.at("message") == "415: Unsupported Media Type"


@pytest.mark.parametrize("content_type", PATCH_TYPES)
def test_status_is_patched_through_the_status_subresource(api, deployment: str, content_type: str) -> None:
    patch: Any = {"spec": {"replicas": 9}, "status": {"replicas": 1}}
    if content_type == JSON_PATCH:
        patch = [{"op": "add", "path": f"/{name}", "value": value} for name, value in (("status", {"replicas": 1}),)]
    reply = api.patch(f"{deployment}/status", patch, content_type)
    assert (reply.status, reply.at("status", "replicas"), reply.at("spec", "replicas")) == (200, 1, 2)
    through_main = api.patch(deployment, {"status": {"replicas": 5}}, MERGE_PATCH)
    assert through_main.at("status", "replicas") == 1


@pytest.mark.parametrize("content_type", PATCH_TYPES)
def test_scale_subresource_is_patched(api, deployment: str, content_type: str) -> None:
    replace = [{"op": "replace", "path": "/spec/replicas", "value": 5}]
    patch = replace if content_type == JSON_PATCH else {"spec": {"replicas": 5}}
    reply = api.patch(f"{deployment}/scale", patch, content_type, {"fieldManager": "scaler"})
    assert (reply.status, reply.at("kind"), reply.at("spec", "replicas")) == (200, "Scale", 5)
    whole = api.get(deployment)
    assert whole.at("spec", "replicas") == 5
    entry = next(entry for entry in whole.at("metadata", "managedFields") if entry["manager"] == "scaler")
    assert (entry["subresource"], entry["fieldsV1"]) == ("scale", {"f:spec": {"f:replicas": {}}})


@pytest.mark.parametrize(
    ("validation", "status", "warnings"), [("Strict", 422, 0), ("Warn", 200, 1), ("", 200, 1), ("Ignore", 200, 0)]
)
@pytest.mark.parametrize("content_type", [MERGE_PATCH, STRATEGIC])
def test_field_validation_of_unknown_fields(
    api, config: str, content_type: str, validation: str, status: int, warnings: int
) -> None:
    query = {"fieldValidation": validation} if validation else None
    reply = api.patch(config, {"nope": 1, "data": {"a": "x"}}, content_type, query)
    assert reply.status == status
    assert reply.headers.get("warning", "").count('unknown field \\"nope\\"') == warnings
    if status == 422:
        assert reply.at("message").endswith('strict decoding error: unknown field "nope"')


# ---------------------------------------------------------------- JSON patch


@pytest.mark.parametrize(
    ("operations", "data"),
    [
        ([{"op": "add", "path": "/data/c", "value": "3"}], {"a": "1", "b": "2", "c": "3"}),
        ([{"op": "add", "path": "/data/a", "value": "3"}], {"a": "3", "b": "2"}),
        ([{"op": "remove", "path": "/data/a"}], {"b": "2"}),
        ([{"op": "replace", "path": "/data/a", "value": "3"}], {"a": "3", "b": "2"}),
        ([{"op": "replace", "path": "/data/new", "value": "3"}], {"a": "1", "b": "2", "new": "3"}),
        ([{"op": "move", "from": "/data/a", "path": "/data/c"}], {"b": "2", "c": "1"}),
        ([{"op": "copy", "from": "/data/a", "path": "/data/c"}], {"a": "1", "b": "2", "c": "1"}),
        ([{"op": "test", "path": "/data/a", "value": "1"}, {"op": "remove", "path": "/data/b"}], {"a": "1"}),
        ([{"op": "add", "path": "/data/x~1y~0z", "value": "3"}], {"a": "1", "b": "2"}),
        ([{"op": "add", "path": "/data", "value": {"z": "0"}}], {"z": "0"}),
        ([{"op": "remove", "path": "/data"}], None),
        ([{"op": "test", "path": "/data/none", "value": None}], {"a": "1", "b": "2"}),
        ([], {"a": "1", "b": "2"}),
    ],
)
def test_json_patch_operations(api, config: str, operations: Any, data: Any) -> None:
    reply = api.patch(config, operations, JSON_PATCH)
    if any("~1" in operation["path"] for operation in operations):
        assert (reply.status, '"x/y~z"' in reply.at("message")) == (422, True)  # keys of config maps have no slash
        return
    assert (reply.status, reply.at("data")) == (200, data)


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/data/none"},
        {"op": "test", "path": "/data/a", "value": "2"},
        {"op": "test", "path": "/data/none", "value": "1"},
        {"op": "add", "path": "/none/a", "value": "1"},
        {"op": "move", "from": "/data/none", "path": "/data/c"},
        {"op": "nope", "path": "/data/a"},
        {"op": "add", "path": "data", "value": "1"},
        {"path": "/data/a", "value": "1"},
        {"op": "add", "value": "1"},
    ],
)
def test_inapplicable_json_patch_operations_return_422(api, config: str, operation: Any) -> None:
    reply = api.patch(config, [operation], JSON_PATCH)
    assert (reply.status, reply.at("reason"), reply.at("message")) == (422, "Invalid", REJECTED)


@pytest.mark.parametrize(
    ("operations", "names"),
    [
        ([{"op": "add", "path": "/spec/template/spec/containers/-", "value": container("three")}], ["one", "two", "three"]),
        ([{"op": "add", "path": "/spec/template/spec/containers/0", "value": container("three")}], ["three", "one", "two"]),
        ([{"op": "add", "path": "/spec/template/spec/containers/2", "value": container("three")}], ["one", "two", "three"]),
        ([{"op": "remove", "path": "/spec/template/spec/containers/0"}], ["two"]),
        ([{"op": "remove", "path": "/spec/template/spec/containers/-1"}], ["one"]),
        (
            [{"op": "move", "from": "/spec/template/spec/containers/0", "path": "/spec/template/spec/containers/1"}],
            ["two", "one"],
        ),
        ([{"op": "add", "path": "/spec/template/spec/containers/3", "value": container("three")}], None),
        ([{"op": "remove", "path": "/spec/template/spec/containers/2"}], None),
        ([{"op": "remove", "path": "/spec/template/spec/containers/x"}], None),
    ],
)
def test_json_patch_list_indexes(api, deployment: str, operations: Any, names: list[str] | None) -> None:
    reply = api.patch(deployment, operations, JSON_PATCH)
    if names is None:
        assert (reply.status, reply.at("message")) == (422, REJECTED)
    else:
        assert [item["name"] for item in reply.at("spec", "template", "spec", "containers")] == names


def test_json_patch_is_atomic(api, config: str) -> None:
    operations = [{"op": "add", "path": "/data/c", "value": "3"}, {"op": "test", "path": "/data/a", "value": "x"}]
    assert api.patch(config, operations, JSON_PATCH).status == 422
    assert api.get(config).at("data") == {"a": "1", "b": "2"}


def test_json_patch_is_limited_to_10000_operations(api, config: str) -> None:
    operation = {"op": "test", "path": "/data/a", "value": "1"}
    assert api.patch(config, [operation] * 10_000, JSON_PATCH).status == 200
    reply = api.patch(config, [operation] * 10_001, JSON_PATCH)
    assert (reply.status, reply.at("reason")) == (413, "RequestEntityTooLarge")
    assert reply.at("message") == ("Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001")


def test_json_patch_copy_size_is_limited(api, config: str) -> None:
    grow = [{"op": "add", "path": "/data/a", "value": "x" * 100_000}]
    copies = [{"op": "copy", "from": "/data", "path": f"/metadata/annotations{number}"} for number in range(40)]
    reply = api.patch(config, [*grow, *copies], JSON_PATCH)
    assert (reply.status, reply.at("message")) == (422, REJECTED)


def test_too_large_patch_body_returns_413(api, config: str) -> None:
    reply = api.patch(config, {"data": {"a": "x" * (3 * 1024 * 1024)}}, MERGE_PATCH)
    assert (reply.status, reply.at("reason")) == (413, "RequestEntityTooLarge")
    assert reply.at("message") == "Request entity too large: limit is 3145728"


@pytest.mark.parametrize(
    ("body", "status"),
    [("{}", 400), ("x", 400), ("[", 400), ('[{"op":"add","path":"/data/a","value":"1"}', 400), ("[1]", 400), ("null", 200)],
)
def test_invalid_json_patch_bodies_are_rejected(api, config: str, body: str, status: int) -> None:
    reply = api.patch(config, body, JSON_PATCH)
    assert reply.status == status
    if status == 400:
        assert reply.at("message").startswith(("error decoding patch: ", "invalid JSON patch"))


def test_json_patch_result_of_wrong_type_returns_422(api, config: str) -> None:
    reply = api.patch(config, [{"op": "add", "path": "/data", "value": 5}], JSON_PATCH)
    assert reply.status == 422
    assert reply.at("details", "causes", 0, "field") == "patch"
    assert reply.at("message").endswith(
        "json: cannot unmarshal number into Go struct field ConfigMap.data of type map[string]string"
    )


@pytest.mark.parametrize("value", [None, "", "/", "v9", {}, 5])
def test_json_patch_cannot_change_api_version(api, config: str, value: Any) -> None:
    reply = api.patch(config, [{"op": "add", "path": "/apiVersion", "value": value}], JSON_PATCH)
    if value in (None, "", "/"):  # then nothing is known of it, not even its name
        assert (reply.status, reply.at("reason")) == (400, "BadRequest")
        assert reply.at("message").endswith("was undeterminable: name must be provided")
    else:
        assert (reply.status, reply.at("details", "causes", 0, "field")) == (422, "patch")


# ---------------------------------------------------------------- merge patch


@pytest.mark.parametrize(
    ("patch", "data"),
    [
        ({"data": {"c": "3"}}, {"a": "1", "b": "2", "c": "3"}),
        ({"data": {"a": None}}, {"b": "2"}),
        ({"data": {"none": None}}, {"a": "1", "b": "2"}),
        ({"data": None}, None),
        ({"data": {"a": None, "b": None}}, None),
        ({}, {"a": "1", "b": "2"}),
    ],
)
@pytest.mark.parametrize("content_type", [MERGE_PATCH, STRATEGIC])
def test_merge_patch_merges_members(api, config: str, content_type: str, patch: Any, data: Any) -> None:
    reply = api.patch(config, patch, content_type)
    assert (reply.status, reply.at("data")) == (200, data)


def test_merge_patch_replaces_lists(api, deployment: str) -> None:
    patch = {"spec": {"template": {"spec": {"containers": [container("three")]}}}}
    reply = api.patch(deployment, patch, MERGE_PATCH)
    assert [item["name"] for item in reply.at("spec", "template", "spec", "containers")] == ["three"]


# ---------------------------------------------------------------- strategic merge patch


def containers(reply) -> dict[str, Any]:
    return {item["name"]: item for item in reply.at("spec", "template", "spec", "containers")}


def of_pods(**spec: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": spec}}}


def test_strategic_merge_patch_merges_items_by_key(api, deployment: str) -> None:
    patch = of_pods(containers=[{"name": "two", "image": "new"}, container("three")])
    merged = containers(api.patch(deployment, patch, STRATEGIC))
    assert {name: item["image"] for name, item in merged.items()} == {"two": "new", "three": "i", "one": "i"}
    env = of_pods(containers=[{"name": "one", "env": [{"name": "B", "value": "3"}, {"name": "C", "value": "4"}]}])
    merged = containers(api.patch(deployment, env, STRATEGIC))
    assert merged["one"]["env"] == [{"name": "A", "value": "1"}, {"name": "B", "value": "3"}, {"name": "C", "value": "4"}]
    assert merged["one"]["args"] == ["x", "y"]


@pytest.mark.parametrize(
    ("directive", "names"),
    [
        ([{"name": "one", "$patch": "delete"}], ["two"]),
        ([{"name": "none", "$patch": "delete"}], ["one", "two"]),
        ([{"$patch": "replace"}, container("three")], ["three"]),
        ([{"$patch": "replace", "name": "x"}, container("three")], ["three"]),
    ],
)
def test_strategic_merge_patch_list_directives(api, deployment: str, directive: Any, names: list[str]) -> None:
    assert list(containers(api.patch(deployment, of_pods(containers=directive), STRATEGIC))) == names


def test_strategic_merge_patch_replace_directive(api, deployment: str) -> None:
    patch = {"spec": {"strategy": {"$patch": "replace", "type": "Recreate"}}}
    assert api.patch(deployment, patch, STRATEGIC).at("spec", "strategy") == {"type": "Recreate"}


def test_strategic_merge_patch_retain_keys(api, deployment: str) -> None:
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert api.patch(deployment, patch, STRATEGIC).at("spec", "strategy") == {"type": "Recreate"}
    unlisted = {"spec": {"strategy": {"$retainKeys": ["rollingUpdate"], "type": "Recreate"}}}
    reply = api.patch(deployment, unlisted, STRATEGIC)
    assert (reply.status, reply.at("message")) == (400, "invalid patch format of retainKeys")


def test_strategic_merge_patch_delete_from_primitive_list(api, deployment: str) -> None:
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a", "example.com/none"]}}
    assert api.patch(deployment, patch, STRATEGIC).at("metadata", "finalizers") == ["example.com/b"]


@pytest.mark.parametrize(
    ("order", "changes", "names"),
    [
        (["two", "one"], None, ["two", "one"]),
        (["two", "one", "three"], [container("three")], ["two", "one", "three"]),
        (["three", "two"], [container("three")], ["three", "one", "two"]),
        (["two"], None, ["one", "two"]),
    ],
)
def test_strategic_merge_patch_set_element_order(api, deployment: str, order: list[str], changes: Any, names: list[str]) -> None:
    spec: dict[str, Any] = {"$setElementOrder/containers": [{"name": name} for name in order]}
    if changes:
        spec["containers"] = changes
    assert list(containers(api.patch(deployment, of_pods(**spec), STRATEGIC))) == names


def test_strategic_merge_patch_merges_or_replaces_primitive_lists(api, deployment: str) -> None:
    patch = {"metadata": {"finalizers": ["example.com/c"]}, **of_pods(tolerations=[{"key": "l", "operator": "Exists"}])}
    reply = api.patch(deployment, patch, STRATEGIC)
    assert sorted(reply.at("metadata", "finalizers")) == ["example.com/a", "example.com/b", "example.com/c"]
    assert reply.at("spec", "template", "spec", "tolerations") == [{"key": "l", "operator": "Exists"}]
    api.patch(deployment, {"metadata": {"finalizers": None}}, MERGE_PATCH)


@pytest.mark.parametrize(
    ("patch", "status", "message"),
    [
        (of_pods(containers=[{"image": "x"}]), 500, "map: map[image:x] does not contain declared merge key: name"),
        (of_pods(containers=[{"$patch": "merge", "name": "one"}]), 500, "merging lists cannot yet be specified in the patch"),
        ({"spec": {"$patch": "nope"}}, 500, "unknown patch type: nope in map: map[$patch:nope]"),
        ({"spec": {"strategy": {"$retainKeys": "x"}}}, 400, "invalid patch format of retainKeys"),
        ({"metadata": {"$setElementOrderfinalizers": []}}, 400, "invalid patch format of setElementOrder list"),
        ({"metadata": {"$setElementOrder/finalizers": "x"}}, 500, "expected a []interface {}, but received a string"),
        ({"metadata": {"$deleteFromPrimitiveListfinalizers": ["x"]}}, 400, "invalid patch format of primitive list"),
        ({"nope": {"$setElementOrder/x": []}, "spec": {"nope": {}}}, None, ""),
        (
            {"metadata": {"finalizers": ["b/b", "a/a"], "$setElementOrder/finalizers": ["a/a", "b/b"]}},
            500,
            "The order in patch list:\n[b/b a/a]\n doesn't match $setElementOrder list:\n[a/a b/b]\n",
        ),
    ],
)
def test_malformed_strategic_merge_directives(api, deployment: str, patch: Any, status: int | None, message: str) -> None:
    reply = api.patch(deployment, patch, STRATEGIC)
    if status is None:
        assert reply.status == 200
    else:
        assert (reply.status, reply.at("message")) == (status, message)


def test_strategic_merge_patch_type_error_shows_the_patch(api, deployment: str) -> None:
    reply = api.patch(deployment, {"spec": {"replicas": "two"}}, STRATEGIC)
    assert (reply.status, reply.at("message")) == (
        422,
        ' "" is invalid: patch: Invalid value: "map[spec:map[replicas:two]]": unrecognized type: int32',
    )


def test_strategic_merge_patch_converts_numbers(api, deployment: str) -> None:
    assert api.patch(deployment, '{"spec":{"replicas":3.0}}', STRATEGIC).at("spec", "replicas") == 3
    assert api.patch(deployment, '{"spec":{"replicas":4294967297}}', STRATEGIC).at("spec", "replicas") == 1


def test_strategic_merge_patch_ignores_kind_and_api_version(api, config: str) -> None:
    reply = api.patch(config, {"kind": "Nope", "apiVersion": "nope/v9", "data": {"a": "x"}}, STRATEGIC)
    assert (reply.status, reply.at("kind"), reply.at("apiVersion"), reply.at("data", "a")) == (200, "ConfigMap", "v1", "x")


def test_duplicate_members_in_patches(api, config: str) -> None:
    body = '{"data":{"a":"x","a":"y"}}'
    warned = api.patch(config, body, STRATEGIC)
    assert warned.at("data", "a") == "y"
    assert 'duplicate field \\"data.a\\"' in warned.headers["warning"]
    refused = api.patch(config, body, MERGE_PATCH, {"fieldValidation": "Strict"})
    assert (refused.status, refused.at("message").endswith('duplicate field "data.a"')) == (422, True)


def test_patched_objects_are_validated(api, config: str) -> None:
    reply = api.patch(config, {"data": {"a b": "1"}}, MERGE_PATCH)
    assert (reply.status, reply.at("details", "causes", 0, "field")) == (422, "data[a b]")
    assert json.loads(api.get(config).body)["data"] == {"a": "1", "b": "2"}
