"""Schemas that are refused, in the real server's words."""

from __future__ import annotations

from typing import Any

import pytest

from fakekube.apiextensions.definition.validation import schema_errors

STRING: dict[str, Any] = {"type": "string"}
LIST, KEYS, MAP = "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type"
EMBEDDED, PRESERVE = "x-kubernetes-embedded-resource", "x-kubernetes-preserve-unknown-fields"


def obj(properties: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"type": "object", **({"properties": properties} if properties else {}), **more}


def array(items: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


def messages(schema: dict[str, Any], *, has_status: bool = False) -> list[str]:
    return [error.message for error in schema_errors(schema, "S", has_status=has_status)]


ITEM = obj({"k": STRING, "n": {"type": "integer", "default": 1}, "o": obj()}, required=["k"])
SET_ITEM = "Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set"


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        (STRING, []),
        (
            {"type": "str"},
            ['.type: Unsupported value: "str": supported values: "array", "boolean", "integer", "number", "object", "string"'],
        ),
        (
            {"type": "null"},
            [
                '.type: Unsupported value: "null": supported values: "array", "boolean", "integer", "number", "object", "string"',
                ".type: Forbidden: type cannot be set to null, use nullable as an alternative",
            ],
        ),
        ({"$ref": "#/definitions/x"}, [".$ref: Forbidden: $ref is not supported"]),
        ({**STRING, "id": "x"}, [".id: Forbidden: id is not supported"]),
        (obj(definitions={"x": STRING}), [".definitions: Forbidden: definitions is not supported"]),
        (obj(dependencies={"a": ["b"]}), [".dependencies: Forbidden: dependencies is not supported"]),
        (obj(patternProperties={"^x": STRING}), [".patternProperties: Forbidden: patternProperties is not supported"]),
        (array(STRING, additionalItems=STRING), [".additionalItems: Forbidden: additionalItems is not supported"]),
        (array([STRING]), [".items: Forbidden: items must be a schema object and not an array"]),
        (
            array(STRING, uniqueItems=True),
            [".uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic"],
        ),
        (
            obj({"a": STRING}, additionalProperties=STRING),
            [".additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"],
        ),
        (obj({"a": STRING}, additionalProperties=True), []),
        (obj(**{PRESERVE: False}), [f".{PRESERVE}: Invalid value: false: must be true or undefined"]),
        (obj(**{MAP: "sparse"}), [f'.{MAP}: Unsupported value: "sparse": supported values: "atomic", "granular"']),
        ({**STRING, MAP: "atomic"}, ['.type: Invalid value: "string": must be object if x-kubernetes-map-type is specified']),
        (array(STRING, **{LIST: "bag"}), [f'.{LIST}: Unsupported value: "bag": supported values: "atomic", "set", "map"']),
        ({**STRING, LIST: "set"}, ['.type: Invalid value: "string": must be array if x-kubernetes-list-type is specified']),
        (array(obj(), **{LIST: "set"}), [f".items.{MAP}: {SET_ITEM}"]),
        (array(obj(**{MAP: "atomic"}), **{LIST: "set"}), []),
        (
            array(array(STRING, **{LIST: "set"}), **{LIST: "set"}),
            [f'.items.{LIST}: Invalid value: "set": must be atomic as item of a list with x-kubernetes-list-type=set'],
        ),
        (array(ITEM, **{LIST: "map", KEYS: ["k", "n"]}), []),
        (array(ITEM, **{LIST: "map"}), [f".{KEYS}: Required value: must not be empty if x-kubernetes-list-type is map"]),
        (
            array(ITEM, **{LIST: "map", KEYS: ["zz"]}),
            [f'.{KEYS}: Invalid value: ["zz"]: entries must all be names of item properties'],
        ),
        (
            array(ITEM, **{LIST: "map", KEYS: ["k", "k"]}),
            [f'.{KEYS}: Invalid value: ["k","k"]: must not contain duplicate entries'],
        ),
        (
            array(ITEM, **{LIST: "map", KEYS: ["o"]}),
            [
                '.items.properties[o].type: Invalid value: "object": must be a scalar type if parent array\'s x-kubernetes-list-type is map',
                ".items.properties[o].default: Required value: "
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
            ],
        ),
        (array(ITEM, **{KEYS: ["k"]}), [f".{LIST}: Required value: must be map if x-kubernetes-list-map-keys is non-empty"]),
        (
            array(STRING, **{LIST: "map", KEYS: ["k"]}),
            ['.items.type: Invalid value: "string": must be object if parent array\'s x-kubernetes-list-type is map'],
        ),
        (
            array({**STRING, "nullable": True}, **{LIST: "set"}),
            [".items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is set"],
        ),
        (
            array(obj({"k": {**STRING, "nullable": True}}, required=["k"]), **{LIST: "map", KEYS: ["k"]}),
            [
                ".items.properties[k].nullable: Forbidden: this property is in x-kubernetes-list-map-keys, so it cannot be nullable"
            ],
        ),
        (
            obj({"metadata": obj({"x": obj(**{EMBEDDED: True, PRESERVE: True})})}, **{EMBEDDED: True}),
            [f".properties[metadata].properties[x].{EMBEDDED}: Forbidden: must not be used inside of resource meta"],
        ),
        (
            obj({"metadata": obj({"labels": obj(additionalProperties={**STRING, "default": "x"})})}, **{EMBEDDED: True}),
            [
                ".properties[metadata].properties[labels].additionalProperties.default: Forbidden: "
                "must not be set inside additionalProperties applying to object metadata"
            ],
        ),
    ],
)
def test_field_schema_errors(field: dict[str, Any], expected: list[str]) -> None:
    assert messages(obj({"f": field})) == [f"S.properties[f]{text}" for text in expected]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (obj(nullable=True), ["S.nullable: Forbidden: nullable cannot be true at the root"]),
        ({**obj(), "$schema": "http://x"}, ["S: Invalid value: \"\": OpenAPIV3Schema 'schema' is not supported"]),
        (
            obj({"metadata": obj(default={"name": "x"})}),
            ["S.properties[metadata].default: Forbidden: must not be set in top-level metadata"],
        ),
    ],
)
def test_root_schema_errors(schema: dict[str, Any], expected: list[str]) -> None:
    assert messages(schema) == expected


def test_structural_errors_suppress_default_errors() -> None:
    found = messages(obj({"a": {"default": 1, "id": "x"}, "b": {**STRING, "default": 1}, "c": {}}))
    assert found == ["S.properties[a].id: Forbidden: id is not supported"]
    found = messages(obj({"b": {**STRING, "default": 1}, "c": {}, "d": {"type": "x"}}))
    assert [text.partition(":")[0] for text in found] == ["S.properties[c].type", "S.properties[d].type"]


def test_status_subresource_restricts_the_root_schema() -> None:
    assert messages(obj(title="t", required=["spec"], **{PRESERVE: True}), has_status=True) == []
    (refused,) = messages(obj(maxProperties=3, enum=[{}]), has_status=True)
    assert refused.startswith(
        'S: Invalid value: {"ID":"","Schema":"","Ref":null,"Description":"","Type":"object","Nullable":false'
    )
    assert refused.endswith("fields are allowed at the root of the schema if the status subresource is enabled")
    assert messages({"type": "array", "items": STRING}, has_status=True)[0] == (
        'S.type: Invalid value: "array": only "object" is allowed as the type at the root of the schema '
        "if the status subresource is enabled"
    )
