"""What makes a schema structural."""

from __future__ import annotations

from typing import Any

import pytest

from fakekube.apiextensions.definition.structural_validation import structural_errors, structural_problem

STRING: dict[str, Any] = {"type": "string"}
INTS, PRESERVE, EMBEDDED = (f"x-kubernetes-{name}" for name in ("int-or-string", "preserve-unknown-fields", "embedded-resource"))
BOTH = [{"type": "integer"}, STRING]


def obj(properties: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"type": "object", **({"properties": properties} if properties else {}), **more}


def messages(schema: dict[str, Any]) -> list[str]:
    return [error.message for error in structural_errors(schema, "S")]


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ({}, [".type: Required value: must not be empty for specified object fields"]),
        ({PRESERVE: True}, []),
        ({INTS: True}, []),
        ({"type": "array"}, [".items: Required value: must be specified"]),
        ({"type": "array", "items": {}}, [".items.type: Required value: must not be empty for specified array items"]),
        (
            obj(additionalProperties={}),
            [".additionalProperties.type: Required value: must not be empty for specified object fields"],
        ),
        (obj(additionalProperties=False), []),
        ({INTS: True, "anyOf": BOTH}, []),
        ({INTS: True, "allOf": [{"anyOf": BOTH}, {"pattern": "^x"}]}, []),
        (
            {INTS: True, "anyOf": BOTH[::-1]},
            [
                ".anyOf[0].type: Forbidden: must be empty to be structural",
                ".anyOf[1].type: Forbidden: must be empty to be structural",
            ],
        ),
        (
            {INTS: True, PRESERVE: True},
            [f".{PRESERVE}: Invalid value: true: must be false if x-kubernetes-int-or-string is true"],
        ),
        ({**STRING, "allOf": [{"default": "x"}]}, [".allOf[0].default: Forbidden: must be undefined to be structural"]),
        ({**STRING, "oneOf": [{"description": "d"}]}, [".oneOf[0].description: Forbidden: must be empty to be structural"]),
        ({**STRING, "not": {"nullable": True}}, [".not.nullable: Forbidden: must be false to be structural"]),
        (
            {**STRING, "not": {"properties": {"metadata": {}}}},
            [".not.properties[metadata]: Forbidden: must not be specified in a nested context"],
        ),
        (
            {**STRING, "not": {"additionalProperties": {"minLength": 2}}},
            [".not.additionalProperties: Forbidden: must be undefined to be structural"],
        ),
        (
            {**STRING, "anyOf": [{"items": {"x-kubernetes-map-type": "atomic"}}]},
            [".anyOf[0].items.x-kubernetes-map-type: Forbidden: must be undefined to be structural"],
        ),
        (
            {**STRING, EMBEDDED: True},
            [
                ".properties: Required value: must not be empty if x-kubernetes-embedded-resource is true "
                "without x-kubernetes-preserve-unknown-fields",
                '.type: Invalid value: "string": must be object if x-kubernetes-embedded-resource is true',
            ],
        ),
        (
            obj({"kind": {"type": "integer"}}, **{EMBEDDED: True}),
            ['.properties[kind].type: Invalid value: "integer": must be string'],
        ),
        (obj({"metadata": obj({"labels": obj()})}, **{EMBEDDED: True}), []),
        (
            obj(additionalProperties=STRING, **{EMBEDDED: True, PRESERVE: True}),
            [".additionalProperties: Forbidden: must not be used if x-kubernetes-embedded-resource is set"],
        ),
    ],
)
def test_field_structural_errors(field: dict[str, Any], expected: list[str]) -> None:
    assert messages(obj({"f": field})) == [f"S.properties[f]{text}" for text in expected]


METADATA = "S.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified"


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, ["S.type: Required value: must not be empty at the root"]),
        (STRING, ['S.type: Invalid value: "string": must be object at the root']),
        (obj(additionalProperties=STRING), ["S.additionalProperties: Forbidden: must not be used at the root"]),
        (obj({"metadata": obj({"name": {**STRING, "maxLength": 5}, "generateName": STRING})}), []),
        (obj({"metadata": obj({"labels": obj()})}), [METADATA]),
        (obj({"metadata": obj(description="d")}), [METADATA]),
        (obj({"metadata": STRING}), ['S.properties[metadata].type: Invalid value: "string": must be object']),
        (
            obj({"a": STRING}, anyOf=[{"properties": {"b": {"minLength": 1}}}]),
            ["S.properties[b]: Required value: because it is defined in S.anyOf[0].properties[b]"],
        ),
        (
            obj({"a": STRING}, oneOf=[{"not": {"properties": {"a": {"items": {}}}}}]),
            ["S.properties[a].items: Required value: because it is defined in S.oneOf[0].not.properties[a].items"],
        ),
    ],
)
def test_root_structural_errors(schema: dict[str, Any], expected: list[str]) -> None:
    assert messages(schema) == expected


@pytest.mark.parametrize(
    ("pattern", "complaint"),
    [
        ("^a+$", None),
        ("(", "missing closing ): `(`"),
        ("^(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("x{2,1}", "invalid repeat count: `{2,1}`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("[a", "missing closing ]: `[a`"),
        ("a)", "unexpected ): `a)`"),
        ("\\", "trailing backslash at end of expression: ``"),
        ("\\q", "invalid escape sequence: `\\q`"),
        ("[z-a]", "invalid character class range: `z-a`"),
    ],
)
def test_patterns_must_be_go_regular_expressions(pattern: str, complaint: str | None) -> None:
    found = [error.detail for error in structural_errors(obj({"f": {**STRING, "pattern": pattern}}), "S")]
    assert found == (
        [] if complaint is None else [f"must be a valid regular expression, but isn't: error parsing regexp: {complaint}"]
    )


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        (obj({"a": STRING}), ""),
        (obj({"a": {"items": {"$ref": "x"}}}), "OpenAPIV3Schema '$ref' is not supported"),
        (obj(anyOf=[{"additionalItems": False}]), "OpenAPIV3Schema 'additionalItems' is not supported"),
        (obj({"a": {PRESERVE: False}}), "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"),
        (obj(additionalProperties={"items": [STRING]}), "OpenAPIV3Schema 'items' must be a schema, but is an array"),
    ],
)
def test_structural_problem(schema: dict[str, Any], problem: str) -> None:
    assert structural_problem(schema) == problem
