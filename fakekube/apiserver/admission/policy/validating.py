"""Compiles validating policies and evaluates them for a write.

All matching policies are evaluated with the object as it will be stored: the match conditions, then the validations, their
messages, and the audit annotations, each within a cost budget. An unused message is only evaluated if its cost could exhaust the
budget. The validationActions of the binding decide what a failed validation does: Deny denies the request (with the first
denial), Warn adds a warning, Audit an audit annotation.

Specified by: k8s.io/apiserver/pkg/admission/plugin/policy/validating/{plugin,dispatcher,validator}.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

from fakekube.apimachinery.cel.compilation import admission
from fakekube.apimachinery.cel.cost.limits import RUNTIME_COST_BUDGET
from fakekube.apimachinery.codecs import json as json_codec
from fakekube.apimachinery.errors import StatusError
from fakekube.apiserver.admission.cel import (
    Activation,
    Compiled,
    Evaluation,
    MatchConditionError,
    MatchConditions,
    OutOfBudget,
    authorizer_of,
    compile_cel,
    compose,
    evaluate,
)
from fakekube.apiserver.admission.chain import Attributes, forbidden
from fakekube.apiserver.admission.policy.dispatch import Dispatcher, Invocation, PolicyDispatch, namespace_object
from fakekube.apiserver.admission.policy.source import Binding, Hook, PolicySource, compile_once

if TYPE_CHECKING:
    from fakekube.apimachinery.cel.libraries.authorization import Authorizer
    from fakekube.apis.rest.resource import Resource
    from fakekube.apiserver.admission.matching import VersionedAttributes
    from fakekube.base.objects import Object


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
        self._variables, environment = compose(environment, spec.get("variables") or ())
        self._validations: Sequence[Object] = spec.get("validations") or ()
        self._annotations: Sequence[Object] = spec.get("auditAnnotations") or ()
        self._expressions = [compile_cel(environment, each.get("expression", "")) for each in self._validations]
        unasked = environment.without_authorizer()
        self._messages: Sequence[Compiled | None] = [
            compile_cel(unasked, each["messageExpression"]) if each.get("messageExpression") else None
            for each in self._validations
        ]
        self._values = [compile_cel(environment, each.get("valueExpression", "")) for each in self._annotations]
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
        """Judges a write, with one of the policy's parameters."""
        if self._conditions is not None:
            try:
                asked = Activation(versioned, versioned.attributes.resource, authorizer, params=params)
                if not self._conditions.match(asked):
                    return Result()
            except MatchConditionError as error:
                return Result([self._error(str(error))])
        bindings = partial(Activation, versioned, resource, params=params, namespace=namespace, variables=self._variables)
        try:
            results, left = evaluate(self._expressions, bindings(authorizer=authorizer), RUNTIME_COST_BUDGET)
            unasked = bindings(authorizer=None)  # messages and annotations have no authorizer, nor have variables that they use
            decisions = self._decisions(results, unasked, left)
            if not self._values:
                return Result(decisions)
            values, _ = evaluate(self._values, unasked, RUNTIME_COST_BUDGET)
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
        text = _get_message(message) or validation.get("message", "").strip()
        if not text:
            text = f"failed expression: {validation.get('expression', '').strip()}"
        return Decision(Action.DENY, text, validation.get("reason") or "Invalid")

    def _annotation(self, annotation: Object, result: Evaluation) -> Annotation:
        key = annotation.get("key", "")
        if result.error is not None:
            return Annotation(key, error=result.error if self._fails else "")
        value: Any = result.value
        return Annotation(key, value.strip() if isinstance(value, str) else "")


def _get_message(message: Evaluation | None) -> str:
    """Returns the message that an expression has made; "" if it is none."""
    if message is None or not isinstance(message.value, str):
        return ""
    text = message.value.strip()
    return "" if "\n" in text or len(text.encode()) > _LONGEST_MESSAGE else text


validator_of: Final = compile_once(Validator)


_CODES: Final[Mapping[str, int]] = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413, "Invalid": 422}
_FAILURE_ANNOTATION: Final = "validation.policy.admission.k8s.io/validation_failure"
#: Bytes of the value of an audit annotation.
_LONGEST_ANNOTATION: Final = 10 * 1024


class _Dispatch(PolicyDispatch[Validator]):
    """The dispatch of one write to all validating policies."""

    def __init__(self, attributes: Attributes) -> None:
        super().__init__(attributes)
        self._authorizer: Authorizer = authorizer_of(attributes.context)
        self._denials: list[tuple[str, Decision]] = []
        """The messages of the denials, and their decisions."""

    def run(self, hooks: Sequence[Hook[Validator]]) -> None:
        """See `PolicyDispatch`."""
        for hook in hooks:
            annotations: dict[str, list[str]] = {}
            for invocation in self._invocations(hook):
                self._validate(invocation, annotations)
            for key, values in annotations.items():
                self._attributes.add_annotation(f"{hook.name}/{key}", ", ".join(values))
        if self._denials:
            raise self._refusal(*self._denials[0])

    def _fail(self, hook: Hook[Validator], binding: Binding | None, message: str) -> None:
        self._deny(hook, binding, Decision(Action.DENY, message))

    def _validate(self, invocation: Invocation[Validator], annotations: dict[str, list[str]]) -> None:
        hook, binding, match, param = invocation
        result = hook.evaluator.validate(
            self._versioned_attributes(match), match.resource, self._authorizer, param, self._namespace
        )
        actions = binding.spec.get("validationActions") or ()
        for index, decision in enumerate(result.decisions):
            if decision.action is Action.DENY:
                for action in actions:
                    self._act(action, hook, binding, index, decision)
        for annotation in result.annotations:
            if annotation.error:
                self._deny(hook, binding, Decision(Action.DENY, annotation.error))
            elif annotation.value:
                values = annotations.setdefault(annotation.key, [])
                value = annotation.value.encode()[:_LONGEST_ANNOTATION].decode(errors="replace")
                if value not in values:
                    values.append(value)

    def _act(self, action: str, hook: Hook[Validator], binding: Binding, index: int, decision: Decision) -> None:
        if action == "Deny":
            self._deny(hook, binding, decision)
        elif action == "Warn":
            self._attributes.context.warnings.append(
                f"Validation failed for ValidatingAdmissionPolicy '{hook.name}' with binding '{binding.name}': {decision.message}"
            )
        elif action == "Audit":
            failure = {
                "message": decision.message,
                "policy": hook.name,
                "binding": binding.name,
                "expressionIndex": index,
                "validationActions": binding.spec.get("validationActions"),
            }
            self._attributes.add_annotation(_FAILURE_ANNOTATION, json_codec.dumps([failure]).decode())

    def _deny(self, hook: Hook[Validator], binding: Binding | None, decision: Decision) -> None:
        who = f"ValidatingAdmissionPolicy '{hook.name}'"
        self._denials.append((who if binding is None else f"{who} with binding '{binding.name}'", decision))

    def _refusal(self, who: str, decision: Decision) -> StatusError:
        message = f"{who} denied request: {decision.message}"
        error = forbidden(self._attributes, message)
        error.reason = decision.reason or "Invalid"
        error.code = _CODES.get(error.reason, 422)
        error.details = {**(error.details or {}), "causes": [{"message": message}]}
        return error

    @cached_property
    def _namespace(self) -> Object | None:
        return namespace_object(self._attributes)


def dispatcher() -> Dispatcher[Validator]:
    """Returns the dispatcher of writes to the validating policies of one cluster."""
    return Dispatcher(PolicySource("validatingadmissionpolicies", "validatingadmissionpolicybindings", validator_of), _Dispatch)
