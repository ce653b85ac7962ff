"""Evaluates validating policies.

All matching policies are evaluated with the object as it will be stored. The validationActions of the binding decide what a
failed validation does: Deny denies the request (with the first denial), Warn adds a warning, Audit an audit annotation.

Specified by: k8s.io/apiserver/pkg/admission/plugin/policy/validating/{plugin,dispatcher}.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from fakekube.apimachinery.codecs import json
from fakekube.apimachinery.errors import StatusError, status
from fakekube.apiserver.admission.cel.activation import authorizer_of
from fakekube.apiserver.admission.matching import Match, namespace_of
from fakekube.apiserver.admission.plugin import Attributes
from fakekube.apiserver.admission.policy.params import ConfigurationError, collect_params, param_resource
from fakekube.apiserver.admission.policy.source import Binding, Hook, PolicySource
from fakekube.apiserver.admission.policy.validator import Action, Decision, Validator, validator_of
from fakekube.apiserver.admission.refusals import forbidden
from fakekube.apiserver.admission.versioned import VersionedAttributes

if TYPE_CHECKING:
    from fakekube.apimachinery.cel.libraries.authorization import Authorizer
    from fakekube.apis.rest.strategy import Object


_CODES: Final[Mapping[str, int]] = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413, "Invalid": 422}
_FAILURE_ANNOTATION: Final = "validation.policy.admission.k8s.io/validation_failure"
#: Bytes of the value of an audit annotation.
_LONGEST_ANNOTATION: Final = 10 * 1024


class Dispatcher:
    """Dispatches writes to the validating policies of one cluster."""

    def __init__(self) -> None:
        self._source: PolicySource[Validator] = PolicySource(
            "validatingadmissionpolicies", "validatingadmissionpolicybindings", validator_of
        )

    def dispatch(self, attributes: Attributes) -> None:
        """Evaluates all matching policies for a write. Raises StatusError if one denies it."""
        _Dispatch(attributes).run(self._source.hooks(attributes.context.services))


class _Dispatch:
    """The dispatch of one write to all policies."""

    def __init__(self, attributes: Attributes) -> None:
        self._attributes = attributes
        self._cluster = attributes.context.services
        self._authorizer: Authorizer = authorizer_of(attributes.context)
        self._denials: list[tuple[str, Decision]] = []
        """The messages of the denials, and their decisions."""
        self._versions: dict[int, VersionedAttributes] = {}
        self._namespace: list[Object | None] = []

    def run(self, hooks: Sequence[Hook[Validator]]) -> None:
        """Raises StatusError if the write is denied."""
        for hook in hooks:
            try:
                match = hook.criteria.match(self._attributes)
                resource = None if match is None else param_resource(self._cluster, hook.spec.get("paramKind"))
            except (StatusError, ConfigurationError) as error:
                self._misconfigured(hook, None, error)
                continue
            if match is None:
                continue
            annotations: dict[str, list[str]] = {}
            for binding in hook.bindings:
                try:
                    if binding.criteria is not None and binding.criteria.match(self._attributes) is None:
                        continue
                    params = collect_params(self._cluster, resource, binding.spec.get("paramRef"), namespace_of(self._attributes))
                except (StatusError, ConfigurationError) as error:
                    self._misconfigured(hook, binding, error)
                    continue
                for param in params:
                    self._validate(hook, binding, match, param, annotations)
            for key, values in annotations.items():
                self._attributes.add_annotation(f"{hook.name}/{key}", ", ".join(values))
        if self._denials:
            raise self._refusal(*self._denials[0])

    def _misconfigured(self, hook: Hook[Validator], binding: Binding | None, error: Exception) -> None:
        if hook.fails:
            what = "policy" if binding is None else "binding"
            message = error.message if isinstance(error, StatusError) else str(error)
            self._deny(hook, binding, Decision(Action.DENY, f"failed to configure {what}: {message}"))

    def _validate(
        self, hook: Hook[Validator], binding: Binding, match: Match, param: Object | None, annotations: dict[str, list[str]]
    ) -> None:
        result = hook.evaluator.validate(
            self._versioned(match), match.resource, self._authorizer, param, self._namespace_object()
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
            self._attributes.add_annotation(_FAILURE_ANNOTATION, json.dumps([failure]).decode())

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

    def _versioned(self, match: Match) -> VersionedAttributes:
        found = self._versions.get(id(match.resource))
        if found is None:
            found = self._versions[id(match.resource)] = VersionedAttributes(self._attributes, match.resource)
        return found

    def _namespace_object(self) -> Object | None:
        if not self._namespace:
            self._namespace.append(namespace_object(self._attributes))
        return self._namespace[0]


def namespace_object(attributes: Attributes) -> Object | None:
    """The namespace of the object; None for cluster-scoped ones, namespaces among them. Raises StatusError 404."""
    kind = attributes.kind
    if not attributes.namespace or (kind.group, kind.kind) == ("", "Namespace"):
        return None
    found = attributes.context.services.get("", "namespaces", "", attributes.namespace)
    if found is None:
        raise status.not_found("", "namespaces", attributes.namespace)
    return found
