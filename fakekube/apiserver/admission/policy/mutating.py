"""Mutating policies: expressions change the object of a write before it is validated.

Policies act one after the other, each with each of its bindings and parameters, and see what those before them did. A
policy whose reinvocationPolicy is IfNeeded acts once more if the object has changed after it acted.

Specified by: k8s.io/apiserver/pkg/admission/plugin/policy/mutating/{dispatcher,reinvocationcontext}.go,
k8s.io/apiserver/pkg/admission/plugin/policy/generic/policy_dispatcher.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from fakekube.apimachinery.errors import StatusError
from fakekube.apimachinery.schema.trees import copied
from fakekube.apiserver.admission.cel.activation import Activation, authorizer_of
from fakekube.apiserver.admission.cel.matchconditions import MatchConditionError
from fakekube.apiserver.admission.matching import Match, namespace_of
from fakekube.apiserver.admission.plugin import Attributes
from fakekube.apiserver.admission.policy.mutator import Mutator, mutator_of
from fakekube.apiserver.admission.policy.params import ConfigurationError, collect_params, param_resource
from fakekube.apiserver.admission.policy.patching import MutationError
from fakekube.apiserver.admission.policy.source import Binding, Hook, PolicySource
from fakekube.apiserver.admission.policy.validating import namespace_object
from fakekube.apiserver.admission.refusals import forbidden
from fakekube.apiserver.admission.versioned import VersionedAttributes
from fakekube.base.golang.quoting import go_quote

if TYPE_CHECKING:
    from fakekube.apis.rest.strategy import Object


_NAME: Final = "MutatingAdmissionPolicy"

#: Policy, binding, and namespace and name of the parameter.
_Key = tuple[str, str, str, str]


class _Invocation(NamedTuple):
    """An invocation of a policy for a write, with one binding and one parameter."""

    hook: Hook[Mutator]
    binding: Binding
    match: Match
    param: Object | None

    @property
    def key(self) -> _Key:
        meta = {} if self.param is None else self.param["metadata"]
        return self.hook.name, self.binding.name, meta.get("namespace", ""), meta.get("name", "")


@dataclass(slots=True)
class _Reinvocation:
    """The reinvocation context: the policies that were invoked for a write, and those to reinvoke."""

    invoked: set[_Key] = field(default_factory=set)
    """The policies with the policy IfNeeded that were invoked since the last change of the object."""
    wanted: set[_Key] = field(default_factory=set)
    output: Object | None = None
    """The object after the last policy."""

    def require_reinvoking(self) -> None:
        """Marks the policies invoked so far for reinvocation, since the object has changed."""
        self.wanted |= self.invoked
        self.invoked = set()


class Dispatcher:
    """Dispatches writes to the mutating policies of one cluster."""

    def __init__(self) -> None:
        self._source: PolicySource[Mutator] = PolicySource(
            "mutatingadmissionpolicies", "mutatingadmissionpolicybindings", mutator_of
        )

    def dispatch(self, attributes: Attributes) -> None:
        """Invokes all matching policies for a write. Raises StatusError if one fails."""
        _Dispatch(attributes).run(self._source.hooks(attributes.context.services))


class _Dispatch:
    """The dispatch of one write to all policies."""

    def __init__(self, attributes: Attributes) -> None:
        self._attributes = attributes
        self._cluster = attributes.context.services
        self._errors: list[tuple[str, str]] = []
        """Messages and reasons."""
        self._versions: dict[int, VersionedAttributes] = {}

    def run(self, hooks: Sequence[Hook[Mutator]]) -> None:
        """Raises StatusError."""
        invocations = [invocation for hook in hooks for invocation in self._invocations(hook)]
        if invocations:
            self._invoke_all(invocations)
        if self._errors:
            error = forbidden(self._attributes, "admission request denied by policy")
            error.message, reason = self._errors[0]
            error.reason = reason or error.reason
            error.details = {**(error.details or {}), "causes": [{"message": message} for message, _ in self._errors]}
            raise error

    # ------------------------------------------------------------ who acts

    def _invocations(self, hook: Hook[Mutator]) -> list[_Invocation]:
        try:
            match = hook.criteria.match(self._attributes)
            if match is None:
                return []
            resource = param_resource(self._cluster, hook.spec.get("paramKind"))
        except (StatusError, ConfigurationError) as error:
            self._misconfigured(hook, None, error)
            return []
        found: list[_Invocation] = []
        for binding in hook.bindings:
            try:
                if binding.criteria is not None and binding.criteria.match(self._attributes) is None:
                    continue
                reference, namespace = binding.spec.get("paramRef"), namespace_of(self._attributes)
                params = collect_params(self._cluster, resource, reference, namespace)
            except (StatusError, ConfigurationError) as error:
                self._misconfigured(hook, binding, error)
                continue
            found += [_Invocation(hook, binding, match, param) for param in params]
        return found

    def _misconfigured(self, hook: Hook[Mutator], binding: Binding | None, error: Exception) -> None:
        what = "policy" if binding is None else "binding"
        message = error.message if isinstance(error, StatusError) else str(error)
        self._fail(hook, binding, f"failed to configure {what}: {message}", "")

    def _fail(self, hook: Hook[Mutator], binding: Binding | None, message: str, reason: str) -> None:
        if hook.fails:
            who = f"policy {go_quote(hook.name)}" if binding is None else f"policy '{hook.name}' with binding '{binding.name}'"
            self._errors.append((f"{who} denied request: {message}", reason))

    # ------------------------------------------------------------ what they do

    def _invoke_all(self, invocations: Sequence[_Invocation]) -> None:
        attributes, again = self._attributes, self._attributes.reinvocation_context()
        state: _Reinvocation = again.values.setdefault(_NAME, _Reinvocation())
        if again.is_reinvoke and state.output != attributes.object:
            state.require_reinvoking()
        try:
            namespace, authorizer = namespace_object(attributes), authorizer_of(attributes.context)
            last: VersionedAttributes | None = None
            for invocation in invocations:
                versioned = self._versioned(invocation.match)
                activation = Activation(
                    versioned,
                    invocation.match.resource,
                    authorizer,
                    params=invocation.param,
                    namespace=namespace,
                    variables=invocation.hook.evaluator.variables,
                )
                asked = Activation(versioned, attributes.resource, authorizer, params=invocation.param)
                if self._should_invoke(invocation, asked, state):
                    last = versioned
                    self._invoke(invocation, versioned, activation, state)
            if last is not None and last.dirty:
                state.require_reinvoking()
                again.should_reinvoke = True
                last.write_back()
        finally:
            state.output = copied(attributes.object)

    def _should_invoke(self, invocation: _Invocation, asked: Activation, state: _Reinvocation) -> bool:
        """Reports whether the match conditions hold and, in the second run, the policy is to be reinvoked."""
        conditions = invocation.hook.evaluator.conditions
        try:
            if conditions is not None and not conditions.match(asked):
                return False
        except MatchConditionError as error:
            self._fail(invocation.hook, invocation.binding, str(error), "Invalid")
            return False
        return not self._attributes.reinvocation_context().is_reinvoke or invocation.key in state.wanted

    def _invoke(
        self, invocation: _Invocation, versioned: VersionedAttributes, activation: Activation, state: _Reinvocation
    ) -> None:
        before = versioned.object
        for mutation in invocation.hook.evaluator.mutations:
            if versioned.object is None:
                continue
            try:
                versioned.object = mutation.apply(versioned, activation)
            except MutationError as error:
                self._fail(invocation.hook, invocation.binding, str(error), "Invalid")
                continue
            activation.object_changed()
        if before != versioned.object:
            state.require_reinvoking()
            self._attributes.reinvocation_context().should_reinvoke = True
        if invocation.hook.spec.get("reinvocationPolicy") == "IfNeeded":
            state.invoked.add(invocation.key)

    def _versioned(self, match: Match) -> VersionedAttributes:
        found = self._versions.get(id(match.resource))
        if found is None:
            found = self._versions[id(match.resource)] = VersionedAttributes(self._attributes, match.resource)
        return found
