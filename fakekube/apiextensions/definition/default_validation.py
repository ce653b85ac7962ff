"""Validates the defaults in a schema.

A default is invalid if pruning would change it, if embedded objects in it are invalid, or if it violates keywords or
rules of the schema. A default within the metadata (or for the kind or apiVersion) of an object is validated as part of
such an object.

Specified by: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting (validation.go, surroundingobject.go).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from fakekube.apiextensions.definition.to_internal import Schema
from fakekube.apiextensions.instances.objects import MetadataError, embedded_errors, metadata_of, prune
from fakekube.apiextensions.instances.validation import value_errors
from fakekube.apiextensions.schema import has_rules, schema_type
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import aggregate, invalid
from fakekube.apimachinery.schema.model import Shape, Type

_EMBEDDED, _INT_OR_STRING = "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string"
_META_FIELDS = frozenset({"apiVersion", "kind", "metadata"})


Surround = Callable[[Any], dict[str, Any]]
"""Returns the surrounding object of a value at the position of its schema."""


def _object(value: Any) -> dict[str, Any]:
    return {"kind": "Validation", "apiVersion": "validation/v1", **value}


def default_errors(schema: Schema, path: str) -> list[FieldError]:
    """Validates the defaults of a complete structural schema."""
    return list(_errors({**schema, _EMBEDDED: True}, {}, _object, False, path))


def _errors(schema: Schema, resource: Schema, surround: Surround, in_meta: bool, path: str) -> Iterator[FieldError]:
    if schema.get(_EMBEDDED):
        resource, surround, in_meta = schema, _object, False
    value = schema.get("default")
    if value is not None:
        found = _meta_errors(resource, surround(value)) if in_meta else []
        if found:
            yield invalid(f"{path}.default", value, f"must result in valid metadata: {aggregate(found)}")
        else:
            yield from default_value_errors(schema, value, f"{path}.default", in_meta=in_meta)
    if schema.get("items") is not None:
        yield from _errors(schema["items"], resource, lambda item: surround([item]), in_meta, f"{path}.items")
    for name, below in sorted((schema.get("properties") or {}).items()):
        within = in_meta or (bool(schema.get(_EMBEDDED)) and name in _META_FIELDS)
        yield from _errors(below, resource, _surround_property(surround, name), within, f"{path}.properties[{name}]")


def _surround_property(surround: Surround, name: str) -> Surround:
    return lambda value: surround({name: value})


def _meta_errors(resource: Schema, obj: dict[str, Any]) -> list[FieldError]:
    type_ = schema_type({**resource, _EMBEDDED: True})
    return list(_unreadable(type_, obj, ""))[:1] or list(embedded_errors(type_, obj))


def default_value_errors(schema: Schema, value: Any, path: str, *, in_meta: bool = False) -> Iterator[FieldError]:
    """Validates the default of one node; `in_meta`: its metadata has already been validated."""
    if not in_meta and isinstance(value, dict | list):
        type_ = schema_type(schema)
        if prune(type_, value, is_resource=bool(schema.get(_EMBEDDED)))[1]:
            yield invalid(path, value, "must not have unknown fields")
        found = list(_unreadable(type_, value, path))[:1] or list(embedded_errors(type_, value, path))
        if found:
            yield from found
            return
    wrong = value_errors(_without_int_or_string(schema), value)
    for error in wrong:
        place = f"{path}.{error.path.removeprefix('.')}" if error.path else path
        yield replace(error, path=place)
    if not wrong and has_rules(schema):
        from fakekube.apimachinery.cel import compile_rules  # imported late: that is slow, and most definitions do not need it

        rules = compile_rules(schema, root=bool(schema.get(_EMBEDDED)))
        if rules is not None:
            yield from rules.validate_default(value, path)


def _without_int_or_string(schema: Any) -> Any:
    """Removes x-kubernetes-int-or-string, which is not validated in defaults."""
    if isinstance(schema, list):
        return [_without_int_or_string(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    kept = ((name, part) for name, part in schema.items() if name != _INT_OR_STRING or part is not True)
    return {name: _without_int_or_string(part) for name, part in kept}


def _unreadable(type_: Type, value: Any, path: str) -> Iterator[FieldError]:
    """Returns errors for fields of embedded objects that have the wrong type."""
    if isinstance(value, dict):
        if type_.embedded_resource:
            yield from _unreadable_meta(value, path)
        fields = type_.fields if type_.shape is Shape.STRUCT else {}
        for name in sorted(value):
            if name in fields:
                yield from _unreadable(fields[name].type, value[name], f"{path}.{name}" if path else name)
            elif type_.shape is Shape.MAP and type_.items is not None:
                yield from _unreadable(type_.items, value[name], f"{path}[{name}]")
    elif isinstance(value, list) and type_.shape is Shape.LIST and type_.items is not None:
        for index, item in enumerate(value):
            yield from _unreadable(type_.items, item, f"{path}[{index}]")


def _unreadable_meta(value: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    prefix = f"{path}." if path else ""
    for name in ("apiVersion", "kind"):
        if not isinstance(value.get(name, ""), str):
            yield invalid(f"{prefix}{name}", value[name], "must be a string")
    if "metadata" in value:
        try:
            metadata_of(value["metadata"])
        except MetadataError as error:
            yield invalid(f"{prefix}metadata", value["metadata"], str(error))
