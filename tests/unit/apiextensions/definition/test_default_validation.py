"""Defaults that do not fit their schema."""

from __future__ import annotations

from typing import Any

import pytest

from fakekube.apiextensions.definition.keyword_validation import default_errors

STRING: dict[str, Any] = {"type": "string"}
WHOLE = {"x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
EMBEDDED = {"x-kubernetes-embedded-resource": True}


def obj(properties: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"type": "object", **({"properties": properties} if properties else {}), **more}


def messages(schema: dict[str, Any]) -> list[str]:
    return [error.message for error in default_errors(schema, "S")]


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ({**STRING, "default": "x"}, []),
        ({**STRING, "default": None}, []),
        ({**STRING, "default": 1}, ['.default: Invalid value: "integer":  in body must be of type string: "integer"']),
        (
            {"type": "integer", "maximum": 3, "default": 4},
            [".default: Invalid value: 4:  in body should be less than or equal to 3"],
        ),
        (
            {**STRING, "format": "date-time", "default": "now"},
            ['.default: Invalid value: "now":  in body must be of type date-time: "now"'],
        ),
        ({"x-kubernetes-int-or-string": True, "default": 1.5}, []),
        (obj({"a": STRING}, default={"b": 1}), ['.default: Invalid value: {"b":1}: must not have unknown fields']),
        (
            obj({"a": STRING}, default={"a": 1}),
            ['.default.a: Invalid value: "integer": a in body must be of type string: "integer"'],
        ),
        (obj({"a": STRING}, required=["a"], default={}), [".default.a: Required value"]),
        (
            obj(additionalProperties={"type": "integer"}, default={"z": "a"}),
            ['.default.z: Invalid value: "string": .z in body must be of type integer: "string"'],
        ),
        (
            {"type": "array", "items": STRING, "default": ["x", 1]},
            ['.default.[1]: Invalid value: "integer": [1] in body must be of type string: "integer"'],
        ),
        (
            {"type": "array", "items": {**STRING, "default": 1}},
            ['.items.default: Invalid value: "integer":  in body must be of type string: "integer"'],
        ),
        (obj(default={"kind": "K"}, **WHOLE), [".default.apiVersion: Required value"]),
        (obj(default={"kind": 1, "apiVersion": "v1"}, **WHOLE), [".default.kind: Invalid value: 1: must be a string"]),
        (
            obj(default={"kind": "K", "apiVersion": "v1", "metadata": 5}, **WHOLE),
            [".default.metadata: Invalid value: 5: json: cannot unmarshal number into Go value of type v1.ObjectMeta"],
        ),
        (obj({"metadata": obj(default={"name": "x"})}, **EMBEDDED), []),
        (
            obj({"kind": {**STRING, "default": "a b"}}, **EMBEDDED),
            [
                '.properties[kind].default: Invalid value: "a b": must result in valid metadata: kind: Invalid value: "a b": may have '
                "mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
                "start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used "
                "for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
            ],
        ),
        (
            obj({"metadata": obj({"name": {**STRING, "default": "a/b"}})}, **EMBEDDED),
            [
                '.properties[metadata].properties[name].default: Invalid value: "a/b": must result in valid metadata: '
                "metadata.name: Invalid value: \"a/b\": may not contain '/'"
            ],
        ),
    ],
)
def test_invalid_field_defaults(field: dict[str, Any], expected: list[str]) -> None:
    assert messages(obj({"f": field})) == [f"S.properties[f]{text}" for text in expected]


def test_root_default_must_be_a_whole_object() -> None:
    assert messages(obj({"spec": obj()}, default={"spec": {}})) == [
        "S.default.apiVersion: Required value",
        "S.default.kind: Required value",
    ]
    assert messages(obj(default={"apiVersion": "v1", "kind": "K"})) == []
