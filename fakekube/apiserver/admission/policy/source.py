"""The policies of a cluster that are in force, with their bindings and parameters.

A policy without a binding does nothing, nor does a binding without its policy. Parameters are objects of any kind, found by
name or by labels, as they are now. What is compiled for a policy is cached by the process under the text of its spec, so that
the next cluster with the same policy need not compile it.

Specified by: k8s.io/apiserver/pkg/admission/plugin/policy/generic/{policy_source,policy_dispatcher}.go (CollectParams,
ensureParamsForPolicyLocked).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from fakekube.apimachinery.data import ADMISSION_REGISTRATION
from fakekube.apimachinery.selectors import SelectorError, from_label_selector
from fakekube.apiserver.admission.matching import Criteria

if TYPE_CHECKING:
    from fakekube.apis.rest.cluster_access import ClusterAccess
    from fakekube.apis.rest.resource import Resource
    from fakekube.base.objects import Object


E = TypeVar("E")

#: The maximum number of compiled policies of each kind in the process.
_MAX_COMPILED: Final = 256


@dataclass(frozen=True, slots=True)
class Binding:
    """A compiled binding."""

    name: str
    spec: Object
    criteria: Criteria | None
    """The matchResources; None: every request that the policy matches."""


@dataclass(frozen=True, slots=True)
class Hook(Generic[E]):
    """A compiled policy with its bindings."""

    name: str
    spec: Object
    criteria: Criteria
    bindings: Sequence[Binding]
    evaluator: E

    @property
    def fails(self) -> bool:
        """Whether an error denies the request (failurePolicy Fail)."""
        return bool(self.spec.get("failurePolicy", "Fail") != "Ignore")


def compile_once(compile_spec: Callable[[Object], E]) -> Callable[[Object], E]:
    """Returns `compile_spec` with a cache by the text of the spec, which all clusters of the process share."""

    @lru_cache(maxsize=_MAX_COMPILED)
    def compile_text(text: str) -> E:
        return compile_spec(json.loads(text))

    return lambda spec: compile_text(json.dumps(spec, sort_keys=True))


class PolicySource(Generic[E]):
    """The hooks of one cluster.

    Args:
        policies: the plural of the policies; that of their bindings follows from `bindings`.
        bindings: the plural of the bindings.
        compile_policy: makes the evaluator of a policy from its spec.
    """

    def __init__(self, policies: str, bindings: str, compile_policy: Callable[[Object], E]) -> None:
        self._policies = policies
        self._bindings = bindings
        self._compile = compile_policy
        self._known: tuple[tuple[int, int], Sequence[Hook[E]]] = ((-1, -1), ())

    def hooks(self, cluster: ClusterAccess) -> Sequence[Hook[E]]:
        """Returns the policies in force, in the order of their names."""
        revisions = (
            cluster.last_change(ADMISSION_REGISTRATION, self._bindings),
            cluster.last_change(ADMISSION_REGISTRATION, self._policies),
        )
        known, hooks = self._known
        if known != revisions:
            hooks = self._read(cluster)
            self._known = revisions, hooks
        return hooks

    def _read(self, cluster: ClusterAccess) -> Sequence[Hook[E]]:
        bindings: dict[str, list[Binding]] = {}
        for obj in cluster.list(ADMISSION_REGISTRATION, self._bindings):
            spec = obj.get("spec") or {}
            match = spec.get("matchResources")
            criteria = None if match is None else Criteria.of_match_resources(match)
            bindings.setdefault(spec.get("policyName", ""), []).append(Binding(obj["metadata"]["name"], spec, criteria))
        hooks = []
        for obj in cluster.list(ADMISSION_REGISTRATION, self._policies) if bindings else ():
            name, spec = obj["metadata"]["name"], obj.get("spec") or {}
            bound = bindings.get(name)
            if bound is not None:
                criteria = Criteria.of_match_resources(spec.get("matchConstraints"))
                hooks.append(Hook(name, spec, criteria, bound, self._compile(spec)))
        return hooks


class ParamsError(Exception):
    """A policy or a binding is misconfigured."""


def param_resource(cluster: ClusterAccess, param_kind: Mapping[str, Any] | None) -> Resource | None:
    """Returns the resource of a policy's paramKind; None if the policy has none. Raises ParamsError."""
    if param_kind is None:
        return None
    group, _, version = param_kind.get("apiVersion", "").rpartition("/")
    kind = param_kind.get("kind", "")
    found = cluster.resource_of_kind(group, version, kind)
    if found is None:
        raise ParamsError(f"failed to find resource referenced by paramKind: '{group}/{version}, Kind={kind}'")
    return found


def collect_params(
    cluster: ClusterAccess, resource: Resource | None, reference: Mapping[str, Any] | None, namespace: str
) -> Sequence[Object | None]:
    """Returns the parameters that a binding refers to, with kind and apiVersion.

    Args:
        cluster: access to the stored objects.
        resource: the resource of the paramKind of the policy, None if it has none.
        reference: the paramRef of the binding.
        namespace: the namespace of the write.

    Returns:
        The parameters; a list of None if the policy or the binding has none; empty if none are found and that is allowed.

    Raises ParamsError.
    """
    if resource is None or reference is None:
        return [None]
    where = reference.get("namespace") or ""
    if not resource.namespaced and where:
        raise ParamsError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
    if resource.namespaced and not where:
        where = namespace
        if not where:
            raise ParamsError("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
    found = _found(cluster, resource, reference, where)
    if not found and reference.get("parameterNotFoundAction") == "Deny":
        raise ParamsError("no params found for policy binding with `Deny` parameterNotFoundAction")
    return [_convert_from_storage(resource, obj) for obj in found]


def _found(cluster: ClusterAccess, resource: Resource, reference: Mapping[str, Any], namespace: str) -> Sequence[Object]:
    name = reference.get("name") or ""
    if name:
        obj = cluster.get(resource.group, resource.plural, namespace, name)
        return [] if obj is None else [obj]
    try:
        selector = from_label_selector(reference.get("selector") or {})
    except SelectorError as error:
        raise ParamsError(str(error)) from None
    return [
        obj for obj in cluster.list(resource.group, resource.plural, namespace) if selector.matches(obj["metadata"].get("labels"))
    ]


def _convert_from_storage(resource: Resource, obj: Object) -> Object:
    shown = obj if resource.from_storage is None else resource.from_storage(obj)
    if resource.custom:
        return shown
    return {"kind": resource.kind, "apiVersion": resource.api_version, **shown}
