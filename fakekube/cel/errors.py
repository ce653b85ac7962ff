"""The errors of expressions: at compile time (`CompileError`), and at evaluation (`EvaluationError`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["CompileError", "CostLimitExceeded", "EvaluationError", "InterpreterError", "Issue", "no_list", "no_such_overload"]


class EvaluationError(Exception):
    """An error as a value of the language: `&&`, `||` and some macros may absorb it."""


class CostLimitExceeded(Exception):
    """The evaluation exceeded its cost limit; no operator absorbs this error."""

    def __init__(self, cost: int) -> None:
        self.cost = cost
        super().__init__("operation cancelled: actual cost limit exceeded")


class InterpreterError(Exception):
    """The real interpreter breaks here, and says so instead of a result; nothing absorbs that."""


def no_list(go_name: str, lacks: str = "Add") -> InterpreterError:
    """Where it takes for granted that it has a list."""
    said = f"{go_name} is not traits.Lister: missing method {lacks}"
    return InterpreterError(f"internal error: interface conversion: {said}")


def no_such_overload(operator: str = "") -> EvaluationError:
    """The operands are of types for which an operator is not made; it is named if it is made for no type of the first."""
    return EvaluationError(f"no such overload: {operator}" if operator else "no such overload")


@dataclass(frozen=True, slots=True)
class Issue:
    """One error in an expression, with its position."""

    position: int
    message: str


class CompileError(Exception):
    """An expression that cannot be used. Its text shows each issue below the line of the source it is about."""

    def __init__(self, source: str, issues: list[Issue]) -> None:
        self.issues = sorted(issues, key=lambda issue: issue.position)
        shown = [_shown(source, issue) for issue in self.issues[:_MOST_ISSUES]]
        if len(self.issues) > _MOST_ISSUES:
            shown.append(f"{len(self.issues) - _MOST_ISSUES} more errors were truncated")
        super().__init__("\n".join(shown))


#: Lines longer than this (in bytes) are not shown; beyond this many issues, no more are.
_LONGEST_LINE: Final = 16384
_MOST_ISSUES: Final = 100


def _shown(source: str, issue: Issue) -> str:
    """The issue, its line, and a mark below the character; wide characters get wide dots and marks."""
    if issue.position < 0:
        return f"ERROR: <input>:-1:0: {issue.message}"
    if not source:
        return f"ERROR: <input>:1:0: {issue.message}"
    before = source[: issue.position]
    number = before.count("\n") + 1
    column = len(before) - (before.rfind("\n") + 1)
    line = source.split("\n")[number - 1].replace("\t", " ")
    text = f"ERROR: <input>:{number}:{column + 1}: {issue.message}"
    if len(line.encode()) > _LONGEST_LINE:
        return text
    dots = "".join("." if ord(character) < 0x80 else "\uff0e" for character in line[:column])
    mark = "^" if column >= len(line) or ord(line[column]) < 0x80 else "\uff3e"
    return f"{text}\n | {line}\n | {dots}{mark}"
