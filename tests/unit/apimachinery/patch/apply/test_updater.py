"""The algorithm of apply, by scenarios: writes, their results, and the resulting owners.

The stories are those of structured-merge-diff's own tests, told anew. A step is (manager, what it does, value, the
object after it or the conflicts, the owners after it). Owners are given as paths: `a.b` is a field, `a[x]` an item.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakekube.apimachinery.patch.apply.atoms import TypingError
from fakekube.apimachinery.patch.apply.fieldpath import FieldSet, print_path
from fakekube.apimachinery.patch.apply.managed_fields import APPLY, UPDATE, Manager, Owned
from fakekube.apimachinery.patch.apply.schema import atom_of
from fakekube.apimachinery.patch.apply.updater import Conflicts, Typed, UnknownVersion, Updater
from tests.unit.apimachinery.patch.shapes import SPEC, THING, specs, struct, things

ATOM = atom_of(SPEC)
NO_TEXT = atom_of(struct("NoText", labels=SPEC.fields["labels"].type, number=SPEC.fields["number"].type))


def convert(typed: Typed, version: str) -> Typed:
    """v1 is v2 under another name, v3 has no text, v4 calls labels a selector; others are unknown."""
    if version == "v3":
        return Typed(typed.value, version, NO_TEXT).check()
    if version not in ("v1", "v2"):
        raise UnknownVersion
    return Typed(typed.value, version, ATOM)


@dataclass
class World:
    """One object and its owners."""

    value: Any = field(default_factory=dict)
    owners: dict[Manager, Owned] = field(default_factory=dict)

    def apply(self, name: str, value: Any, *, force: bool = False, version: str = "v1") -> None:
        manager = Manager(name, APPLY)
        live, applied = Typed(self.value, version, ATOM), Typed(value, version, ATOM).check()
        new, self.owners = Updater(convert, {}).apply(live, applied, self.owners, manager, force=force)
        self.value = new.value or {}

    def update(self, name: str, value: Any, *, version: str = "v1") -> None:
        manager = Manager(name, UPDATE, version)
        live, new = Typed(self.value, version, ATOM), Typed(value, version, ATOM)
        self.owners = Updater(convert, {}).update(live, new, self.owners, manager)
        self.value = value

    def owned(self) -> dict[str, set[str]]:
        return {manager.name: {print_path(path)[1:] for path in owned.fields} for manager, owned in self.owners.items()}


def item(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, **more}


A_ITEM = {'items[name="a"]', 'items[name="a"].name'}
B_ITEM = {'items[name="b"]', 'items[name="b"].name'}

Step = tuple[str, str, Any, Any, dict[str, set[str]]]

STORIES: dict[str, list[Step]] = {
    "an applier owns what it names": [
        ("me", "apply", {"text": "a", "labels": {"x": "1"}}, {"text": "a", "labels": {"x": "1"}}, {"me": {"text", "labels.x"}})
    ],
    "an applier loses what it names no more": [
        ("me", "apply", {"text": "a", "number": 1}, {"text": "a", "number": 1}, {"me": {"text", "number"}}),
        ("me", "apply", {"text": "a"}, {"text": "a"}, {"me": {"text"}}),
        ("me", "apply", {}, {}, {}),
    ],
    "what another applier names too stays": [
        ("me", "apply", {"text": "a", "number": 1}, {"text": "a", "number": 1}, {"me": {"text", "number"}}),
        ("you", "apply", {"text": "a"}, {"text": "a", "number": 1}, {"me": {"text", "number"}, "you": {"text"}}),
        ("me", "apply", {"number": 1}, {"text": "a", "number": 1}, {"me": {"number"}, "you": {"text"}}),
        ("you", "apply", {}, {"number": 1}, {"me": {"number"}}),
    ],
    "a change of what another applier names is a conflict": [
        ("me", "apply", {"text": "a"}, {"text": "a"}, {"me": {"text"}}),
        ("you", "apply", {"text": "b", "number": 1}, {".text"}, {"me": {"text"}}),
        ("you", "force", {"text": "b", "number": 1}, {"text": "b", "number": 1}, {"you": {"text", "number"}}),
    ],
    "an update takes what it changes, without a conflict": [
        ("me", "apply", {"text": "a", "number": 1}, {"text": "a", "number": 1}, {"me": {"text", "number"}}),
        ("you", "update", {"text": "b", "number": 1}, {"text": "b", "number": 1}, {"me": {"number"}, "you": {"text"}}),
        ("me", "apply", {"text": "a", "number": 1}, {".text"}, {"me": {"number"}, "you": {"text"}}),
        ("me", "apply", {"text": "b", "number": 1}, {"text": "b", "number": 1}, {"me": {"text", "number"}, "you": {"text"}}),
    ],
    "an update that changes nothing owns nothing": [
        ("me", "apply", {"text": "a"}, {"text": "a"}, {"me": {"text"}}),
        ("you", "update", {"text": "a"}, {"text": "a"}, {"me": {"text"}}),
    ],
    "an update that removes a field takes it from all": [
        ("me", "apply", {"text": "a", "number": 1}, {"text": "a", "number": 1}, {"me": {"text", "number"}}),
        ("you", "apply", {"text": "a"}, {"text": "a", "number": 1}, {"me": {"text", "number"}, "you": {"text"}}),
        ("other", "update", {"number": 1}, {"number": 1}, {"me": {"number"}}),
    ],
    "items of a set are owned one by one": [
        ("me", "apply", {"set": ["a", "b"]}, {"set": ["a", "b"]}, {"me": {'set[="a"]', 'set[="b"]'}}),
        (
            "you",
            "apply",
            {"set": ["b", "c"]},
            {"set": ["a", "b", "c"]},
            {"me": {'set[="a"]', 'set[="b"]'}, "you": {'set[="b"]', 'set[="c"]'}},
        ),
        ("me", "apply", {"set": ["a"]}, {"set": ["a", "b", "c"]}, {"me": {'set[="a"]'}, "you": {'set[="b"]', 'set[="c"]'}}),
        ("you", "apply", {"set": ["c"]}, {"set": ["a", "c"]}, {"me": {'set[="a"]'}, "you": {'set[="c"]'}}),
    ],
    "atomic lists are owned as a whole": [
        ("me", "apply", {"atoms": ["a", "b"]}, {"atoms": ["a", "b"]}, {"me": {"atoms"}}),
        ("you", "apply", {"atoms": ["a"]}, {".atoms"}, {"me": {"atoms"}}),
        ("you", "force", {"atoms": ["a"]}, {"atoms": ["a"]}, {"you": {"atoms"}}),
    ],
    "atomic maps and structs are owned as a whole": [
        (
            "me",
            "apply",
            {"selector": {"a": "1"}, "whole": {"a": "1"}},
            {"selector": {"a": "1"}, "whole": {"a": "1"}},
            {"me": {"selector", "whole"}},
        ),
        ("you", "apply", {"whole": {"b": "1"}}, {".whole"}, {"me": {"selector", "whole"}}),
        (
            "you",
            "force",
            {"whole": {"b": "1"}},
            {"selector": {"a": "1"}, "whole": {"b": "1"}},
            {"me": {"selector"}, "you": {"whole"}},
        ),
    ],
    "an item goes with its last owner": [
        (
            "me",
            "apply",
            {"items": [item("a", value="1")]},
            {"items": [item("a", value="1")]},
            {"me": A_ITEM | {'items[name="a"].value'}},
        ),
        (
            "you",
            "apply",
            {"items": [item("a", names=["x"])]},
            {"items": [item("a", value="1", names=["x"])]},
            {"me": A_ITEM | {'items[name="a"].value'}, "you": A_ITEM | {'items[name="a"].names[="x"]'}},
        ),
        ("me", "apply", {}, {"items": [item("a", names=["x"])]}, {"you": A_ITEM | {'items[name="a"].names[="x"]'}}),
        ("you", "apply", {}, {}, {}),
    ],
    "what nobody owns goes with the item that holds it": [
        ("me", "apply", {"items": [item("a"), item("b")]}, {"items": [item("a"), item("b")]}, {"me": A_ITEM | B_ITEM}),
        ("nobody", "none", {"items": [item("a", value="default"), item("b")]}, None, {"me": A_ITEM | B_ITEM}),
        ("me", "apply", {"items": [item("b")]}, {"items": [item("b")]}, {"me": B_ITEM}),
    ],
    "an item goes with its last applier, whatever an updater has put into it": [
        ("me", "apply", {"items": [item("a")]}, {"items": [item("a")]}, {"me": A_ITEM}),
        (
            "you",
            "update",
            {"items": [item("a", value="1")]},
            {"items": [item("a", value="1")]},
            {"me": A_ITEM, "you": {'items[name="a"].value'}},
        ),
        ("me", "apply", {}, {"items": None}, {}),
    ],
    "entries of maps own themselves": [
        ("me", "apply", {"parts": {"p": {"x": "1"}}}, {"parts": {"p": {"x": "1"}}}, {"me": {"parts.p", "parts.p.x"}}),
        (
            "you",
            "apply",
            {"parts": {"p": {"y": "1"}}},
            {"parts": {"p": {"x": "1", "y": "1"}}},
            {"me": {"parts.p", "parts.p.x"}, "you": {"parts.p", "parts.p.y"}},
        ),
        ("me", "apply", {"parts": {"p": {}}}, {"parts": {"p": {"y": "1"}}}, {"me": {"parts.p"}, "you": {"parts.p", "parts.p.y"}}),
    ],
    "an empty map can be owned": [
        ("me", "apply", {"labels": {}}, {"labels": {}}, {"me": {"labels"}}),
        ("you", "apply", {"labels": {"x": "1"}}, {"labels": {"x": "1"}}, {"me": {"labels"}, "you": {"labels.x"}}),
    ],
    "null leaves what others have": [
        ("me", "apply", {"labels": {"x": "1"}}, {"labels": {"x": "1"}}, {"me": {"labels.x"}}),
        ("you", "apply", {"labels": None}, {"labels": {"x": "1"}}, {"me": {"labels.x"}, "you": {"labels"}}),
    ],
    "a struct that an update has made is given up with its fields": [
        ("you", "update", {"inner": {"a": "1"}}, {"inner": {"a": "1"}}, {"you": {"inner", "inner.a"}}),
        ("me", "force", {"inner": {"a": "2"}}, {"inner": {"a": "2"}}, {"you": {"inner"}, "me": {"inner.a"}}),
        ("me", "apply", {}, {"inner": None}, {"you": {"inner"}}),
    ],
    "untyped parts are granular by what they hold": [
        ("me", "apply", {"any": {"x": {"y": 1}}}, {"any": {"x": {"y": 1}}}, {"me": {"any.x", "any.x.y"}}),
        (
            "you",
            "apply",
            {"any": {"x": {"z": [1]}}},
            {"any": {"x": {"y": 1, "z": [1]}}},
            {"me": {"any.x", "any.x.y"}, "you": {"any.x", "any.x.z"}},
        ),
        ("you", "apply", {"any": {"x": {"y": True}}}, {".any.x.y"}, {"me": {"any.x", "any.x.y"}, "you": {"any.x", "any.x.z"}}),
    ],
    "repeated items are kept until they are applied": [
        ("you", "update", {"set": ["a", "a", "b"]}, {"set": ["a", "a", "b"]}, {"you": {"set", 'set[="a"]', 'set[="b"]'}}),
        (
            "me",
            "apply",
            {"set": ["c"]},
            {"set": ["a", "a", "b", "c"]},
            {"you": {"set", 'set[="a"]', 'set[="b"]'}, "me": {'set[="c"]'}},
        ),
        (
            "me",
            "force",
            {"set": ["a", "c"]},
            {"set": ["a", "b", "c"]},
            {"you": {"set", 'set[="b"]'}, "me": {'set[="a"]', 'set[="c"]'}},
        ),
    ],
}


@pytest.mark.parametrize("story", STORIES)
def test_recorded_updater_scenarios(story: str) -> None:
    world = World()
    for number, (name, deed, value, expected, owners) in enumerate(STORIES[story]):
        before = copy.deepcopy(world.value)
        if deed == "none":
            world.value = value
        elif deed == "update":
            world.update(name, value)
        elif isinstance(expected, set):
            with pytest.raises(Conflicts) as caught:
                world.apply(name, value)
            assert {print_path(path) for _, path in caught.value} == expected, number
            assert world.value == before
        else:
            world.apply(name, value, force=deed == "force")
            assert world.value == expected, number
        assert world.owned() == owners, number


# ---------------------------------------------------------------- versions


def test_conflicts_are_detected_in_the_version_of_the_owner() -> None:
    world = World()
    world.apply("me", {"text": "a", "number": 1}, version="v1")
    with pytest.raises(Conflicts):
        world.apply("you", {"text": "b"}, version="v2")
    world.apply("you", {"text": "b"}, version="v2", force=True)
    assert world.owned() == {"me": {"number"}, "you": {"text"}}


def test_applier_can_change_its_api_version() -> None:
    world = World()
    world.apply("me", {"text": "a", "number": 1}, version="v1")
    world.apply("me", {"text": "a"}, version="v2")
    assert world.value == {"text": "a"}
    assert [owned.api_version for owned in world.owners.values()] == ["v2"]


def test_owners_of_removed_versions_are_dropped() -> None:
    world = World()
    world.apply("me", {"number": 1})
    world.owners[Manager("gone", APPLY)] = Owned(FieldSet.from_paths(("f:number",)), "v9")
    world.apply("me", {"number": 2})
    assert world.owned() == {"me": {"number"}}


def test_apply_fails_if_the_object_does_not_convert() -> None:
    world = World()
    world.owners[Manager("old", APPLY)] = Owned(FieldSet.from_paths(("f:number",)), "v3")
    world.value = {"text": "a", "number": 1}
    with pytest.raises(TypingError, match=r"^\.text: field not declared in schema$"):
        world.apply("me", {"number": 2})


def test_prune_error_names_the_failing_conversion() -> None:
    world = World()
    world.owners[Manager("me", APPLY)] = Owned(FieldSet.from_paths(("f:number",)), "v3")
    world.value = {"number": 1}
    with pytest.raises(TypingError) as caught:
        world.apply("me", {"text": "a"})
    assert str(caught.value) == (
        "failed to prune fields: failed to convert merged object to last applied version: .text: field not declared in schema"
    )


def test_filters_remove_fields_from_ownership() -> None:
    hidden = FieldSet.from_paths(("f:text",))
    updater = Updater(convert, {"v1": lambda fields: fields.recursive_difference(hidden)})
    live, new = Typed({}, "v1", ATOM), Typed({"text": "a", "number": 1}, "v1", ATOM)
    owners = updater.update(live, new, {}, Manager("me", UPDATE, "v1"))
    assert [list(owned.fields) for owned in owners.values()] == [[("f:number",)]]
    _, owners = updater.apply(live, new, {}, Manager("me", APPLY), force=False)
    assert [list(owned.fields) for owned in owners.values()] == [[("f:number",)]]


def test_members_of_a_now_atomic_map_are_owned_as_a_whole() -> None:
    world = World({"selector": {"a": "1"}})
    world.owners[Manager("me", APPLY)] = Owned(FieldSet.from_paths(("f:selector", "f:a")), "v1")
    world.apply("you", {"number": 1})
    assert world.owned() == {"me": {"selector"}, "you": {"number"}}


# ---------------------------------------------------------------- laws

_names = st.sampled_from(["me", "you"])
_deeds = st.lists(st.tuples(_names, st.booleans(), specs), min_size=1, max_size=4)


def _world_after(deeds: list[tuple[str, bool, Any]]) -> World:
    world = World()
    for name, applies, value in deeds:
        if applies:
            world.apply(name, value, force=True)
        else:
            world.update(name, {**world.value, **value})
    return world


@given(_deeds, specs)
def test_forced_apply_sets_and_owns_all_its_fields(deeds: list[tuple[str, bool, Any]], applied: Any) -> None:
    world = _world_after(deeds)
    world.apply("me", applied, force=True)
    named = Typed(applied, "v1", ATOM).field_set()
    owned = world.owners.get(Manager("me", APPLY))
    assert (owned.fields if owned else FieldSet()) == named
    for name in ("text", "number", "atoms", "selector", "whole"):
        if name in applied:
            assert world.value[name] == applied[name]


_atom_of_objects = atom_of(THING)


@settings(max_examples=40)
@given(things, st.lists(things, min_size=1, max_size=3))
def test_apply_of_specs_that_were_merged_before_is_that_of_new_ones(live: Any, applied: list[Any]) -> None:
    warm, me = Updater(convert, {}), Manager("me", APPLY)
    for value in applied * 2:
        typed = [Typed(obj, "v1", _atom_of_objects) for obj in (live, {**value, "metadata": {"name": "t", "labels": {"a": "b"}}})]
        known, new = (each.apply(*typed, {}, me, force=True) for each in (warm, Updater(convert, {})))
        assert json.dumps(known[0].value) == json.dumps(new[0].value)
        assert known[1] == new[1]


@given(_deeds, specs)
def test_repeated_apply_changes_nothing(deeds: list[tuple[str, bool, Any]], applied: Any) -> None:
    """Unless empty containers are applied: the first time they may go with what was in them."""
    world = _world_after(deeds)
    applied = _without_empty_parts(applied)
    world.apply("me", applied, force=True)
    before, owners = world.value, world.owned()
    world.apply("me", applied)
    assert world.value == before
    assert world.owned() == owners


def _without_empty_parts(value: Any) -> Any:
    if isinstance(value, dict):
        parts = {key: _without_empty_parts(part) for key, part in value.items()}
        return {key: part for key, part in parts.items() if part not in ({}, [], None)}
    return list(map(_without_empty_parts, value)) if isinstance(value, list) else value


@given(_deeds)
def test_released_fields_without_other_owners_are_removed(deeds: list[tuple[str, bool, Any]]) -> None:
    world = _world_after(deeds)
    given_up = world.owners.get(Manager("me", APPLY))
    world.apply("me", {}, force=True)
    others = FieldSet()
    for owned in world.owners.values():
        others |= owned.fields
    left = Typed(world.value, "v1", ATOM).field_set()
    if given_up is not None:
        unowned = (left & given_up.fields) - others
        assert all(any(path[: len(gone)] == gone for path in others) or _is_null(world.value, gone) for gone in unowned)


def _is_null(value: Any, path: tuple[str, ...]) -> bool:
    """An emptied container stays as null."""
    for element in path:
        if not element.startswith("f:") or not isinstance(value, dict):
            return False
        value = value.get(element[2:])
    return value is None


@given(_deeds)
def test_update_entries_never_share_fields(deeds: list[tuple[str, bool, Any]]) -> None:
    world = _world_after(deeds)
    updated = [owned.fields for manager, owned in world.owners.items() if manager.operation == UPDATE]
    for number, fields in enumerate(updated):
        assert all(not fields & other for other in updated[:number])
