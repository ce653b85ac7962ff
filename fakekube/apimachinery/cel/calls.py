"""Evaluates operators and functions: arguments, costs, and absorbed errors.

Specified by: cel-spec, doc/langdef.md (Logical Operators); cel-go/interpreter/interpretable.go, runtimecost.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from fakekube.apimachinery.cel.cost.actual import Rule
from fakekube.apimachinery.cel.declarations import call
from fakekube.apimachinery.cel.errors import EvaluationError, no_list, no_such_overload
from fakekube.apimachinery.cel.folds import truth
from fakekube.apimachinery.cel.frames import Evaluator, Frame
from fakekube.apimachinery.cel.values import Duration, Optional, Timestamp, UInt, go_name_of, kind_of


def binary(operator: Callable[[Any, Any], Any], one: Evaluator, other: Evaluator, rule: Rule | None) -> Evaluator:
    """Compiles a binary operator; without a cost rule it costs 1."""
    if rule is None:

        def plain(frame: Frame) -> Any:
            left, right = one(frame), other(frame)
            frame.cost += 1
            return operator(left, right)

        return plain

    def priced(frame: Frame) -> Any:
        left, right = one(frame), other(frame)
        frame.spend(rule((left, right)))
        return operator(left, right)

    return priced


def function(name: str, member: bool, parts: list[Evaluator], rule: Rule | None) -> Evaluator:
    """Compiles a function or method; without a cost rule it costs 1."""

    def run(frame: Frame) -> Any:
        arguments = [part(frame) for part in parts]
        if rule is None:
            frame.cost += 1
        else:
            _pay(frame, rule, arguments)
        return call(name, member, arguments)

    return run


def _pay(frame: Frame, rule: Rule, arguments: list[Any]) -> None:
    """Counts the cost of a call; a call with arguments of wrong types is free, since it fails."""
    try:
        cost = rule(arguments)
    except (AttributeError, TypeError):
        return
    frame.spend(cost)


def summing(run: Evaluator, zero: Any) -> Evaluator:
    """Compiles `sum` so that the sum of an empty list has the type of its items."""

    def add(frame: Frame) -> Any:
        result = run(frame)
        return zero if result.__class__ is int else result

    return add


ZEROS: Final[dict[str, Any]] = {"uint": UInt(0), "double": 0.0, "duration": Duration(0)}
_ADDABLE: Final = frozenset({int, UInt, float, str, bytes, Timestamp, Duration})


def list_argument(run: Evaluator) -> Evaluator:
    """Evaluates an argument that the cost function of cel-go casts to a list. Raises InterpreterError for other values."""

    def look(frame: Frame) -> Any:
        try:
            value = run(frame)
        except EvaluationError:
            raise no_list("*types.Err") from None
        kind = kind_of(value)
        if kind is not list:
            raise no_list(go_name_of(value), "Contains" if kind in _ADDABLE else "Add")
        return value

    return look


def without_overload_details(run: Evaluator) -> Evaluator:
    """Compiles a function with a constant pattern, whose overload error does not contain the types."""

    def apply(frame: Frame) -> Any:
        try:
            return run(frame)
        except EvaluationError as error:
            if str(error).startswith(_NO_OVERLOAD):
                raise no_such_overload() from None
            raise

    return apply


_NO_OVERLOAD: Final = str(no_such_overload())


def alternative(name: str, one: Evaluator, other: Evaluator) -> Evaluator:
    """Compiles `.or` and `.orValue`, which evaluate the alternative only if the target is empty."""

    def choose(frame: Frame) -> Any:
        first = one(frame)
        if first.__class__ is not Optional:
            return first
        if first.present:
            return first if name == "or" else first.content
        return other(frame)

    return choose


def decided(one: Evaluator, other: Evaluator, decisive: bool) -> Evaluator:
    """Compiles `&&` (decided by false) and `||` (decided by true)."""

    def decide(frame: Frame) -> bool:
        try:
            if truth(one(frame)) is decisive:
                return decisive
        except EvaluationError:
            try:
                if truth(other(frame)) is decisive:
                    return decisive
            except EvaluationError:
                pass
            raise
        return truth(other(frame))

    return decide
