"""Which of several schemas that a value does not fit it comes closest to: the one with the most checks that were made.

The real server counts the validators that it runs, whatever they find, and the types that fit, down through the whole
value. So the branch that knows most of the members wins; of equals, the first.

Specified by: k8s.io/kube-openapi/pkg/validation/validate (Result.MatchCount, schema_props.go).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fakekube.crd.value_types import type_errors, types_of

__all__ = ["best_match"]

Schema = Mapping[str, Any]

#: Checks of every value: combinations, enumeration, and the schema itself.
_ALWAYS = 3


def best_match(schemas: Sequence[Schema], value: Any) -> int:
    """The index of the schema that fits best."""
    counts = [_count(schema, value) for schema in schemas]
    return counts.index(max(counts))


def _count(schema: Schema, value: Any) -> int:
    types = types_of(schema)
    if value is None:
        return 1 if schema.get("nullable") or not types else 0
    count = _ALWAYS + 1  # the combinations count themselves
    if types or schema.get("format"):
        count += 1 if type_errors(schema, value, "") else 2
    count += sum(_count(branch, value) for branch in schema.get("allOf") or ())
    for branches in (schema.get("anyOf"), schema.get("oneOf")):
        if branches:
            count += _count(branches[best_match(branches, value)], value)
    if isinstance(value, str):
        count += 2 if schema.get("format") else 1
    elif isinstance(value, list):
        items = schema.get("items")
        count += 2 + (sum(_count(items, item) for item in value) if items else 0)
    elif isinstance(value, dict):
        count += 1 + _of_members(schema, value)
    elif not isinstance(value, bool):
        count += 2
    return count


def _of_members(schema: Schema, value: Mapping[str, Any]) -> int:
    properties, values = schema.get("properties") or {}, schema.get("additionalProperties")
    schemas = ((properties.get(name, values), item) for name, item in value.items())
    return sum(_count(schema_of, item) for schema_of, item in schemas if isinstance(schema_of, Mapping))
