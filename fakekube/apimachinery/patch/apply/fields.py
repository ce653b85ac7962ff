"""Field sets: the fields that a manager owns or a change affects.

A set is a tree in the form of FieldsV1: an object whose members are path elements. An element with an empty
object is a member of the set; an element with children is a member only if they include `.`. So the sets of stored
objects are used without conversion, and results share unchanged parts.

Invariant: trees are never changed; no element has an empty set of children that is not a leaf; elements are
canonical and in canonical order (see `elements`), which every operation keeps.

Specified by: sigs.k8s.io/structured-merge-diff/fieldpath (set.go, serialize.go).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fakekube.apimachinery.patch.apply.elements import SELF, ElementError, Path, canonical, order

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
    def of(cls, *paths: Path) -> FieldSet:
        """Makes a set of paths. The empty path (the whole object) is never a member."""
        tree: Tree = {}
        for path in paths:
            if path:
                _insert(tree, path)
        return cls(ordered(tree))

    @classmethod
    def from_json(cls, value: Any) -> FieldSet:
        """Decodes FieldsV1 of a client, in any order and form. Raises FieldSetError."""
        tree, _ = _read(value)
        return cls(ordered(tree))

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
        return self._with(difference(self.tree, other.tree))

    def without(self, other: FieldSet) -> FieldSet:
        """Returns the recursive difference: without the members of `other` and all paths below them."""
        return self._with(recursive_difference(self.tree, other.tree))

    def _with(self, tree: Tree) -> FieldSet:
        return self if tree is self.tree else FieldSet(tree)

    def leaves(self) -> FieldSet:
        """Returns the members without children."""
        return FieldSet(_leaves(self.tree))

    def below(self, element: str) -> FieldSet:
        """Returns the paths that begin with `element`, relative to it."""
        return FieldSet(children(self.tree.get(element, LEAF)))

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


def joined(member: bool, below: Tree) -> Tree | None:
    """Makes the node of an element with these children, which may be a member; None if it is not and has no children."""
    if not below:
        return LEAF if member else None
    return {SELF: LEAF, **below} if member else below


# The operations below work on sets and on nodes: if both nodes have children, the mark of membership is handled like any
# other element. `_..._of_nodes` handle the leaves.


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
        kept = joined(is_member(node), _matching(children(node), rests)) if rests else None
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


def ordered(tree: Tree) -> Tree:
    """Returns the tree with the elements of every level in canonical order."""
    return level_in_order({element: ordered(node) if node else LEAF for element, node in tree.items()})


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
        node = joined(is_marked or not grandchildren, grandchildren)
        if node is not None:
            tree[element] = _union_of_nodes(tree[element], node) if element in tree else node
    return tree, marked
