"""Detection of objects that are already pruned and defaulted."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st

from fakekube.apiextensions.instances import objects
from fakekube.apiextensions.instances.pruning import prune
from fakekube.apiextensions.instances.schema_cache import is_pruned, is_pruned_and_defaulted
from fakekube.apiextensions.schema import schema_type

PRESERVE, EMBEDDED = "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"
NAMES = st.sampled_from(["a", "b", "c", "metadata"])
VALUES = st.recursive(
    st.sampled_from([None, 1, "x", True]),
    lambda below: st.lists(below, max_size=2) | st.dictionaries(NAMES, below, max_size=3),
    max_leaves=6,
)
LEAVES = (
    st.fixed_dictionaries(
        {"type": st.sampled_from(["string", "integer", "object", "array"])},
        optional={"nullable": st.booleans(), "default": VALUES, PRESERVE: st.just(True), EMBEDDED: st.just(True)},
    )
    | st.fixed_dictionaries({PRESERVE: st.just(True)}, optional={"nullable": st.booleans()})
    | st.just({})
)


def around(below: Any) -> Any:
    parts = st.one_of(
        st.fixed_dictionaries({"type": st.just("object"), "properties": st.dictionaries(NAMES, below, max_size=3)}),
        st.fixed_dictionaries({"type": st.just("array"), "items": below}),
        st.fixed_dictionaries({"type": st.just("object"), "additionalProperties": below | st.just(True)}),
    )
    more = st.fixed_dictionaries({}, optional={"nullable": st.booleans(), "default": VALUES, PRESERVE: st.just(True)})
    return st.builds(lambda one, other: {**one, **other}, more, parts)


SCHEMAS = st.recursive(LEAVES, around, max_leaves=4)


def made_anew(type_: Any, obj: dict[str, Any]) -> tuple[dict[str, Any], list[str], bool]:
    found, pruned = prune(type_, copy.deepcopy(obj))
    objects.drop_nulls(type_, found)
    return found, pruned, objects.default(type_, found)


@given(st.dictionaries(NAMES.filter(lambda name: name != "metadata"), SCHEMAS, min_size=1, max_size=3), st.booleans(), st.data())
def test_settled_objects_are_unchanged_by_pruning_and_defaulting(
    properties: dict[str, Any], keeps: bool, data: st.DataObject
) -> None:
    schema: dict[str, Any] = {"type": "object", "properties": properties, **({PRESERVE: True} if keeps else {})}
    obj = {
        "kind": "Widget",
        "metadata": {"name": "one"},
        **data.draw(st.dictionaries(NAMES.filter(lambda n: n != "metadata"), VALUES)),
    }
    settled = is_pruned_and_defaulted(schema_type(schema), obj)
    event(f"settled: {settled}")
    if settled:
        assert made_anew(schema_type(schema), obj) == (obj, [], False)
    if is_pruned(schema_type(schema), obj):
        found, pruned = prune(schema_type(schema), copy.deepcopy(obj))
        objects.drop_nulls(schema_type(schema), found)
        assert (found, pruned) == (obj, [])


def test_pruned_and_defaulted_objects_are_settled() -> None:
    item = {"type": "object", "properties": {"x": {"type": "string", "default": "y"}}}
    spec = {
        "type": "object",
        "properties": {
            "list": {"type": "array", "items": item},
            "map": {"type": "object", "additionalProperties": item},
            "free": {"type": "object", PRESERVE: True},
            "any": {PRESERVE: True},
            "flag": {"type": "boolean", "default": False},
        },
    }
    type_ = schema_type({"type": "object", "properties": {"spec": spec}})
    obj = {
        "kind": "Widget",
        "metadata": {},
        "spec": {"list": [{}], "map": {"k": {}}, "free": {"a": {"b": None}}, "any": [None], "old": 1},
    }
    assert not is_pruned_and_defaulted(type_, obj)
    found, pruned, filled = made_anew(type_, obj)
    assert (pruned, filled) == (["spec.old"], True)
    assert is_pruned_and_defaulted(type_, found)
    del obj["spec"]["old"]
    assert is_pruned(type_, obj)
