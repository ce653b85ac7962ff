"""Visits a schema and all nested schemas, in the order of the real server.

Specified by: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions (schemaHasKubernetesExtensions and its like).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

__all__ = ["has_rules", "schemas_in"]

Schema = Mapping[str, Any]
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
            waiting += reversed(_below(here))
    return found


def has_rules(schema: Schema) -> bool:
    """Reports whether there are x-kubernetes-validations anywhere in a schema."""
    return any("x-kubernetes-validations" in part for part in schemas_in(schema))


def _below(schema: Schema) -> list[Any]:
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
