"""The fast check accepts only valid schemas, and the usual ones among them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from fakekube.apiextensions.definition.keyword_validation import default_errors, keyword_errors
from fakekube.apiextensions.definition.schema_fast_check import check_schema
from fakekube.apiextensions.definition.structural_validation import structural_errors, structural_problem

LIST, KEYS, MAP = "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type"
INT_OR_STRING, PRESERVE = "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields"
EMBEDDED, RULES = "x-kubernetes-embedded-resource", "x-kubernetes-validations"

NAMES = st.sampled_from(["a", "b", "kind", "metadata"])
TYPES = st.sampled_from(["string", "integer", "boolean", "object", "array"])
VALUES = st.sampled_from([None, "", "abc", 1, True, {"a": "abc"}, {"kind": "Pod", "apiVersion": "v1"}, ["abc"], []])
RARE: dict[str, Any] = {
    "nullable": st.booleans(),
    "uniqueItems": st.booleans(),
    "id": st.just("x"),
    "$ref": st.just("x"),
    "maxLength": st.integers(0, 3),
    "pattern": st.sampled_from(["^a", "(", ""]),
    PRESERVE: st.booleans(),
    INT_OR_STRING: st.booleans(),
    EMBEDDED: st.booleans(),
    LIST: st.sampled_from(["set", "map", "atomic", "bag"]),
    KEYS: st.lists(NAMES, max_size=2),
    MAP: st.sampled_from(["atomic", "bag"]),
    "enum": st.lists(VALUES, min_size=1, max_size=2),
    "required": st.lists(NAMES, max_size=2),
    "description": st.just("text"),
    RULES: st.lists(
        st.fixed_dictionaries({"rule": st.sampled_from(["true", ""])}, optional={"reason": st.just("Why")}), max_size=1
    ),
}


def leaves(types: Any) -> Any:
    """Schemas that say a little, since much is never sound."""
    some = st.lists(st.sampled_from([*RARE, "default"]), max_size=2).flatmap(
        lambda names: st.fixed_dictionaries({name: RARE.get(name, VALUES) for name in names})
    )
    return st.builds(lambda type_, more: {**type_, **more}, st.fixed_dictionaries({}, optional={"type": types}), some)


def around(below: Any) -> Any:
    parts = st.one_of(
        st.fixed_dictionaries({"properties": st.dictionaries(NAMES, below, max_size=3)}),
        st.fixed_dictionaries({"items": below | st.just([]), "type": st.just("array")}),
        st.fixed_dictionaries({"additionalProperties": below | st.booleans()}),
        st.fixed_dictionaries({"anyOf": st.lists(below, min_size=1, max_size=2)}),
        st.fixed_dictionaries({"not": below}),
    )
    return st.builds(lambda one, other: {**one, **other}, leaves(st.just("object")), parts)


SCHEMAS = st.recursive(leaves(TYPES), around, max_leaves=4)


@given(
    st.builds(lambda schema: {"type": "object", **schema}, SCHEMAS.map(lambda schema: {"properties": {"spec": schema}}) | SCHEMAS)
)
def test_sound_schemas_have_no_validation_errors(schema: dict[str, Any]) -> None:
    sound = check_schema(schema)
    event(f"sound: {sound is not None}")
    if sound is not None:
        assert structural_problem(schema) == ""
        assert [*structural_errors(schema, "S"), *default_errors(schema, "S"), *keyword_errors(schema, "S", root=True)] == []


STRING = {"type": "string"}
ITEM = {"type": "object", "properties": {"k": STRING}, "required": ["k"]}


@pytest.mark.parametrize(
    "schema",
    [
        {**STRING, "description": "text", "enum": ["a"], "maxLength": 3},
        {**STRING, "pattern": "^a", "default": "a"},
        {"type": "array", "items": ITEM, LIST: "map", KEYS: ["k"]},
        {"type": "array", "items": STRING, LIST: "set", "default": ["a"]},
        {"type": "object", "additionalProperties": STRING, MAP: "atomic"},
        {"type": "object", PRESERVE: True},
        {PRESERVE: True},
        {INT_OR_STRING: True, "anyOf": [{"type": "integer"}, STRING], "pattern": "^[0-9]+$"},
        {**ITEM, "anyOf": [{"required": ["k"]}, {"properties": {"k": {"enum": ["a"]}}}], "default": {"k": "a"}},
        {**ITEM, RULES: [{"rule": "self.k != ''", "reason": "FieldValueInvalid", "fieldPath": ".k"}]},
    ],
)
def test_usual_schemas_are_recognized_as_sound(schema: dict[str, Any]) -> None:
    meta = {"apiVersion": {**STRING, "description": "text"}, "kind": STRING, "metadata": {"type": "object"}}
    sound = check_schema({"type": "object", "properties": {**meta, "spec": schema}, "required": ["spec"]})
    assert sound is not None
    assert (sound.defaults, sound.ruled) == ([schema] * ("default" in schema), [schema] * (RULES in schema))
