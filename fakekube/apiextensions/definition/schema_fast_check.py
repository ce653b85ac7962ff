"""Accepts most valid schemas in one fast walk.

A schema passes if every node has a valid type and every keyword passes its check; most keywords cannot be invalid by
themselves. Rare keywords fail the check without a closer look.

Invariant: a schema that passes is structural, and its keywords and defaults are valid (`structural_validation`
and `keyword_validation` return no errors). The reverse does not hold: a schema that does not pass must
be validated by those modules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from fakekube.apiextensions.definition.keyword_validation import (
    TYPES,
    default_value_errors,
    extension_errors,
    keyword_errors,
    rule_errors,
)
from fakekube.apiextensions.definition.structural_validation import junctor_schemas, logic_errors, structural_problem
from fakekube.apiextensions.schema import PRESERVE_UNKNOWN_FIELDS
from fakekube.apimachinery.schema.paths import Schema


class ValidSchema(NamedTuple):
    """The nodes of a valid schema that need further steps."""

    defaults: list[Schema]
    """The nodes with a default."""
    ruled: list[Schema]
    """The nodes with rules, which must still be compiled."""


Look = Callable[[Schema, ValidSchema], bool]
"""(node, result to add nodes to) → whether one of its keywords is valid, except for nested schemas in other keywords."""

_INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_RARE_AT_ROOT: Final = frozenset({"additionalProperties", "default", "not", "allOf", "anyOf", "oneOf"})


def check_schema(schema: Schema) -> ValidSchema | None:
    """Checks the schema of whole objects; None if it is not certainly valid."""
    if schema.get("type") != "object" or not _RARE_AT_ROOT.isdisjoint(schema):
        return None
    properties = schema.get("properties") or {}
    if properties.get("metadata", _PLAIN_METADATA) != _PLAIN_METADATA:
        return None
    if not all(_is_plain_text(properties[name]) for name in ("apiVersion", "kind") if name in properties):
        return None
    found = ValidSchema([], [])
    # Defaults can be validated once the whole schema is known to be structural.
    return found if _is_valid(schema, found) and not any(map(_has_wrong_default, found.defaults)) else None


_PLAIN_METADATA: Final = {"type": "object"}


def _is_plain_text(schema: Schema) -> bool:
    return schema.get("type") == "string" and _LOOKS.keys().isdisjoint(schema)


def _has_wrong_default(schema: Schema) -> bool:
    return any(default_value_errors(schema, schema["default"], ""))


def _is_valid(schema: Schema, found: ValidSchema) -> bool:
    kind = schema.get("type")
    if kind not in _TYPES and (kind or not (schema.get(_INT_OR_STRING) or schema.get(PRESERVE_UNKNOWN_FIELDS))):
        return False
    if kind == "array" and "items" not in schema:
        return False
    for name in schema:
        look = _LOOKS.get(name)
        if look is not None and not look(schema, found):
            return False
    return True


_TYPES: Final = frozenset(TYPES)


# --- Checks by keyword ------------------------------------------------------------------------------------------------


def _uncertain(_schema: Schema, _found: ValidSchema) -> bool:
    return False


def _if_set(name: str) -> Look:
    return lambda schema, _: not schema[name]


def _items(schema: Schema, found: ValidSchema) -> bool:
    items = schema["items"]
    return isinstance(items, dict) and _is_valid(items, found)


def _properties(schema: Schema, found: ValidSchema) -> bool:
    for part in schema["properties"].values():  # noqa: SIM110  # a generator takes half as long again, and goes less deep
        if not _is_valid(part, found):
            return False
    return True


def _values(schema: Schema, found: ValidSchema) -> bool:
    values = schema["additionalProperties"]
    if values is True:
        return True
    return not schema.get("properties") and (values is False or _is_valid(values, found))


def _default(schema: Schema, found: ValidSchema) -> bool:
    if schema["default"] is not None:
        found.defaults.append(schema)
    return True


def _logic(schema: Schema, _found: ValidSchema) -> bool:
    if any(structural_problem(part) or keyword_errors(part, "") for part in junctor_schemas(schema)):
        return False
    return not any(logic_errors(schema, ""))


def _pattern(schema: Schema, _found: ValidSchema) -> bool:
    return not any(logic_errors({"pattern": schema["pattern"]}, ""))


def _extension(schema: Schema, _found: ValidSchema) -> bool:
    return not any(extension_errors(schema, ""))


def _rules(schema: Schema, found: ValidSchema) -> bool:
    found.ruled.append(schema)
    return not any(rule_errors(schema, ""))


def _int_or_string(schema: Schema, _found: ValidSchema) -> bool:
    return not schema.get(PRESERVE_UNKNOWN_FIELDS)


_LOOKS: Final[Mapping[str, Look]] = {
    "items": _items,
    "properties": _properties,
    "additionalProperties": _values,
    "default": _default,
    "not": _logic,
    "allOf": _logic,
    "anyOf": _logic,
    "oneOf": _logic,
    "pattern": _pattern,
    "x-kubernetes-list-type": _extension,
    "x-kubernetes-list-map-keys": _extension,
    "x-kubernetes-map-type": _extension,
    "x-kubernetes-validations": _rules,
    PRESERVE_UNKNOWN_FIELDS: _extension,
    _INT_OR_STRING: _int_or_string,
    "x-kubernetes-embedded-resource": _if_set("x-kubernetes-embedded-resource"),
    "uniqueItems": _if_set("uniqueItems"),
    **dict.fromkeys(("id", "$schema", "$ref", "patternProperties", "dependencies", "additionalItems", "definitions"), _uncertain),
}
"""The check of each keyword; all values of other keywords are valid."""
