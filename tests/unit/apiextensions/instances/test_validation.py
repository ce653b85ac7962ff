"""Validation of values by schema keywords: errors, their order, and ratcheting."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.apiextensions.instances.validation import list_errors, value_errors
from fakekube.apiextensions.schema import schema_type

STRING = {"type": "string"}
INTEGER = {"type": "integer"}


def places(errors: list[Any]) -> list[str]:
    return [error.path for error in errors]


@pytest.mark.parametrize(
    ("schema", "right", "wrong"),
    [
        (STRING, ["", "x"], [1, True, [], {}, None]),
        (INTEGER, [1, 1.0, -1], ["1", 1.5, True, None]),
        ({"type": "number"}, [1, 1.5], ["1", False]),
        ({"type": "boolean"}, [True], [1, "true"]),
        ({**STRING, "nullable": True}, [None, "x"], [1]),
        ({**STRING, "minLength": 2, "maxLength": 3}, ["äö", "abc"], ["a", "abcd"]),
        ({**STRING, "pattern": "b+"}, ["abc"], ["ac"]),
        ({**STRING, "enum": ["a", "b"]}, ["a"], ["c", ""]),
        ({**INTEGER, "enum": [1]}, [1], [2]),
        ({**INTEGER, "minimum": 2, "maximum": 4}, [2, 4], [1, 5]),
        ({**INTEGER, "minimum": 2, "exclusiveMinimum": True}, [3], [2]),
        ({**INTEGER, "multipleOf": 3}, [0, 6], [4]),
        ({"type": "array", "items": INTEGER, "minItems": 1, "maxItems": 2}, [[1]], [[], [1, 2, 3], ["x"]]),
        ({"type": "object", "properties": {"a": STRING}, "required": ["a"]}, [{"a": ""}], [{}, {"a": 1}]),
        ({"type": "object", "additionalProperties": INTEGER, "maxProperties": 1}, [{}, {"a": 1}], [{"a": "x"}, {"a": 1, "b": 1}]),
        ({"x-kubernetes-int-or-string": True}, [1, "x"], [1.5, True, []]),
        ({**STRING, "oneOf": [{"minLength": 3}, {"pattern": "^a"}]}, ["bcd", "a"], ["abc", "b"]),
        ({**STRING, "anyOf": [{"minLength": 3}, {"pattern": "^a"}]}, ["abc", "a"], ["b"]),
        ({**STRING, "allOf": [{"minLength": 3}, {"pattern": "^a"}]}, ["abc"], ["a", "bcd"]),
        ({**STRING, "not": {"pattern": "^a"}}, ["b"], ["a"]),
    ],
)
def test_schema_keywords(schema: dict[str, Any], right: list[Any], wrong: list[Any]) -> None:
    assert [value for value in right if value_errors(schema, value, "x")] == []
    assert [value for value in wrong if not value_errors(schema, value, "x")] == []


def test_error_paths() -> None:
    schema = {
        "type": "object",
        "properties": {"l": {"type": "array", "items": {"type": "object", "properties": {"s": STRING}, "required": ["r"]}}},
    }
    assert places(value_errors(schema, {"l": [{"s": 1}, "x"]}, "spec")) == ["spec.l[0].s", "spec.l[0].r", "spec.l[1]"]


def test_errors_of_several_branches_are_reported_once() -> None:
    either = {"allOf": [{"maximum": 1}, {"maximum": 1}]}
    found = value_errors({"type": "array", "items": {"type": "integer", **either}}, [2, 3], "l")
    assert places(found) == ["l[0]", "", "l[1]", ""]


def test_very_many_errors_take_a_time_in_proportion() -> None:
    wrong = list(range(50_000))  # a minute or more, if each error were compared with all others
    assert len(value_errors({"type": "array", "items": STRING}, wrong, "l")) == len(wrong)


SCALARS = st.one_of(st.none(), st.booleans(), st.integers(0, 9), st.sampled_from(["", "abc"]))
VALUES = st.recursive(
    SCALARS,
    lambda values: st.one_of(st.lists(values, max_size=3), st.dictionaries(st.sampled_from("ab"), values, max_size=2)),
    max_leaves=8,
)
SCHEMA = {
    "type": "object",
    "properties": {"a": {**STRING, "maxLength": 1}, "b": {"type": "array", "items": INTEGER, "maxItems": 1}},
    "required": ["a"],
}


#: Values of which the schema has all members.
KNOWN = st.dictionaries(st.sampled_from("ab"), st.one_of(SCALARS, st.lists(SCALARS, max_size=3)), max_size=2)


@given(KNOWN)
def test_unchanged_values_have_no_errors(value: Any) -> None:
    assert value_errors(SCHEMA, value, "", value) == []


@given(KNOWN)
def test_values_with_members_that_the_schema_lacks_are_never_unchanged(value: Any) -> None:
    value |= {"c": 1}
    assert value_errors(SCHEMA, value, "", value) == value_errors({**SCHEMA, "properties": {}}, value)


@given(VALUES, VALUES)
def test_old_value_only_removes_errors(value: Any, before: Any) -> None:
    assert set(map(str, value_errors(SCHEMA, value, "", before))) <= set(map(str, value_errors(SCHEMA, value, "")))


@pytest.mark.parametrize(
    ("value", "before", "found"),
    [
        ({"a": "long", "b": [1]}, {"a": "long"}, []),
        ({"a": "longer"}, {"a": "long"}, ["a"]),
        ({"a": 1}, {"a": True}, ["a"]),  # equal in Python only
        ({"a": "x", "b": [1, 2]}, {"a": "x", "b": [1, 2, 3]}, ["b"]),
    ],
)
def test_ratcheting_validation(value: Any, before: Any, found: list[str]) -> None:
    assert places(value_errors(SCHEMA, value, "", before)) == found


@pytest.mark.parametrize(
    ("list_type", "items", "value", "found"),
    [
        ("set", STRING, ["a", "b", "a", "a"], ["l[2]"]),
        ("set", {"type": "number"}, [1, 2], []),
        (
            "map",
            {"type": "object", "properties": {"k": STRING, "v": STRING}},
            [{"k": "a", "v": "1"}, {"k": "a", "v": "2"}],
            ["l[1]"],
        ),
        ("map", {"type": "object", "properties": {"k": STRING}}, [{"k": "a"}, {"k": "b"}, {}], []),
        ("atomic", STRING, ["a", "a"], []),
    ],
)
def test_list_types(list_type: str, items: dict[str, Any], value: list[Any], found: list[str]) -> None:
    schema = {"type": "array", "items": items, "x-kubernetes-list-type": list_type}
    if list_type == "map":
        schema["x-kubernetes-list-map-keys"] = ["k"]
    type_ = schema_type({"type": "object", "properties": {"l": schema}})
    assert places(list_errors(type_, {"l": value})) == found
