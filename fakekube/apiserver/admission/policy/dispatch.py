"""Finds what a write has to do with the policies of a cluster: the bindings that match it, each with its parameters.

A policy is invoked once for each binding that matches, and each parameter of it. Validating and mutating policies differ in what
an invocation does.

Invariant: an error of one policy or binding does not keep the others from being invoked; it counts if the failure policy says so.

Specified by: k8s.io/apiserver/pkg/admission/plugin/policy/generic/policy_dispatcher.go (Dispatch, CollectParams).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from fakekube.apimachinery.errors import StatusError, status
from fakekube.apimachinery.selectors import SelectorError, from_label_selector
from fakekube.apiserver.admission.matching import Match, VersionedAttributes, namespace_of
from fakekube.apiserver.admission.policy.source import Binding, Hook, PolicySource

if TYPE_CHECKING:
    from fakekube.apis.rest.cluster_access import ClusterAccess
    from fakekube.apis.rest.resource import Resource
    from fakekube.apiserver.admission.chain import Attributes
    from fakekube.base.objects import Object

E = TypeVar("E")


class Invocation(NamedTuple, Generic[E]):
    """An invocation of a policy for a write, with one binding and one parameter."""

    hook: Hook[E]
    binding: Binding
    match: Match
    param: Object | None

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Policy, binding, and namespace and name of the parameter."""
        meta = {} if self.param is None else self.param["metadata"]
        return self.hook.name, self.binding.name, meta.get("namespace", ""), meta.get("name", "")


class Dispatcher(Generic[E]):
    """Dispatches writes to the policies of one kind in one cluster.

    Args:
        source: the policies.
        dispatch_of: makes the dispatch of a write.
    """

    def __init__(self, source: PolicySource[E], dispatch_of: Callable[[Attributes], PolicyDispatch[E]]) -> None:
        self._source = source
        self._dispatch_of = dispatch_of

    def dispatch(self, attributes: Attributes) -> None:
        """Invokes all policies that match a write. Raises StatusError if it is denied."""
        self._dispatch_of(attributes).run(self._source.hooks(attributes.context.services))


class PolicyDispatch(Generic[E]):
    """The dispatch of one write to all policies."""

    def __init__(self, attributes: Attributes) -> None:
        self._attributes = attributes
        self._cluster = attributes.context.services
        self._versions: dict[int, VersionedAttributes] = {}

    def run(self, hooks: Sequence[Hook[E]]) -> None:
        """Invokes all policies that match. Raises StatusError if the write is denied."""
        raise NotImplementedError

    def _fail(self, hook: Hook[E], binding: Binding | None, message: str) -> None:
        """Records that a policy or a binding cannot be configured; called only if that denies the write."""
        raise NotImplementedError

    def _invocations(self, hook: Hook[E]) -> Iterator[Invocation[E]]:
        """Yields the invocations of a policy, in the order of its bindings."""
        try:
            match = hook.criteria.match(self._attributes)
            if match is None:
                return
            resource = param_resource(self._cluster, hook.spec.get("paramKind"))
        except (StatusError, ParamsError) as error:
            self._report_configuration_error(hook, None, error)
            return
        for binding in hook.bindings:
            try:
                if binding.criteria is not None and binding.criteria.match(self._attributes) is None:
                    continue
                params = collect_params(self._cluster, resource, binding.spec.get("paramRef"), namespace_of(self._attributes))
            except (StatusError, ParamsError) as error:
                self._report_configuration_error(hook, binding, error)
                continue
            for param in params:
                yield Invocation(hook, binding, match, param)

    def _report_configuration_error(self, hook: Hook[E], binding: Binding | None, error: Exception) -> None:
        if hook.fails:
            what = "policy" if binding is None else "binding"
            self._fail(hook, binding, f"failed to configure {what}: {error.message if isinstance(error, StatusError) else error}")

    def _versioned_attributes(self, match: Match) -> VersionedAttributes:
        """Returns the attributes of the write in the version that a policy matched."""
        found = self._versions.get(id(match.resource))
        if found is None:
            found = self._versions[id(match.resource)] = VersionedAttributes(self._attributes, match.resource)
        return found


def namespace_object(attributes: Attributes) -> Object | None:
    """Returns the namespace of the object; None for cluster-scoped ones, namespaces among them. Raises StatusError 404."""
    kind = attributes.kind
    if not attributes.namespace or (kind.group, kind.kind) == ("", "Namespace"):
        return None
    found = attributes.context.services.get("", "namespaces", "", attributes.namespace)
    if found is None:
        raise status.not_found("", "namespaces", attributes.namespace)
    return found


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
    found = _find_params(cluster, resource, reference, where)
    if not found and reference.get("parameterNotFoundAction") == "Deny":
        raise ParamsError("no params found for policy binding with `Deny` parameterNotFoundAction")
    return [_convert_from_storage(resource, obj) for obj in found]


def _find_params(cluster: ClusterAccess, resource: Resource, reference: Mapping[str, Any], namespace: str) -> Sequence[Object]:
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
