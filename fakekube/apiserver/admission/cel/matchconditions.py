"""Evaluates match conditions, which decide whether a webhook or a policy is called for a write.

One false condition excludes the webhook or policy, even if others fail. If none is false, the failure policy decides about an
error: it denies the request, or excludes the webhook or policy.

Specified by: k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions/matcher.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fakekube.apimachinery.cel.environments import admission
from fakekube.apiserver.admission.cel.activation import Activation
from fakekube.apiserver.admission.cel.conditions import BUDGET_OF_MATCH_CONDITIONS, Compiled, OutOfBudget, compiled, evaluate


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
