"""Compiles validation rules: syntax, types, constants, and estimated costs.

The variables are `self` and `oldSelf`; a schema declares their type.

Specified by: apiextensions-apiserver/pkg/apiserver/schema/cel/compilation.go.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fakekube.apimachinery.cel.checker import Checked, check
from fakekube.apimachinery.cel.cost.estimate import estimate
from fakekube.apimachinery.cel.declarations import Declaration
from fakekube.apimachinery.cel.errors import CompileError, EvaluationError
from fakekube.apimachinery.cel.evaluation import Program, program
from fakekube.apimachinery.cel.parser import parse
from fakekube.apimachinery.cel.types import BOOL, STRING, Type, optional_of

#: The cost limit of one evaluation.
PER_CALL_LIMIT: Final = 1_000_000


class CompilationError(Exception):
    """The errors of an expression, and the variables that it uses, if known."""

    def __init__(self, text: str, uses: frozenset[str] = frozenset()) -> None:
        super().__init__(text)
        self.uses = uses


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled expression."""

    checked: Checked
    program: Program

    @property
    def uses_old_self(self) -> bool:
        return "oldSelf" in self.checked.uses


def compile_rule(rule: Mapping[str, Any], declared: Declaration) -> Compiled:
    """Compiles the rule of a validation. Raises CompilationError."""
    wrong = "cel expression must evaluate to a bool"
    return _compiled(rule.get("rule", ""), _variables(rule, declared), BOOL, "", wrong)


def compile_message(rule: Mapping[str, Any], declared: Declaration) -> Compiled:
    """Compiles the messageExpression of a validation. Raises CompilationError."""
    wrong = "messageExpression must evaluate to a string"
    return _compiled(rule["messageExpression"], _variables(rule, declared), STRING, "messageExpression ", wrong)


def _variables(rule: Mapping[str, Any], declared: Declaration) -> dict[str, Type]:
    """Returns the types of the variables; as in the real server, the name of the object type is generated."""
    seen = declared.type(f"selfType{time.time_ns() % 1_000_000_000}")
    return {"self": seen, "oldSelf": optional_of(seen) if rule.get("optionalOldSelf") else seen}


def _compiled(source: str, variables: Mapping[str, Type], wanted: Type, prefix: str, misfit: str) -> Compiled:
    try:
        checked = check(source, parse(source), variables)
    except CompileError as error:
        raise CompilationError(f"{prefix}compilation failed: {error}") from None
    if checked.type != wanted:
        raise CompilationError(misfit)
    try:
        return Compiled(checked, program(checked))
    except EvaluationError as error:
        said = f"{prefix or 'program '}instantiation failed: {error}"
        raise CompilationError(said, frozenset(checked.uses)) from None


# ------------------------------------------------------------ when a definition is written


@dataclass(frozen=True, slots=True)
class CompilationResult:
    """The errors of a rule and its messageExpression ("" if there are none), and their costs."""

    rule_problem: str = ""
    message_problem: str = ""
    uses_old_self: bool = False
    rule_cost: int = 0
    """The maximum cost for one value."""
    message_cost: int | None = None
    """The maximum cost; None without a valid messageExpression."""


def compile_validation(rule: Mapping[str, Any], declared: Declaration) -> CompilationResult:
    """Compiles a rule and its messageExpression for the values of a declaration."""
    if not rule.get("rule", "").strip():
        return CompilationResult()
    try:
        compiled = compile_rule(rule, declared)
    except CompilationError as error:
        return CompilationResult(str(error), uses_old_self="oldSelf" in error.uses)
    cost = estimate(compiled.checked, declared).high
    if not rule.get("messageExpression"):
        return CompilationResult(uses_old_self=compiled.uses_old_self, rule_cost=cost)
    try:
        message = compile_message(rule, declared)
    except CompilationError as error:
        return CompilationResult("", str(error), compiled.uses_old_self, cost)
    return CompilationResult("", "", compiled.uses_old_self, cost, estimate(message.checked, declared).high)
