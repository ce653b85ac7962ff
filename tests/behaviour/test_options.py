"""The query parameters of writes: dryRun, fieldValidation, fieldManager, force; and unknown ones."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.behaviour.conftest import Api, Reply

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"

CONFIG_MAP: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}
STRANGE = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labls":{}},"data":{"k":"v","k":"w"},"extra":1}'
FINDINGS = ['unknown field "metadata.labls"', 'duplicate field "data.k"', 'unknown field "extra"']


def problem(reply: Reply) -> tuple[int, str]:
    return reply.status, reply.at("message")


def warnings(reply: Reply) -> list[str]:
    return [found.replace('\\"', '"') for found in re.findall(r'299 - "((?:[^"\\]|\\.)*)"', reply.headers.get("warning", ""))]


@pytest.fixture
def made(api: Api) -> dict[str, Any]:
    reply = api.post(api.path("configmaps"), CONFIG_MAP)
    assert reply.status == 201
    answer: dict[str, Any] = reply.json
    return answer


# ---------------------------------------------------------------- dryRun


def test_dry_run_create_does_not_store_the_object(api: Api) -> None:
    dry = api.post(api.path("configmaps"), CONFIG_MAP, {"dryRun": "All"})
    assert (dry.status, dry.at("data")) == (201, {"k": "v"})
    assert dry.at("metadata").keys() == {"name", "namespace", "uid", "creationTimestamp", "managedFields"}  # no revision
    assert api.get(api.path("configmaps", "a")).status == 404
    assert api.post(api.path("configmaps"), {"metadata": {"name": "X"}}, {"dryRun": "All"}).status == 422


def test_dry_run_create_of_an_existing_object_returns_409(api: Api, made: dict[str, Any]) -> None:
    dry = api.post(api.path("configmaps"), CONFIG_MAP, {"dryRun": "All"})
    assert problem(dry) == (409, 'configmaps "a" already exists')


@pytest.mark.parametrize(
    ("method", "body", "content_type"),
    [
        ("PUT", {**CONFIG_MAP, "data": {"k": "new"}}, "application/json"),
        ("PATCH", {"data": {"k": "new"}}, MERGE),
        ("PATCH", {"data": {"k": "new"}}, STRATEGIC),
        ("PATCH", [{"op": "replace", "path": "/data/k", "value": "new"}], JSON_PATCH),
        ("PATCH", {**CONFIG_MAP, "data": {"k": "new"}}, APPLY),
    ],
)
def test_dry_run_update_does_not_change_the_object(
    api: Api, made: dict[str, Any], method: str, body: Any, content_type: str
) -> None:
    query = {"dryRun": "All"} | ({"fieldManager": "m", "force": "true"} if content_type == APPLY else {})
    dry = api.request(method, api.path("configmaps", "a"), body, query, content_type=content_type)
    assert (dry.status, dry.at("data")) == (200, {"k": "new"})
    assert dry.at("metadata", "resourceVersion") == made["metadata"]["resourceVersion"]
    assert api.get(api.path("configmaps", "a")).json == made


def test_dry_run_allocates_no_addresses_or_ports(api: Api) -> None:
    """Cluster IPs and node ports of a dry run stay available."""
    service = {"metadata": {"name": "a"}, "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30771}]}}
    for _ in range(2):
        assert api.post(api.path("services"), service, {"dryRun": "All"}).status == 201
    assert api.get(api.path("services")).at("items") == []


@pytest.mark.parametrize(
    ("method", "kind"),
    [("POST", "CreateOptions"), ("PUT", "UpdateOptions"), ("PATCH", "PatchOptions"), ("DELETE", "DeleteOptions")],
)
def test_invalid_dry_run_values_return_422(api: Api, made: dict[str, Any], method: str, kind: str) -> None:
    path = api.path("configmaps") if method == "POST" else api.path("configmaps", "a")
    body = None if method == "DELETE" else CONFIG_MAP if method != "PATCH" else {}
    reply = api.request(method, path, body, {"dryRun": "Some"}, content_type=MERGE if method == "PATCH" else "application/json")
    text = f'{kind}.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"'
    assert problem(reply) == (422, text)


# ---------------------------------------------------------------- fieldValidation


@pytest.mark.parametrize("level", ["", "Warn"])
def test_unknown_and_duplicate_fields_give_warnings(api: Api, level: str) -> None:
    reply = api.post(api.path("configmaps"), STRANGE, {"fieldValidation": level} if level else None)
    assert (reply.status, warnings(reply)) == (201, FINDINGS)
    assert reply.at("data") == {"k": "w"}


def test_field_validation_ignore_gives_no_warnings(api: Api) -> None:
    reply = api.post(api.path("configmaps"), STRANGE, {"fieldValidation": "Ignore"})
    assert (reply.status, warnings(reply)) == (201, [])


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_field_validation_strict_rejects_unknown_and_duplicate_fields(api: Api, made: dict[str, Any], method: str) -> None:
    path = api.path("configmaps") if method == "POST" else api.path("configmaps", "a")
    reply = api.request(method, path, STRANGE, {"fieldValidation": "Strict"})
    text = f'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: {", ".join(FINDINGS)}'
    assert problem(reply) == (400, text)


def test_field_validation_strict_rejects_unknown_fields_in_yaml(api: Api) -> None:
    body = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v}\nextra: 1\n"
    reply = api.post(api.path("configmaps"), body, {"fieldValidation": "Strict"}, content_type="application/yaml")
    text = 'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "extra"'
    assert problem(reply) == (400, text)


@pytest.mark.parametrize("content_type", [MERGE, STRATEGIC])
def test_field_validation_of_patches(api: Api, made: dict[str, Any], content_type: str) -> None:
    path = api.path("configmaps", "a")
    warned = api.patch(path, {"extra": 1, "data": {"l": "w"}}, content_type)
    assert (warned.status, warnings(warned)) == (200, ['unknown field "extra"'])
    refused = api.patch(path, {"extra": 1}, content_type, {"fieldValidation": "Strict"})
    assert refused.status in (400, 422)
    assert 'strict decoding error: unknown field "extra"' in refused.at("message")


def test_apply_rejects_unknown_fields_regardless_of_field_validation(api: Api) -> None:
    """The types of an apply are checked whatever fieldValidation says."""
    reply = api.patch(
        api.path("configmaps", "a"), {**CONFIG_MAP, "extra": 1}, APPLY, {"fieldManager": "m", "fieldValidation": "Ignore"}
    )
    text = "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .extra: field not declared in schema"
    assert problem(reply) == (500, text)


@pytest.mark.parametrize(("method", "kind"), [("POST", "CreateOptions"), ("PUT", "UpdateOptions"), ("PATCH", "PatchOptions")])
def test_invalid_field_validation_values_return_422(api: Api, made: dict[str, Any], method: str, kind: str) -> None:
    path = api.path("configmaps") if method == "POST" else api.path("configmaps", "a")
    reply = api.request(
        method, path, CONFIG_MAP, {"fieldValidation": "warn"}, content_type=MERGE if method == "PATCH" else "application/json"
    )
    text = 'fieldValidation: Unsupported value: "warn": supported values: "", "Ignore", "Strict", "Warn"'
    assert problem(reply) == (422, f'{kind}.meta.k8s.io "" is invalid: {text}')


def test_wrong_type_is_rejected_at_every_field_validation_level(api: Api) -> None:
    for level in ("Ignore", "Warn", "Strict"):
        reply = api.post(api.path("configmaps"), {"metadata": {"name": "a"}, "data": {"k": 5}}, {"fieldValidation": level})
        text = "json: cannot unmarshal number into Go struct field ConfigMap.data of type string"
        assert problem(reply) == (400, f'ConfigMap in version "v1" cannot be handled as a ConfigMap: {text}')


# ---------------------------------------------------------------- fieldManager and force


@pytest.mark.parametrize(
    ("manager", "message"),
    [
        ("x" * 129, "fieldManager: Too long: may not be more than 128 bytes"),
        ("a\u0007b", 'fieldManager: Invalid value: "a\\ab": invalid character U+0007 (at position 1)'),
    ],
)
def test_invalid_field_managers_return_422(api: Api, manager: str, message: str) -> None:
    reply = api.post(api.path("configmaps"), CONFIG_MAP, {"fieldManager": manager})
    assert problem(reply) == (422, f'CreateOptions.meta.k8s.io "" is invalid: {message}')


def test_long_user_agent_is_truncated_in_managed_fields(api: Api) -> None:
    reply = api.post(api.path("configmaps"), CONFIG_MAP, headers={"User-Agent": "x" * 200})
    assert reply.at("metadata", "managedFields", 0, "manager") == "x" * 128


def test_apply_requires_a_field_manager(api: Api) -> None:
    reply = api.patch(api.path("configmaps", "a"), CONFIG_MAP, APPLY)
    text = "fieldManager: Required value: is required for apply patch"
    assert problem(reply) == (422, f'PatchOptions.meta.k8s.io "" is invalid: {text}')


@pytest.mark.parametrize("force", ["true", "false"])
def test_force_is_forbidden_for_non_apply_patches(api: Api, made: dict[str, Any], force: str) -> None:
    reply = api.patch(api.path("configmaps", "a"), {}, MERGE, {"force": force})
    text = "force: Forbidden: may not be specified for non-apply patch"
    assert problem(reply) == (422, f'PatchOptions.meta.k8s.io "" is invalid: {text}')


def test_apply_conflict_is_resolved_by_force(api: Api) -> None:
    path = api.path("configmaps", "a")
    api.patch(path, CONFIG_MAP, APPLY, {"fieldManager": "one"})
    other = {**CONFIG_MAP, "data": {"k": "w"}}
    conflict = api.patch(path, other, APPLY, {"fieldManager": "two"})
    assert problem(conflict) == (409, 'Apply failed with 1 conflict: conflict with "one": .data.k')
    cause = {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.k"}
    assert conflict.at("details") == {"causes": [cause]}
    forced = api.patch(path, other, APPLY, {"fieldManager": "two", "force": "true"})
    assert (forced.status, forced.at("data")) == (200, {"k": "w"})


# ---------------------------------------------------------------- others


def test_unknown_query_parameters_are_ignored(api: Api, made: dict[str, Any]) -> None:
    assert api.get(api.path("configmaps", "a"), {"nope": "1", "limit": "x"}).status == 200
    assert api.put(api.path("configmaps", "a"), CONFIG_MAP, {"nope": "1", "propagationPolicy": "x"}).status == 200


@pytest.mark.parametrize("value", ["0", "false"])
def test_false_values_of_boolean_parameters(api: Api, made: dict[str, Any], value: str) -> None:
    reply = api.get(api.path("configmaps"), {"watch": value, "allowWatchBookmarks": value})
    assert (reply.status, reply.at("kind")) == (200, "ConfigMapList")


def test_first_value_of_a_repeated_parameter_is_used(api: Api, made: dict[str, Any]) -> None:
    reply = api.get(api.path("configmaps"), "fieldSelector=metadata.name%3Da&fieldSelector=metadata.name%3Db")
    assert [item["metadata"]["name"] for item in reply.at("items")] == ["a"]


@pytest.mark.parametrize("pretty", ["true", "1", "x"])
def test_pretty(api: Api, made: dict[str, Any], pretty: str) -> None:
    reply = api.get(api.path("configmaps", "a"), {"pretty": pretty})
    is_pretty = pretty != "x"
    assert (reply.body.startswith(b'{\n  "kind"'), reply.json) == (is_pretty, made)
    curl = api.get(api.path("configmaps", "a"), headers={"User-Agent": "curl/8"})
    assert curl.body.startswith(b'{\n  "kind"')
