"""Is there certainly nothing wrong with a schema? One quick walk can tell of most of them.

A node is sound if it has a type that can be, and if nobody who looks at one of its keywords has a doubt; most keywords
cannot be wrong by themselves. What is rare is doubted without a look.

Invariant: a sound schema is structural, and neither its keywords nor its defaults are wrong (`structural_validation`,
`keyword_validation`, `default_validation` find nothing). The contrary need not be so: a doubt means that they are asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from fakekube.crd.definition.default_validation import default_value_errors
from fakekube.crd.definition.keyword_validation import TYPES, extension_errors, keyword_errors
from fakekube.crd.definition.rule_validation import rule_errors
from fakekube.crd.definition.structural_validation import joined, logic_errors, structural_problem
from fakekube.crd.definition.to_internal import Schema

__all__ = ["Sound", "soundness"]

class Sound(NamedTuple):
    """What was found on the way through a schema with which nothing is wrong."""

    defaults: list[Schema]
    """The nodes with a default."""
    ruled: list[Schema]
    """The nodes with rules, which have still to be compiled."""


Look = Callable[[Schema, Sound], bool]
"""(node, where what is found is gathered) → is what one of its keywords says sound, as far as it stands here?"""

_INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_RARE_AT_ROOT: Final = frozenset({"additionalProperties", "default", "not", "allOf", "anyOf", "oneOf"})


def soundness(schema: Schema) -> Sound | None:
    """What there is in a schema of whole objects with which nothing is wrong; None is a doubt."""
    if schema.get("type") != "object" or not _RARE_AT_ROOT.isdisjoint(schema):
        return None
    properties = schema.get("properties") or {}
    if properties.get("metadata", _PLAIN_METADATA) != _PLAIN_METADATA:
        return None
    if not all(_is_plain_text(properties[name]) for name in ("apiVersion", "kind") if name in properties):
        return None
    found = Sound([], [])
    # Defaults can be judged once the whole schema is known to be structural.
    return found if _is_sound(schema, found) and not any(map(_has_wrong_default, found.defaults)) else None


_PLAIN_METADATA: Final = {"type": "object"}


def _is_plain_text(schema: Schema) -> bool:
    return schema.get("type") == "string" and _LOOKS.keys().isdisjoint(schema)


def _has_wrong_default(schema: Schema) -> bool:
    return any(default_value_errors(schema, schema["default"], ""))


def _is_sound(schema: Schema, found: Sound) -> bool:
    kind = schema.get("type")
    if kind not in _TYPES and (kind or not (schema.get(_INT_OR_STRING) or schema.get(_PRESERVE))):
        return False
    if kind == "array" and "items" not in schema:
        return False
    for name in schema:
        look = _LOOKS.get(name)
        if look is not None and not look(schema, found):
            return False
    return True


_TYPES: Final = frozenset(TYPES)


# ---------------------------------------------------------------- who looks at which keyword


def _doubt(_schema: Schema, _found: Sound) -> bool:
    return False


def _if_set(name: str) -> Look:
    return lambda schema, _: not schema[name]


def _items(schema: Schema, found: Sound) -> bool:
    items = schema["items"]
    return isinstance(items, dict) and _is_sound(items, found)


def _properties(schema: Schema, found: Sound) -> bool:
    for part in schema["properties"].values():  # noqa: SIM110  # a generator takes half as long again, and goes less deep
        if not _is_sound(part, found):
            return False
    return True


def _values(schema: Schema, found: Sound) -> bool:
    values = schema["additionalProperties"]
    if values is True:
        return True
    return not schema.get("properties") and (values is False or _is_sound(values, found))


def _default(schema: Schema, found: Sound) -> bool:
    if schema["default"] is not None:
        found.defaults.append(schema)
    return True


def _logic(schema: Schema, _found: Sound) -> bool:
    if any(structural_problem(part) or keyword_errors(part, "") for part in joined(schema)):
        return False
    return not any(logic_errors(schema, ""))


def _pattern(schema: Schema, _found: Sound) -> bool:
    return not any(logic_errors({"pattern": schema["pattern"]}, ""))


def _extension(schema: Schema, _found: Sound) -> bool:
    return not any(extension_errors(schema, ""))


def _rules(schema: Schema, found: Sound) -> bool:
    found.ruled.append(schema)
    return not any(rule_errors(schema, ""))


def _int_or_string(schema: Schema, _found: Sound) -> bool:
    return not schema.get(_PRESERVE)


_LOOKS: Final[Mapping[str, Look]] = {
    "items": _items, "properties": _properties, "additionalProperties": _values, "default": _default,
    "not": _logic, "allOf": _logic, "anyOf": _logic, "oneOf": _logic, "pattern": _pattern,
    "x-kubernetes-list-type": _extension, "x-kubernetes-list-map-keys": _extension, "x-kubernetes-map-type": _extension,
    "x-kubernetes-validations": _rules, _PRESERVE: _extension, _INT_OR_STRING: _int_or_string,
    "x-kubernetes-embedded-resource": _if_set("x-kubernetes-embedded-resource"), "uniqueItems": _if_set("uniqueItems"),
    **dict.fromkeys(
        ("id", "$schema", "$ref", "patternProperties", "dependencies", "additionalItems", "definitions"), _doubt
    ),
}
"""Of all other keywords, no value is wrong."""
