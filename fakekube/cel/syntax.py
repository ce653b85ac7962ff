"""What an expression is once it has been parsed.

A tree of nodes, each with the position (in characters) at which the real compiler reports its errors. Operators are
calls of functions with the names that the real compiler prints (`_+_`, `_[_]`, `!_`); the macros that loop are nodes of
their own, because they are evaluated, not expanded.

Specified by: cel-spec, doc/langdef.md; names of operators: cel-go/common/operators.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = [
    "Call", "Identifier", "ListLiteral", "Literal", "Loop", "MapLiteral", "MessageLiteral", "Node", "Select", "dotted",
    "references",
]


@dataclass(slots=True, frozen=True)
class Node:
    """Any expression."""

    position: int
    """Where its errors are reported: characters from the start."""


@dataclass(slots=True, frozen=True)
class Literal(Node):
    """A constant: `value` is a value of `fakekube.cel.values`."""

    value: Any


@dataclass(slots=True, frozen=True)
class Identifier(Node):
    """A variable, or a type."""

    name: str


@dataclass(slots=True, frozen=True)
class Select(Node):
    """`operand.field`; with `test` it is `has(operand.field)`, with `optional` `operand.?field`."""

    operand: Node
    field: str
    test: bool = False
    optional: bool = False


@dataclass(slots=True, frozen=True)
class Call(Node):
    """A function, a method of `target`, or an operator."""

    function: str
    arguments: tuple[Node, ...]
    target: Node | None = None


@dataclass(slots=True, frozen=True)
class ListLiteral(Node):
    """`[a, ?b]`; `optional` are the indices of elements with a question mark."""

    elements: tuple[Node, ...]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True, frozen=True)
class MapLiteral(Node):
    """`{a: b, ?c: d}`."""

    entries: tuple[tuple[Node, Node], ...]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True, frozen=True)
class MessageLiteral(Node):
    """`Name{field: a, ?other: b}`; `fields` are (position, name, value)."""

    name: str
    fields: tuple[tuple[int, str, Node], ...]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True, frozen=True)
class Loop(Node):
    """A macro with variables of its own: `all`, `exists`, `exists_one`, `map`, `filter`, `transformList`, `optMap` …"""

    macro: str
    target: Node
    variables: tuple[str, ...]
    bodies: tuple[Node, ...]
    """The arguments after the variables: [condition,] expression."""


def dotted(node: Node) -> str:
    """`a.b.c`, if the expression is such a name; else nothing, or no name."""
    if isinstance(node, Identifier):
        return node.name
    if isinstance(node, Select) and not node.test and (before := dotted(node.operand)):
        return f"{before}.{node.field}"
    return ""


def references(node: Node, name: str) -> bool:
    """Is the variable used, where no variable of a loop hides it?"""
    match node:
        case Identifier():
            return node.name == name
        case Select():
            return references(node.operand, name)
        case Call():
            targets = (node.target,) if node.target else ()
            return any(references(part, name) for part in (*targets, *node.arguments))
        case ListLiteral():
            return any(references(part, name) for part in node.elements)
        case MapLiteral():
            return any(references(part, name) for entry in node.entries for part in entry)
        case MessageLiteral():
            return any(references(part, name) for _, _, part in node.fields)
        case Loop():
            hidden = name in node.variables
            return references(node.target, name) or (not hidden and any(references(body, name) for body in node.bodies))
    return False
