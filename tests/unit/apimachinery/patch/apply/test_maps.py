from __future__ import annotations

from typing import Any

import pytest

from fakekube.apimachinery.patch.apply.atoms import NOTHING, Difference
from fakekube.apimachinery.patch.apply.schema import atom_of
from tests.unit.apimachinery.patch.shapes import ANY, SPEC, STRING, map_of, struct

LABELS = atom_of(map_of(STRING))
SELECTOR = atom_of(map_of(STRING, atomic=True))
PARTS = atom_of(map_of(struct("Part", x=STRING, y=STRING)))
STRUCT = atom_of(struct("S", a=STRING, b=struct("B", c=STRING), labels=map_of(STRING), any=ANY))
FREE = atom_of(ANY)


@pytest.mark.parametrize(
    ("value", "tree"),
    [
        ({}, None),
        ({"a": "1"}, {"f:a": {}}),
        ({"a": None}, {"f:a": {}}),
        ({"b": {}}, {"f:b": {}}),
        ({"b": None}, {"f:b": {}}),
        ({"b": {"c": "1"}}, {"f:b": {"f:c": {}}}),
        ({"labels": {"z": "1", "y": "2"}}, {"f:labels": {"f:y": {}, "f:z": {}}}),
        ({"any": {"x": {"y": 1}}}, {"f:any": {"f:x": {".": {}, "f:y": {}}}}),
        ({"any": [1]}, {"f:any": {}}),
        ({"any": 5}, {"f:any": {}}),
    ],
)
def test_field_set_of_a_struct(value: Any, tree: Any) -> None:
    assert STRUCT.field_set(value) == tree


def test_map_entries_own_themselves_but_struct_fields_do_not() -> None:
    assert PARTS.field_set({"p": {"x": "1"}}) == {"f:p": {".": {}, "f:x": {}}}
    assert SELECTOR.field_set({"p": "1"}) == {}


def test_presence_of_structs_and_atomic_maps() -> None:
    assert STRUCT.presence({"b": {"c": "1"}, "a": "x"}) == {".": {}, "f:a": {}, "f:b": {".": {}, "f:c": {}}}
    assert STRUCT.presence({}) == STRUCT.presence(None) == {}
    assert SELECTOR.presence({"a": "1"}) == {}


@pytest.mark.parametrize(
    ("old", "new", "difference"),
    [
        ({"a": "1"}, {"a": "1"}, NOTHING),
        ({"a": "1"}, {"a": "2"}, (None, {"f:a": {}}, None)),
        ({"a": "1"}, {}, ({"f:a": {}}, None, None)),
        ({}, {"b": {"c": "1"}}, (None, None, {"f:b": {".": {}, "f:c": {}}})),
        ({"b": {}}, {"b": {"c": "1"}}, (None, None, {"f:b": {"f:c": {}}})),
        ({"b": None}, {"b": {"c": "1"}}, (None, None, {"f:b": {"f:c": {}}})),
        ({"b": None}, {"b": {}}, (None, {"f:b": {}}, None)),
        ({"any": 1}, {"any": True}, (None, {"f:any": {}}, None)),
        ({"any": 1}, {"any": 1.0}, NOTHING),
        ({"any": 1}, {"any": {"x": 1}}, (None, {"f:any": {}}, {"f:any": {"f:x": {}}})),
        ({"any": {"x": 1}}, {"any": [1]}, ({"f:any": {"f:x": {}}}, {"f:any": {}}, None)),
        ({"any": None}, {"any": 1}, (None, {"f:any": {}}, None)),
    ],
)
def test_struct_comparisons(old: Any, new: Any, difference: Difference) -> None:
    assert STRUCT.compare(old, new) == difference


@pytest.mark.parametrize(
    ("live", "applied", "merged"),
    [
        ({"a": "1"}, {"b": {"c": "2"}}, {"a": "1", "b": {"c": "2"}}),
        ({"b": {"c": "1"}}, {"b": None}, {"b": {"c": "1"}}),
        ({"b": {}}, {"b": None}, {"b": None}),
        ({"b": None}, {"b": {}}, {"b": {}}),
        ({"labels": {"x": "1"}}, {"labels": {"y": "2"}}, {"labels": {"x": "1", "y": "2"}}),
        ({"any": {"x": 1}}, {"any": {"y": [1]}}, {"any": {"x": 1, "y": [1]}}),
        ({"any": {"x": 1}}, {"any": 5}, {"any": 5}),
        ({"any": 5}, {"any": {"x": 1}}, {"any": {"x": 1}}),
        ({"any": 5}, {"any": None}, {"any": None}),
        ({"any": {"x": 1}}, {"any": None}, {"any": {"x": 1}}),
        ({"any": [1, 2]}, {"any": [3]}, {"any": [3]}),
    ],
)
def test_struct_merges(live: Any, applied: Any, merged: Any) -> None:
    assert STRUCT.merge(live, applied) == merged


def test_merge_shares_unchanged_values() -> None:
    live = {"a": "1", "b": {"c": "1"}, "labels": {"x": "1"}}
    merged = STRUCT.merge(live, {"a": "2", "b": {"c": "1"}})
    assert merged["b"] is live["b"]
    assert merged["labels"] is live["labels"]
    assert STRUCT.merge(live, {"labels": {"x": "1"}}) is live


def test_removing_the_last_entry_leaves_null() -> None:
    assert STRUCT.remove({"a": "1", "labels": {"x": "1"}}, {"f:labels": {"f:x": {}}}) == {"a": "1", "labels": None}
    assert STRUCT.remove({"a": "1"}, {"f:a": {}}) is None
    assert SELECTOR.remove({"a": "1"}, {"f:a": {}}) is None


def test_extract_keeps_owned_empty_containers() -> None:
    value = {"a": "1", "labels": {"x": "1"}, "any": {"k": {"l": 1, "m": 2}}}
    assert STRUCT.extract(value, {"f:labels": {}, "f:any": {"f:k": {".": {}, "f:l": {}}}}) == {
        "labels": {},
        "any": {"k": {"l": 1}},
    }
    assert SELECTOR.extract({"a": "1"}, {}) == {"a": "1"}


def test_named_fields() -> None:
    tree = {"f:b": {"f:c": {}}, "f:labels": {"f:x": {}}, "f:any": {"f:k": {"f:l": {}}}}
    assert STRUCT.with_named_fields(tree) == {
        "f:b": {".": {}, "f:c": {}},
        "f:labels": {".": {}, "f:x": {}},
        "f:any": {".": {}, "f:k": {"f:l": {}}},
    }


def test_field_sets_below_atomic_parts_are_reconciled() -> None:
    spec = atom_of(SPEC)
    tree = {"f:selector": {"f:a": {}}, "f:whole": {".": {}, "f:a": {}}, "f:atoms": {"i:0": {}}, "f:labels": {"f:a": {}}}
    assert spec.reconcile(tree) == {"f:selector": {}, "f:whole": {}, "f:atoms": {}, "f:labels": {"f:a": {}}}
    unknown = {"f:unknown": {"f:a": {}}, "f:any": {"f:x": {"f:y": {}}}}
    assert spec.reconcile(unknown) is unknown


def test_untyped_values() -> None:
    assert FREE.field_set({"x": [1]}) == {"f:x": {}}
    assert FREE.presence({"x": {}}) == {".": {}, "f:x": {}}
    assert LABELS.compare("wrong", {"a": "1"}) == (None, None, {"f:a": {}})
