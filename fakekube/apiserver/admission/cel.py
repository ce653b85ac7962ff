"""CEL in admission: the variables of a write, compiled expressions with a cost budget, and match conditions.

The expressions of webhooks and policies are compiled once. A variable of a policy is known to the expressions after it, and is
evaluated on its first use; its cost is added to that of the first expression that uses it, and again in each later group of
expressions (`Variables.begin`). The result of an expression that fails is its error; one that exhausts the budget ends the
evaluation of all (`OutOfBudget`).

Match conditions decide whether a webhook or a policy is called. One false condition excludes it, even if others fail. If none is
false, the failure policy decides about an error: it denies the request, or excludes the webhook or policy.

Invariant: expressions cannot change the values, and an activation is used by one thread.

Specified by: k8s.io/apiserver/pkg/admission/plugin/cel/{activation,compile,composition,condition}.go, pkg/apis/cel/config.go,
pkg/admission/plugin/authorizer/caching_authorizer.go, pkg/admission/plugin/webhook/matchconditions/matcher.go.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fakekube.apimachinery.cel import values
from fakekube.apimachinery.cel.compilation import Environment, ExpressionError, admission
from fakekube.apimachinery.cel.cost.limits import PER_CALL_LIMIT, RUNTIME_COST_BUDGET_MATCH_CONDITIONS
from fakekube.apimachinery.cel.errors import CostLimitExceeded, EvaluationError
from fakekube.apimachinery.cel.evaluation import Program
from fakekube.apimachinery.cel.libraries.authorization import Authorizer, Decision, ResourceCheck
from fakekube.apimachinery.cel.types import Type
from fakekube.apimachinery.cel.values import ABSENT
from fakekube.apimachinery.cel.views import wrap_untyped
from fakekube.apis.well_known import service_account_groups, service_account_username
from fakekube.apiserver.admission.matching import namespace_of
from fakekube.base.golang.strings import aggregate_errors

if TYPE_CHECKING:
    from fakekube.apis.rest.resource import GVK, Resource
    from fakekube.apis.rest.strategy import WriteContext
    from fakekube.apiserver.admission.chain import Attributes
    from fakekube.apiserver.admission.matching import VersionedAttributes
    from fakekube.base.objects import Object


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
        """Returns the value of a variable."""
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
        return self._share("object", lambda: self._versioned.object)

    def _old_object(self) -> Any:
        return self._share("oldObject", lambda: self._versioned.old)

    def _request(self) -> Any:
        versioned, resource = self._versioned, self._resource
        name = f"request for {resource.group}/{resource.version}"
        return self._share(name, lambda: _admission_request(versioned.attributes, resource, versioned.kind))

    def _share(self, name: str, make: Callable[[], Object | None]) -> Any:
        """Returns a value that all policies with the same version share."""
        views = self._versioned.views
        if name not in views:
            views[name] = wrap_untyped(make())
        return views[name]

    def _namespace_object(self) -> Any:
        namespace = self._namespace
        if namespace is None:
            return None
        meta = {name: item for name, item in namespace["metadata"].items() if name in _NAMESPACE_METADATA}
        return wrap_untyped({**namespace, "metadata": meta})

    def _authorizer_value(self) -> Any:
        return ABSENT if self._authorizer is None else self._authorizer

    def _request_resource(self) -> Any:
        if self._authorizer is None:
            return ABSENT
        attributes = self._versioned.attributes
        return ResourceCheck.for_resource(
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
    "params": lambda activation: wrap_untyped(activation._params),
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
            result = self._results[key] = self._evaluate_variable(key)
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

    def _evaluate_variable(self, name: str) -> _Result:
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
    return Authorizer(subject, ask, _subject_of_service_account)


def _subject_of_service_account(namespace: str, name: str) -> Mapping[str, Any]:
    """Returns a service account as in the spec of a SubjectAccessReview (serviceaccount.UserInfo)."""
    return {"user": service_account_username(namespace, name), "groups": list(service_account_groups(namespace))}


def _admission_request(attributes: Attributes, resource: Resource, kind: GVK) -> Object:
    """Returns the AdmissionRequest of a write, without its objects: `resource` and `kind` are those that were matched."""
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


def compile_cel(environment: Environment, source: str) -> Compiled:
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
        result, budget = _evaluate(expression, activation, budget)
        results.append(result)
    return results, budget


def _evaluate(expression: Compiled, activation: Activation, budget: int) -> tuple[Evaluation, int]:
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


def compose(environment: Environment, variables: Iterable[Mapping[str, Any]]) -> tuple[dict[str, Compiled], Environment]:
    """Returns the compiled variables by their names, and the environment of the expressions after them."""
    made: dict[str, Compiled] = {}
    for variable in variables:
        name = variable.get("name", "")
        made[name] = compile_cel(environment, variable.get("expression", ""))
        environment = environment.with_variable(name, made[name].type)
    return made, environment


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
        self._expressions: Sequence[Compiled] = [compile_cel(environment, each.get("expression", "")) for each in conditions]
        self._fails = failure_policy != "Ignore"

    def match(self, activation: Activation) -> bool:
        """Reports whether all conditions are true. Raises MatchConditionError."""
        try:
            results, _ = evaluate(self._expressions, activation, RUNTIME_COST_BUDGET_MATCH_CONDITIONS)
        except OutOfBudget as error:
            return self._handle_errors([str(error)])
        if any(result is not None and result.value is False for result in results):
            return False
        errors = [result.error for result in results if result is not None and result.error is not None]
        return self._handle_errors(errors) if errors else True

    def _handle_errors(self, errors: Sequence[str]) -> bool:
        if not self._fails:
            return False
        raise MatchConditionError(aggregate_errors(errors))
