"""Compiles the expressions of webhooks and policies, and evaluates them within a cost budget.

The result of an expression that fails is its error; one that exhausts the budget ends the evaluation of all
(`OutOfBudget`).

Specified by: k8s.io/apiserver/pkg/admission/plugin/cel/{compile,condition,activation}.go, pkg/apis/cel/config.go.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from fakekube.apimachinery.cel.compilation import Environment, ExpressionError, admission
from fakekube.apimachinery.cel.errors import CostLimitExceeded, EvaluationError
from fakekube.apimachinery.cel.evaluation import Program
from fakekube.apimachinery.cel.types import Type
from fakekube.apiserver.admission.cel.activation import PER_CALL_LIMIT, Activation

#: What all expressions of a kind may cost for one object: of a policy with one binding, of match conditions.
BUDGET: Final = 10_000_000
BUDGET_OF_MATCH_CONDITIONS: Final = 2_500_000


class OutOfBudget(Exception):
    """The budget is spent."""

    def __init__(self) -> None:
        super().__init__("validation failed due to running out of cost budget, no further validation rules will be run")


#: Functions whose cost grows no faster than what they read: one call costs less than `_LAST_CALL` of what a request holds.
_PLAIN_FUNCTIONS: Final = frozenset(
    {
        "_+_",
        "_-_",
        "_*_",
        "_/_",
        "_%_",
        "_<_",
        "_<=_",
        "_>_",
        "_>=_",
        "_==_",
        "_!=_",
        "!_",
        "-_",
        "_&&_",
        "_||_",
        "_?_:_",
        "_[_]",
        "_[?_]",
        "string",
        "int",
        "uint",
        "double",
        "bool",
        "dyn",
        "type",
        "size",
        "startsWith",
        "endsWith",
        "charAt",
        "lowerAscii",
        "upperAscii",
        "trim",
        "substring",
        "split",
        "join",
        "replace",
        "indexOf",
        "map",
        "filter",
        "all",
        "exists",
        "exists_one",
        "hasValue",
        "value",
        "orValue",
        "or",
        "optional.of",
        "optional.none",
        "quantity",
        "isQuantity",
        "allowed",
    }
)
_LAST_CALL: Final = 700_000


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled expression; without a program if it does not compile."""

    source: str
    program: Program | None
    problem: str = ""
    type: Type | None = None
    most: float = 0
    """More than it can cost, beside the variables that it uses; infinity if that is not known."""
    uses_variables: bool = False


def compiled(environment: Environment, source: str) -> Compiled:
    """Compiles an expression; keeps the error if it does not compile."""
    try:
        found = environment.compile(source)
    except ExpressionError as error:
        return Compiled(source, None, str(error))
    most = PER_CALL_LIMIT + _LAST_CALL if found.functions <= _PLAIN_FUNCTIONS else math.inf
    return Compiled(source, found.program, "", found.type, most, "variables" in found.uses)


class Evaluation(NamedTuple):
    """The result of an expression: a value, or the text of an error."""

    value: Any
    error: str | None = None


def evaluate(
    expressions: Iterable[Compiled | None], activation: Activation, budget: int
) -> tuple[Sequence[Evaluation | None], int]:
    """Evaluate expressions in their order; None has no result. Returns what is left of the budget, too.

    Raises OutOfBudget.
    """
    variables = activation.variables
    if variables is not None:
        variables.begin()
    results: list[Evaluation | None] = []
    for expression in expressions:
        if expression is None:
            results.append(None)
            continue
        result, budget = _evaluated(expression, activation, budget)
        results.append(result)
    return results, budget


def _evaluated(expression: Compiled, activation: Activation, budget: int) -> tuple[Evaluation, int]:
    if expression.program is None:
        return Evaluation(None, f"compilation error: {expression.problem}"), budget
    value: Any
    try:
        value, cost = expression.program.evaluate(activation, PER_CALL_LIMIT)
    except CostLimitExceeded as error:
        value, cost = EvaluationError(str(error)), error.cost
    if activation.variables is not None:
        cost += activation.variables.take_cost()
    if cost > budget:
        raise OutOfBudget
    if isinstance(value, EvaluationError):
        return Evaluation(None, f"expression '{expression.source}' resulted in error: {value}"), budget - cost
    return Evaluation(value), budget - cost


# ---------------------------------------------------------------------------------------------------------------------
# The variables of a policy, compiled in their order: each is known to the expressions after it.
#
# Specified by: k8s.io/apiserver/pkg/admission/plugin/cel/composition.go.


def composed(environment: Environment, variables: Iterable[Mapping[str, Any]]) -> tuple[dict[str, Compiled], Environment]:
    """The compiled variables by their names, and the environment of the expressions after them."""
    made: dict[str, Compiled] = {}
    for variable in variables:
        name = variable.get("name", "")
        made[name] = compiled(environment, variable.get("expression", ""))
        environment = environment.with_variable(name, made[name].type)
    return made, environment


# ---------------------------------------------------------------------------------------------------------------------
# Evaluates match conditions, which decide whether a webhook or a policy is called for a write.
#
# One false condition excludes the webhook or policy, even if others fail. If none is false, the failure policy decides about an
# error: it denies the request, or excludes the webhook or policy.
#
# Specified by: k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions/matcher.go.


class MatchConditionError(Exception):
    """Conditions could not be evaluated, and the failure policy is Fail."""


class MatchConditions:
    """The conditions of one webhook or policy.

    Args:
        conditions: matchConditions as the API has them.
        failure_policy: `Fail` or `Ignore`.
        params: may the conditions name the parameters of a policy?
    """

    __slots__ = ("_expressions", "_fails")

    def __init__(self, conditions: Sequence[Mapping[str, Any]], failure_policy: str, *, params: bool = False) -> None:
        environment = admission(params=params)
        self._expressions: Sequence[Compiled] = [compiled(environment, each.get("expression", "")) for each in conditions]
        self._fails = failure_policy != "Ignore"

    def match(self, activation: Activation) -> bool:
        """Reports whether all conditions are true. Raises MatchConditionError."""
        try:
            results, _ = evaluate(self._expressions, activation, BUDGET_OF_MATCH_CONDITIONS)
        except OutOfBudget as error:
            return self._failed([str(error)])
        if any(result is not None and result.value is False for result in results):
            return False
        errors = [result.error for result in results if result is not None and result.error is not None]
        return self._failed(errors) if errors else True

    def _failed(self, errors: Sequence[str]) -> bool:
        if not self._fails:
            return False
        told = list(dict.fromkeys(errors))
        raise MatchConditionError(told[0] if len(told) == 1 else f"[{', '.join(told)}]")
