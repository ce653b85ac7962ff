"""The variables of expressions for one write: object, oldObject, request, namespaceObject, params, authorizer, variables.

A variable of a policy is evaluated once, on its first use. Its cost is added to that of the first expression that uses it,
and again in each later group of expressions (`Variables.begin`).

Invariant: expressions cannot change the values, and an activation is used by one thread.

Specified by: k8s.io/apiserver/pkg/admission/plugin/cel/{activation,condition,composition}.go;
k8s.io/apiserver/pkg/admission/plugin/authorizer/caching_authorizer.go.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from fakekube.apimachinery.cel import values
from fakekube.apimachinery.cel.errors import CostLimitExceeded, EvaluationError
from fakekube.apimachinery.cel.libraries.authorization import Authorizer, Decision, ResourceCheck
from fakekube.apimachinery.cel.values import ABSENT
from fakekube.apimachinery.cel.views import untyped
from fakekube.apiserver.admission.matching import namespace_of

if TYPE_CHECKING:
    from fakekube.apis.rest.resource import GVK, Resource
    from fakekube.apis.rest.strategy import Object, WriteContext
    from fakekube.apiserver.admission.cel.conditions import Compiled
    from fakekube.apiserver.admission.plugin import Attributes
    from fakekube.apiserver.admission.versioned import VersionedAttributes


#: What one expression may cost.
PER_CALL_LIMIT: Final = 1_000_000

_NAMESPACE_METADATA: Final = frozenset(
    {
        "name",
        "generateName",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "labels",
        "annotations",
        "finalizers",
    }
)


class Activation:
    """The variables for the expressions of one webhook or policy; each is computed on first use.

    Args:
        versioned: the write, with its objects in the version that the webhook or policy matches.
        resource: the resource of `request.resource`.
        authorizer: performs authorization checks; None: not available to the expressions.
        params: the parameters of a policy, with kind and apiVersion.
        namespace: the namespace of the object, None for cluster-scoped ones.
        variables: the compiled variables of a policy.
    """

    __slots__ = ("_authorizer", "_made", "_namespace", "_params", "_resource", "_versioned", "variables")

    def __init__(
        self,
        versioned: VersionedAttributes,
        resource: Resource,
        authorizer: Authorizer | None,
        *,
        params: Object | None = None,
        namespace: Object | None = None,
        variables: Mapping[str, Compiled] | None = None,
    ) -> None:
        self._versioned = versioned
        self._resource = resource
        self._authorizer = authorizer
        self._params = params
        self._namespace = namespace
        self.variables = Variables(variables, self) if variables else None
        self._made: dict[str, Any] = {}

    def get(self, name: str, default: Any, /) -> Any:
        """The value of a variable."""
        try:
            return self._made[name]
        except KeyError:
            make = _MAKERS.get(name)
            if make is None:
                return default
            found = self._made[name] = make(self)
            return found

    def object_changed(self) -> None:
        """The object of the write is another one now: what was computed from the one before is forgotten."""
        self._made.clear()
        if self.variables is not None:
            self.variables = Variables(self.variables.compiled, self)

    def _object(self) -> Any:
        return self._shared("object", lambda: self._versioned.object)

    def _old_object(self) -> Any:
        return self._shared("oldObject", lambda: self._versioned.old)

    def _request(self) -> Any:
        versioned, resource = self._versioned, self._resource
        name = f"request for {resource.group}/{resource.version}"
        return self._shared(name, lambda: admission_request(versioned.attributes, resource, versioned.kind))

    def _shared(self, name: str, make: Callable[[], Object | None]) -> Any:
        """Returns a value that all policies with the same version share."""
        views = self._versioned.views
        if name not in views:
            views[name] = untyped(make())
        return views[name]

    def _namespace_object(self) -> Any:
        namespace = self._namespace
        if namespace is None:
            return None
        meta = {name: item for name, item in namespace["metadata"].items() if name in _NAMESPACE_METADATA}
        return untyped({**namespace, "metadata": meta})

    def _authorizer_value(self) -> Any:
        return ABSENT if self._authorizer is None else self._authorizer

    def _request_resource(self) -> Any:
        if self._authorizer is None:
            return ABSENT
        attributes = self._versioned.attributes
        return ResourceCheck.of(
            self._authorizer,
            attributes.resource.group,
            attributes.resource.plural,
            subresource=attributes.subresource,
            namespace=namespace_of(attributes),
            name=attributes.name,
        )


_MAKERS: Final[Mapping[str, Callable[[Activation], Any]]] = {
    "object": Activation._object,
    "oldObject": Activation._old_object,
    "request": Activation._request,
    "namespaceObject": Activation._namespace_object,
    "params": lambda activation: untyped(activation._params),
    "variables": lambda activation: ABSENT if activation.variables is None else activation.variables,
    "authorizer": Activation._authorizer_value,
    "authorizer.requestResource": Activation._request_resource,
}


class _Result:
    """The value or error of a variable, its cost, and the other variables that it used."""

    __slots__ = ("cost", "uses", "value")

    def __init__(self) -> None:
        self.value: Any = None
        self.cost = 0
        self.uses: list[str] = []


class Variables(values.Mapping):
    """The variables of a policy."""

    __slots__ = ("_activation", "_charged", "_results", "_using", "compiled", "cost")

    def __init__(self, compiled: Mapping[str, Compiled], activation: Activation) -> None:
        self.compiled = compiled
        self._activation = activation
        self._results: dict[str, _Result] = {}
        self._using: list[str] = []
        self.begin()

    def begin(self) -> None:
        """From here on, what variables cost is charged anew."""
        self.cost = 0
        self._charged: set[str] = set()

    def take_cost(self) -> int:
        """Returns the cost of variables since the last call."""
        cost, self.cost = self.cost, 0
        return cost

    def find(self, key: Any) -> Any:
        if key not in self.compiled:
            return ABSENT
        self._using.append(key)
        result = self._results.get(key)
        if result is None:
            result = self._results[key] = self._evaluated(key)
        self._charge(key)
        if isinstance(result.value, EvaluationError):
            raise result.value
        return result.value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.compiled)

    def __len__(self) -> int:
        return len(self.compiled)

    def _charge(self, name: str) -> None:
        if name in self._charged:
            return
        self._charged.add(name)
        result = self._results[name]
        self.cost += result.cost
        for used in result.uses:
            self._charge(used)

    def _evaluated(self, name: str) -> _Result:
        compiled, result = self.compiled[name], _Result()
        if compiled.program is None:
            result.value = EvaluationError(f'composited variable "{name}" fails to compile: {compiled.problem}')
            return result
        outer, self._using = self._using, result.uses
        try:
            result.value, result.cost = compiled.program.evaluate(self._activation, PER_CALL_LIMIT)
        except CostLimitExceeded as error:
            result.value, result.cost = EvaluationError(str(error)), error.cost
        finally:
            self._using = outer
        if isinstance(result.value, EvaluationError):
            result.value = EvaluationError(f'composited variable "{name}" fails to evaluate: {result.value}')
        return result


def authorizer_of(context: WriteContext) -> Authorizer:
    """Returns the authorizer for one write, which caches its decisions."""
    known: dict[str, Decision] = {}

    def ask(spec: Mapping[str, Any]) -> Decision:
        key = json.dumps(spec, sort_keys=True, default=list)
        if key not in known:
            answer = context.services.decide(spec)
            known[key] = Decision(answer.allowed, answer.reason, answer.error)
        return known[key]

    subject: dict[str, Any] = {"user": context.user, "groups": list(context.groups)}
    if context.uid:
        subject["uid"] = context.uid
    if context.extra:
        subject["extra"] = {name: list(items) for name, items in context.extra.items()}
    return Authorizer(subject, ask)


def admission_request(attributes: Attributes, resource: Resource, kind: GVK) -> Object:
    """The AdmissionRequest of a write, without its objects: `resource` and `kind` are those that were matched."""
    own, context, asked = attributes.resource, attributes.context, attributes.kind
    user = {
        "username": context.user,
        "uid": context.uid,
        "groups": list(context.groups),
        "extra": {name: list(items) for name, items in context.extra.items()},
    }
    request: Object = {
        "uid": "",
        "kind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "resource": {"group": resource.group, "version": resource.version, "resource": resource.plural},
        "subResource": attributes.subresource,
        "requestKind": {"group": asked.group, "version": asked.version, "kind": asked.kind},
        "requestResource": {"group": own.group, "version": own.version, "resource": own.plural},
        "requestSubResource": attributes.subresource,
        "name": attributes.name,
        "namespace": namespace_of(attributes),
    }
    request = {name: item for name, item in request.items() if item or name == "uid"}
    request["operation"] = str(attributes.operation)
    request["userInfo"] = {name: item for name, item in user.items() if item}
    request |= {"object": None, "oldObject": None, "dryRun": context.dry_run, "options": attributes.options or None}
    return request
