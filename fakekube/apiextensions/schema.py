"""Structural schemas: the conversion into the schema model, and the visitor of nested schemas.

Invariant: `allOf`, `anyOf`, `oneOf` and `not` only validate; the shape of a value, its defaults, and how it is pruned and
merged come from `type`, `properties`, `additionalProperties`, `items` and the x-kubernetes-* extensions of the structural
part.

Specified by: k8s.io/apiextensions-apiserver/pkg/apiserver/schema (structural.go, convert.go);
k8s.io/apiextensions-apiserver/pkg/apis/apiextensions (schemaHasKubernetesExtensions and its like).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeVar

from fakekube.apimachinery.schema.model import Field, ListType, MapType, Shape, Type
from fakekube.apimachinery.schema.paths import Schema

PRESERVE_UNKNOWN_FIELDS: Final = "x-kubernetes-preserve-unknown-fields"

META_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})

_SCALARS = {
    "string": (Shape.STRING, "string"),
    "integer": (Shape.INTEGER, "int64"),
    "number": (Shape.NUMBER, "float64"),
    "boolean": (Shape.BOOLEAN, "bool"),
}

_LIST_TYPES: Mapping[str | None, ListType] = {each.value: each for each in ListType}


def schema_type(schema: Schema | None, *, takes_unknown_fields: bool = False, is_preserved: bool = False) -> Type:
    """Returns the type of a JSONSchemaProps; None is any object with all fields preserved.

    Args:
        schema: a JSONSchemaProps.
        takes_unknown_fields: an outer schema preserves unknown fields.
        is_preserved: it is the schema of the items of an array that preserves unknown fields (skipPrune).
    """
    if schema is None:
        return Type(Shape.STRUCT, preserve_unknown_fields=True, takes_unknown_fields=True)
    preserves = is_preserved or bool(schema.get(PRESERVE_UNKNOWN_FIELDS))
    takes = takes_unknown_fields or preserves
    common = {
        "nullable": bool(schema.get("nullable")),
        "default": schema.get("default"),
        "required": tuple(schema.get("required", ())),
        "format": schema.get("format", ""),
        "preserve_unknown_fields": preserves,
        "takes_unknown_fields": takes,
        "embedded_resource": bool(schema.get("x-kubernetes-embedded-resource")),
        "keywords": schema,
    }
    kind = schema.get("type")
    if schema.get("x-kubernetes-int-or-string") and not kind:
        return Type(Shape.INT_OR_STRING, go="intstr.IntOrString", **common)
    if kind == "object":
        return _object(schema, common)
    if kind == "array":
        return Type(
            Shape.LIST,
            items=schema_type(schema.get("items") or {}, takes_unknown_fields=takes, is_preserved=preserves),
            list_map_keys=tuple(schema.get("x-kubernetes-list-map-keys", ())),
            list_type=_LIST_TYPES.get(schema.get("x-kubernetes-list-type"), ListType.ATOMIC),
            **common,
        )
    if kind in _SCALARS:
        shape, go = _SCALARS[kind]
        return Type(shape, go=go, **common)
    if "properties" in schema:
        return _object(schema, common)
    return Type(Shape.ANY, **common)


def _object(schema: Schema, common: dict[str, Any]) -> Type:
    map_type = MapType.ATOMIC if schema.get("x-kubernetes-map-type") == "atomic" else MapType.GRANULAR
    values, takes = schema.get("additionalProperties"), common["takes_unknown_fields"]
    if values and not schema.get("properties"):
        items = Type(Shape.ANY) if values is True else schema_type(values, takes_unknown_fields=takes)
        return Type(Shape.MAP, items=items, map_type=map_type, **common)
    resolve = partial(_fields, schema.get("properties") or {}, takes)
    return Type(Shape.STRUCT, resolve=resolve, map_type=map_type, **common)


def _fields(properties: Mapping[str, Schema], takes_unknown_fields: bool) -> Mapping[str, Field]:
    fields = {}
    for name in sorted(properties):
        type_ = schema_type(properties[name], takes_unknown_fields=takes_unknown_fields)
        fields[name] = Field(name, type_, default=type_.default)
    return fields


def holds(type_: Type, test: Callable[[Type], bool]) -> bool:
    """Reports whether the type or a type below it passes a test; cached, so that walks can skip subtrees."""
    found: bool | None = type_.compiled.get(test.__qualname__)
    if found is None:
        below = [type_.items] if type_.items is not None else [field.type for field in type_.fields.values()]
        found = test(type_)
        for each in below:
            found = found or holds(each, test)
        type_.compiled[test.__qualname__] = found
    return found


def has_default(type_: Type) -> bool:
    """Reports whether the schema has a default (which may be null)."""
    return "default" in type_.keywords


S = TypeVar("S", bound=Schema)

#: Keywords that hold a schema or several, or something else, in the order in which they are looked at; those that hold
#: schemas by name.
_HOLDING = (
    "items",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "properties",
    "patternProperties",
    "definitions",
    "dependencies",
    "additionalProperties",
    "additionalItems",
)
_NAMED = frozenset({"properties", "patternProperties", "definitions", "dependencies"})
_HOLDERS = frozenset(_HOLDING)


def schemas_in(schema: S | None) -> list[S]:
    """Yields a schema (if it is not None) and all schemas in it at any keyword; outer ones first, named ones sorted."""
    found: list[S] = []
    waiting = [schema] if schema is not None else []
    while waiting:
        here = waiting.pop()
        found.append(here)
        if not _HOLDERS.isdisjoint(here):
            waiting += reversed(_child_schemas(here))
    return found


def has_rules(schema: Schema) -> bool:
    """Reports whether there are x-kubernetes-validations anywhere in a schema."""
    return any("x-kubernetes-validations" in part for part in schemas_in(schema))


def _child_schemas(schema: Schema) -> list[Any]:
    parts: list[Any] = []
    for name in _HOLDING:
        held = schema.get(name)
        if not held:
            continue
        if name in _NAMED:
            parts += [held[key] for key in sorted(held)]
        elif isinstance(held, list):
            parts += held
        else:
            parts.append(held)
    return [part for part in parts if isinstance(part, dict)]
