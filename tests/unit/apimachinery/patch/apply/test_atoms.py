"""What all shapes have in common under apply: laws of values, and typing errors."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.apimachinery.patch.apply.atoms import NOTHING, Typing, TypingError, is_same
from fakekube.apimachinery.patch.apply.fieldpath import LEAF, FieldSet
from fakekube.apimachinery.patch.apply.schema import atom_of
from fakekube.apimachinery.patch.apply.updater import Typed
from tests.unit.apimachinery.patch.shapes import SPEC, THING, specs

ATOM = atom_of(SPEC)


def check(value: Any, *, duplicates: bool = False) -> None:
    typing = Typing(duplicates=duplicates)
    atom_of(THING).check(value, None, typing)
    typing.raise_if_any()


def fields_of(value: Any) -> FieldSet:
    return FieldSet(ATOM.field_set(value) or LEAF)


# ---------------------------------------------------------------- laws


@given(specs)
def test_valid_values_pass_type_checks(value: dict[str, Any]) -> None:
    check({"spec": value})


@given(specs)
def test_fields_of_valid_values_are_read_in_one_walk(value: dict[str, Any]) -> None:
    assert json.dumps(Typed(value, "v1", ATOM).read_fields().tree) == json.dumps(fields_of(value).tree)


@given(specs, st.data(), st.sampled_from([None, "", "a", 1, 1.5, True, [], [None], [1], [[]], {}, {"a": 1}, [{}], [{"a": "b"}]]))
def test_fields_of_other_values_are_read_if_they_fit(value: dict[str, Any], data: st.DataObject, odd: Any) -> None:
    place: Any = value
    for _ in range(data.draw(st.integers(0, 3))):
        below = list(place.values() if isinstance(place, dict) else place)
        parts = [item for item in below if isinstance(item, dict | list) and item]
        place = data.draw(st.sampled_from(parts)) if parts else place
    keys = list(place) if isinstance(place, dict) else list(range(len(place)))
    if keys:
        place[data.draw(st.sampled_from(keys))] = odd
    typed = Typed(value, "v1", ATOM)
    try:
        wanted = json.dumps(typed.check().field_set().tree)
    except TypingError as error:
        with pytest.raises(TypingError) as caught:
            typed.read_fields()
        assert str(caught.value) == str(error)
    else:
        assert json.dumps(typed.read_fields().tree) == wanted


@given(specs)
def test_comparing_a_value_with_its_copy_finds_no_difference(value: dict[str, Any]) -> None:
    assert ATOM.compare(value, copy.deepcopy(value)) is NOTHING


@given(specs, specs)
def test_reversed_comparison_swaps_added_and_removed(old: dict[str, Any], new: dict[str, Any]) -> None:
    removed, modified, added = ATOM.compare(old, new)
    assert ATOM.compare(new, old) == (added, modified, removed)


@given(specs, specs)
def test_comparison_without_difference_implies_equality(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Except for the order of items, which is not owned."""
    if ATOM.compare(old, new) is NOTHING:
        assert is_same(_without_order(old), _without_order(new))


def _without_order(value: dict[str, Any]) -> dict[str, Any]:
    def in_order(item: Any) -> Any:
        if isinstance(item, dict):
            return {
                key: sorted(map(in_order, part), key=repr) if isinstance(part, list) and key != "atoms" else in_order(part)
                for key, part in item.items()
            }
        return item

    return {key: in_order({key: part})[key] if key != "any" else part for key, part in value.items()}


@given(specs, specs)
def test_merge_adds_applied_values_and_removes_nothing(live: dict[str, Any], applied: dict[str, Any]) -> None:
    before = copy.deepcopy((live, applied))
    merged = ATOM.merge(live, applied)
    assert (live, applied) == before
    assert ATOM.merge(merged, applied) is merged
    removed, _, _ = ATOM.compare(live, merged)
    assert not removed or "any" in applied
    _, modified, _ = ATOM.compare(merged, applied)
    assert not (fields_of(applied) & FieldSet(modified or LEAF))


@given(specs)
def test_merging_a_value_into_itself_is_the_value(value: dict[str, Any]) -> None:
    assert ATOM.merge(value, copy.deepcopy(value)) is value


@given(specs, specs)
def test_applied_fields_can_be_extracted_after_a_merge(live: dict[str, Any], applied: dict[str, Any]) -> None:
    """Fields of untyped parts aside, where null and absent are two things."""
    applied = {key: value for key, value in applied.items() if key != "any"}
    merged = ATOM.merge(live, applied)
    extracted = ATOM.extract(merged, fields_of(applied).tree) or {}
    assert fields_of(extracted) == fields_of(applied)
    _, modified, _ = ATOM.compare(extracted, applied)
    assert modified is None


@given(specs, specs)
def test_remove_deletes_exactly_the_given_fields(value: dict[str, Any], other: dict[str, Any]) -> None:
    before = copy.deepcopy(value)
    wanted = fields_of(other)
    left = ATOM.remove(value, wanted.tree)
    assert value == before
    kept = fields_of(left or {})
    assert not kept & wanted.leaves() or "any" in value
    assert not (fields_of(value) - kept).recursive_difference(wanted)


@given(specs)
def test_removing_absent_fields_returns_the_same_value(value: dict[str, Any]) -> None:
    if value:
        assert ATOM.remove(value, {"f:absent": {}}) is value


@given(specs, specs)
def test_added_fields_are_present_in_the_new_value(old: dict[str, Any], new: dict[str, Any]) -> None:
    _, _, added = ATOM.compare(old, new)
    fields = FieldSet(added or LEAF)
    assert fields == fields & FieldSet(ATOM.presence(new))


@given(specs)
def test_reconcile_keeps_field_sets_of_valid_values(value: dict[str, Any]) -> None:
    tree = fields_of(value).tree
    assert ATOM.reconcile(tree) is tree


@given(specs)
def test_with_named_fields_adds_only_parents_of_members(value: dict[str, Any]) -> None:
    fields = fields_of(value)
    named = FieldSet(ATOM.with_named_fields(fields.tree))
    assert fields == fields & named
    assert all(any(path[: len(extra)] == extra for path in fields) for extra in named - fields)
    assert all(extra[-1].startswith("f:") for extra in named - fields)


# ---------------------------------------------------------------- typing errors


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"unknown": 1}, ".unknown: field not declared in schema"),
        ({"spec": {"inner": {"x": 1}}}, ".spec.inner.x: field not declared in schema"),
        ({"spec": "x"}, ".spec: expected map, got &{x}"),
        ({"spec": [{"a": None}]}, ".spec: expected map, got &{[map[a:<nil>]]}"),
        ({"spec": {"text": 5}}, ".spec.text: expected string, got &value.valueUnstructured{Value:5}"),
        (
            {"spec": {"text": {"a": "b"}}},
            '.spec.text: expected string, got &value.valueUnstructured{Value:map[string]interface {}{"a":"b"}}',
        ),
        ({"spec": {"number": "x"}}, ".spec.number: expected numeric (int or float), got string"),
        ({"spec": {"number": True}}, ".spec.number: expected numeric (int or float), got bool"),
        ({"spec": {"flag": "yes"}}, ".spec.flag: expected boolean, got &{yes}"),
        ({"spec": {"labels": {"a": 1}}}, ".spec.labels.a: expected string, got &value.valueUnstructured{Value:1}"),
        ({"spec": {"atoms": "x"}}, ".spec.atoms: expected list, got &{x}"),
        ({"spec": {"atoms": [1]}}, ".spec.atoms[0]: expected string, got &value.valueUnstructured{Value:1}"),
        ({"spec": {"set": ["a", "a"]}}, '.spec.set: duplicate entries for key [="a"]'),
        ({"spec": {"set": [{}]}}, ".spec.set: element 0: associative list without keys has an element that's a map type"),
        ({"spec": {"set": [None]}}, ".spec.set: element 0: associative list without keys has an element that's an explicit null"),
        ({"spec": {"set": [[]]}}, ".spec.set: element 0: not supported: associative list with lists as elements"),
        ({"spec": {"items": [None]}}, ".spec.items: element 0: associative list with keys may not have a null element"),
        ({"spec": {"items": ["x"]}}, ".spec.items: element 0: associative list with keys may not have non-map elements"),
        (
            {"spec": {"items": [{"name": "a"}, {"value": "b"}]}},
            '.spec.items: element 1: associative list with keys has an element that omits all key fields ["name"] '
            "(and doesn't have default values for any key fields)",
        ),
        (
            {"spec": {"items": [{"name": "a", "tags": [{"k": "x"}]}]}},
            '.spec.items[name="a"].tags[k="x"].k: expected numeric (int or float), got string',
        ),
        (
            {"spec": {"ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]}},
            '.spec.ports: duplicate entries for key [port=1,protocol="TCP"]',
        ),
        (
            {"spec": {"text": 1, "flag": 2}},
            "errors:\n  .spec.text: expected string, got &value.valueUnstructured{Value:1}\n"
            "  .spec.flag: expected boolean, got &{2}",
        ),
        ({"spec": {"a": 1, "text": 1}}, ".spec.a: field not declared in schema"),
    ],
)
def test_typing_errors(value: Any, message: str) -> None:
    with pytest.raises(TypingError) as caught:
        check(value)
    assert str(caught.value) == message


@pytest.mark.parametrize("value", [{"spec": None}, {"spec": {"text": None, "items": None, "labels": None, "labels2": None}}])
def test_null_is_valid_for_every_type(value: Any) -> None:
    if isinstance(value["spec"], dict):
        value["spec"].pop("labels2")
    check(value)


def test_duplicate_items_are_valid_in_stored_objects() -> None:
    check({"spec": {"set": ["a", "a"], "items": [{"name": "a"}, {"name": "a"}]}}, duplicates=True)


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        (True, True, True),
        ({"a": [1]}, {"a": [1.0]}, True),
        ({"a": [1]}, {"a": [True]}, False),
        ([], {}, False),
        (None, {}, False),
        ({"a": 1}, {"a": 1, "b": None}, False),
    ],
)
def test_is_same_compares_values_symmetrically(a: Any, b: Any, same: bool) -> None:
    assert is_same(a, b) is same
    assert is_same(b, a) is same
