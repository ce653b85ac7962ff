from __future__ import annotations

from typing import Any

import pytest

from fakekube.apimachinery.patch.apply.atoms import NOTHING, Difference, Scalar, TypingError
from fakekube.apimachinery.patch.apply.containers import AtomicList, ItemList
from fakekube.apimachinery.patch.apply.schema import atom_of
from fakekube.apimachinery.schema.model import ListType
from tests.unit.apimachinery.patch.shapes import ITEM, PORT, STRING, list_of

SET = ItemList(Scalar("string"))
ITEMS = atom_of(list_of(ITEM, ListType.MAP, "name"))
PORTS = atom_of(list_of(PORT, ListType.MAP, "port", "protocol"))
ATOMS = AtomicList(Scalar("string"))


def items(text: str) -> list[dict[str, str]]:
    """`a1 b` is an item a with the value 1, and an item b."""
    return [{"name": word[0], **({"value": word[1:]} if word[1:] else {})} for word in text.split()]


@pytest.mark.parametrize(
    ("live", "applied", "merged"),
    [
        ("", "a", "a"),
        ("a b c", "", "a b c"),
        ("a b c", "b", "a b c"),
        ("a b c", "c a", "b c a"),
        ("a b c", "c b a", "c b a"),
        ("a b c", "d", "a b c d"),
        ("a b c", "d a", "d a b c"),
        ("a b c", "b d", "a b c d"),
        ("a b c", "b d c", "a b d c"),
        ("a1 b", "a2", "a2 b"),
        ("a a b", "b", "a a b"),
        ("a1 a2 b", "a3", "a3 b"),
        ("a1 b a2", "b a3", "b a3"),
        ("x a y b z", "b a", "x y b z a"),
        ("x a y b z", "a n b", "x a y n b z"),
    ],
)
def test_order_of_merged_list_items(live: str, applied: str, merged: str) -> None:
    assert ITEMS.merge(items(live), items(applied)) == items(merged)


def test_items_with_equal_keys_are_merged() -> None:
    live = [{"name": "a", "value": "1", "names": ["x"]}, {"name": "b"}]
    merged = ITEMS.merge(live, [{"name": "a", "names": ["y"]}])
    assert merged == [{"name": "a", "value": "1", "names": ["x", "y"]}, {"name": "b"}]
    assert merged[1] is live[1]


def test_omitted_keys_use_their_defaults() -> None:
    live = [{"port": 80, "protocol": "TCP"}, {"port": 80, "protocol": "UDP"}]
    assert PORTS.merge(live, [{"port": 80, "note": "n"}]) == [
        {"port": 80, "protocol": "TCP", "note": "n"},
        {"port": 80, "protocol": "UDP"},
    ]
    assert PORTS.field_set([{"port": 80}]) == {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}}


@pytest.mark.parametrize(
    ("old", "new", "difference"),
    [
        (["a", "b"], ["b", "a"], NOTHING),
        (["a"], ["a", "b"], (None, None, {'v:"b"': {}})),
        (["a", "b"], ["b"], ({'v:"a"': {}}, None, None)),
        ([], [], NOTHING),
        (None, [], (None, {}, None)),
        (["a", "a"], ["a"], ({'v:"a"': {}}, None, {'v:"a"': {}})),
        (["a"], ["a", "a"], ({'v:"a"': {}}, None, {'v:"a"': {}})),
        (["a", "a"], ["a", "a"], NOTHING),
        (["a", "a"], ["a", "a", "a"], (None, {'v:"a"': {}}, None)),
        (["a", "a"], [], ({'v:"a"': {}}, None, None)),
    ],
)
def test_comparisons_of_sets(old: Any, new: Any, difference: Difference) -> None:
    assert SET.compare(old, new) == difference


def test_comparisons_of_keyed_lists() -> None:
    found = ITEMS.compare(items("a1 b c"), items("a2 c d1"))
    assert found == (
        {'k:{"name":"b"}': {".": {}, "f:name": {}}},
        {'k:{"name":"a"}': {"f:value": {}}},
        {'k:{"name":"d"}': {".": {}, "f:name": {}, "f:value": {}}},
    )


def test_duplicate_items_are_owned_as_a_single_element() -> None:
    assert ITEMS.field_set(items("a1 a2 b")) == {'k:{"name":"a"}': {}, 'k:{"name":"b"}': {".": {}, "f:name": {}}}
    assert ITEMS.presence(items("a1 a2")) == {".": {}, 'k:{"name":"a"}': {}}


def test_items_are_removed_by_element() -> None:
    value = [{"name": "a", "value": "1"}, {"name": "b", "value": "2"}]
    assert ITEMS.remove(value, {'k:{"name":"a"}': {}}) == value[1:]
    assert ITEMS.remove(value, {'k:{"name":"a"}': {"f:value": {}}}) == [{"name": "a"}, value[1]]
    assert ITEMS.remove(value, {'k:{"name":"x"}': {}}) is value
    assert ITEMS.remove(value[:1], {'k:{"name":"a"}': {}}) is None


def test_field_set_elements_are_sorted() -> None:
    tree = PORTS.field_set([{"port": 443}, {"port": 80}, {"port": 9}])
    assert tree is not None
    assert [element.split(":")[2].split(",")[0] for element in tree] == ["9", "80", "443"]


def test_keyless_items_are_typing_errors_in_comparisons() -> None:
    with pytest.raises(TypingError, match=r"^element 1: associative list with keys"):
        ITEMS.compare([], [{"name": "a"}, {"value": "x"}])


def test_atomic_lists_are_leaves() -> None:
    assert ATOMS.field_set(["a"]) == {}
    assert ATOMS.compare(["a"], ["b"]) == (None, {}, None)
    assert ATOMS.compare(["a"], ["a"]) is NOTHING
    assert ATOMS.merge(["a"], ["b"]) == ["b"]
    assert ATOMS.remove(["a"], {"i:0": {}}) is None
    assert ATOMS.extract(["a"], {}) == ["a"]
    assert ATOMS.reconcile({"i:0": {}}) == {}


def test_null_and_empty_lists_are_distinguished() -> None:
    assert SET.merge(None, []) == []
    assert SET.merge(["a"], None) == ["a"]
    assert SET.merge([], None) is None
    assert SET.field_set([]) is None
    assert atom_of(list_of(STRING, ListType.SET)).presence([]) == {}
