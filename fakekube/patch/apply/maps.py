"""Structs and maps under apply.

A map is *granular* (every entry is owned by itself) or *atomic* (a leaf). A struct is a map with declared
fields; entries beyond them are allowed if there is an atom for them. Entries of maps own themselves besides
their parts, declared fields only through their parts.

Specified by: sigs.k8s.io/structured-merge-diff/typed, the methods doMap and visitMapItems of its walkers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from fakekube.patch.apply.atoms import (
    CONTAINERS,
    NOTHING,
    Atom,
    Difference,
    Place,
    Scalar,
    Typing,
    difference_of,
    shown,
)
from fakekube.patch.apply.elements import SELF, field
from fakekube.patch.apply.fields import LEAF, Tree, children, is_member, joined

__all__ = ["Map"]

_EMPTY: dict[str, Any] = {}

#: Of entries that must not be there; checked values have none.
_LEAF_ATOM = Scalar("untyped")


def _entries(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else _EMPTY


def _node(owns_itself: bool, below: Tree | None) -> Tree | None:
    """The node of an entry that owns itself or does not, with what is below it, if anything."""
    if not owns_itself:
        return below
    return {SELF: LEAF, **below} if below else LEAF


class Map(Atom):
    """See the module."""

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
        :param declare: makes the declared fields on first use (types may be recursive).
        :param other: of the entries that are not declared; None if there must be none.
        :param deduced: made up for values of no known type; field sets below it are never reconciled.
        """
        self._declare = declare
        self._other = other
        self._atomic = atomic
        self._deduced = deduced
        self.exact = exact

    @cached_property
    def _fields(self) -> Mapping[str, tuple[str, Atom]]:
        """By name: the element and the atom."""
        declared = self._declare() if self._declare else {}
        return {name: (field(name), atom) for name, atom in declared.items()}

    @cached_property
    def _by_element(self) -> Mapping[str, Atom]:
        return dict(self._fields.values())

    def _entry(self, name: str) -> tuple[str, Atom]:
        known = self._fields.get(name)
        return known if known is not None else (field(name), self._other or _LEAF_ATOM)

    def _atom_below(self, element: str) -> Atom | None:
        return self._by_element.get(element) or (self._other if element.startswith("f:") else None)

    def check(self, value: Any, place: Place, typing: Typing) -> None:
        if value is None:
            return
        if not isinstance(value, dict):
            typing.add(place, f"expected map, got {shown(value)}")
            return
        for name, item in value.items():
            element, atom = self._entry(name)
            if atom is _LEAF_ATOM:
                typing.add((place, element), "field not declared in schema")
                return
            atom.check(item, (place, element), typing)

    def field_set(self, value: Any) -> Tree | None:
        if self._atomic:
            return LEAF
        tree: Tree = {}
        for name in sorted(_entries(value)):
            item = value[name]
            element, atom = self._entry(name)
            if item is not None and item.__class__ not in CONTAINERS:
                tree[element] = LEAF
                continue
            node = _node(item is None or item == _EMPTY or name not in self._fields, atom.field_set(item))
            if node is not None:
                tree[element] = node
        return tree or None

    def presence(self, value: Any) -> Tree:
        if self._atomic or not value or not isinstance(value, dict):
            return LEAF
        tree: Tree = {SELF: LEAF}
        fields = self._fields
        for name in sorted(value):
            item = value[name]
            known = fields.get(name)
            element, atom = known if known is not None else self._entry(name)
            tree[element] = atom.presence(item) if item.__class__ in CONTAINERS else LEAF
        return tree

    def compare(self, old: Any, new: Any) -> Difference:
        if old is new or (self.exact and old == new):
            return NOTHING
        before, after = _entries(old), _entries(new)
        if self._atomic or (not before and not after):
            return self.compare_leaf(old, new)
        removed: Tree = {}
        modified: Tree = {}
        added: Tree = {}
        for name, item in after.items():
            element, atom = self._entry(name)
            if name not in before:
                added[element] = atom.presence(item)
            elif (known := before[name]) is not item:
                gone, changed, come = atom.compare(known, item)
                if gone is not None:
                    removed[element] = gone
                if changed is not None:
                    modified[element] = changed
                if come is not None:
                    added[element] = come
        for name, item in before.items():
            if name not in after:
                element, atom = self._entry(name)
                removed[element] = atom.presence(item)
        return difference_of(removed, modified, added)

    def merge(self, live: Any, applied: Any) -> Any:
        before, entries = _entries(live), _entries(applied)
        if self._atomic or (not before and not entries):
            return self.merge_leaf(live, applied)
        if not before:
            return applied
        merged = before
        for name, item in entries.items():
            if name in before:
                _, atom = self._entry(name)
                item = atom.merge(before[name], item)  # noqa: PLW2901
                if item is before[name]:
                    continue
            if merged is before:
                merged = dict(before)
            merged[name] = item
        return merged

    def remove(self, value: Any, items: Tree) -> Any:
        if self._atomic or not value or not isinstance(value, dict):
            return None
        kept: dict[str, Any] = {}
        changed = False
        for name, item in value.items():
            element, atom = self._entry(name)
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
            element, atom = self._entry(name)
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
            result[element] = joined(is_member(node) or element in self._by_element, below)
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
