"""Custom objects: pruning, nulls, defaults and metadata, and the laws that these keep."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.apiextensions.instances import objects
from fakekube.apiextensions.instances.pruning import prune
from fakekube.apiextensions.schema import schema_type

KEEP = "x-kubernetes-preserve-unknown-fields"
STRING = {"type": "string"}
NAMES = st.sampled_from("abcd")


def struct(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **more}


def _bigger(schemas: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.one_of(
        st.builds(struct, st.dictionaries(NAMES, schemas, max_size=3)),
        st.builds(lambda properties: struct(properties, **{KEEP: True}), st.dictionaries(NAMES, schemas, max_size=2)),
        st.builds(lambda items: {"type": "array", "items": items}, schemas),
        st.builds(lambda values: {"type": "object", "additionalProperties": values}, schemas),
    )


SCHEMAS = st.recursive(
    st.sampled_from(
        [
            STRING,
            {**STRING, "default": "x"},
            {**STRING, "nullable": True},
            {"type": "integer", "default": 1},
            {KEEP: True},
            {"type": "object", "properties": {"a": {**STRING, "default": "y"}}, "default": {}},
            {"x-kubernetes-int-or-string": True},
        ]
    ),
    _bigger,
    max_leaves=6,
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(0, 9), st.sampled_from(["", "x"])),
    lambda values: st.one_of(st.lists(values, max_size=3), st.dictionaries(NAMES, values, max_size=3)),
    max_leaves=10,
)


@given(SCHEMAS, VALUES)
def test_pruning_is_idempotent(schema: dict[str, Any], value: Any) -> None:
    type_, before = schema_type(schema), copy.deepcopy(value)
    kept, _ = prune(type_, value, is_resource=False)
    assert value == before
    assert prune(type_, kept, is_resource=False) == (kept, [])


@given(SCHEMAS, VALUES)
def test_defaulting_and_null_dropping_are_idempotent(schema: dict[str, Any], value: Any) -> None:
    type_ = schema_type(schema)
    for change in (objects.drop_nulls, objects.default):
        change(type_, value)
        once = copy.deepcopy(value)
        change(type_, value)
        assert value == once


@given(SCHEMAS, VALUES)
def test_defaults_are_not_pruned(schema: dict[str, Any], value: Any) -> None:
    type_ = schema_type(schema)
    kept, _ = prune(type_, value, is_resource=False)
    objects.default(type_, kept)
    assert prune(type_, kept, is_resource=False)[1] == []


@given(VALUES)
def test_sorted_tree_keeps_all_values(value: Any) -> None:
    found = objects.sorted_tree(value)
    assert found == value
    assert objects.sorted_tree(found) == found
    if isinstance(value, dict):
        assert list(found) == sorted(value)


def test_integral_floats_are_stored_as_integers() -> None:
    assert [type(item) for item in objects.sorted_tree([1.0, 1.5, 1e300])] == [int, float, float]


@pytest.mark.parametrize(
    ("schema", "value", "kept", "unknown"),
    [
        (struct({"a": STRING}), {"a": "x", "b": 1}, {"a": "x"}, ["b"]),
        (struct({"o": struct({"a": STRING})}), {"o": {"b": {"c": 1}}}, {"o": {}}, ["o.b"]),
        (struct({"l": {"type": "array", "items": struct({})}}), {"l": [{"b": 1}]}, {"l": [{}]}, ["l[0].b"]),
        (struct({}, **{KEEP: True}), {"b": {"c": [1]}}, {"b": {"c": [1]}}, []),
        (struct({"o": struct({})}, **{KEEP: True}), {"o": {"b": 1}, "p": {"b": 1}}, {"o": {}, "p": {"b": 1}}, ["o.b"]),
    ],
)
def test_pruning(schema: dict[str, Any], value: Any, kept: Any, unknown: list[str]) -> None:
    assert prune(schema_type(schema), value) == (kept, unknown)


@pytest.mark.parametrize(
    ("schema", "value", "filled"),
    [
        (struct({"a": {**STRING, "default": "x"}}), {}, {"a": "x"}),
        (struct({"a": {**STRING, "default": "x"}}), {"a": None}, {"a": "x"}),
        (struct({"a": {**STRING, "default": "x", "nullable": True}}), {"a": None}, {"a": None}),
        (struct({"o": struct({"a": {**STRING, "default": "x"}})}), {}, {}),
        (struct({"o": struct({"a": {**STRING, "default": "x"}}, default={})}), {}, {"o": {"a": "x"}}),
    ],
)
def test_defaults(schema: dict[str, Any], value: Any, filled: Any) -> None:
    objects.default(schema_type(schema), value)
    assert value == filled


def test_default_values_are_not_shared() -> None:
    type_ = schema_type(struct({"l": {"type": "array", "items": STRING, "default": ["x"]}}))
    one: dict[str, Any] = {}
    objects.default(type_, one)
    one["l"].append("y")
    other: dict[str, Any] = {}
    objects.default(type_, other)
    assert other == {"l": ["x"]}


def test_metadata_is_pruned() -> None:
    meta, unknown = objects.metadata_of({"name": "a", "odd": 1, "labels": {"a": "b"}})
    assert (meta, unknown) == ({"name": "a", "labels": {"a": "b"}}, ['unknown field "metadata.odd"'])


@pytest.mark.parametrize(("value", "name"), [("x", "string"), ([], "array"), (True, "bool"), (1, "number")])
def test_metadata_must_be_an_object(value: Any, name: str) -> None:
    with pytest.raises(objects.MetadataError, match=f"cannot unmarshal {name} into Go value of type v1.ObjectMeta"):
        objects.metadata_of(value)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    )
)
def test_what_is_in_the_stored_form_is_stored_as_it_is(value: Any) -> None:
    assert repr(objects.stored_form(value)) == repr(objects.sorted_tree(value))
    kept = objects.sorted_tree(value)
    assert repr(objects.stored_form(kept)) == repr(kept)


def test_sorted_objects_are_not_copied() -> None:
    obj = {"metadata": {"name": "a"}, "spec": {"size": 1.5}}
    assert objects.stored_form(obj) is obj
    assert objects.stored_form({"b": 1.0, "a": {}}) == {"a": {}, "b": 1}
