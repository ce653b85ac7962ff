"""Validates the literals of a checked expression: mixed types in lists and maps, patterns, times, templates of
`format`.

Specified by: cel-go/cel/validator.go, cel-go/ext/formatting.go (stringFormatValidator).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from fakekube.apimachinery.cel.errors import EvaluationError, Issue
from fakekube.apimachinery.cel.functions import call
from fakekube.apimachinery.cel.libraries.formatting import MISFITS, filled
from fakekube.apimachinery.cel.libraries.regex import compiled
from fakekube.apimachinery.cel.syntax import Call, ListLiteral, Literal, Loop, MapLiteral, Node, descendants, parts
from fakekube.apimachinery.cel.types import DYN, Type, equivalent

Types = Mapping[Node, Type]


def literal_issues(tree: Node, types: Types, calls: Mapping[Node, Any]) -> list[Issue]:
    """Returns the errors in the literals of a checked expression, all of whose nodes have types.

    `calls` has the calls that were found to be some.
    """
    found = list[Issue]()
    if not any(map(_is_looked_at, types)):
        return found
    exempt: set[Node] | None = None
    for node, times in _occurrences(tree):
        if isinstance(node, Call):
            found += list(_argument_issues(node, types)) * times if node in calls else ()
        elif isinstance(node, ListLiteral | MapLiteral):
            exempt = _within_format(tree) if exempt is None else exempt
            found += list(_content_issues(node, types)) * times if node not in exempt else ()
    return found


def _content_issues(node: ListLiteral | MapLiteral, types: Types) -> Iterator[Issue]:
    if isinstance(node, ListLiteral):
        yield from _mixed(node.elements, node.optional, types, stop=True)
    else:
        yield from _mixed([key for key, _ in node.entries], frozenset(), types)
        yield from _mixed([value for _, value in node.entries], node.optional, types)


def _is_looked_at(node: Node) -> bool:
    if isinstance(node, Call):
        return node.function in _ATTEMPTS or node.function == "format"
    return isinstance(node, ListLiteral | MapLiteral)


#: The maximum number of reported issues.
_MAXIMUM_ISSUES: Final = 1000


def _occurrences(tree: Node) -> Iterator[tuple[Node, int]]:
    """Yields the nodes with the number of their occurrences in the expansion; that of `optMap` has its target twice."""
    waiting = [(tree, 1)]
    while waiting:
        node, times = waiting.pop()
        yield node, times
        twice = node.target if isinstance(node, Loop) and node.macro in ("optMap", "optFlatMap") else None
        below = [(part, min(2 * times, _MAXIMUM_ISSUES) if part is twice else times) for part in parts(node)]
        waiting.extend(reversed(below))


def _within_format(tree: Node) -> set[Node]:
    """Returns the nodes within calls of `format`, whose arguments may have mixed types."""
    return {
        inner
        for node in descendants(tree)
        if isinstance(node, Call) and node.function == "format"
        for part in parts(node)
        for inner in descendants(part)
    }


def _mixed(elements: Any, optional: frozenset[int], types: Types, *, stop: bool = False) -> Iterator[Issue]:
    """Yields an issue for each element with another type than the first (`stop`: at most one)."""
    seen = [_content(types[node]) if number in optional else types[node] for number, node in enumerate(elements)]
    for node, each in zip(elements[1:], seen[1:], strict=True):
        if not equivalent(seen[0], each):
            yield Issue(node.position, f"expected type '{seen[0]}' but found '{each}'")
            if stop:
                return


def _content(found: Type) -> Type:
    return found.parameters[0] if found.parameters else found


#: Function → the conversion that is tried with the first argument, if it is a literal.
_ATTEMPTS: Final[dict[str, Callable[[Any], object]]] = {
    "matches": lambda value: compiled(str(value)),
    "duration": lambda value: call("duration", False, [value]),
    "timestamp": lambda value: call("timestamp", False, [value]),
}


def _argument_issues(call: Call, types: Types) -> Iterator[Issue]:
    attempt = _ATTEMPTS.get(call.function)
    first = call.arguments[0] if call.arguments else None
    if attempt is not None and isinstance(first, Literal):
        try:
            attempt(first.value)
        except EvaluationError:
            yield Issue(first.position, f"invalid {call.function} argument")
    if call.function == "format" and isinstance(call.target, Literal) and isinstance(first, ListLiteral):
        yield from _format_issues(call, str(call.target.value), first.elements, types)


# ------------------------------------------------------------ templates


def _format_issues(call: Call, template: str, arguments: tuple[Node, ...], types: Types) -> Iterator[Issue]:
    wrong: list[Node] = []
    used = 0

    def fill(index: int, letter: str, precision: int) -> str:
        nonlocal used
        used = index + 1
        misfit = _misfit(arguments[index], letter, types)
        if misfit is not None:
            wrong.append(misfit)
            name = _FULL_NAMES.get(types[misfit].name, types[misfit].name)
            raise EvaluationError(f"error during formatting: {MISFITS[letter]}, was given {name}")
        return ""

    try:
        filled(template, len(arguments), fill, is_literal=True)
    except EvaluationError as error:
        yield Issue((wrong[0] if wrong else call).position, str(error))
        return
    if used < len(arguments):
        said = f"too many arguments supplied to string.format (expected {used}, got {len(arguments)})"
        yield Issue(call.position, said)


def _misfit(argument: Node, letter: str, types: Types) -> Node | None:
    """Returns the argument, or the part of it that the clause does not accept."""
    if types[argument] != DYN and types[argument].name not in _TAKEN[letter]:
        return argument
    if letter == "s" and isinstance(argument, ListLiteral | MapLiteral):
        return next((bad for part in parts(argument) if (bad := _misfit(part, "s", types))), None)
    return None


_FULL_NAMES: Final = {"timestamp": "google.protobuf.Timestamp", "duration": "google.protobuf.Duration", "null": "null_type"}
#: Verb → the types that it accepts.
_TAKEN: Final = {
    "s": frozenset({"list", "map", "int", "uint", "double", "bool", "string", "timestamp", "bytes", "duration", "type", "null"}),
    "d": frozenset({"int", "uint"}),
    "o": frozenset({"int", "uint"}),
    "b": frozenset({"int", "uint", "bool"}),
    **dict.fromkeys("fe", frozenset({"double", "string"})),
    **dict.fromkeys("xX", frozenset({"int", "uint", "string", "bytes"})),
}
