"""The operations of apply on values, which depend on their types.

An `Atom` is the type of a value for merging: a scalar, a list, a map, or a choice that depends on the value.
Each operation of apply is a method of atoms: `Scalar` and `Choice` in this module, `Map`, `AtomicList` and `ItemList` in
`containers`; `schema` makes them from the model.

All methods take plain JSON values and return values or trees of field sets (see `fields`). Invariant: arguments are
never changed, results share unchanged parts, and an unchanged result is the same object. A value of another shape
than its atom counts as empty.

Specified by: sigs.k8s.io/structured-merge-diff/typed (validate.go, tofieldset.go, compare.go, merge.go,
remove.go, reconcile_schema.go, helpers.go) and fieldpath/set.go (EnsureNamedFieldsAreMembers).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Final

from fakekube.apimachinery.patch.apply.fieldpath import LEAF, Tree, print_element, union
from fakekube.base.golang.json_writer import RawObject
from fakekube.base.golang.strconv import GoValue, go_syntax, go_type, plain


class TypingError(Exception):
    """A value does not conform to its type; has the message of the real server."""


Place = tuple["Place", str] | None
"""The path of a value: the path of its parent and its path element. Converted to a string only for errors."""


class Typing:
    """Collects the errors of a value.

    Args:
        duplicates: allow duplicate items in associative lists and sets.
    """

    __slots__ = ("duplicates", "problems")

    def __init__(self, *, duplicates: bool = False) -> None:
        self.duplicates = duplicates
        self.problems: list[str] = []

    def add(self, place: Place, problem: str) -> None:
        path = ""
        while place is not None:
            place, element = place
            path = print_element(element) + path
        self.problems.append(f"{path}: {problem}" if path else problem)

    def raise_if_any(self) -> None:
        if len(self.problems) == 1:
            raise TypingError(self.problems[0])
        if self.problems:
            raise TypingError("\n  ".join(["errors:", *self.problems]))


class Misfit(Exception):
    """A value does not conform to its type; `Atom.check` says why."""


Difference = tuple[Tree | None, Tree | None, Tree | None]
"""The result of comparing two values: what was removed, modified and added; None for an empty tree. (To make a named tuple takes
longer than to compare a value.)"""

NOTHING: Final[Difference] = (None, None, None)
_MODIFIED: Final[Difference] = (None, LEAF, None)

#: The classes of containers; any other value is a leaf for every atom.
CONTAINERS: Final = frozenset({dict, list})


def is_same(a: Any, b: Any, *, texts: bool = False) -> bool:
    """Reports whether JSON values are equal. Numbers compare by value; booleans are not numbers.

    `texts`: of values of any form the texts must be equal, too, as for an update; an apply has no texts.
    """
    if a is b:
        return True
    if texts and (isinstance(a, RawObject) or isinstance(b, RawObject)):
        return bool(a == b)
    if isinstance(a, bool) or isinstance(b, bool):
        return False
    if isinstance(a, dict):
        if not isinstance(b, dict) or a.keys() != b.keys():
            return False
        pairs = zip(a.values(), map(b.__getitem__, a), strict=True)
    elif isinstance(a, list):
        if not isinstance(b, list) or len(a) != len(b):
            return False
        pairs = zip(a, b, strict=True)
    else:
        return bool(a == b)
    for one, other in pairs:  # noqa: SIM110 - a generator would need room on the stack of C
        if not is_same(one, other, texts=texts):
            return False
    return True


class Atom(ABC):
    """See the module."""

    exact: bool = True
    """Whether Python's equality is correct for its values: no part can be both a boolean and a number."""
    is_leaf: bool = False
    """Whether all its values are leaves."""
    fits: frozenset[object] = frozenset({type(None)})
    """The classes of values that need no validation."""

    @abstractmethod
    def check(self, value: Any, place: Place, typing: Typing) -> None:
        """Validates a value, which may be absent (None); adds the errors to `typing`."""

    @abstractmethod
    def field_set(self, value: Any) -> Tree | None:
        """Returns the field set of a value in an applied configuration; None if it is empty."""

    def read_fields(self, value: Any) -> Tree | None:
        """Validates a value and returns its field set, in one walk where the value has parts. Raises Misfit."""
        typing = Typing()
        self.check(value, None, typing)
        if typing.problems:
            raise Misfit
        return self.field_set(value)

    @abstractmethod
    def presence(self, value: Any) -> Tree:
        """Returns the field set of a value that was added or removed as a whole, including its own element."""

    @abstractmethod
    def compare(self, old: Any, new: Any) -> Difference:
        """Compares two values that are present; either may be null."""

    @abstractmethod
    def merge(self, live: Any, applied: Any) -> Any:
        """Merges an applied value into the live one; both are present. Returns the live value itself if nothing changes."""

    def remove(self, value: Any, items: Tree) -> Any:
        """Removes the members of a set from a value; a container that becomes empty becomes null."""
        return value

    def extract(self, value: Any, items: Tree) -> Any:
        """Extracts the members of a set and their parents from a value."""
        return value

    def with_named_fields(self, tree: Tree) -> Tree:
        """Returns the set with all struct fields on the paths of members as members (EnsureNamedFieldsAreMembers)."""
        return tree

    def reconcile(self, node: Tree) -> Tree:
        """Returns the set for this version of the type: paths below an atomic value become the value itself."""
        return node

    def atomics(self, value: Any, path: str) -> Iterator[str]:
        """Yields the paths of the atomic lists, maps and structs in a value whose own path is `path`."""
        return iter(())

    def compare_leaf(self, old: Any, new: Any) -> Difference:
        """Compares two leaves."""
        equal = old == new if self.exact else is_same(old, new, texts=True)
        return NOTHING if equal else _MODIFIED

    def merge_leaf(self, live: Any, applied: Any) -> Any:
        """Returns the applied value, or the live one if it is equal and of the same Python type."""
        if live.__class__ is not applied.__class__:
            return applied
        equal = live == applied if self.exact else is_same(live, applied)
        return live if equal else applied


class Leaf(Atom):
    """An atom of which all values are leaves."""

    is_leaf = True

    def field_set(self, value: Any) -> Tree | None:
        return LEAF

    def presence(self, value: Any) -> Tree:
        return LEAF

    def compare(self, old: Any, new: Any) -> Difference:
        return self.compare_leaf(old, new)

    def merge(self, live: Any, applied: Any) -> Any:
        return self.merge_leaf(live, applied)


class Scalar(Leaf):
    """A leaf of one kind."""

    def __init__(self, kind: str) -> None:
        """
        Args:
            kind: "string", "numeric", "boolean" or "untyped".
        """
        self._problem = _SCALAR_CHECKS[kind]
        self.fits = _FITTING[kind]
        self.exact = kind != "untyped"

    def check(self, value: Any, place: Place, typing: Typing) -> None:
        problem = self._problem(value) if value is not None else None
        if problem is not None:
            typing.add(place, problem)


def _check_string(value: Any) -> str | None:
    if isinstance(value, str):
        return None
    return f"expected string, got &value.valueUnstructured{{Value:{go_syntax(value)}}}"


def _check_numeric(value: Any) -> str | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return None
    return f"expected numeric (int or float), got {go_type(value)}"


def _check_boolean(value: Any) -> str | None:
    return None if isinstance(value, bool) else f"expected boolean, got {show(value)}"


def _check_untyped(value: Any) -> str | None:
    return f"expected any scalar, got {show(value)}" if isinstance(value, dict | list | GoValue) else None


_SCALAR_CHECKS = {"string": _check_string, "numeric": _check_numeric, "boolean": _check_boolean, "untyped": _check_untyped}


_NULL: Final = type(None)
_FITTING: Final = {
    "string": frozenset({str, _NULL}),
    "numeric": frozenset({int, float, _NULL}),
    "boolean": frozenset({bool, _NULL}),
    "untyped": frozenset({str, int, float, bool, _NULL}),
}


def show(value: Any) -> str:
    """Prints a value like value.ToString of structured-merge-diff."""
    return f"&{{{plain(value)}}}"


class Choice(Atom):
    """Any value: the class of the value selects the alternative."""

    def __init__(self, *, exact: bool) -> None:
        """The alternatives are set afterwards, since they may refer to this atom."""
        self.exact = exact
        self.fits = _FITTING["untyped"]
        self.scalar: Atom
        self.list: Atom
        self.map: Atom

    def _alternative_for(self, value: Any) -> Atom:
        """Returns the alternative for a value; that of null is the map."""
        if value is None or isinstance(value, dict | GoValue):
            return self.map
        return self.list if isinstance(value, list) else self.scalar

    def check(self, value: Any, place: Place, typing: Typing) -> None:
        self._alternative_for(value).check(value, place, typing)

    def field_set(self, value: Any) -> Tree | None:
        return self._alternative_for(value).field_set(value)

    def read_fields(self, value: Any) -> Tree | None:
        return self._alternative_for(value).read_fields(value)

    def presence(self, value: Any) -> Tree:
        return self._alternative_for(value).presence(value)

    def compare(self, old: Any, new: Any) -> Difference:
        """Compares values; those of different alternatives as a removal in one and an addition in the other."""
        before, after = self._alternative_for(old), self._alternative_for(new)
        found = after.compare(old, new)
        if before is after:
            return found
        other = before.compare(old, new)
        removed, modified, added = map(_join, found, other)
        return removed, modified, added

    def merge(self, live: Any, applied: Any) -> Any:
        return self._alternative_for(applied).merge(live, applied)

    def remove(self, value: Any, items: Tree) -> Any:
        return self._alternative_for(value).remove(value, items)

    def extract(self, value: Any, items: Tree) -> Any:
        return self._alternative_for(value).extract(value, items)

    def atomics(self, value: Any, path: str) -> Iterator[str]:
        return self._alternative_for(value).atomics(value, path)

    def with_named_fields(self, tree: Tree) -> Tree:
        return self.map.with_named_fields(tree)

    def reconcile(self, node: Tree) -> Tree:
        return self.map.reconcile(node)


def _join(a: Tree | None, b: Tree | None) -> Tree | None:
    if a is None or b is None:
        return b if a is None else a
    return union(a, b)
