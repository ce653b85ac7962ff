"""Compiles a validating policy and evaluates it for a write.

It evaluates the match conditions, then the validations, their messages, and the audit annotations, each within a cost budget.
An unused message is only evaluated if its cost could exhaust the budget.

Specified by: k8s.io/apiserver/pkg/admission/plugin/policy/validating/{plugin,validator}.go.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

from fakekube.apimachinery.cel.environments import admission
from fakekube.apiserver.admission.cel.activation import Activation
from fakekube.apiserver.admission.cel.conditions import BUDGET, Compiled, Evaluation, OutOfBudget, compiled, evaluate
from fakekube.apiserver.admission.cel.matchconditions import MatchConditionError, MatchConditions
from fakekube.apiserver.admission.policy.composition import composed

if TYPE_CHECKING:
    from fakekube.apimachinery.cel.libraries.authorization import Authorizer
    from fakekube.apis.rest.resource import Resource
    from fakekube.apis.rest.strategy import Object
    from fakekube.apiserver.admission.versioned import VersionedAttributes


#: Bytes of a message that an expression has made.
_LONGEST_MESSAGE: Final = 5 * 1024


class Action(Enum):
    """The action of a decision."""

    ADMIT = auto()
    DENY = auto()


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision of one validation."""

    action: Action
    message: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Annotation:
    """The result of an audit annotation: a value, an error, or nothing."""

    key: str
    value: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a policy for a write."""

    decisions: Sequence[Decision] = ()
    annotations: Sequence[Annotation] = field(default=())


_ADMITTED: Final = Decision(Action.ADMIT)


class Validator:
    """See the module. Made from the spec of a policy; keeps nothing of the writes that it sees."""

    def __init__(self, spec: Object) -> None:
        params = "paramKind" in spec
        failure_policy = spec.get("failurePolicy", "Fail")
        self._fails = failure_policy != "Ignore"
        conditions = spec.get("matchConditions") or ()
        self._conditions = MatchConditions(conditions, failure_policy, params=params) if conditions else None
        environment = admission(params=params, composed=bool(spec.get("variables")))
        self._variables, environment = composed(environment, spec.get("variables") or ())
        self._validations: Sequence[Object] = spec.get("validations") or ()
        self._annotations: Sequence[Object] = spec.get("auditAnnotations") or ()
        self._expressions = [compiled(environment, each.get("expression", "")) for each in self._validations]
        unasked = environment.without_authorizer()
        self._messages: Sequence[Compiled | None] = [
            compiled(unasked, each["messageExpression"]) if each.get("messageExpression") else None for each in self._validations
        ]
        self._values = [compiled(environment, each.get("valueExpression", "")) for each in self._annotations]
        told = [message for message in self._messages if message is not None]
        used = self._variables.values() if any(message.uses_variables for message in told) else ()
        self._cost_of_messages = sum(each.most for each in (*told, *used))
        """More than all messages can cost together."""

    def validate(
        self,
        versioned: VersionedAttributes,
        resource: Resource,
        authorizer: Authorizer,
        params: Object | None,
        namespace: Object | None,
    ) -> Result:
        """Judge a write, with one of the policy's parameters."""
        if self._conditions is not None:
            try:
                asked = Activation(versioned, versioned.attributes.resource, authorizer, params=params)
                if not self._conditions.match(asked):
                    return Result()
            except MatchConditionError as error:
                return Result([self._error(str(error))])
        bindings = partial(Activation, versioned, resource, params=params, namespace=namespace, variables=self._variables)
        try:
            results, left = evaluate(self._expressions, bindings(authorizer=authorizer), BUDGET)
            unasked = bindings(authorizer=None)  # messages and annotations have no authorizer, nor have variables that they use
            decisions = self._decisions(results, unasked, left)
            if not self._values:
                return Result(decisions)
            values, _ = evaluate(self._values, unasked, BUDGET)
        except OutOfBudget as error:
            return Result([self._error(str(error))])
        return Result(
            decisions,
            [
                self._annotation(annotation, value)
                for annotation, value in zip(self._annotations, values, strict=True)
                if value is not None
            ],
        )

    def _error(self, message: str) -> Decision:
        return Decision(Action.DENY, message) if self._fails else _ADMITTED

    def _decisions(self, results: Sequence[Evaluation | None], activation: Activation, budget: int) -> Sequence[Decision]:
        failed = [result is not None and result.error is None and result.value is not True for result in results]
        messages: Sequence[Evaluation | None] = ()
        problem = ""
        if any(failed) or self._cost_of_messages > budget:
            affordable = self._cost_of_messages <= budget
            wanted = [
                message if is_failed or not affordable else None
                for message, is_failed in zip(self._messages, failed, strict=True)
            ]
            try:
                messages, _ = evaluate(wanted, activation, budget)
            except OutOfBudget as error:
                problem = f"failed messageExpression: {error}"
        return [
            self._decision(index, result, messages[index] if messages else None, problem)
            for index, result in enumerate(results)
            if result is not None
        ]

    def _decision(self, index: int, result: Evaluation, message: Evaluation | None, problem: str) -> Decision:
        if result.error is not None:
            return self._error(result.error)
        if problem:
            return self._error(problem)
        if result.value is True:
            return _ADMITTED
        validation = self._validations[index]
        text = _told(message) or validation.get("message", "").strip()
        if not text:
            text = f"failed expression: {validation.get('expression', '').strip()}"
        return Decision(Action.DENY, text, validation.get("reason") or "Invalid")

    def _annotation(self, annotation: Object, result: Evaluation) -> Annotation:
        key = annotation.get("key", "")
        if result.error is not None:
            return Annotation(key, error=result.error if self._fails else "")
        value: Any = result.value
        return Annotation(key, value.strip() if isinstance(value, str) else "")


def _told(message: Evaluation | None) -> str:
    """The message that an expression has made, if it is one."""
    if message is None or not isinstance(message.value, str):
        return ""
    text = message.value.strip()
    return "" if "\n" in text or len(text.encode()) > _LONGEST_MESSAGE else text


def validator_of(spec: Object) -> Validator:
    """The validator of a policy's spec, cached by its text."""
    return _validator(json.dumps(spec, sort_keys=True))


@lru_cache(maxsize=256)
def _validator(spec: str) -> Validator:
    return Validator(json.loads(spec))
