"""Derives the OpenAPI schema of a type from its row, so that `apimachinery/data/` contains each schema once.

The rules are those of kube-openapi's generator: the OpenAPI form of a Go type, and the places of a `default`. The
generator (which stores a property only if the rules do not apply) and the OpenAPI endpoints use them. Both pass a
function from a Go name to its row, which returns an empty row for types without one (`string`).

Specified by: k8s.io/kube-openapi/pkg/generators (openapi.go).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from fakekube.apimachinery.data import Row

Rows = Callable[[str], Row]

_SCALARS: Mapping[str, dict[str, Any]] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "float64": {"type": "number", "format": "double"},
    "bytes": {"type": "string", "format": "byte"},
}
_OF_FIELDS: Mapping[str, str] = {
    "m": "x-kubernetes-list-map-keys", "l": "x-kubernetes-list-type", "g": "x-kubernetes-map-type",
    "k": "x-kubernetes-patch-merge-key", "s": "x-kubernetes-patch-strategy",
}  # fmt: skip
_OF_TYPES: Mapping[str, str] = {
    "map": "x-kubernetes-map-type", "unions": "x-kubernetes-unions", "gvk": "x-kubernetes-group-version-kind",
}  # fmt: skip
_ZEROS: Mapping[str, Any] = {"string": "", "bool": False, "int32": 0, "int64": 0, "float64": 0}


def schema_name(go_name: str) -> str:
    """`k8s.io/api/core/v1.Pod` as OpenAPI calls it: `io.k8s.api.core.v1.Pod`."""
    host, _, rest = go_name.partition("/")
    return ".".join([*reversed(host.split(".")), *rest.split("/")])


def type_schema(go_name: str, rows: Rows) -> dict[str, Any]:
    """Returns the OpenAPI v3 schema of a named type.

    DeleteOptions and WatchEvent have no x-kubernetes-group-version-kind here: theirs differs from document to
    document (the core group's, and that of the document's group version).
    """
    row = rows(go_name)
    if isinstance(row.get("schema"), Mapping):
        return dict(row["schema"])
    schema: dict[str, Any] = {"type": "object"}
    fields = dict(_fields(go_name, rows))
    required = [name for name, field in fields.items() if "r" in field]
    if required:
        schema["required"] = required
    if fields:
        schema["properties"] = {name: property_schema(field, rows) for name, field in sorted(fields.items())}
    return schema | {name: row[key] for key, name in _OF_TYPES.items() if key in row}


def _fields(go_name: str, rows: Rows) -> Iterator[tuple[str, Row]]:
    for name, field in rows(go_name).get("fields", {}).items():
        if name.startswith("+"):
            yield from _fields(field["t"].removeprefix("*"), rows)
        else:
            yield name, field


def property_schema(row: Row, rows: Rows) -> dict[str, Any]:
    """Returns the OpenAPI v3 schema of a field with this row."""
    if "x" in row:
        return dict(row["x"])
    pointer = row["t"].startswith("*")
    type_name = row["t"].removeprefix("*")
    schema = _schema(type_name, rows)
    zero = None if pointer or not ("o" in row or "$ref" in schema) else _zero(type_name, rows)
    if "v" in row or zero is not None:
        schema["default"] = row.get("v", zero)
    if "e" in row:
        element = schema.get("items") or schema.get("additionalProperties") or schema
        element["enum"] = row["e"]
    return _reference_in_all_of(schema) | {name: row[key] for key, name in _OF_FIELDS.items() if key in row}


def _schema(type_name: str, rows: Rows) -> dict[str, Any]:
    if type_name in _SCALARS:
        return dict(_SCALARS[type_name])
    if type_name.startswith("[]"):
        return {"type": "array", "items": _element(type_name[2:], rows)}
    if type_name.startswith("map["):
        return {"type": "object", "additionalProperties": _element(type_name.partition("]")[2], rows)}
    alias = rows(type_name).get("alias")
    return _schema(alias, rows) if alias else {"$ref": f"#/components/schemas/{schema_name(type_name)}"}


def _element(type_name: str, rows: Rows) -> dict[str, Any]:
    """Items and values carry their zero value as default."""
    schema = _schema(type_name, rows)
    zero = _zero(type_name, rows)
    return schema if zero is None else _reference_in_all_of({**schema, "default": zero})


def _reference_in_all_of(schema: dict[str, Any]) -> dict[str, Any]:
    reference = schema.pop("$ref", None)
    return schema if reference is None else {**schema, "allOf": [{"$ref": reference}]}


def _zero(type_name: str, rows: Rows) -> Any:
    """Returns the zero value as a default; None for types that have a form of their own."""
    if type_name in _ZEROS:
        return _ZEROS[type_name]
    row = rows(type_name)
    if "alias" in row:
        return _zero(row["alias"], rows)
    return {} if "fields" in row and not row.keys() & {"custom", "customJSON"} else None
