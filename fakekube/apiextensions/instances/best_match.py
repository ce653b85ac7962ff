"""Selects the best match among schemas that all reject a value: the one with the highest match count.

The real server counts the validators that it runs, whatever their result, and the types that match, recursively. So the
branch that has most of the value's properties wins; of equal ones, the first.

Specified by: k8s.io/kube-openapi/pkg/validation/validate (Result.MatchCount, schema_props.go).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fakekube.apiextensions.instances.value_types import type_errors, types_of

__all__ = ["best_match"]

Schema = Mapping[str, Any]
IsValid = Callable[[Schema, Any], bool]

#: Validators that run for every value: combinations, enum, and the schema itself.
_ALWAYS = 3


def best_match(schemas: Sequence[Schema], value: Any, is_valid: IsValid) -> int:
    """Returns the index of the best match among schemas that all reject the value."""
    counts = [_count(schema, value, is_valid) for schema in schemas]
    return counts.index(max(counts))


def _count(schema: Schema, value: Any, is_valid: IsValid) -> int:
    types = types_of(schema)
    if value is None:
        return 1 if schema.get("nullable") or not types else 0
    count = _ALWAYS + 1  # combinations add their own counts
    if types or schema.get("format"):
        count += 1 if type_errors(schema, value, "") else 2
    count += sum(_count(branch, value, is_valid) for branch in schema.get("allOf") or ())
    for name in ("anyOf", "oneOf"):
        branches = schema.get(name)
        if branches:
            count += _of_branches(branches, value, is_valid, one=name == "oneOf")
    if isinstance(value, str):
        count += 2 if schema.get("format") else 1
    elif isinstance(value, list):
        items = schema.get("items")
        count += 2 + (sum(_count(items, item, is_valid) for item in value) if items else 0)
    elif isinstance(value, dict):
        count += 1 + _of_members(schema, value, is_valid)
    elif not isinstance(value, bool):
        count += 2
    return count


def _of_branches(branches: Sequence[Schema], value: Any, is_valid: IsValid, *, one: bool) -> int:
    """Returns the count of the first valid branch, or else of the best match; 0 if too many are valid."""
    valid = [branch for branch in branches if is_valid(branch, value)]
    if one and len(valid) > 1:
        return 0
    return _count(valid[0] if valid else branches[best_match(branches, value, is_valid)], value, is_valid)


def _of_members(schema: Schema, value: Mapping[str, Any], is_valid: IsValid) -> int:
    properties, values = schema.get("properties") or {}, schema.get("additionalProperties")
    schemas = ((properties.get(name, values), item) for name, item in value.items())
    return sum(_count(schema_of, item, is_valid) for schema_of, item in schemas if isinstance(schema_of, Mapping))
