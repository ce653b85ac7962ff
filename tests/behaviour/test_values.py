"""Validation of custom resource values in cases that depend on Go's parsers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.behaviour.conftest import Api

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DRY = {"dryRun": "All"}
APPLY = "application/apply-patch+yaml"
KEEP = {"x-kubernetes-preserve-unknown-fields": True}
INTEGER, NUMBER, STRING = {"type": "integer"}, {"type": "number"}, {"type": "string"}


def obj(properties: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"type": "object", **({"properties": properties} if properties else {}), **more}


FIELDS: dict[str, Any] = {
    "int32": {**INTEGER, "format": "int32"},
    "nonsense": {**INTEGER, "format": "date"},
    "date": {**STRING, "format": "date"},
    "half": {**INTEGER, "maximum": 10.5},
    "most": {**NUMBER, "maximum": 10.5, "exclusiveMaximum": True},
    "step": {**NUMBER, "multipleOf": 0.5},
    "steps": {**NUMBER, "multipleOf": 2.5},
    "one": {**NUMBER, "enum": [1]},
    "null": {**STRING, "enum": ["a", None], "nullable": True},
    "either": {"x-kubernetes-int-or-string": True, "enum": ["a", 5]},
    "word": {**STRING, "enum": ["a"]},
    "needs": obj({"a": STRING, "b": INTEGER}, required=["b"]),
    "all": obj({"a": INTEGER}, allOf=[{"properties": {"a": {"minimum": 3}}}, {"required": ["b"]}]),
    "any": obj(
        {"a": INTEGER, "b": STRING}, anyOf=[{"required": ["c"]}, {"properties": {"a": {"minimum": 9}, "b": {"maxLength": 9}}}]
    ),
    "map": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
        "items": obj({"k": STRING}, required=["k"]),
    },
    "embedded": obj(additionalProperties={**obj(), "x-kubernetes-embedded-resource": True, **KEEP}),
    "free": {**obj({"deep": obj({"a": INTEGER})}), **KEEP},
    "replicas": INTEGER,
}

READERS: dict[str, Any] = {
    name: {**STRING, "maxLength": 6000, "x-kubernetes-validations": [{"rule": rule, "message": "read"}]}
    for name, rule in {
        "int": "int(self) == 0",
        "uint": "uint(self) == uint(0)",
        "duration": "duration(self) == duration('0s')",
        "moment": "timestamp(self) == timestamp('2020-01-01T00:00:00Z')",
        "semver": "semver(self).major() == -1",
        "offset": "timestamp('2020-01-01T00:00:00Z').getHours(self) == -1",
        "format": "self.format([1.5]) == ''",
    }.items()
}
"""Rules that read numbers in texts; none of them holds."""
READERS |= {
    name: {**STRING, "format": form, "x-kubernetes-validations": [{"rule": rule, "message": "read"}]}
    for name, form, rule in (
        ("spelled", "duration", "self != duration('24h')"),
        ("dated", "date-time", "self == timestamp('2020-01-01T00:00:00Z')"),
        ("coded", "byte", "self == b'abc'"),
    )
}


@pytest.fixture(scope="module")
def group() -> str:
    return f"v{time.time_ns():x}.example.com"


def defined(api: Api, group: str, kind: str, fields: dict[str, Any]) -> Iterator[str]:
    """The path of a collection, whose definition is there for all tests of this module."""
    plural = f"{kind.lower()}s"
    schema = obj({"spec": obj(fields), "status": obj({"replicas": INTEGER})})
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"scale": scale},
    }
    spec = {"group": group, "scope": "Cluster", "names": {"plural": plural, "kind": kind}, "versions": [version]}
    body = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": spec,
    }
    assert api.post(DEFINITIONS, body).status == 201
    place, end = f"/apis/{group}/v1/{plural}", time.monotonic() + 60
    try:
        while api.get(place).status != 200:
            assert time.monotonic() < end
        yield place
    finally:
        assert api.delete(f"{DEFINITIONS}/{plural}.{group}").status == 200


@pytest.fixture(scope="module")
def path(server_url: str, group: str) -> Iterator[str]:
    yield from defined(Api(server_url), group, "Thing", FIELDS)


@pytest.fixture(scope="module")
def readers(server_url: str, group: str) -> Iterator[str]:
    yield from defined(Api(server_url), group, "Reader", READERS)


def thing(path: str, spec: Any, name: str = "one") -> dict[str, Any]:
    api_version, _, plural = path.removeprefix("/apis/").rpartition("/")
    return {"apiVersion": api_version, "kind": plural.removesuffix("s").capitalize(), "metadata": {"name": name}, "spec": spec}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"int32": {}}, ['spec.int32: Invalid value: "": spec.int32 in body must be of type int32: ""']),
        (
            {"int32": 1.5},
            [
                'spec.int32: Invalid value: "float64": spec.int32 in body must be of type int32: "float64"',
                '<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.int32',
            ],
        ),
        ({"nonsense": {}}, ['spec.nonsense: Invalid value: "object": spec.nonsense in body must be of type integer: "object"']),
        ({"int32": 3.0}, []),
        ({"date": 5}, ['spec.date: Invalid value: "int64": spec.date in body must be of type date: "int64"']),
        ({"date": ["x"]}, []),
        (
            {"half": 10},
            ['<nil>: Invalid value: "": Maximum boundary value must be of type integer (default format) in spec.half'],
        ),
        (
            {"half": 11},
            [
                '<nil>: Invalid value: "": Maximum boundary value must be of type integer (default format) in spec.half',
                "spec.half: Invalid value: 11: spec.half in body should be less than or equal to 10.5",
            ],
        ),
        ({"most": 10}, ["spec.most: Invalid value: 10: spec.most in body should be less than 10"]),
        ({"most": 10.25}, []),
        ({"most": 1e6 + 0.5}, ["spec.most: Invalid value: 1.0000005e+06: spec.most in body should be less than 10.5"]),
        ({"step": 3}, ["spec.step: Invalid value: 0: factor MultipleOf declared for spec.step must be positive: 0"]),
        ({"step": 2.5}, []),
        ({"steps": 5}, ["spec.steps: Invalid value: 5: spec.steps in body should be a multiple of 2"]),
        ({"one": 1.7}, []),
        ({"null": None}, ['spec.null: Unsupported value: null: supported values: "a", "null"']),
        ({"either": 97}, []),
        ({"either": 98}, ['spec.either: Unsupported value: 98: supported values: "a", "5"']),
        ({"word": "<b>"}, ['spec.word: Unsupported value: "<b>": supported values: "a"']),
        (
            {"needs": {"a": 5}},
            [
                'spec.needs.a: Invalid value: "integer": spec.needs.a in body must be of type string: "integer"',
                "spec.needs.b: Required value",
            ],
        ),
        (
            {"all": {"a": 1}},
            [
                "spec.all.a: Invalid value: 1: spec.all.a in body should be greater than or equal to 3",
                "spec.all.b: Required value",
                '<nil>: Invalid value: "": "spec.all" must validate all the schemas (allOf). None validated',
            ],
        ),
        (
            {"any": {"a": 1, "b": "long enough, I say"}},
            [
                '<nil>: Invalid value: "": "spec.any" must validate at least one schema (anyOf)',
                "spec.any.a: Invalid value: 1: spec.any.a in body should be greater than or equal to 9",
                "spec.any.b: Too long: may not be more than 9 bytes",
            ],
        ),
        (
            {"map": [1, 2]},
            [
                'spec.map[0]: Invalid value: "integer": spec.map[0] in body must be of type object: "integer"',
                'spec.map[1]: Invalid value: "integer": spec.map[1] in body must be of type object: "integer"',
                "spec.map[0]: Invalid value: 1: must be an object for an array of list-type map",
            ],
        ),
    ],
)
def test_schema_validation_of_values(api: Any, path: str, spec: Any, expected: list[str]) -> None:
    reply = api.post(path, thing(path, spec), DRY)
    if not expected:
        assert reply.status == 201, reply.body
        return
    assert reply.status == 422, reply.body
    told = [f"{cause['field']}: {cause['message']}" for cause in reply.at("details", "causes")]
    assert sorted(told) == sorted(expected)  # members of an object come in no order
    if len([text for text in expected if not text.startswith("spec.any")]) == len(expected):
        assert told == expected


UNREADABLE = "type conversion error from 'string' to 'google.protobuf."
LONG = "9" * 5000


@pytest.mark.parametrize(
    ("field", "text", "problem"),
    [
        ("int", "+5", "read"),
        ("int", LONG, "type conversion error from 'string' to 'int'"),
        ("uint", "18446744073709551616", "type conversion error from 'string' to 'uint'"),
        ("duration", "0.9999999999999999999999h", "read"),
        ("duration", "2562047h47m16.854775808s", f"{UNREADABLE}Duration'"),
        ("duration", f"{LONG}s", f"{UNREADABLE}Duration'"),
        ("moment", f"2020-01-01T00:00:00.{LONG}Z", "read"),
        ("moment", "2020-01-01T00:00:00+24:60", "read"),
        ("moment", "2020-01-01T00:00:00+25:00", f"{UNREADABLE}Timestamp'"),
        ("moment", "0000-12-31T23:30:00-01:00", "read"),
        ("moment", "0000-01-01T00:00:00Z", "timestamp overflow"),
        ("semver", f"1.2.{LONG}", f'strconv.ParseUint: parsing "{LONG}": value out of range'),
        ("semver", f"1.2.3-{LONG}", f'strconv.ParseUint: parsing "{LONG}": value out of range'),
        ("offset", f"{LONG}:00", f'strconv.Atoi: parsing "{LONG}": value out of range'),
        *(("spelled", text, "read") for text in ("1d", "24 hr", "1 DAY 2", "-1d", "23h 1 hour")),
        ("spelled", "1 year", "must be of type duration"),
        ("spelled", f"{LONG}d", "must be of type duration"),
        ("dated", "2021-01-01T00:00:00,5Z", "read"),
        ("dated", "2021-01-01t00:00:00z", 'as "2006-01-02T15:04:05": cannot parse "t00:00:00z" as "T"'),
        ("dated", "2021-01-01T00:00:00+99:99", "Invalid date-time formatted string 2021-01-01T00:00:00+99:99: parsing time"),
        ("coded", "YWJk", "read"),
        ("coded", "YW+j", "illegal base64 data at input byte 2"),
        ("format", f"%.{LONG}f", f'converting precision to integer: strconv.Atoi: parsing "{LONG}": value out of range'),
    ],
)
def test_cel_errors_for_numeric_strings(api: Any, readers: str, field: str, text: str, problem: str) -> None:
    reply = api.post(readers, thing(readers, {field: text}), DRY)
    assert (reply.status, problem in reply.at("message")) == (422, True), reply.at("message")[-200:]


def test_embedded_resource_metadata_error_names_the_path(api: Any, path: str) -> None:
    one = {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": 1}}}
    reply = api.post(path, thing(path, {"embedded": {"x": one}}), DRY)
    assert reply.status == 400
    assert "spec.embedded[x].metadata: Invalid value: " in reply.at("message")


def test_null_replicas_are_dropped(api: Any, path: str) -> None:
    reply = api.post(path, thing(path, {"replicas": 1}), DRY)
    assert reply.status == 201
    patch = [{"op": "add", "path": "/spec/replicas", "value": None}]
    made = api.post(path, thing(path, {"replicas": 1}, "scaled"))
    assert made.status == 201
    dropped = api.patch(f"{path}/scaled", patch, "application/json-patch+json", DRY)
    assert (dropped.status, dropped.at("spec")) == (200, {})
    api.delete(f"{path}/scaled")


def test_apply_accepts_unknown_fields_below_preserve_unknown_fields(api: Any, path: str) -> None:
    body = thing(path, {"free": {"deep": {"unknown": 1}}}, "applied")
    reply = api.patch(f"{path}/applied", body, APPLY, {"fieldManager": "tests"})
    assert (reply.status, reply.at("spec")) == (201, {"free": {"deep": {}}})
    body["spec"] = {"needs": {"b": 1, "unknown": 1}}
    reply = api.patch(f"{path}/applied", body, APPLY, {"fieldManager": "tests"})
    assert (reply.status, ".spec.needs.unknown: field not declared in schema" in reply.at("message")) == (500, True)
    api.delete(f"{path}/applied")
