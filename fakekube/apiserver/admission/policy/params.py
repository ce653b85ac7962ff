"""The parameters of a policy's binding: objects of any kind, found by name or by labels, as they are now.

Specified by: k8s.io/apiserver/pkg/admission/plugin/policy/generic/{policy_dispatcher,policy_source}.go (CollectParams,
ensureParamsForPolicyLocked).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fakekube.apimachinery.selectors import SelectorError, from_label_selector

if TYPE_CHECKING:
    from fakekube.apis.rest.cluster_access import ClusterAccess
    from fakekube.apis.rest.resource import Resource
    from fakekube.apis.rest.strategy import Object


class ConfigurationError(Exception):
    """A policy or a binding is misconfigured."""


def param_resource(cluster: ClusterAccess, param_kind: Mapping[str, Any] | None) -> Resource | None:
    """The resource of a policy's paramKind; None if the policy has none. Raises ConfigurationError."""
    if param_kind is None:
        return None
    group, _, version = param_kind.get("apiVersion", "").rpartition("/")
    kind = param_kind.get("kind", "")
    found = cluster.resource_of_kind(group, version, kind)
    if found is None:
        raise ConfigurationError(f"failed to find resource referenced by paramKind: '{group}/{version}, Kind={kind}'")
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

    Raises ConfigurationError.
    """
    if resource is None or reference is None:
        return [None]
    where = reference.get("namespace") or ""
    if not resource.namespaced and where:
        raise ConfigurationError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
    if resource.namespaced and not where:
        where = namespace
        if not where:
            raise ConfigurationError("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
    found = _found(cluster, resource, reference, where)
    if not found and reference.get("parameterNotFoundAction") == "Deny":
        raise ConfigurationError("no params found for policy binding with `Deny` parameterNotFoundAction")
    return [_shown(resource, obj) for obj in found]


def _found(cluster: ClusterAccess, resource: Resource, reference: Mapping[str, Any], namespace: str) -> Sequence[Object]:
    name = reference.get("name") or ""
    if name:
        obj = cluster.get(resource.group, resource.plural, namespace, name)
        return [] if obj is None else [obj]
    try:
        selector = from_label_selector(reference.get("selector") or {})
    except SelectorError as error:
        raise ConfigurationError(str(error)) from None
    return [
        obj for obj in cluster.list(resource.group, resource.plural, namespace) if selector.matches(obj["metadata"].get("labels"))
    ]


def _shown(resource: Resource, obj: Object) -> Object:
    shown = obj if resource.from_storage is None else resource.from_storage(obj)
    if resource.custom:
        return shown
    return {"kind": resource.kind, "apiVersion": resource.api_version, **shown}
