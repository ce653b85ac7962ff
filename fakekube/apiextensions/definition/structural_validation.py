"""Validates that a schema is structural.

There are three sorts of rules: `structural_problem` (keywords that are forbidden in structural schemas), invariants of
every node, and completeness (fields that allOf, anyOf, oneOf or not restrict must also be in the structure). Errors are
sorted by their messages, since the real server visits properties in random order.

Specified by: k8s.io/apiextensions-apiserver/pkg/apiserver/schema (convert.go, validation.go, complete.go).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum

from fakekube.apiextensions.definition.to_internal import set_fields
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import forbidden, invalid, required
from fakekube.apimachinery.schema.paths import Schema
from fakekube.apis.validation.rules import from_minor
from fakekube.base.golang.regexp import PatternError, compile_pattern


class _Level(Enum):
    """The kind of location of a schema; the value is the suffix of the error for a missing type."""

    ROOT = "at the root"
    ITEM = "for specified array items"
    FIELD = "for specified object fields"


# --- What cannot be ---------------------------------------------------------------------------------------------------

_UNSUPPORTED = (
    ("id", "id"),
    ("$schema", "schema"),
    ("$ref", "$ref"),
    ("patternProperties", "patternProperties"),
    ("dependencies", "dependencies"),
    ("additionalItems", "additionalItems"),
    ("definitions", "definitions"),
)
_UNSUPPORTED_NAMES = frozenset(name for name, _ in _UNSUPPORTED)


def structural_problem(schema: Schema) -> str:
    """Returns why a schema cannot be converted to a structural one; empty if it can."""
    for name, shown in () if _UNSUPPORTED_NAMES.isdisjoint(schema) else _UNSUPPORTED:
        if schema.get(name) or (name == "additionalItems" and schema.get(name) is not None):
            return f"OpenAPIV3Schema '{shown}' is not supported"
    for part in junctor_schemas(schema):
        if problem := structural_problem(part):
            return problem
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        return "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"
    if isinstance(schema.get("items"), list) and schema["items"]:
        return "OpenAPIV3Schema 'items' must be a schema, but is an array"
    parts = [schema.get("items"), *_in_order_of_names(schema.get("properties")), schema.get("additionalProperties")]
    return next((found for part in parts if isinstance(part, dict) and (found := structural_problem(part))), "")


def _in_order_of_names(parts: Mapping[str, Schema] | None) -> Sequence[Schema]:
    return [parts[name] for name in sorted(parts)] if parts else ()


_LOGIC = frozenset({"not", "allOf", "anyOf", "oneOf"})


def junctor_schemas(schema: Schema) -> Iterator[Schema]:
    """Returns the schemas in allOf, anyOf, oneOf and not of a schema."""
    if _LOGIC.isdisjoint(schema):
        return
    if schema.get("not") is not None:
        yield schema["not"]
    for name in ("allOf", "anyOf", "oneOf"):
        yield from schema.get(name) or ()


# --- Invariants -------------------------------------------------------------------------------------------------------


def structural_errors(schema: Schema, path: str) -> list[FieldError]:
    """Returns the violations of structural invariants. The schema must have no `structural_problem`."""
    errors = [*_node_errors(schema, _Level.ROOT, path), *_logic_incomplete(schema, schema, path, path)]
    return sorted(errors, key=lambda error: error.message)


def _items(schema: Schema) -> Schema | None:
    """Returns the schema of the items; an empty list of schemas counts as none."""
    items = schema.get("items")
    return items if isinstance(items, dict) else None


def _node_errors(schema: Schema, level: _Level, path: str) -> Iterator[FieldError]:
    items, properties, values = _items(schema), schema.get("properties") or {}, schema.get("additionalProperties")
    if items is not None:
        yield from _node_errors(items, _Level.ITEM, f"{path}.items")
    elif schema.get("type") == "array":
        yield required(f"{path}.items", "must be specified")
    for name, below in properties.items():
        yield from _node_errors(below, _Level.FIELD, f"{path}.properties[{name}]")
    if values is not None and level is _Level.ROOT:
        yield forbidden(f"{path}.additionalProperties", "must not be used at the root")
    if isinstance(values, dict):
        yield from _node_errors(values, _Level.FIELD, f"{path}.additionalProperties")
    yield from _extension_errors(schema, path)
    if "pattern" in schema or not _LOGIC.isdisjoint(schema):
        yield from logic_errors(schema, path)
    yield from _type_errors(schema, level, path)
    yield from _embedded_errors(schema, path)
    yield from _metadata_errors(schema, level, path)


def _extension_errors(schema: Schema, path: str) -> Iterator[FieldError]:
    if schema.get("x-kubernetes-int-or-string"):
        for name in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
            if schema.get(name):
                yield invalid(f"{path}.{name}", True, "must be false if x-kubernetes-int-or-string is true")


#: Extensions with which a schema needs no type.
_TYPELESS = ("x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields")


def _type_errors(schema: Schema, level: _Level, path: str) -> Iterator[FieldError]:
    kind, path = schema.get("type", ""), f"{path}.type"
    if schema.get("x-kubernetes-embedded-resource") and kind != "object":
        text = "must be object if x-kubernetes-embedded-resource is true"
        yield invalid(path, kind, text) if kind else required(path, text)
    elif not kind and not any(schema.get(name) for name in _TYPELESS):
        yield required(path, f"must not be empty {level.value}")
    if level is _Level.ROOT and kind not in ("", "object"):
        yield invalid(path, kind, "must be object at the root")


def _embedded_errors(schema: Schema, path: str) -> Iterator[FieldError]:
    if not schema.get("x-kubernetes-embedded-resource"):
        return
    if schema.get("additionalProperties") is not None:
        yield forbidden(f"{path}.additionalProperties", "must not be used if x-kubernetes-embedded-resource is set")
    if not schema.get("x-kubernetes-preserve-unknown-fields") and not schema.get("properties"):
        yield required(
            f"{path}.properties",
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
        )


_OBJECT_TYPES = {"kind": "string", "apiVersion": "string", "metadata": "object"}
_NAMES = frozenset({"name", "generateName"})


def _metadata_errors(schema: Schema, level: _Level, path: str) -> Iterator[FieldError]:
    properties = schema.get("properties") or {}
    if level is _Level.ROOT or schema.get("x-kubernetes-embedded-resource"):
        for name, wanted in _OBJECT_TYPES.items():
            kind = properties[name].get("type", "") if name in properties else wanted
            if kind != wanted:
                yield invalid(f"{path}.properties[{name}].type", kind, f"must be {wanted}")
    if level is _Level.ROOT and "metadata" in properties and not _restricts_names_only(properties["metadata"]):
        yield forbidden(
            f"{path}.properties[metadata]",
            "must not specify anything other than name and generateName, but metadata is implicitly specified",
        )


#: Keywords of metadata that a structural schema does not keep; some of them have other errors if they are not empty.
_NOT_STRUCTURAL = frozenset({"type", "default", "definitions", "dependencies", "patternProperties", "$ref"})
#: Keywords that it keeps since 1.36.
_STRUCTURAL_SINCE_36 = frozenset({"example", "externalDocs"})


def _restricts_names_only(metadata: Schema) -> bool:
    said = {name for _, name in set_fields(metadata)} - _NOT_STRUCTURAL
    if not from_minor(36):
        said -= _STRUCTURAL_SINCE_36
    return said <= {"properties"} and set(metadata.get("properties") or ()) <= _NAMES


# --- Logic ------------------------------------------------------------------------------------------------------------


#: Keywords that are allowed in logical junctors if they are empty or false.
_NOT_OF_LOGIC = frozenset({"additionalProperties", "definitions", "dependencies", "patternProperties", "$ref"})


def _is_int_or_string(schema: Schema) -> bool:
    """Reports whether an anyOf is that of x-kubernetes-int-or-string, the only one that may have types."""
    said = [
        {name: part[name] for _, name in set_fields(part) if part[name] or name not in _NOT_OF_LOGIC}
        for part in schema.get("anyOf") or ()
    ]
    return said == [{"type": "integer"}, {"type": "string"}]


def logic_errors(schema: Schema, path: str) -> Iterator[FieldError]:
    """Validates the pattern of a structural node, and the schemas in its allOf, anyOf, oneOf and not."""
    first = (schema.get("allOf") or [{}])[0]
    yield from _logic_errors(schema, path, skip_any_of=_is_int_or_string(schema), skip_first=_is_int_or_string(first))


def _logic_errors(schema: Schema, path: str, *, skip_any_of: bool = False, skip_first: bool = False) -> Iterator[FieldError]:
    if not skip_any_of:
        for index, part in enumerate(schema.get("anyOf") or ()):
            yield from _nested_errors(part, f"{path}.anyOf[{index}]")
    for index, part in enumerate(schema.get("allOf") or ()):
        yield from _nested_errors(part, f"{path}.allOf[{index}]", skip_any_of=skip_first and index == 0)
    for index, part in enumerate(schema.get("oneOf") or ()):
        yield from _nested_errors(part, f"{path}.oneOf[{index}]")
    if schema.get("not") is not None:
        yield from _nested_errors(schema["not"], f"{path}.not")
    pattern = schema.get("pattern", "")
    if not pattern:
        return
    try:
        compile_pattern(pattern)
    except PatternError as error:
        yield invalid(f"{path}.pattern", pattern, f"must be a valid regular expression, but isn't: {error}")


_EMPTY, _UNDEFINED, _FALSE = (f"must be {what} to be structural" for what in ("empty", "undefined", "false"))

#: Keywords that are forbidden in logical junctors → the error.
_FORBIDDEN = {
    "type": _EMPTY,
    "default": _UNDEFINED,
    "title": _EMPTY,
    "description": _EMPTY,
    "nullable": _FALSE,
    "x-kubernetes-preserve-unknown-fields": _FALSE,
    "x-kubernetes-embedded-resource": _FALSE,
    "x-kubernetes-int-or-string": _FALSE,
    "x-kubernetes-list-map-keys": _EMPTY,
    "x-kubernetes-validations": _EMPTY,
}
_FORBIDDEN_IF_SAID = {"x-kubernetes-list-type": _UNDEFINED, "x-kubernetes-map-type": _UNDEFINED}


def _nested_errors(schema: Schema, path: str, *, skip_any_of: bool = False) -> Iterator[FieldError]:
    yield from _logic_errors(schema, path, skip_any_of=skip_any_of)
    items = _items(schema)
    if items is not None:
        yield from _nested_errors(items, f"{path}.items")
    properties = schema.get("properties") or {}
    for name, part in properties.items():
        yield from _nested_errors(part, f"{path}.properties[{name}]")
    if schema.get("additionalProperties", False) is not False:
        yield forbidden(f"{path}.additionalProperties", _UNDEFINED)
    for name, text in _FORBIDDEN.items():
        if schema.get(name) or (name == "default" and schema.get(name) is not None):
            yield forbidden(f"{path}.{name}", text)
    for name, text in _FORBIDDEN_IF_SAID.items():
        if schema.get(name) is not None:
            yield forbidden(f"{path}.{name}", text)
    if "metadata" in properties:
        yield forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")


# --- Completeness -----------------------------------------------------------------------------------------------------


def _logic_incomplete(logic: Schema, schema: Schema, path: str, logic_path: str) -> Iterator[FieldError]:
    """Returns errors for what the logical junctors restrict and the structure does not have."""
    if logic.get("not") is not None:
        yield from _incomplete(logic["not"], schema, path, f"{logic_path}.not")
    for name in ("allOf", "anyOf", "oneOf"):
        for index, part in enumerate(logic.get(name) or ()):
            yield from _incomplete(part, schema, path, f"{logic_path}.{name}[{index}]")


def _incomplete(logic: Schema, schema: Schema | None, path: str, logic_path: str) -> Iterator[FieldError]:
    if schema is None:
        yield required(path, f"because it is defined in {logic_path}")
        return
    yield from _logic_incomplete(logic, schema, path, logic_path)
    items = _items(logic)
    if items is not None:
        yield from _incomplete(items, _items(schema), f"{path}.items", f"{logic_path}.items")
    properties = schema.get("properties") or {}
    for name, part in (logic.get("properties") or {}).items():
        below = f"properties[{name}]"
        yield from _incomplete(part, properties.get(name), f"{path}.{below}", f"{logic_path}.{below}")
