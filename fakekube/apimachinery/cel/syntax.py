"""The syntax tree of an expression.

A tree of nodes, each with the position (in characters) at which the real compiler reports its errors. Operators are
calls of functions with the names in error messages (`_+_`, `_[_]`, `!_`). Macros with variables are nodes of their own
(`Loop`): they are evaluated directly, and checked and estimated as their expansion (`fakekube.apimachinery.cel.parser`).

Nodes are compared by identity, so that the checker can use them as keys.

Specified by: cel-spec, doc/langdef.md; names of operators: cel-go/common/operators.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from fakekube.apimachinery.cel.lexer import RESERVED


@dataclass(slots=True, frozen=True, eq=False)
class Node:
    """Any expression."""

    position: int
    """The position of its errors, in characters from the start."""


@dataclass(slots=True, frozen=True, eq=False)
class Literal(Node):
    """A constant: `value` is a value of `fakekube.apimachinery.cel.values`."""

    value: Any


@dataclass(slots=True, frozen=True, eq=False)
class Identifier(Node):
    """A variable, or a type."""

    name: str


@dataclass(slots=True, frozen=True, eq=False)
class Select(Node):
    """`operand.field`; with `test` it is `has(operand.field)`, with `optional` `operand.?field`."""

    operand: Node
    field: str
    test: bool = False
    optional: bool = False


@dataclass(slots=True, frozen=True, eq=False)
class Call(Node):
    """A call of a function, a method of `target`, or an operator."""

    function: str
    arguments: tuple[Node, ...]
    target: Node | None = None

    @property
    def operands(self) -> tuple[Node, ...]:
        """The target, if there is one, and the arguments."""
        return self.arguments if self.target is None else (self.target, *self.arguments)


@dataclass(slots=True, frozen=True, eq=False)
class ListLiteral(Node):
    """`[a, ?b]`; `optional` are the indices of elements with a question mark."""

    elements: tuple[Node, ...]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True, frozen=True, eq=False)
class MapLiteral(Node):
    """`{a: b, ?c: d}`."""

    entries: tuple[tuple[Node, Node], ...]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True, frozen=True, eq=False)
class MessageLiteral(Node):
    """`Name{field: a, ?other: b}`."""

    name: str
    fields: tuple[tuple[int, str, Node], ...]
    """(position of the colon, field, value)."""
    optional: frozenset[int] = frozenset()


@dataclass(slots=True, frozen=True, eq=False)
class Loop(Node):
    """A macro with variables of its own: `all`, `exists`, `exists_one`, `map`, `filter`, `transformList`, `optMap` …"""

    macro: str
    target: Node
    variables: tuple[Identifier, ...]
    bodies: tuple[Node, ...]
    """The arguments after the variables: [condition,] expression."""


@dataclass(slots=True, frozen=True, eq=False)
class Comprehension(Node):
    """The expansion of a macro: folds a range into an accumulator."""

    range: Node
    variables: tuple[str, ...]
    accumulator: str
    initial: Node
    condition: Node
    step: Node
    result: Node


def parts(node: Node) -> tuple[Node, ...]:
    """Returns the children of a node, in the order of the source."""
    match node:
        case Select():
            return (node.operand,)
        case Call():
            return node.operands
        case ListLiteral():
            return node.elements
        case MapLiteral():
            return tuple(part for entry in node.entries for part in entry)
        case MessageLiteral():
            return tuple(value for _, _, value in node.fields)
        case Loop():
            return (node.target, *node.bodies)
    return ()


def descendants(node: Node) -> Iterator[Node]:
    """Yields the node and all its descendants, outer ones first."""
    waiting = [node]
    while waiting:
        here = waiting.pop()
        yield here
        waiting.extend(reversed(parts(here)))


def called(node: Node) -> frozenset[str]:
    """Returns the functions, methods, operators and macros that an expression calls."""
    found = set()
    for here in descendants(node):
        if isinstance(here, Call):
            found.add(here.function)
        elif isinstance(here, Loop):
            found.add(here.macro)
    return frozenset(found)


def references(node: Node, name: str) -> bool:
    """Reports whether a variable is used where no variable of a macro shadows it."""
    if isinstance(node, Identifier):
        return node.name == name
    if isinstance(node, Loop) and any(variable.name == name for variable in node.variables):
        return references(node.target, name)
    return any(references(part, name) for part in parts(node))


def qualified_name(node: Node) -> str:
    """Returns the qualified name of a chain of selections (`a.b.c`); "" for other nodes."""
    names = []
    while isinstance(node, Select) and not (node.test or node.optional):
        names.append(node.field)
        node = node.operand
    return ".".join((node.name, *reversed(names))) if isinstance(node, Identifier) else ""


# ---------------------------------------------------------------------------------------------------------------------
# Escapes property names as identifiers: `my-key` is `my__dash__key`, `namespace` is `__namespace__`.
#
# Specified by: k8s.io/apiserver/pkg/cel/escaping.go.


_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_WORDS: Final = {"underscores": "__", "dot": ".", "dash": "-", "slash": "/"}
_NAME = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*")
_SPECIAL = re.compile(r"__|[-./]")
_ESCAPED = re.compile(r"__([^_]+)__")


@lru_cache(maxsize=4096)
def escape(name: str) -> str | None:
    """Returns the identifier of a property; None if it cannot be escaped."""
    if name in RESERVED:
        return f"__{name}__"
    if not _NAME.fullmatch(name):
        return None
    return _SPECIAL.sub(lambda match: _ESCAPES[match[0]], name)


@lru_cache(maxsize=4096)
def unescape(identifier: str) -> str | None:
    """Returns the property of an identifier; None if it is not one of a property."""
    wrong = False

    def replace(match: re.Match[str]) -> str:
        nonlocal wrong
        word = match[1]
        if word in _WORDS:
            return _WORDS[word]
        wrong = wrong or word not in RESERVED or match[0] != identifier
        return word

    name = _ESCAPED.sub(replace, identifier)
    return None if wrong else name
