"""Compiles a rule for the values of a schema, when a definition is written: syntax, types, constants.

Specified by: apiextensions-apiserver/pkg/apiserver/schema/cel/compilation.go; of constants:
cel-go/interpreter/decorators.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fakekube.cel.checker import check
from fakekube.cel.errors import CompileError, EvaluationError
from fakekube.cel.evaluation import evaluator
from fakekube.cel.libraries.regex import compiled
from fakekube.cel.parser import parse
from fakekube.cel.syntax import Call, ListLiteral, Literal, Loop, MapLiteral, MessageLiteral, Node, Select, references
from fakekube.cel.types import BOOL, STRING, Type, optional_of

__all__ = ["Verdict", "fold", "judge"]

_CONVERSIONS: Final = frozenset({
    "bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "uint",
})


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the compiler says of a rule and its message; empty texts where it has nothing to say."""

    rule_problem: str = ""
    message_problem: str = ""
    uses_old_self: bool = False


def judge(rule: Mapping[str, Any], self_type: Type) -> Verdict:
    """Compile a rule whose `self` is of a type."""
    source, message = rule.get("rule", ""), rule.get("messageExpression") or ""
    if not source.strip():
        return Verdict()
    old = optional_of(self_type) if rule.get("optionalOldSelf") else self_type
    variables = {"self": self_type, "oldSelf": old}
    problem, tree = _compiled(source, variables, BOOL, "", "cel expression must evaluate to a bool")
    if problem or tree is None:
        return Verdict(problem)
    uses_old = references(tree, "oldSelf")
    if not message:
        return Verdict(uses_old_self=uses_old)
    wrong = "messageExpression must evaluate to a string"
    problem, _ = _compiled(message, variables, STRING, "messageExpression ", wrong)
    return Verdict("", problem, uses_old)


def _compiled(
    source: str, variables: Mapping[str, Type], wanted: Type, prefix: str, misfit: str
) -> tuple[str, Node | None]:
    """(what is wrong, the tree)."""
    try:
        tree = parse(source)
        found = check(source, tree, variables)
    except CompileError as error:
        return f"{prefix}compilation failed: {error}", None
    if found != wanted:
        return misfit, None
    try:
        fold(tree)
    except EvaluationError as error:
        return f"{prefix or 'program '}instantiation failed: {error}", None
    return "", tree


def fold(node: Node) -> None:
    """Compute what is constant, as the planner of the real server does. Raises EvaluationError."""
    for part in _parts(node):
        fold(part)
    if isinstance(node, Call) and node.arguments and isinstance(node.arguments[0], Literal):
        constant = node.arguments[0]
        if node.function in _CONVERSIONS and node.target is None and len(node.arguments) == 1:
            evaluator(node)({})
        elif node.function in ("find", "findAll", "matches") and node.target is not None:
            compiled(str(constant.value))


def _parts(node: Node) -> Iterator[Node]:
    match node:
        case Select():
            yield node.operand
        case Call():
            yield from (node.target, *node.arguments) if node.target else node.arguments
        case ListLiteral():
            yield from node.elements
        case MapLiteral():
            for entry in node.entries:
                yield from entry
        case MessageLiteral():
            for _, _, value in node.fields:
                yield value
        case Loop():
            yield from (node.target, *node.bodies)
