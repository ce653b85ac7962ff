"""Path elements: the names of fields, list items and set members in a field set.

An element is a string of FieldsV1:

* `f:NAME`, a field of an object;
* `k:{"KEY":VALUE,…}`, the item of a keyed list (keys sorted);
* `v:VALUE`, the item of a set;
* `i:INDEX`, a position (only in sets of clients).

Invariant: equal elements are equal strings, since this module has one canonical form; elements from clients are
converted by `canonical`. Paths are tuples of elements.

Specified by: sigs.k8s.io/structured-merge-diff/fieldpath (element.go, serialize-pe.go) and value (value.go,
fields.go).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import orjson

from fakekube.base.caches import LONGEST_TEXT, cache_by_text, forgettable
from fakekube.base.golang.strconv import go_quote, plain
from fakekube.base.golang.strings import json_text

Path = tuple[str, ...]

#: In a tree of elements: the parent itself is a member of the set.
SELF: Final = "."

_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\b": "\\u0008", "\f": "\\u000c"}
_ESCAPES |= {"\u2028": "\\u2028", "\u2029": "\\u2029"}
_ESCAPED = re.compile("[<>&\b\f\u2028\u2029]")
_BACKSPACE_OR_FEED = re.compile(r"(?<!\\)((?:\\\\)*)\\([bf])")


class ElementError(ValueError):
    """A string is not a valid path element."""


def field(name: str) -> str:
    """Returns the path element of a field of an object."""
    return f"f:{name}"


def value(item: Any) -> str:
    """Returns the path element of an item of a set, a scalar."""
    return _string_value(item) if isinstance(item, str) else f"v:{_json(item)}"


@cache_by_text(4096)
def _string_value(item: str) -> str:
    return f"v:{_json(item)}"


class TooLongError(ValueError):
    """A path element is too long to be kept."""


def key(*names_and_values: Any) -> str:
    """Returns the path element of an item of an associative list; its names (sorted) and values alternate in the arguments."""
    try:
        return known_key(*names_and_values)
    except (TypeError, TooLongError):
        return _key(*names_and_values)


@forgettable
@lru_cache(maxsize=8192, typed=True)  # `typed` distinguishes 1 from True and 1.0
def known_key(*names_and_values: Any) -> str:
    """Returns the same as `key`, from a cache. Raises TypeError for values that are no scalars, TooLongError."""
    text = _key(*names_and_values)
    if len(text) > LONGEST_TEXT:
        raise TooLongError
    return text


def _key(*names_and_values: Any) -> str:
    pairs = zip(names_and_values[::2], names_and_values[1::2], strict=True)
    return "k:{" + ",".join(f"{_json(name)}:{_json(item)}" for name, item in pairs) + "}"


def _json(item: Any) -> str:
    """Encodes a value as JSON as in path elements."""
    if isinstance(item, str):
        text = json_text(item)
        if "\\" in text:
            text = _BACKSPACE_OR_FEED.sub(lambda m: m[1] + _ESCAPES["\b" if m[2] == "b" else "\f"], text)
        return _ESCAPED.sub(lambda m: _ESCAPES[m[0]], text)
    if isinstance(item, float) and item.is_integer() and abs(item) < 1e21:
        return str(int(item))
    if isinstance(item, int) and not isinstance(item, bool):
        return str(item)
    if isinstance(item, dict):
        return "{" + ",".join(f"{_json(name)}:{_json(item[name])}" for name in sorted(item)) + "}"
    if isinstance(item, list):
        return f"[{','.join(map(_json, item))}]"
    return json_text(item)


@cache_by_text(8192)
def canonical(text: str) -> str | None:
    """Parses a path element of a client and returns its canonical form; None for an unknown prefix, which sets ignore.

    Raises:
        ElementError: the string is not a valid path element.
    """
    kind, content = text[:2], text[2:]
    if len(kind) < 2 or kind[1] != ":":
        raise ElementError(text)
    if kind == "f:":
        return text
    if kind == "v:":
        return f"v:{_json(_loads(content))}"
    if kind == "k:":
        keys = _loads(content)
        if not isinstance(keys, dict):
            raise ElementError(text)
        return _key(*_alternate(keys))
    if kind == "i:":
        if not re.fullmatch(r"[+-]?[0-9]+", content):
            raise ElementError(text)
        return f"i:{int(content)}"
    return None


def _alternate(keys: Mapping[str, Any]) -> Iterable[Any]:
    for name in sorted(keys):
        yield name
        yield keys[name]


def _loads(text: str) -> Any:
    try:
        return orjson.loads(text)
    except ValueError:
        raise ElementError(text) from None


@cache_by_text(8192)
def order(element: str) -> tuple[Any, ...]:
    """Returns the sort key of path elements: fields, keys, values, indexes."""
    kind, content = element[:2], element[2:]
    if kind == "f:":
        return 1, content
    if kind == "k:":
        return 2, tuple((name, _rank(item)) for name, item in orjson.loads(content).items())
    if kind == "v:":
        return 3, _rank(orjson.loads(content))
    return (4, int(content)) if kind == "i:" else (0,)


def _rank(item: Any) -> tuple[Any, ...]:
    """Returns a sort key that is a total order of JSON values: numbers, strings, booleans, lists, objects, null."""
    if isinstance(item, bool):
        return 2, item
    if isinstance(item, int | float):
        return 0, item
    if isinstance(item, str):
        return 1, item
    if isinstance(item, list):
        return 3, tuple(map(_rank, item))
    if isinstance(item, dict):
        return 4, tuple((name, _rank(item[name])) for name in sorted(item))
    return (5,)


def print_element(element: str) -> str:
    """Prints a path element as in error messages: `.name`, `[key="x"]`, `[="x"]`, `[0]`."""
    kind, content = element[:2], element[2:]
    if kind == "f:":
        return f".{content}"
    if kind == "k:":
        keys = orjson.loads(content)
        return "[" + ",".join(f"{name}={_print_value(item)}" for name, item in keys.items()) + "]"
    if kind == "v:":
        return f"[={_print_value(orjson.loads(content))}]"
    return f"[{content}]"


def print_path(path: Path) -> str:
    """Prints a path as in error messages: `.spec.containers[name="x"]`."""
    return "".join(map(print_element, path))


def _print_value(item: Any) -> str:
    if isinstance(item, str):
        return go_quote(item)
    if isinstance(item, list):
        return f"[{','.join(map(_print_value, item))}]"
    if isinstance(item, dict):
        return "".join(f"{name}={_print_value(entry)}" for name, entry in item.items())
    return "null" if item is None else plain(item)


# --- Field sets: the fields that a manager owns or a change affects --------------------------------------------------
# A set is a tree in the form of FieldsV1: an object whose members are path elements. An element with an empty
# object is a member of the set; an element with children is a member only if they include `.`. So the sets of stored
# objects are used without conversion, and results share unchanged parts.
#
# Invariant: trees are never changed; no element has an empty set of children that is not a leaf; elements are
# canonical and in canonical order (`order`), which every operation keeps.
#
# Specified by: sigs.k8s.io/structured-merge-diff/fieldpath (set.go, serialize.go).


Tree = dict[str, Any]
"""Path element → the tree of its children."""

#: A member of a set without children. Shared; never changed.
LEAF: Final[Tree] = {}


class FieldSetError(ValueError):
    """JSON is not a valid field set."""


class FieldSet:
    """An immutable set of paths with the operations `|`, `&`, `-`, `in` and iteration.

    `-` is the difference of members: it removes a parent but not its children. `without` removes the children, too.
    """

    __slots__ = ("tree",)

    def __init__(self, tree: Tree = LEAF) -> None:
        self.tree = tree

    @classmethod
    def from_paths(cls, *paths: Path) -> FieldSet:
        """Makes a set of paths. The empty path (the whole object) is never a member."""
        tree: Tree = {}
        for path in paths:
            if path:
                _insert(tree, path)
        return cls(_put_in_order(tree))

    @classmethod
    def from_json(cls, value: Any) -> FieldSet:
        """Decodes FieldsV1 of a client, in any order and form. Raises FieldSetError."""
        tree, _ = _read(value)
        return cls(_put_in_order(tree))

    def __or__(self, other: FieldSet) -> FieldSet:
        if not self.tree or not other.tree:
            return self if self.tree else other
        return FieldSet(union(self.tree, other.tree))

    def __and__(self, other: FieldSet) -> FieldSet:
        if not self.tree or not other.tree:
            return EMPTY
        return FieldSet(intersection(self.tree, other.tree))

    def __sub__(self, other: FieldSet) -> FieldSet:
        if not self.tree or not other.tree:
            return self
        return self._replace_tree(difference(self.tree, other.tree))

    def recursive_difference(self, other: FieldSet) -> FieldSet:
        """Returns the recursive difference: without the members of `other` and all paths below them."""
        return self._replace_tree(recursive_difference(self.tree, other.tree))

    def _replace_tree(self, tree: Tree) -> FieldSet:
        return self if tree is self.tree else FieldSet(tree)

    def starting_with(self, element: str) -> FieldSet:
        """Returns the paths that begin with an element."""
        return FieldSet({element: self.tree[element]}) if element in self.tree else EMPTY

    def leaves(self) -> FieldSet:
        """Returns the members without children."""
        return FieldSet(_leaves(self.tree))

    def matching(self, patterns: Sequence[tuple[str | None, ...]]) -> FieldSet:
        """Returns the paths with one of the patterns as a prefix (None matches any element), and their parents."""
        return FieldSet(_matching(self.tree, patterns))

    def __contains__(self, path: Path) -> bool:
        node: Tree | None = self.tree
        for element in path:
            node = node.get(element) if node is not None else None
        return bool(path) and node is not None and is_member(node)

    def __iter__(self) -> Iterator[Path]:
        """Yields all members; those of a level before those below it."""
        return _paths(self.tree, ())

    def __len__(self) -> int:
        return sum(1 for _ in _paths(self.tree, ()))

    def __bool__(self) -> bool:
        return bool(self.tree)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FieldSet) and self.tree == other.tree

    def __hash__(self) -> int:
        return hash(frozenset(self))

    def __repr__(self) -> str:
        return f"FieldSet({self.tree!r})"


EMPTY: Final = FieldSet()


def _insert(tree: Tree, path: Path) -> None:
    """Adds a path to a tree that is not shared yet."""
    *parents, last = path
    for element in parents:
        node = tree.get(element)
        if not node:
            tree[element] = {} if node is None else {SELF: LEAF}
        tree = tree[element]
    if tree.get(last):
        tree[last][SELF] = LEAF
    else:
        tree[last] = LEAF


def is_member(node: Tree) -> bool:
    """Reports whether the element of this node is a member of the set."""
    return not node or SELF in node


def children(node: Tree) -> Tree:
    """Returns the node without the mark of its own membership."""
    if SELF not in node:
        return node
    return {element: below for element, below in node.items() if element != SELF}


def make_node(member: bool, below: Tree) -> Tree | None:
    """Makes the node of an element with these children, which may be a member; None if it is not and has no children."""
    if not below:
        return LEAF if member else None
    return {SELF: LEAF, **below} if member else below


# --- Operations on trees ---------------------------------------------------------------------------------------------
# They work on sets and on nodes: if both nodes have children, the mark of membership is handled like any other element.
# `_..._of_nodes` handle the leaves.


def union(a: Tree, b: Tree) -> Tree:
    """Returns the union of two sets."""
    if not a or a is b:
        return b
    if a == b:  # cheaper than a merge
        return a
    result = a
    for element, node in b.items():
        known = a.get(element)
        merged = node if known is None else _union_of_nodes(known, node)
        if merged is not known:
            if result is a:
                result = dict(a)
            result[element] = merged
    return result if len(result) == len(a) else level_in_order(result)


def _union_of_nodes(a: Tree, b: Tree) -> Tree:
    if a and b:
        return union(a, b)
    longer = a or b
    return longer if is_member(longer) else {SELF: LEAF, **longer}


def difference(a: Tree, b: Tree) -> Tree:
    """Returns the members of `a` that are not in `b`."""
    if not b:
        return a
    if a is b or a == b:  # cheaper than the difference
        return LEAF
    result = a
    for element, other in b.items():
        node = a.get(element)
        if node is None:
            continue
        left: Tree | None
        if not node:  # the most frequent case
            left = None if not other or SELF in other else node
        else:
            left = _as_node(difference(node, other)) if other else children(node)
        if left is not node:
            if result is a:
                result = dict(a)
            if left is None:
                del result[element]
            else:
                result[element] = left
    return result


def recursive_difference(a: Tree, b: Tree) -> Tree:
    """Returns the members of `a` that are neither in `b` nor below a member of it."""
    result = a
    for element, other in b.items():
        node = a.get(element)
        if node is None:
            continue
        left = None if is_member(other) else _as_node(recursive_difference(node, other)) if node else node
        if left is not node:
            if result is a:
                result = dict(a)
            if left is None:
                del result[element]
            else:
                result[element] = left
    return result


def intersection(a: Tree, b: Tree) -> Tree:
    """Returns the intersection of two sets."""
    if a is b or a == b:
        return a
    result: Tree = {}
    for element, node in a.items():
        other = b.get(element)
        if other is None:
            continue
        common = _intersection_of_nodes(node, other)
        if common is not None:
            result[element] = common
    return result


def _intersection_of_nodes(a: Tree, b: Tree) -> Tree | None:
    if a and b:
        return _as_node(intersection(a, b))
    return LEAF if is_member(a) and is_member(b) else None


def _as_node(tree: Tree) -> Tree | None:
    """Converts remaining children to a node: None if there are none, a leaf if there is only the mark of membership."""
    if not tree:
        return None
    return LEAF if len(tree) == 1 and SELF in tree else tree


def _leaves(tree: Tree) -> Tree:
    return {element: _leaves(children(node)) for element, node in tree.items()}


def _matching(tree: Tree, patterns: Sequence[tuple[str | None, ...]]) -> Tree:
    if any(not pattern for pattern in patterns):
        return tree
    result: Tree = {}
    for element, node in tree.items():
        rests = [pattern[1:] for pattern in patterns if pattern[0] in (None, element)]
        kept = make_node(is_member(node), _matching(children(node), rests)) if rests else None
        if kept is not None:
            result[element] = kept
    return result


def _paths(tree: Tree, prefix: Path) -> Iterator[Path]:
    for element, node in tree.items():
        if element != SELF and is_member(node):
            yield (*prefix, element)
    for element, node in tree.items():
        if node:
            yield from _paths(node, (*prefix, element))


def level_in_order(tree: Tree) -> Tree:
    """Returns the tree with the elements of its first level in canonical order."""
    if len(tree) < 2:
        return tree
    in_order = sorted(tree)
    if in_order[-1][0] != "f":  # string order is the canonical order of fields, which sort before i:, k: and v:
        in_order.sort(key=order)
    return {element: tree[element] for element in in_order}


def _put_in_order(tree: Tree) -> Tree:
    """Returns the tree with the elements of every level in canonical order."""
    return level_in_order({element: _put_in_order(node) if node else LEAF for element, node in tree.items()})


def _read(value: Any) -> tuple[Tree, bool]:
    """Decodes the children of a node of a client, and whether it is marked as a member."""
    if value is None:
        return LEAF, False
    if not isinstance(value, Mapping):
        raise FieldSetError(f"expected an object, got {value!r}")
    tree: Tree = {}
    marked = False
    for text, below in value.items():
        if text == SELF:
            marked = True
            continue
        try:
            element = canonical(text)
        except ElementError as error:
            raise FieldSetError(f"not a path element: {error}") from None
        if element is None:
            continue
        grandchildren, is_marked = _read(below)
        node = make_node(is_marked or not grandchildren, grandchildren)
        if node is not None:
            tree[element] = _union_of_nodes(tree[element], node) if element in tree else node
    return tree, marked
