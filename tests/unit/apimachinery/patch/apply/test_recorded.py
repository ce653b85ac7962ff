"""What structured-merge-diff itself answers, recorded: operations of the algebra, and histories of several managers.

The values were drawn at random from the type of `shapes.SPEC`. In a history, version v3 of the type has two fields only,
v4 has some under other names, `flip` makes what was atomic granular and the other way round, and `ignore` says what nobody
owns in one version. What a step does not change is not told again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fakekube.apimachinery.patch.apply.atoms import Atom, TypingError
from fakekube.apimachinery.patch.apply.fieldpath import FieldSet, print_path
from fakekube.apimachinery.patch.apply.managed_fields import APPLY, UPDATE, Manager, Owned
from fakekube.apimachinery.patch.apply.schema import atom_of
from fakekube.apimachinery.patch.apply.updater import Conflicts, Filter, Typed, Updater
from fakekube.apimachinery.schema.model import Field, ListType
from tests.unit.apimachinery.patch.shapes import SPEC, STRING, list_of, map_of, struct

RECORDED = Path(__file__).with_name("recorded")
UNKNOWN_FIELD = "field not declared in schema"

_types = {name: field.type for name, field in SPEC.fields.items()}
_new_names = {"text": "title", "number": "count", "items": "things"}

ATOM = atom_of(SPEC)
NARROW = atom_of(struct("Narrow", number=_types["number"], labels=_types["labels"]))
RENAMED = atom_of(struct("Renamed", **{(new := _new_names.get(name, name)): Field(new, type_) for name, type_ in _types.items()}))
FLIPPED = atom_of(
    struct(
        "Flipped",
        text=_types["text"],
        number=_types["number"],
        flag=_types["flag"],
        labels=map_of(STRING, atomic=True),
        selector=map_of(STRING),
        inner=struct("FlippedInner", atomic=True, a=STRING, b=_types["inner"].fields["b"]),
        whole=struct("FlippedWhole", a=STRING, b=STRING),
        set=list_of(STRING),
        atoms=list_of(STRING, ListType.SET),
        items=list_of(SPEC.fields["items"].type.items or STRING),
        ports=list_of(SPEC.fields["ports"].type.items or STRING),
        parts=map_of(SPEC.fields["parts"].type.items or STRING, atomic=True),
        any=_types["any"],
    )
)


def recorded(name: str) -> list[Any]:
    return [json.loads(line) for line in (RECORDED / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


# ---------------------------------------------------------------- operations


def _typed(operation: dict[str, Any], member: str = "object") -> Typed:
    return Typed(operation[member], "v1", ATOM).check(duplicates=operation.get("duplicates", False))


def _reconciled(operation: dict[str, Any]) -> Any:
    """The set as it should be, or nothing if it is so."""
    tree = ATOM.reconcile(operation["set"])
    return None if tree == operation["set"] else tree


OPERATIONS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "union": lambda it: (FieldSet(it["set"]) | FieldSet(it["set2"])).tree,
    "difference": lambda it: (FieldSet(it["set"]) - FieldSet(it["set2"])).tree,
    "recursive": lambda it: FieldSet(it["set"]).recursive_difference(FieldSet(it["set2"])).tree,
    "intersection": lambda it: (FieldSet(it["set"]) & FieldSet(it["set2"])).tree,
    "leaves": lambda it: FieldSet(it["set"]).leaves().tree,
    "named": lambda it: _typed(it).with_named_fields(FieldSet(it["set"])).tree,
    "reconcile": _reconciled,
    "validate": lambda it: _typed(it) and None,
    "fieldset": lambda it: _typed(it).field_set().tree,
    "remove": lambda it: _typed(it).remove(FieldSet(it["set"])).value,
    "merge": lambda it: _typed(it).merge(_typed(it, "other")).value,
    "compare": lambda it: [tree or {} for tree in ATOM.compare(_typed(it).value, _typed(it, "other").value)],
}


@pytest.mark.parametrize("operation", recorded("operations"), ids=lambda operation: operation["op"])
def test_recorded_operations_of_structured_merge_diff(operation: dict[str, Any]) -> None:
    try:
        result = OPERATIONS[operation["op"]](operation)
    except TypingError as error:
        assert sorted(str(error).splitlines()) == sorted(operation["error"].splitlines())
        return
    assert (result or None) == operation["result"]
    if operation["op"] not in ("remove", "merge"):  # there the order of members is nobody's business
        assert json.dumps(result or None) == json.dumps(operation["result"])


# ---------------------------------------------------------------- histories


class World:
    """One object and its owners, in versions of its type."""

    def __init__(self) -> None:
        self.atom: Atom = ATOM
        self.live: Any = {}
        self.owners: dict[Manager, Owned] = {}
        self.filters: dict[str, Filter] = {}

    def step(self, step: dict[str, Any]) -> dict[str, Any]:
        """What a step changes, or what is wrong with it."""
        version, before = step["version"], (self.live, self.owned())
        after: dict[str, Any] = {}
        try:
            self._write(step, version)
        except Conflicts as conflicts:
            after["conflicts"] = sorted(f"{manager.name}: {print_path(path)}" for manager, path in conflicts)
        except TypingError as error:  # the reference meets the unknown fields of an object in any order
            after["error"] = UNKNOWN_FIELD if UNKNOWN_FIELD in str(error) else str(error)
        now = zip(("live", "owned"), before, (self.live, self.owned()), strict=True)
        return after | {name: new for name, old, new in now if new != old}

    def _write(self, step: dict[str, Any], version: str) -> None:
        is_update = step["op"] == "update"
        new = Typed(step["object"], version, self._atom_of(version)).check(duplicates=is_update)
        live = self.convert(Typed(self.live, "v1", self.atom), version)
        updater = Updater(self.convert, self.filters)
        manager = Manager(step["manager"], UPDATE if is_update else APPLY)
        if is_update:
            self.owners = updater.update(live, new, self.owners, manager)
        else:
            new, self.owners = updater.apply(live, new, self.owners, manager, force=step["op"] == "force")
        self.live = self.convert(new, "v1").value or {}

    def convert(self, typed: Typed, version: str) -> Typed:
        value = typed.value
        if typed.atom is RENAMED:
            old_names = {new: old for old, new in _new_names.items()}
            value = {old_names.get(name, name): item for name, item in value.items()}
        if version == "v4":
            value = {_new_names.get(name, name): item for name, item in value.items()}
        return Typed(value, version, self._atom_of(version)).check(duplicates=version != "v3")

    def _atom_of(self, version: str) -> Atom:
        return {"v3": NARROW, "v4": RENAMED}.get(version, self.atom)

    def owned(self) -> dict[str, Any]:
        return {manager.name: owned.fields.tree for manager, owned in sorted(self.owners.items())}


@pytest.mark.parametrize("history", recorded("histories"), ids=lambda history: f"{len(history)} steps")
def test_recorded_histories_of_structured_merge_diff(history: list[dict[str, Any]]) -> None:
    world = World()
    for number, step in enumerate(history):
        if step["op"] == "flip":
            world.atom = FLIPPED if world.atom is ATOM else ATOM
        elif step["op"] == "ignore":
            ignored = FieldSet(step["set"])
            world.filters[step["version"]] = lambda fields, ignored=ignored: fields.recursive_difference(ignored)
        else:
            after, expected = world.step(step), step.get("after", {})
            assert after == expected, f"step {number}: {json.dumps(step)}"
            assert json.dumps(after.get("owned")) == json.dumps(expected.get("owned"))
