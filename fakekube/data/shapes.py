"""How the OpenAPI schema of a field follows from its row, so that data holds no schema twice.

The rules are those of kube-openapi's generator: what a Go type looks like in OpenAPI, and where it writes a `default`.
Shared by the generator (which stores a property only where the rules do not hold) and by whoever serves OpenAPI.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["property_schema", "schema_name"]

Row = Mapping[str, Any]

SCALARS: Mapping[str, dict[str, Any]] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "float64": {"type": "number", "format": "double"},
    "bytes": {"type": "string", "format": "byte"},
}
_EXTENSIONS: Mapping[str, str] = {
    "l": "x-kubernetes-list-type", "m": "x-kubernetes-list-map-keys", "g": "x-kubernetes-map-type",
    "k": "x-kubernetes-patch-merge-key", "s": "x-kubernetes-patch-strategy",
}  # fmt: skip
_ZERO: Mapping[str, Any] = {"string": "", "bool": False, "int32": 0, "int64": 0, "float64": 0}


def schema_name(go_name: str) -> str:
    """`k8s.io/api/core/v1.Pod` as OpenAPI calls it: `io.k8s.api.core.v1.Pod`."""
    host, _, rest = go_name.partition("/")
    return ".".join([*reversed(host.split(".")), *rest.split("/")])


def property_schema(row: Row, types: Mapping[str, Row]) -> dict[str, Any]:
    """The OpenAPI v3 schema of a field with this row."""
    if "x" in row:
        return dict(row["x"])
    pointer = row["t"].startswith("*")
    type_name = row["t"].removeprefix("*")
    schema = _schema(type_name, types)
    if "e" in row:
        schema.get("items", schema)["enum"] = row["e"]
    schema |= {name: row[key] for key, name in _EXTENSIONS.items() if key in row}
    zero = None if pointer or not ("o" in row or "$ref" in schema) else _zero(type_name, types)
    if "v" in row or zero is not None:
        schema["default"] = row.get("v", zero)
    reference = schema.pop("$ref", None)
    return schema if reference is None else {**schema, "allOf": [{"$ref": reference}]}


def _schema(type_name: str, types: Mapping[str, Row]) -> dict[str, Any]:
    if type_name in SCALARS:
        return dict(SCALARS[type_name])
    if type_name.startswith("[]"):
        return {"type": "array", "items": _element(type_name[2:], types)}
    if type_name.startswith("map["):
        return {"type": "object", "additionalProperties": _element(type_name.partition("]")[2], types)}
    alias = types.get(type_name, {}).get("alias")
    if alias:
        return _schema(alias, types)
    return {"$ref": f"#/components/schemas/{schema_name(type_name)}"}


def _element(type_name: str, types: Mapping[str, Row]) -> dict[str, Any]:
    """Items and values carry their zero value as default."""
    schema = _schema(type_name, types)
    zero = _zero(type_name, types)
    if zero is None:
        return schema
    schema["default"] = zero
    reference = schema.pop("$ref", None)
    return schema if reference is None else {**schema, "allOf": [{"$ref": reference}]}


def _zero(type_name: str, types: Mapping[str, Row]) -> Any:
    """The zero value as a default; None for types that have a form of their own."""
    known = types.get(type_name, {})
    if "alias" in known:
        return _zero(known["alias"], types)
    if type_name in _ZERO:
        return _ZERO[type_name]
    return {} if "fields" in known and not known.keys() & {"custom", "customJSON"} else None
