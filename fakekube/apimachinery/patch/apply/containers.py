"""The operations of apply on structs, maps and lists, which call each other item by item.

A map is *granular* (entries have separate owners) or *atomic* (a leaf). A struct is a map with declared fields; other
entries are legal if there is an atom for them. A field set contains the entries of a map besides their parts; of
declared fields it contains the parts only.

A list is *atomic* (a leaf), a *set* of scalars, or a *map* of objects by keys. Items of sets and maps have separate
owners; the path element of an item contains its value or its keys (absent keys have their defaults). Stored objects
may contain duplicate items; these are one element without parts.

Specified by: sigs.k8s.io/structured-merge-diff/typed, the methods doMap, visitMapItems, doList and visitListItems of its
walkers, and listItemToPathElement in helpers.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import is_
from typing import Any, Final, NamedTuple

from fakekube.apimachinery import features
from fakekube.apimachinery.patch.apply import fieldpath
from fakekube.apimachinery.patch.apply.atoms import (
    CONTAINERS,
    NOTHING,
    Atom,
    Difference,
    Leaf,
    Misfit,
    Place,
    Scalar,
    Typing,
    TypingError,
    is_same,
    show,
)
from fakekube.apimachinery.patch.apply.fieldpath import LEAF, SELF, Tree, children, field, is_member, level_in_order, make_node
from fakekube.base.caches import BoundedCache

_EMPTY: dict[str, Any] = {}

_ABSENT: Final = object()

#: The maximum number of cached layouts of a struct.
_MAX_PLANS: Final = 500
#: The bytes that a plan needs for each member, approximately.
_STEP_SIZE: Final = 500

#: The atom of undeclared entries, which validated values do not have.
_UNDECLARED: Final = Scalar("untyped")
_UNDECLARED.fits = frozenset()

_Step = tuple[str, str, Atom, bool]
"""Name, path element and atom of an entry, and whether the entry itself is a member of field sets."""


class _Plan(NamedTuple):
    """The entries of values with one layout, in canonical order."""

    steps: tuple[_Step, ...]
    comparisons: tuple[tuple[str, str, Atom, bool, bool], ...]
    """Of each entry its name, path element and atom, and whether this is exact and a leaf."""
    leaves: Tree
    """All entries as leaves; shared."""
    member: Tree
    """The same of a value that is a member itself; shared."""
    parts: tuple[_Step, ...]
    """The entries that may have parts."""
    exact: bool
    """Whether equal values do not differ."""


class _Entries(dict[str, tuple[str, Atom]]):
    """Path elements and atoms by name: those of declared fields, and those of other entries on first use."""

    def __init__(self, declared: Mapping[str, tuple[str, Atom]], other: Atom) -> None:
        super().__init__(declared)
        self._other = other

    def __missing__(self, name: str) -> tuple[str, Atom]:
        return field(name), self._other


def _difference_of(removed: Tree, modified: Tree, added: Tree) -> Difference:
    """Makes a difference of trees, which may be empty and belong to it."""
    if not (removed or modified or added):
        return NOTHING
    return removed or None, modified or None, added or None


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
            atomic: whether the value is replaced as a whole.
            exact: see `Atom.exact`.
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
        """The path element and the atom of an entry."""
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
        comparisons = tuple((name, element, atom, atom.exact, atom.is_leaf) for name, element, atom, _ in steps)
        exact = all(atom.exact for _, _, atom, _ in steps)
        parts = tuple(step for step in steps if not step[2].is_leaf)
        plan = _Plan(steps, comparisons, leaves, {SELF: LEAF, **leaves}, parts, exact)
        return self._plans.add(layout, plan, _STEP_SIZE * len(layout) + sum(map(len, layout)))

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

    def read_fields(self, value: Any) -> Tree | None:
        if self._atomic or value.__class__ is not dict:
            return super().read_fields(value)
        plan = self._plan(value)
        tree = dict(plan.leaves)
        for name, element, atom, owns_itself in plan.steps:
            item = value[name]
            if item.__class__ in atom.fits:
                continue
            if atom is _UNDECLARED:
                raise Misfit
            below = atom.read_fields(item)
            if atom.is_leaf:
                continue
            if owns_itself or item == _EMPTY:
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
            return None, None, _with_parts(plan.leaves, plan.parts, after)
        removed: Tree = {}
        modified: Tree = {}
        added: Tree = {}
        absent = 0
        layout = tuple(after)
        plan = self._plans.get(layout) or self._new_plan(layout)
        if plan.exact and not self.exact and before == after:  # those of an exact atom were compared above
            return NOTHING
        for name, element, atom, exact, is_leaf in plan.comparisons:
            item, known = after[name], before.get(name, _ABSENT)
            if known is item or (exact and known == item):
                continue
            if known is _ABSENT:
                absent += 1
                added[element] = LEAF if is_leaf else atom.presence(item)
                continue
            if exact and is_leaf:
                modified[element] = LEAF
                continue
            gone, changed, come = atom.compare(known, item)
            if gone is not None:
                removed[element] = gone
            if changed is not None:
                modified[element] = changed
            if come is not None:
                added[element] = come
        if len(before) + absent == len(after):  # nothing was removed
            return _difference_of(removed, modified, added)
        for name, item in before.items():
            if name not in after:
                element, atom = self._entry[name]
                removed[element] = atom.presence(item)
        return _difference_of(level_in_order(removed), modified, added)

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


# --- Lists ------------------------------------------------------------------------------------------------------------

_EMPTY_LIST: list[Any] = []


class _Repeated(list[Any]):
    """The items of a list with the same path element."""


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else _EMPTY_LIST


class AtomicList(Leaf):
    """A list that is replaced as a whole."""

    def __init__(self, item: Atom, *, exact: bool = True) -> None:
        self._item = item
        self.exact = exact

    def check(self, value: Any, place: Place, typing: Typing) -> None:
        if value is not None and not isinstance(value, list):
            typing.add(place, f"expected list, got {show(value)}")
        fits = self._item.fits
        for index, item in enumerate(_items(value)):
            if item.__class__ not in fits:
                self._item.check(item, (place, f"i:{index}"), typing)

    def remove(self, value: Any, items: Tree) -> Any:
        return None

    def atomics(self, value: Any, path: str) -> Iterator[str]:
        if isinstance(value, list):
            yield path
            for index, item in enumerate(value):
                yield from self._item.atomics(item, f"{path}[{index}]")

    def reconcile(self, node: Tree) -> Tree:
        return LEAF if node else node


#: The first minor in which an item may omit keys, but not all of them (structured-merge-diff v6).
_KEYS_OPTIONAL_SINCE: Final = 34


class ItemList(Atom):
    """A set or an associative list; the two differ only in the path elements of their items."""

    def __init__(
        self, item: Atom, keys: Sequence[str] = (), defaults: Mapping[str, Any] | None = None, *, exact: bool = True
    ) -> None:
        """
        Args:
            item: the atom of the items.
            keys: the keys of an associative list in the order of error messages; none for a set.
            defaults: the defaults of keys that an item may omit.
            exact: see `Atom.exact`.
        """
        self._item = item
        self._keys = tuple(keys)
        self._sorted_keys = tuple(sorted(keys))
        self._defaults = defaults or {}
        self.exact = exact

    @cached_property
    def _only_key(self) -> str | None:
        return self._keys[0] if len(self._keys) == 1 else None

    def atomics(self, value: Any, path: str) -> Iterator[str]:
        for index, item in enumerate(_items(value)):
            yield from self._item.atomics(item, f"{path}[{index}]")

    def element(self, item: Any) -> str:
        """Returns the path element of an item. Raises TypingError if a key is missing or invalid."""
        if not self._keys:
            return _set_element(item)
        if not isinstance(item, dict):
            kind = "a null element" if item is None else "non-map elements"
            raise TypingError(f"associative list with keys may not have {kind}")
        only = self._only_key
        if only is not None and only in item:
            return fieldpath.key(only, item[only])
        pairs: list[Any] = []
        for name in self._sorted_keys:
            if name in item:
                pairs += (name, item[name])
            elif name in self._defaults:
                pairs += (name, self._defaults[name])
            elif features.current().minor < _KEYS_OPTIONAL_SINCE:
                raise TypingError(self._first_missing_key(item))
        if not pairs:
            names = " ".join(f'"{name}"' for name in self._keys)
            raise TypingError(
                f"associative list with keys has an element that omits all key fields [{names}] "
                "(and doesn't have default values for any key fields)"
            )
        return fieldpath.key(*pairs)

    def _first_missing_key(self, item: Mapping[str, Any]) -> str:
        name = next(name for name in self._keys if name not in item and name not in self._defaults)
        return f'associative list with keys has an element that omits key field "{name}" (and doesn\'t have default value)'

    def _by_element(self, value: Any) -> dict[str, Any]:
        """Returns the items by path element in their order; duplicates are in a `_Repeated`."""
        if value.__class__ is not list:
            return {}
        only = self._only_key
        if only is not None:
            try:
                found = {fieldpath.known_key(only, item[only]): item for item in value}
            except (KeyError, TypeError, fieldpath.TooLongError):  # the key is missing or no scalar, or an item is no object
                found = {}
            if len(found) == len(value):
                return found
        found = {}
        for index, item in enumerate(value):
            try:
                element = self.element(item)
            except TypingError as error:
                raise TypingError(f"element {index}: {error}") from None
            if element not in found:
                found[element] = item
            elif found[element].__class__ is _Repeated:
                found[element].append(item)
            else:
                found[element] = _Repeated((found[element], item))
        return found

    def check(self, value: Any, place: Place, typing: Typing) -> None:
        if value is not None and not isinstance(value, list):
            typing.add(place, f"expected list, got {show(value)}")
        seen: set[str] = set()
        for index, item in enumerate(_items(value)):
            try:
                element = self.element(item)
            except TypingError as error:
                typing.add(place, f"element {index}: {error}")
                return
            if element in seen and not typing.duplicates:
                typing.add(place, f"duplicate entries for key {fieldpath.print_element(element)}")
            seen.add(element)
            if item.__class__ not in self._item.fits:
                self._item.check(item, (place, element), typing)

    def field_set(self, value: Any) -> Tree | None:
        tree: Tree = {}
        for element, item in self._by_element(value).items():
            below = self._item.field_set(item) if item.__class__ is not _Repeated else None
            tree[element] = {SELF: LEAF, **below} if below else LEAF
        return level_in_order(tree) or None

    def read_fields(self, value: Any) -> Tree | None:
        if value.__class__ is not list:
            return super().read_fields(value)
        try:
            items = self._by_element(value)
        except TypingError:
            raise Misfit from None
        if len(items) != len(value):  # two items with one path element
            raise Misfit
        tree: Tree = {}
        for element, item in items.items():
            below = self._item.read_fields(item) if item.__class__ not in self._item.fits else None
            tree[element] = {SELF: LEAF, **below} if below else LEAF
        return level_in_order(tree) or None

    def presence(self, value: Any) -> Tree:
        tree: Tree = {}
        for element, item in self._by_element(value).items():
            tree[element] = LEAF if item.__class__ is _Repeated else self._item.presence(item)
        return {SELF: LEAF, **(level_in_order(tree) if len(tree) > 1 else tree)} if tree else LEAF

    def _presence_of(self, item: Any) -> Tree:
        return LEAF if item.__class__ is _Repeated else self._item.presence(item)

    def compare(self, old: Any, new: Any) -> Difference:
        if old is new or (self.exact and old == new):
            return NOTHING
        before, after = self._by_element(old), self._by_element(new)
        if not before and not after:
            return self.compare_leaf(old, new)
        removed: Tree = {}
        modified: Tree = {}
        added: Tree = {}
        for element, item in after.items():
            if element not in before:
                added[element] = self._presence_of(item)
                continue
            gone, changed, come = self._compare_items(before[element], item)
            if gone is not None:
                removed[element] = gone
            if changed is not None:
                modified[element] = changed
            if come is not None:
                added[element] = come
        for element, item in before.items():
            if element not in after:
                removed[element] = self._presence_of(item)
        trees = [level_in_order(tree) if len(tree) > 1 else tree for tree in (removed, modified, added)]
        return _difference_of(*trees)

    def _compare_items(self, old: Any, new: Any) -> Difference:
        """Compares the items with one path element; duplicates are compared as a whole."""
        repeated = (old.__class__ is _Repeated) + (new.__class__ is _Repeated)
        if repeated == 0:
            return self._item.compare(old, new)
        if repeated == 2:
            return NOTHING if is_same(list(old), list(new)) else (None, LEAF, None)
        return self._presence_of(old), None, self._presence_of(new)

    def merge(self, live: Any, applied: Any) -> Any:
        before, items = _items(live), _items(applied)
        if not before and not items:
            return self.merge_leaf(live, applied)
        if not before or live is applied:
            return applied
        merged = self._merged_items(before, items)
        return live if len(merged) == len(before) and all(map(is_, merged, before)) else merged

    def _merged_items(self, live: list[Any], applied: list[Any]) -> list[Any]:
        """Returns the applied items in their order, each merged with its live item, and the other live items.

        A live item that is not applied keeps its position before the next item that both lists have, as long as both
        lists have these items in the same order.
        """
        left = [self.element(item) for item in live]
        right = [self.element(item) for item in applied]
        if left == right and len(set(left)) == len(left):
            return list(map(self._item.merge, live, applied))
        counterparts: dict[str, Any] = {}
        for element, item in zip(left, live, strict=True):
            counterparts[element] = None if element in counterparts else item
        changes = dict(zip(right, applied, strict=True))
        shared = iter([element for element in right if element in counterparts])
        wanted = next(shared, None)

        merged: list[Any] = []
        done: set[str] = set()

        def take(element: str) -> None:
            done.add(element)
            known = counterparts.get(element)
            merged.append(changes[element] if known is None else self._item.merge(known, changes[element]))

        at_left = at_right = 0
        while at_left < len(left) or at_right < len(right):
            if at_left < len(left) and at_right < len(right):
                element = left[at_left]
                if element == right[at_right]:
                    take(element)
                    at_left += 1
                    at_right += 1
                    wanted = next(shared, None)
                    continue
                if element in changes and wanted is not None and wanted != element:
                    at_left += 1
                    continue
            if at_left < len(left):
                element = left[at_left]
                if element not in changes:
                    merged.append(live[at_left])
                    at_left += 1
                    continue
                if element in done:
                    at_left += 1
            if at_right < len(right):
                element = right[at_right]
                take(element)
                at_right += 1
                if element == wanted:
                    wanted = next(shared, None)
        return merged

    def remove(self, value: Any, items: Tree) -> Any:
        if not value or not isinstance(value, list):
            return None
        kept: list[Any] = []
        for item in value:
            node = items.get(self.element(item))
            if node is None:
                kept.append(item)
            elif not is_member(node):
                kept.append(self._item.remove(item, node))
        return value if len(kept) == len(value) and all(map(is_, kept, value)) else kept or None

    def extract(self, value: Any, items: Tree) -> Any:
        if not value or not isinstance(value, list):
            return value
        kept: list[Any] = []
        for item in value:
            node = items.get(self.element(item))
            if node is not None:
                kept.append(self._item.extract(item, children(node)) if children(node) else item)
        return kept or None

    def with_named_fields(self, tree: Tree) -> Tree:
        result: Tree = {}
        for element, node in tree.items():
            below = children(node)
            if below and element.startswith("k:"):
                below = self._item.with_named_fields(below)
            result[element] = make_node(is_member(node), below)
        return result

    def reconcile(self, node: Tree) -> Tree:
        result = node
        for element, below in node.items():
            new = self._item.reconcile(below) if element != SELF else below
            if new is not below:
                if result is node:
                    result = dict(node)
                result[element] = new
        return result


def _set_element(item: Any) -> str:
    if isinstance(item, dict):
        raise TypingError("associative list without keys has an element that's a map type")
    if isinstance(item, list):
        raise TypingError("not supported: associative list with lists as elements")
    if item is None:
        raise TypingError("associative list without keys has an element that's an explicit null")
    return fieldpath.value(item)
