"""The compiled validator agrees with the one that reports errors."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fakekube.apiextensions.instances.schema_cache import fits
from fakekube.apiextensions.instances.validation import value_errors

NAMES = st.sampled_from(["a", "b", "c"])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from(["", "a", "abc", "10.0.0.1", "1h"]),
    st.sampled_from([0, 1, 3, 97, 2**31, -1]),
    st.sampled_from([0.5, 1.0, 3.0, 1e16, -2.5]),
)
VALUES = st.recursive(
    SCALARS, lambda below: st.lists(below, max_size=3) | st.dictionaries(NAMES, below, max_size=3), max_leaves=6
)
COUNTS = st.integers(0, 3)
LEAVES = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["string", "integer", "number", "boolean", "object", "array"]),
        "nullable": st.booleans(),
        "maxLength": COUNTS,
        "minLength": COUNTS,
        "pattern": st.sampled_from(["^a", "[0-9]+"]),
        "format": st.sampled_from(["ipv4", "duration", "int32", "float"]),
        "maximum": st.sampled_from([1, 2.5]),
        "minimum": st.sampled_from([0, 1.5]),
        "exclusiveMinimum": st.booleans(),
        "multipleOf": st.sampled_from([2, 0.5]),
        "enum": st.lists(SCALARS, min_size=1, max_size=3),
        "maxItems": COUNTS,
        "minItems": COUNTS,
        "maxProperties": COUNTS,
        "minProperties": COUNTS,
        "required": st.lists(NAMES, max_size=2),
        "x-kubernetes-int-or-string": st.booleans(),
    },
)


def around(below: Any) -> Any:
    parts = st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(NAMES, below, max_size=2),
            "additionalProperties": below | st.just(True),
            "items": below,
            "anyOf": st.lists(below, min_size=1, max_size=2),
            "oneOf": st.lists(below, min_size=1, max_size=2),
            "allOf": st.lists(below, min_size=1, max_size=2),
            "not": below,
        },
    )
    return st.builds(lambda one, other: {**one, **other}, LEAVES, parts)


@given(st.recursive(LEAVES, around, max_leaves=4), VALUES)
def test_compiled_validator_agrees_with_value_errors(schema: dict[str, Any], value: Any) -> None:
    assert fits(schema)(value) is (not value_errors(schema, value))
