from __future__ import annotations

from typing import Any

import pytest

from fakekube.apimachinery import data
from fakekube.apimachinery.data.shapes import property_schema, schema_name, type_schema

FACTS = data.minor()
TIME = "k8s.io/apimachinery/pkg/apis/meta/v1.Time"


def reference(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{schema_name(name)}"}


def test_openapi_schema_name() -> None:
    assert schema_name("k8s.io/api/core/v1.Pod") == "io.k8s.api.core.v1.Pod"


@pytest.mark.parametrize(
    ("row", "schema"),
    [
        ({"t": "string"}, {"type": "string"}),
        ({"t": "string", "o": 0}, {"type": "string", "default": ""}),
        ({"t": "*int32"}, {"type": "integer", "format": "int32"}),
        ({"t": "k8s.io/api/core/v1.PodPhase", "e": ["A"]}, {"type": "string", "enum": ["A"]}),
        ({"t": "[]string", "l": "set"}, {"type": "array", "items": {"type": "string", "default": ""}, "x-kubernetes-list-type": "set"}),
        ({"t": "map[string]string"}, {"type": "object", "additionalProperties": {"type": "string", "default": ""}}),
        ({"t": TIME}, {"allOf": [reference(TIME)]}),
        ({"t": "*k8s.io/api/core/v1.Affinity"}, {"allOf": [reference("k8s.io/api/core/v1.Affinity")]}),
        ({"t": "k8s.io/api/core/v1.PodSpec"}, {"default": {}, "allOf": [reference("k8s.io/api/core/v1.PodSpec")]}),
        ({"t": "string", "v": "rbd"}, {"type": "string", "default": "rbd"}),
        ({"t": "string", "x": {"type": "object"}}, {"type": "object"}),
    ],
)  # fmt: skip
def test_openapi_property_schema(row: dict[str, Any], schema: dict[str, Any]) -> None:
    assert property_schema(row, FACTS.row) == schema


def test_openapi_type_schema() -> None:
    schema = type_schema("k8s.io/api/core/v1.ConfigMapKeySelector", FACTS.row)
    assert schema == {
        "type": "object",
        "required": ["key"],
        "properties": {
            "key": {"type": "string", "default": ""},
            "name": {"type": "string", "default": ""},
            "optional": {"type": "boolean"},
        },
        "x-kubernetes-map-type": "atomic",
    }


def test_quantity_and_json_type_schemas() -> None:
    quantity = type_schema("k8s.io/apimachinery/pkg/api/resource.Quantity", FACTS.row)
    assert quantity == {"oneOf": [{"type": "string"}, {"type": "number"}]}
    assert type_schema("k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSON", FACTS.row) == {}


def test_inlined_struct_fields_are_properties() -> None:
    properties = type_schema("k8s.io/api/core/v1.Volume", FACTS.row)["properties"]
    assert list(properties) == sorted(properties)
    assert {"name", "hostPath"} <= properties.keys()
