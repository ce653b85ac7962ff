"""Mutating policies: expressions change the object of a write before it is validated.

Policies act one after the other, each with each of its bindings and parameters, and see what those before them did. A policy
whose reinvocationPolicy is IfNeeded acts once more if the object has changed after it acted. A mutation is an apply
configuration, which is merged, or a JSON patch; the result is decoded as the type of the object and defaulted.

Invariant: nothing is changed in place.

Specified by: k8s.io/apiserver/pkg/admission/plugin/policy/mutating/{dispatcher,reinvocationcontext,compilation}.go and
patch/{smd,json_patch}.go, plugin/policy/generic/policy_dispatcher.go, plugin/cel/mutation.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fakekube.apimachinery.cel.compilation import admission
from fakekube.apimachinery.cel.cost.limits import RUNTIME_COST_BUDGET
from fakekube.apimachinery.cel.mutation import JSONPatch, NotJSONError, ObjectValue, json_value, native, type_mismatches
from fakekube.apimachinery.cel.values import ABSENT
from fakekube.apimachinery.errors import status
from fakekube.apimachinery.patch import json_patch
from fakekube.apimachinery.patch.apply import decode_unstructured
from fakekube.apimachinery.patch.apply.atoms import TypingError
from fakekube.apimachinery.patch.apply.updater import ConfigurationError, merge
from fakekube.apimachinery.schema import defaults, printing
from fakekube.apimachinery.schema.decode import DecodeError, decode
from fakekube.apimachinery.schema.strict import Strict, strict_decoding_error
from fakekube.apimachinery.schema.trees import deep_copy
from fakekube.apiserver.admission.cel import (
    Activation,
    Compiled,
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
from fakekube.base.golang.strconv import go_quote, json_kind, unmarshal_error

if TYPE_CHECKING:
    from fakekube.apimachinery.schema.model import Type
    from fakekube.apis.rest.resource import GVK
    from fakekube.apiserver.admission.matching import VersionedAttributes
    from fakekube.base.objects import Object


class MutationError(Exception):
    """A mutation failed; the failure policy decides about the request."""


def _apply_configuration(versioned: VersionedAttributes, value: Any) -> Object:
    """Returns the object with an apply configuration merged into it. Raises MutationError."""
    problems = list(type_mismatches(value))
    if problems:
        raise MutationError("type mismatch: " + "\n".join(problems))
    try:
        configuration = native(value)
    except NotJSONError as error:
        raise MutationError(str(error)) from None
    live = versioned.object
    assert live is not None
    kind = versioned.kind
    type_, custom = _type(versioned), _is_custom(versioned)
    if not _is_described(versioned):
        problem = f"failed to convert patch object to typed object: no corresponding type for {kind}"
        raise MutationError(f"error applying patch: {problem}")
    own = {"apiVersion": kind.api_version, "kind": kind.kind}
    try:
        if custom:
            found = merge(type_, live, {**configuration, **own}, custom=True)
            return _finish(versioned, deep_copy(found))
        found = merge(type_, _without_kind(live), _without_kind(configuration), custom=False)
    except ConfigurationError as error:
        raise MutationError(f"error applying patch: {error}") from None
    shared = {name: item for name, item in found.items() if type(item) is dict and item is live.get(name)}
    try:
        read = decode_unstructured(type_, str(kind), {name: item for name, item in found.items() if name not in shared})
    except TypingError as error:
        raise MutationError(str(error)) from None
    return _finish(versioned, {**read, **shared}, live)


def _apply_json_patch(versioned: VersionedAttributes, value: Any) -> Object:
    """Returns the object after the operations of a JSON patch. Raises MutationError, StatusError 500."""
    live = versioned.object
    assert live is not None
    try:
        patched = json_patch.perform(live, [_operation(each) for each in value])
    except json_patch.TestFailed:
        return live
    except json_patch.PatchRejected as error:
        raise MutationError(f"JSON Patch: {error}") from None
    return _finish(versioned, _decode(versioned, patched))


_PATCHERS: Final[Mapping[str, tuple[str, Callable[[VersionedAttributes, Any], Object]]]] = {
    "ApplyConfiguration": ("applyConfiguration", _apply_configuration),
    "JSONPatch": ("jsonPatch", _apply_json_patch),
}
"""patchType → the field with the expression, and what is done with its value."""


# --- JSON patches -----------------------------------------------------------------------------------------------------


def _operation(patch: JSONPatch) -> json_patch.Operation:
    operation: dict[str, Any] = {"op": patch.op, "path": patch.path}
    if patch.source:
        operation["from"] = patch.source
    if patch.value is not ABSENT:
        problems = list(type_mismatches(patch.value)) if isinstance(patch.value, ObjectValue) else []
        if problems:
            raise MutationError("type mismatch: " + "\n".join(problems))
        try:
            operation["value"] = json_value(patch.value)
        except NotJSONError as error:
            text = "JSONPath valueExpression evaluated to a type that could not marshal to JSON"
            raise MutationError(f"{text}: {error}") from None
    return operation


def _decode(versioned: VersionedAttributes, patched: Any) -> Object:
    """Decodes a patched object strictly. Raises MutationError for a kind of another version, StatusError 500."""
    if not isinstance(patched, dict):
        raise status.internal(status.uninterpretable(unmarshal_error("array", status.TYPE_META)))
    for name in ("apiVersion", "kind"):
        if not isinstance(patched.get(name), str | None):
            raise status.internal(status.uninterpretable(unmarshal_error(json_kind(patched[name]), "string", f".{name}")))
    if _is_custom(versioned):
        own: Object = deep_copy(patched)
        return own
    type_, claimed = _type(versioned), _claimed_type(versioned, patched)
    strict = Strict()
    try:
        obj: Object = decode(claimed, patched, strict)
    except DecodeError as error:
        raise status.internal(str(error)) from None
    if strict.messages:
        raise status.internal(strict_decoding_error(strict.messages))
    if claimed is not type_:
        wrong, kind = claimed.name.rpartition("/")[2], versioned.kind
        if str(patched.get("apiVersion") or kind.api_version) != kind.api_version:
            scheme = go_quote(versioned.resource.emulation.scheme)
            raise MutationError(f"{wrong} is not suitable for converting to {go_quote(kind.api_version)} in scheme {scheme}")
        raise status.internal(f"failed to convert object: converting ({wrong}) to ({kind.internal_type}): unknown conversion")
    return _without_kind(obj)


def _claimed_type(versioned: VersionedAttributes, patched: Object) -> Type:
    """Returns the type of the kind and apiVersion of a patched object. Raises StatusError 500."""
    own = versioned.kind
    api_version, kind = str(patched.get("apiVersion") or own.api_version), str(patched.get("kind") or own.kind)
    group, _, version = api_version.rpartition("/")
    if (group, version, kind) == (own.group, own.version, own.kind):
        return _type(versioned)
    found = versioned.resource.emulation.types.kind_type(group, version, kind)
    if found is None:
        scheme = versioned.resource.emulation.scheme
        raise status.internal(f'no kind "{kind}" is registered for version "{api_version}" in scheme "{scheme}"')
    return found


# --- Types ------------------------------------------------------------------------------------------------------------


def _type(versioned: VersionedAttributes) -> Type:
    resource = versioned.resource
    if versioned.kind == resource.gvk:
        return resource.type
    return resource.subresources[versioned.attributes.subresource].type


def _is_custom(versioned: VersionedAttributes) -> bool:
    return versioned.resource.custom and versioned.kind == versioned.resource.gvk


def _is_described(versioned: VersionedAttributes) -> bool:
    """Reports whether the OpenAPI document of the group and version of a kind has the kind."""
    kind: GVK = versioned.kind
    return (kind.group, kind.version) == (versioned.resource.group, versioned.resource.version)


def _without_kind(obj: Mapping[str, Any]) -> Object:
    return {name: item for name, item in obj.items() if name not in ("kind", "apiVersion")}


def _finish(versioned: VersionedAttributes, obj: Object, live: Object | None = None) -> Object:
    """Returns the defaulted object in the form of `VersionedAttributes.object`. Raises MutationError.

    The result is a new tree, which may share unchanged fields with `live`, the object before.
    """
    resource, kind = versioned.resource, versioned.kind
    asked = versioned.attributes.resource
    if kind == resource.gvk and resource is not asked and not resource.custom:
        wrong, right = (each.type.name.rpartition("/")[2] for each in (resource, asked))
        raise MutationError(f"converting ({wrong}) to ({right}): unknown conversion")
    defaults.apply(versioned.resource.emulation.types, kind.group, kind.version, kind.kind, obj)
    if kind == resource.gvk:
        resource.strategy.default(obj)
        resource.strategy.default_times(obj, versioned.attributes.context.clock)
    if resource.custom and kind == resource.gvk:
        return obj
    shared = {name: item for name, item in obj.items() if item is not None and item is (live or {}).get(name)}
    printed: Object = printing.normalise(_type(versioned), obj, stored=False, parts=shared)
    return {"kind": kind.kind, "apiVersion": kind.api_version, **printed}


class Mutation(NamedTuple):
    """A compiled mutation of a policy."""

    expression: Compiled
    patch: Callable[[VersionedAttributes, Any], Object]

    def apply(self, versioned: VersionedAttributes, activation: Activation) -> Object:
        """Returns the object of the write, mutated. Raises MutationError, StatusError."""
        if self.expression.program is None:
            raise MutationError(self.expression.problem)
        try:
            (result,), _ = evaluate([self.expression], activation, RUNTIME_COST_BUDGET)
        except OutOfBudget as error:
            raise MutationError(str(error)) from None
        assert result is not None
        if result.error is not None:
            raise MutationError(result.error)
        return self.patch(versioned, result.value)


class Mutator:
    """See the module. Made from the spec of a policy; keeps nothing of the writes that it sees."""

    def __init__(self, spec: Object) -> None:
        params = "paramKind" in spec
        conditions = spec.get("matchConditions") or ()
        self.conditions = MatchConditions(conditions, spec.get("failurePolicy", "Fail"), params=params) if conditions else None
        environment = replace(admission(params=params, composed=True, patches=True), makes_patches=False)
        variables, environment = compose(environment, spec.get("variables") or ())
        self.variables: Mapping[str, Compiled] = variables
        environment = replace(environment, makes_patches=True)
        self.mutations: Sequence[Mutation] = []
        for mutation in spec.get("mutations") or ():
            field, patch = _PATCHERS[mutation["patchType"]]
            source = (mutation.get(field) or {}).get("expression", "")
            self.mutations.append(Mutation(compile_cel(environment, source), patch))


_mutator_of: Final = compile_once(Mutator)


_NAME: Final = "MutatingAdmissionPolicy"

#: See `Invocation.key`.
_Key = tuple[str, str, str, str]


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


class _Dispatch(PolicyDispatch[Mutator]):
    """The dispatch of one write to all mutating policies."""

    def __init__(self, attributes: Attributes) -> None:
        super().__init__(attributes)
        self._errors: list[tuple[str, str]] = []
        """Messages and reasons."""

    def run(self, hooks: Sequence[Hook[Mutator]]) -> None:
        """See `PolicyDispatch`."""
        invocations = [invocation for hook in hooks for invocation in self._invocations(hook)]
        if invocations:
            self._invoke_all(invocations)
        if self._errors:
            error = forbidden(self._attributes, "admission request denied by policy")
            error.message, reason = self._errors[0]
            error.reason = reason or error.reason
            error.details = {**(error.details or {}), "causes": [{"message": message} for message, _ in self._errors]}
            raise error

    def _fail(self, hook: Hook[Mutator], binding: Binding | None, message: str, reason: str = "") -> None:
        if hook.fails:
            who = f"policy {go_quote(hook.name)}" if binding is None else f"policy '{hook.name}' with binding '{binding.name}'"
            self._errors.append((f"{who} denied request: {message}", reason))

    def _invoke_all(self, invocations: Sequence[Invocation[Mutator]]) -> None:
        attributes, again = self._attributes, self._attributes.reinvocation_context()
        state: _Reinvocation = again.values.setdefault(_NAME, _Reinvocation())
        if again.is_reinvoke and state.output != attributes.object:
            state.require_reinvoking()
        try:
            namespace, authorizer = namespace_object(attributes), authorizer_of(attributes.context)
            last: VersionedAttributes | None = None
            for invocation in invocations:
                versioned = self._versioned_attributes(invocation.match)
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
            state.output = deep_copy(attributes.object)

    def _should_invoke(self, invocation: Invocation[Mutator], asked: Activation, state: _Reinvocation) -> bool:
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
        self, invocation: Invocation[Mutator], versioned: VersionedAttributes, activation: Activation, state: _Reinvocation
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


def dispatcher() -> Dispatcher[Mutator]:
    """Returns the dispatcher of writes to the mutating policies of one cluster."""
    return Dispatcher(PolicySource("mutatingadmissionpolicies", "mutatingadmissionpolicybindings", _mutator_of), _Dispatch)
