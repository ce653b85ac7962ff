"""What goes wrong with expressions: before they run (`CompileError`), and while they do (`EvaluationError`)."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CompileError", "EvaluationError", "Issue", "no_such_overload"]


class EvaluationError(Exception):
    """An error as a value of the language: `&&`, `||` and some macros may absorb it."""


def no_such_overload() -> EvaluationError:
    """The operands are of types for which the function is not made."""
    return EvaluationError("no such overload")


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing that is wrong with an expression, and where."""

    position: int
    message: str


class CompileError(Exception):
    """An expression that cannot be used. Its text shows each issue below the line of the source it is about."""

    def __init__(self, source: str, issues: list[Issue]) -> None:
        self.issues = sorted(issues, key=lambda issue: issue.position)
        super().__init__("\n".join(_shown(source, issue) for issue in self.issues))


def _shown(source: str, issue: Issue) -> str:
    """The issue, its line, and a mark below the character; wide characters get wide dots and marks."""
    if not source:
        return f"ERROR: <input>:1:0: {issue.message}"
    before = source[: issue.position]
    number = before.count("\n") + 1
    column = len(before) - (before.rfind("\n") + 1)
    line = source.split("\n")[number - 1].replace("\t", " ")
    dots = "".join("." if ord(character) < 0x80 else "\uff0e" for character in line[:column])
    mark = "^" if column >= len(line) or ord(line[column]) < 0x80 else "\uff3e"
    text = f"ERROR: <input>:{number}:{column + 1}: {issue.message}"
    return f"{text}\n | {line}\n | {dots}{mark}"
