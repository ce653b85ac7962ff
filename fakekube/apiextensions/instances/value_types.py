"""Validates the type of values and the format of strings.

A schema has one type, two (x-kubernetes-int-or-string) or none. Values are validated by `supported_formats` of a
schema, defaults by the original schema. Whole numbers are integers; floats that are close enough to an integer are
integers, too.

Specified by: k8s.io/kube-openapi/pkg/validation/validate/type.go, formats.go; k8s.io/apiextensions-apiserver/pkg/
apiserver/validation/formats.go (which formats count); github.com/go-openapi/swag (IsFloat64AJSONInteger).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fakekube.apiextensions.instances.formats import FORMATS
from fakekube.apiextensions.instances.objects import sorted_tree
from fakekube.apiextensions.schema.visitor import schemas_in
from fakekube.apimachinery.errors import FieldError, field
from fakekube.base.golang.strconv import go_quote

__all__ = ["format_errors", "is_near_integer", "supported_formats", "type_errors", "types_of", "unrecognized_formats"]

Schema = Mapping[str, Any]

_KINDS = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", type(None): "null", float: "number"}

#: JSON type → format of the value; other types have none.
_INFERRED = {"integer": "int64", "number": "float64"}

_FORMATS_OF_NUMBERS = {"integer": ("int32", "int64"), "number": ("float", "double")}

#: The range in which a float can be an integer.
_SAFE = float(2**53 - 1)
_CLOSE = 1e-9


def types_of(schema: Schema) -> tuple[str, ...]:
    """Returns the types that a schema allows; empty means any."""
    if schema.get("x-kubernetes-int-or-string"):
        return ("integer", "string")
    type_ = schema.get("type")
    return (type_,) if type_ else ()


def supported_formats(schema: Schema) -> Schema:
    """Returns a copy of the schema without the formats that its types do not support, recursively.

    Whole numbers in enums are integers, as they are read from the storage.
    """
    found = {name: _below(name, value) for name, value in schema.items()}
    if "format" in found and not _is_supported(found["format"], types_of(schema)):
        del found["format"]
    return found


def _below(keyword: str, value: Any) -> Any:
    if keyword == "properties":
        return {name: supported_formats(schema) for name, schema in value.items()}
    if keyword == "enum":
        return sorted_tree(value)
    if keyword in ("allOf", "anyOf", "oneOf"):
        return [supported_formats(schema) for schema in value]
    return supported_formats(value) if keyword in ("items", "additionalProperties", "not") and isinstance(value, dict) else value


def _is_supported(format_: str, types: tuple[str, ...]) -> bool:
    type_ = types[0] if len(types) == 1 else ""
    if type_ in ("", "string"):
        return format_.replace("-", "") in FORMATS or format_ == "password"
    return format_ in _FORMATS_OF_NUMBERS.get(type_, ())


def unrecognized_formats(schema: Schema) -> list[str]:
    """Returns the unrecognized formats anywhere in a schema."""
    parts = (part for part in schemas_in(schema) if part.get("format"))
    return [part["format"] for part in parts if not _is_supported(part["format"], (part["type"],) if part.get("type") else ())]


def is_near_integer(value: float) -> bool:
    """Reports whether a float is an integer, or close enough to one."""
    if abs(value) > _SAFE:
        return False
    if value.is_integer():
        return True
    below = float(int(value))
    return below > 0 and (value - below) / (value + below) < _CLOSE


def type_errors(schema: Schema, value: Any, path: str) -> list[FieldError]:
    """Returns at most one error."""
    types = types_of(schema)
    kind = _KINDS[type(value)]
    if kind in types or (not types and "format" not in schema):
        return []
    if value is None:
        return [_misfit(path, ",".join(types), "null")] if types else []
    if kind == "integer" and "number" in types:
        return []
    if kind == "number" and "integer" in types and is_near_integer(value):
        return []
    format_ = schema.get("format", "")
    if format_ and kind in ("string", "array"):
        if not {"integer", "number"}.intersection(types):
            return []
    elif format_ and format_ != _INFERRED.get(kind):
        return [_misfit(path, format_, _INFERRED.get(kind, ""))]
    return [_misfit(path, ",".join(types), kind)] if types else []


def format_errors(schema: Schema, value: str, path: str) -> list[FieldError]:
    """Returns one error if a string does not have the format, or none."""
    format_ = schema.get("format", "")
    check = FORMATS.get(format_.replace("-", ""))
    if check is None or check(value):
        return []
    return [field.type_invalid(path, value, f"{path} in body must be of type {format_}: {go_quote(value)}")]


def _misfit(path: str, wanted: str, found: str) -> FieldError:
    return field.type_invalid(path, found, f'{path} in body must be of type {wanted}: "{found}"')
