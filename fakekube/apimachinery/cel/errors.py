"""The errors of expressions: at compile time (`CompileError`), and at evaluation (`EvaluationError`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


class EvaluationError(Exception):
    """An error value: `&&`, `||` and some macros may ignore it."""


class CostLimitExceeded(Exception):
    """The evaluation exceeded its cost limit; no operator absorbs this error."""

    def __init__(self, cost: int) -> None:
        self.cost = cost
        super().__init__("operation cancelled: actual cost limit exceeded")


class InterpreterError(Exception):
    """An internal error of cel-go, such as a failed type assertion; no operator ignores it."""


def no_list(go_name: str, lacks: str = "Add") -> InterpreterError:
    """Returns the error of a failed assertion that a value is a list."""
    said = f"{go_name} is not traits.Lister: missing method {lacks}"
    return InterpreterError(f"internal error: interface conversion: {said}")


def unhashable(go_name: str) -> InterpreterError:
    """Returns the error of a map look-up with a key that Go cannot hash."""
    return InterpreterError(f"internal error: runtime error: hash of unhashable type {go_name}")


def no_such_overload(operator: str = "") -> EvaluationError:
    """Returns the error for arguments without a matching overload; `operator` is named if the first one does not support it."""
    return EvaluationError(f"no such overload: {operator}" if operator else "no such overload")


@dataclass(frozen=True, slots=True)
class Issue:
    """One error in an expression, with its position."""

    position: int
    message: str


class CompileError(Exception):
    """An expression does not compile. The message has each issue with its source line."""

    def __init__(self, source: str, issues: list[Issue]) -> None:
        self.issues = sorted(issues, key=lambda issue: issue.position)
        shown = [_show(source, issue) for issue in self.issues[:_MOST_ISSUES]]
        if len(self.issues) > _MOST_ISSUES:
            shown.append(f"{len(self.issues) - _MOST_ISSUES} more errors were truncated")
        super().__init__("\n".join(shown))


#: Lines longer than this (in bytes) are not shown; beyond this many issues, no more are.
_LONGEST_LINE: Final = 16384
_MOST_ISSUES: Final = 100


def _show(source: str, issue: Issue) -> str:
    """Formats an issue with its source line and a caret below the character; wide characters get wide dots and carets."""
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
