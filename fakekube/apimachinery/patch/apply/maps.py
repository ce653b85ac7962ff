"""The operations of apply on structs and maps.

A map is *granular* (entries have separate owners) or *atomic* (a leaf). A struct is a map with declared fields; other
entries are legal if there is an atom for them. A field set contains the entries of a map besides their parts; of
declared fields it contains the parts only.

Specified by: sigs.k8s.io/structured-merge-diff/typed, the methods doMap and visitMapItems of its walkers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from itertools import compress, repeat
from operator import ne, or_
from typing import Any, Final, NamedTuple

from fakekube.apimachinery.patch.apply.atoms import (
    CONTAINERS,
    NOTHING,
    Atom,
    Difference,
    Place,
    Scalar,
    Typing,
    difference_of,
    show,
)
from fakekube.apimachinery.patch.apply.fieldpath import LEAF, SELF, Tree, children, field, is_member, level_in_order, make_node
from fakekube.base.caches import BoundedCache

_EMPTY: dict[str, Any] = {}

_ABSENT: Final = object()

#: The maximum number of cached layouts of a struct.
_MAX_PLANS: Final = 500

#: The atom of undeclared entries, which validated values do not have.
_UNDECLARED: Final = Scalar("untyped")
_UNDECLARED.fits = frozenset()

_Step = tuple[str, str, Atom, bool]
"""Name, path element and atom of an entry, and whether the entry itself is a member of field sets."""


class _Plan(NamedTuple):
    """The entries of values with one layout, in canonical order."""

    steps: tuple[_Step, ...]
    names: tuple[str, ...]
    inexact: tuple[bool, ...]
    """Of each entry whether equal values may differ (`Atom.exact`)."""
    leaves: Tree
    """All entries as leaves; shared."""
    member: Tree
    """The same of a value that is a member itself; shared."""
    parts: tuple[_Step, ...]
    """The entries that may have parts."""


class _Entries(dict[str, tuple[str, Atom]]):
    """Path elements and atoms by name: those of declared fields, and those of other entries on first use."""

    def __init__(self, declared: Mapping[str, tuple[str, Atom]], other: Atom) -> None:
        super().__init__(declared)
        self._other = other

    def __missing__(self, name: str) -> tuple[str, Atom]:
        return field(name), self._other


def _with_parts(leaves: Tree, parts: tuple[_Step, ...], value: Mapping[str, Any]) -> Tree:
    """Returns the set of a value of which `leaves` are all entries, with what is below them."""
    tree = dict(leaves)
    for name, element, atom, _ in parts:
        item = value[name]
        if item and item.__class__ in CONTAINERS:
            tree[element] = atom.presence(item)
    return tree


def _entries(value: Any) -> dict[str, Any]:
    return value if value.__class__ is dict else _EMPTY


class Map(Atom):
    """The atom of structs and maps."""

    def __init__(
        self,
        declare: Callable[[], Mapping[str, Atom]] | None,
        other: Atom | None,
        *,
        atomic: bool = False,
        exact: bool = True,
        deduced: bool = False,
    ) -> None:
        """
        Args:
            declare: makes the declared fields on first use (types may be recursive).
            other: the atom of undeclared entries; None if there must be none.
            deduced: whether the type was deduced from a value; field sets below it are never reconciled.
        """
        self._declare = declare
        self._other = other
        self._atomic = atomic
        self.is_leaf = atomic
        self._deduced = deduced
        self._plans: BoundedCache[tuple[str, ...], _Plan] = BoundedCache(_MAX_PLANS)
        self.exact = exact

    @cached_property
    def _entry(self) -> _Entries:
        """Returns the path element and the atom of an entry."""
        declared = self._declare() if self._declare else {}
        return _Entries({name: (field(name), atom) for name, atom in declared.items()}, self._other or _UNDECLARED)

    @cached_property
    def _by_element(self) -> Mapping[str, Atom]:
        return dict(self._entry.values())

    def atomics(self, value: Any, path: str) -> Iterator[str]:
        """See `Atom.atomics`; the entries of maps without declared fields are not visited."""
        if isinstance(value, dict):
            if self._atomic:
                yield path
            for name, item in value.items():
                if name in self._entry:
                    yield from self._entry[name][1].atomics(item, f"{path}.{name}")

    def _plan(self, value: Mapping[str, Any]) -> _Plan:
        """Returns the plan of a value, cached by layout, since objects of a kind have few layouts."""
        layout = tuple(value)
        return self._plans.get(layout) or self._new_plan(layout)

    def _new_plan(self, layout: tuple[str, ...]) -> _Plan:
        steps = tuple((name, *self._entry[name], name not in self._entry) for name in sorted(layout))
        leaves: Tree = {element: LEAF for _, element, _, _ in steps}
        names, inexact = tuple(sorted(layout)), tuple(not atom.exact for _, _, atom, _ in steps)
        parts = tuple(step for step in steps if not step[2].is_leaf)
        return self._plans.add(layout, _Plan(steps, names, inexact, leaves, {SELF: LEAF, **leaves}, parts))

    def _atom_below(self, element: str) -> Atom | None:
        return self._by_element.get(element) or (self._other if element.startswith("f:") else None)

    def check(self, value: Any, place: Place, typing: Typing) -> None:
        if value is None:
            return
        if not isinstance(value, dict):
            typing.add(place, f"expected map, got {show(value)}")
            return
        entry = self._entry
        for name, item in value.items():
            element, atom = entry[name]
            if item.__class__ in atom.fits:
                continue
            if atom is _UNDECLARED:
                typing.add((place, element), "field not declared in schema")
                return
            atom.check(item, (place, element), typing)

    def field_set(self, value: Any) -> Tree | None:
        if self._atomic:
            return LEAF
        plan = self._plan(_entries(value))
        tree = dict(plan.leaves)
        for name, element, atom, owns_itself in plan.parts:
            item = value[name]
            if item.__class__ not in CONTAINERS and item is not None:
                continue
            below = atom.field_set(item)
            if owns_itself or item is None or item == _EMPTY:
                below = {SELF: LEAF, **below} if below else LEAF
            if below is None:
                del tree[element]
            else:
                tree[element] = below
        return tree or None

    def presence(self, value: Any) -> Tree:
        if self._atomic or not value or value.__class__ is not dict:
            return LEAF
        layout = tuple(value)
        plan = self._plans.get(layout) or self._new_plan(layout)
        return _with_parts(plan.member, plan.parts, value) if plan.parts else plan.member

    def compare(self, old: Any, new: Any) -> Difference:
        if old is new or (self.exact and old == new):
            return NOTHING
        before: dict[str, Any] = old if old.__class__ is dict else _EMPTY
        after: dict[str, Any] = new if new.__class__ is dict else _EMPTY
        if self._atomic or (not before and not after):
            return self.compare_leaf(old, new)
        if not before:
            plan = self._plan(after)
            return Difference(None, None, _with_parts(plan.leaves, plan.parts, after))
        removed: Tree = {}
        modified: Tree = {}
        added: Tree = {}
        layout = tuple(after)
        steps, names, inexact, *_ = self._plans.get(layout) or self._new_plan(layout)
        differ = map(ne, map(after.get, names), map(before.get, names, repeat(_ABSENT)))
        for name, element, atom, _ in compress(steps, map(or_, inexact, differ)):
            item, known = after[name], before.get(name, _ABSENT)
            if known is item:
                continue
            if known is _ABSENT:
                added[element] = LEAF if atom.is_leaf else atom.presence(item)
                continue
            gone, changed, come = atom.compare(known, item)
            if gone is not None:
                removed[element] = gone
            if changed is not None:
                modified[element] = changed
            if come is not None:
                added[element] = come
        if before.keys() <= after.keys():
            return difference_of(removed, modified, added)
        for name, item in before.items():
            if name not in after:
                element, atom = self._entry[name]
                removed[element] = atom.presence(item)
        return difference_of(level_in_order(removed), modified, added)

    def merge(self, live: Any, applied: Any) -> Any:
        before, entries = _entries(live), _entries(applied)
        if self._atomic or (not before and not entries):
            return self.merge_leaf(live, applied)
        if not before:
            return applied
        merged = before
        entry = self._entry
        for name, item in entries.items():
            known = before.get(name, _ABSENT)
            if known is _ABSENT:
                new = item
            else:
                atom = entry[name][1]
                if atom.exact and known == item:
                    continue
                new = atom.merge(known, item)
                if new is known:
                    continue
            if merged is before:
                merged = dict(before)
            merged[name] = new
        return merged

    def remove(self, value: Any, items: Tree) -> Any:
        if self._atomic or not value or not isinstance(value, dict):
            return None
        kept: dict[str, Any] = {}
        changed = False
        for name, item in value.items():
            element, atom = self._entry[name]
            node = items.get(element)
            if node is None:
                kept[name] = item
                continue
            if not is_member(node):
                kept[name] = atom.remove(item, node)
            changed = changed or name not in kept or kept[name] is not item
        return (kept or None) if changed else value

    def extract(self, value: Any, items: Tree) -> Any:
        if self._atomic or not value or not isinstance(value, dict):
            return value
        kept: dict[str, Any] = {}
        for name, item in value.items():
            element, atom = self._entry[name]
            node = items.get(element)
            if node is None:
                continue
            kept[name] = atom.extract(item, children(node))
            if kept[name] is None and is_member(node) and item is not None:
                kept[name] = type(item)()
        return kept or None

    def with_named_fields(self, tree: Tree) -> Tree:
        result: Tree = {}
        for element, node in tree.items():
            atom = self._atom_below(element)
            if not node or atom is None:
                result[element] = node
                continue
            below = atom.with_named_fields(children(node))
            result[element] = make_node(is_member(node) or element in self._by_element, below)
        return result

    def reconcile(self, node: Tree) -> Tree:
        if self._deduced or not node:
            return node
        if self._atomic:
            return LEAF
        result = node
        for element, below in node.items():
            atom = self._atom_below(element) if element != SELF else None
            new = atom.reconcile(below) if atom is not None else below
            if new is not below:
                if result is node:
                    result = dict(node)
                result[element] = new
        return result
