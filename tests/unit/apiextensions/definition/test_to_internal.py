"""Conversion of definitions to the internal version, and its Go field names in messages."""

from __future__ import annotations

import json
from typing import Any

from fakekube.apiextensions.definition.to_internal import internal_schema, internal_spec, internal_versions, set_fields
from fakekube.apiextensions.schema import schemas_in

STRING = {"type": "string"}
COLUMNS = [{"name": "A", "type": "string", "jsonPath": ".a"}]


def test_values_common_to_all_versions_move_to_the_spec() -> None:
    schema = {"openAPIV3Schema": STRING}
    spec = {
        "group": "g",
        "versions": [
            {"name": "v1", "schema": schema, "subresources": {"status": {}}, "additionalPrinterColumns": []},
            {"name": "v2", "schema": dict(schema), "subresources": {}},
        ],
    }
    assert internal_spec(spec) == {
        "group": "g",
        "version": "v1",
        "validation": schema,
        "additionalPrinterColumns": None,
        "selectableFields": None,
        "versions": [{"name": "v1", "subresources": {"status": {}}}, {"name": "v2", "subresources": {}}],
    }
    assert "schema" in spec["versions"][0], "the definition itself stays as it is"


def test_spec_without_versions() -> None:
    assert internal_spec({"group": "g", "versions": []}) == {"group": "g", "versions": []}
    assert internal_versions(None) is None
    assert internal_versions([]) == []


def test_internal_versions_are_printed_in_go_field_order() -> None:
    (shown,) = (
        internal_versions(
            [{"additionalPrinterColumns": COLUMNS, "name": "v1", "subresources": {"scale": {"specReplicasPath": ".a"}}}]
        )
        or ()
    )
    assert json.dumps(shown, separators=(",", ":")) == (
        '{"Name":"v1","Served":false,"Storage":false,"Deprecated":false,"DeprecationWarning":null,"Schema":null,'
        '"Subresources":{"Status":null,"Scale":{"SpecReplicasPath":".a","StatusReplicasPath":"","LabelSelectorPath":null}},'
        '"AdditionalPrinterColumns":[{"Name":"A","Type":"string","Format":"","Description":"","Priority":0,"JSONPath":".a"}],'
        '"SelectableFields":null}'
    )


def test_internal_schemas_are_printed_with_all_fields() -> None:
    schema: dict[str, Any] = {
        "items": [STRING],
        "additionalProperties": True,
        "dependencies": {"a": ["b"]},
        "properties": {"b": STRING, "a": STRING},
        "x-kubernetes-validations": [{"rule": "true"}],
    }
    shown = internal_schema(schema)
    assert shown is not None
    assert list(shown)[:4] == ["ID", "Schema", "Ref", "Description"]
    assert shown["Items"]["Schema"] is None and shown["Items"]["JSONSchemas"][0]["Type"] == "string"
    assert shown["AdditionalProperties"] == {"Allows": True, "Schema": None}
    assert shown["Dependencies"] == {"a": {"Schema": None, "Property": ["b"]}}
    assert list(shown["Properties"]) == ["a", "b"]
    assert shown["XValidations"] == [
        {"Rule": "true", "Message": "", "MessageExpression": "", "Reason": None, "FieldPath": "", "OptionalOldSelf": None}
    ]


def test_zero_values_are_unset_in_internal_schemas() -> None:
    schema = {
        "type": "",
        "nullable": False,
        "enum": [],
        "properties": {},
        "default": None,
        "maxLength": 0,
        "additionalProperties": False,
        "required": [],
    }
    assert list(set_fields(schema)) == [
        ("MaxLength", "maxLength"),
        ("Required", "required"),
        ("AdditionalProperties", "additionalProperties"),
    ]


def test_schemas_in_lists_all_nested_schemas() -> None:
    parts: list[dict[str, Any]] = [{"title": str(number)} for number in range(6)]
    parts[0]["items"] = inner = {"title": "within"}
    schema = {
        "items": parts[0],
        "allOf": [parts[1]],
        "not": parts[2],
        "properties": {"b": parts[4], "a": parts[3]},
        "dependencies": {"x": ["y"]},
        "additionalProperties": parts[5],
        "additionalItems": True,
    }
    assert schemas_in(schema) == [schema, parts[0], inner, *parts[1:]]
    assert schemas_in(None) == []
