"""The plugins AlwaysDeny, DenyServiceExternalIPs and OwnerReferencesPermissionEnforcement. Off by default.

Specified by: plugin/pkg/admission/{deny,gc,network/denyserviceexternalips}.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fakekube.apis.rest.strategy import Object
from fakekube.apiserver.admission.plugin import Attributes, Operation, Plugin
from fakekube.apiserver.admission.refusals import forbidden
from fakekube.base.golang.quoting import go_quote

#: Users with this permission may set blockOwnerDeletion for every owner.
_ANYTHING = {"verb": "update", "group": "*", "version": "*", "resource": "*", "subresource": "finalizers", "name": "*"}


class AlwaysDeny(Plugin):
    """Rejects every write."""

    name = "AlwaysDeny"
    operations = frozenset(Operation)
    subresources = None

    def admit(self, attributes: Attributes) -> None:
        raise forbidden(attributes, "admission control is denying all modifications")

    def validate(self, attributes: Attributes) -> None:
        raise forbidden(attributes, "admission control is denying all modifications")


class DenyServiceExternalIPs(Plugin):
    """Rejects new external IPs of Services."""

    name = "DenyServiceExternalIPs"
    operations = frozenset({Operation.CREATE, Operation.UPDATE})
    resources = frozenset({("", "services")})

    def validate(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        addresses = attributes.object["spec"].get("externalIPs") or ()
        held = ((attributes.old or {}).get("spec") or {}).get("externalIPs") or ()
        if not set(addresses) <= set(held):
            raise forbidden(attributes, "Use of external IPs is denied by admission control")


class OwnerReferencesPermissionEnforcement(Plugin):
    """Requires the permission to delete an object for changes of its owners, and to update an owner's finalizers for
    blockOwnerDeletion."""

    name = "OwnerReferencesPermissionEnforcement"
    operations = frozenset({Operation.CREATE, Operation.UPDATE})
    subresources = None

    def validate(self, attributes: Attributes) -> None:
        resource = attributes.resource
        if (resource.group, resource.plural, attributes.subresource) == ("", "pods", "status"):
            return
        new, old = _owners(attributes.object), _owners(attributes.old)
        if new == old:
            return
        if attributes.operation is not Operation.CREATE:
            self._check_deletion(attributes)
        blocking = [owner for owner in _blocking(new) if not _is_blocking(owner, old)]
        if not blocking or _may(attributes, _ANYTHING)[0]:
            return
        for owner in blocking:
            self._check_owner(attributes, owner)

    @staticmethod
    def _check_deletion(attributes: Attributes) -> None:
        resource = attributes.resource
        allowed, reason = _may(
            attributes,
            {
                "verb": "delete",
                "group": resource.group,
                "version": resource.version,
                "resource": resource.plural,
                "subresource": attributes.subresource,
                "namespace": attributes.namespace,
                "name": attributes.name,
            },
        )
        if not allowed:
            raise forbidden(attributes, f"cannot set an ownerRef on a resource you can't delete: {reason}, <nil>")

    @staticmethod
    def _check_owner(attributes: Attributes, owner: Mapping[str, Any]) -> None:
        api_version, kind = owner.get("apiVersion", ""), owner.get("kind", "")
        group, _, version = api_version.rpartition("/")
        resource = attributes.context.services.resource_of_kind(group, version, kind)
        if resource is None:
            problem = f"no matches for kind {go_quote(kind)} in version {go_quote(api_version)}"
            what = f"cannot find RESTMapping for APIVersion {api_version} Kind {kind}: {problem}"
            raise forbidden(attributes, f"cannot set blockOwnerDeletion in this case because {what}")
        allowed, reason = _may(
            attributes,
            {
                "verb": "update",
                "group": resource.group,
                "version": resource.version,
                "resource": resource.plural,
                "subresource": "finalizers",
                "namespace": attributes.namespace if resource.namespaced else "",
                "name": owner.get("name", ""),
            },
        )
        if not allowed:
            what = "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on"
            raise forbidden(attributes, f"{what}: {reason}, <nil>")


def _owners(obj: Object | None) -> Sequence[Mapping[str, Any]]:
    return ((obj or {}).get("metadata") or {}).get("ownerReferences") or []


def _blocking(owners: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    return (owner for owner in owners if owner.get("blockOwnerDeletion"))


def _is_blocking(owner: Mapping[str, Any], owners: Sequence[Mapping[str, Any]]) -> bool:
    return any(other.get("uid") == owner.get("uid") for other in _blocking(owners))


def _may(attributes: Attributes, asked: Mapping[str, str]) -> tuple[bool, str]:
    """Returns whether the user may perform a request, with the reason."""
    context = attributes.context
    question = {
        "user": context.user,
        "uid": context.uid,
        "groups": list(context.groups),
        "extra": {key: list(values) for key, values in context.extra.items()},
        "resourceAttributes": {field: value for field, value in asked.items() if value},
    }
    return context.services.authorize(context.user, context.groups, question)
