"""The discovery documents of one state of the registry, in both forms: one document a group, and aggregated.

Groups come in the order of priority: the built-in ones as the facts have them, then the custom ones by
name. Built-in verbs are listed by the alphabet, those of custom resources in the order in which their
server names them; a built-in resource leaves group and version of its own kind out of the aggregated form,
a custom one does not.

Specified by: k8s.io/apiserver/pkg/endpoints/discovery, k8s.io/apiextensions-apiserver/pkg/apiserver
(customresource_discovery_controller.go), k8s.io/kube-aggregator/pkg/apiserver/handler_apis.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Final

from fakekube.registry.resource import Registry, Resource
from fakekube.registry.subresource import Subresource
from fakekube.validation.kube_aware_version import preference

__all__ = ["Documents", "Snapshot"]

Document = dict[str, Any]

_CUSTOM_VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_CUSTOM_SUBRESOURCES: Final = ("status", "scale")


class Documents:
    """Discovery of one cluster: the documents are made anew when the registry has changed."""

    def __init__(self, registry: Registry, group_order: Sequence[str]) -> None:
        self._registry = registry
        self._group_order = group_order
        self._current: tuple[object, Snapshot] = (None, Snapshot((), group_order))
        """The state of the registry, and what was made of it."""

    def current(self) -> Snapshot:
        """The documents of what is served now; the same object as long as nothing changes."""
        state, (known, snapshot) = self._registry.state, self._current
        if state is not known:
            served = tuple(resource for resource in self._registry if not resource.unservable)
            if served != snapshot.served:
                snapshot = Snapshot(served, self._group_order)
            self._current = (state, snapshot)
        return snapshot


class Snapshot:
    """The documents of one state. Each is made once; none may be changed."""

    def __init__(self, served: tuple[Resource, ...], group_order: Sequence[str]) -> None:
        self.served = served
        self._group_order = group_order
        self.encodings: dict[object, tuple[bytes, str]] = {}
        """Answers made of these documents, with their ETags, for whoever serves them."""

    @cached_property
    def _by_group(self) -> dict[str, dict[str, list[Resource]]]:
        """Group → version → resources; groups and versions in order of preference."""
        found: dict[str, dict[str, list[Resource]]] = {}
        for resource in self.served:
            found.setdefault(resource.group, {}).setdefault(resource.version, []).append(resource)
        for group, versions in found.items():
            if any(resources[0].custom for resources in versions.values()):
                found[group] = {version: versions[version] for version in sorted(versions, key=preference)}
        order = {name: place for place, name in enumerate(self._group_order)}
        return dict(sorted(found.items(), key=lambda entry: (order.get(entry[0], len(order)), entry[0])))

    @property
    def group_names(self) -> list[str]:
        """All groups but the core one, in order."""
        return [group for group in self._by_group if group]

    def versions(self, group: str) -> list[str]:
        """The versions of a group, the preferred one first; none if it is not served."""
        return list(self._by_group.get(group, ()))

    # ------------------------------------------------------------ one document a group

    @cached_property
    def groups(self) -> Document:
        """APIGroupList of /apis."""
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [self._group(name) for name in self.group_names]}

    def group(self, name: str) -> Document | None:
        """APIGroup of /apis/NAME; None if it is not served."""
        if not name or name not in self._by_group:
            return None
        return {"kind": "APIGroup", "apiVersion": "v1", **self._group(name)}

    def _group(self, name: str) -> Document:
        versions = [{"groupVersion": f"{name}/{version}", "version": version} for version in self._by_group[name]]
        return {"name": name, "versions": versions, "preferredVersion": versions[0]}

    def resources(self, group: str, version: str) -> Document | None:
        """APIResourceList of a group version; None if it is not served. That of v1 has no apiVersion."""
        resources = self._by_group.get(group, {}).get(version)
        if resources is None:
            return None
        listed = [entry for resource in resources for entry in _listed(resource)]
        if not group:
            return {"kind": "APIResourceList", "groupVersion": version, "resources": listed}
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": f"{group}/{version}",
            "resources": listed,
        }

    # ------------------------------------------------------------ aggregated

    def aggregated(self, groups: Iterable[str]) -> Document:
        """APIGroupDiscoveryList of these groups."""
        items = [
            {
                "metadata": {"name": group} if group else {},
                "versions": [
                    {
                        "version": version,
                        "resources": [_aggregated(resource) for resource in resources],
                        "freshness": "Current",
                    }
                    for version, resources in self._by_group[group].items()
                ],
            }
            for group in groups
        ]
        return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _verbs(resource: Resource) -> list[str]:
    if resource.custom:
        return [verb for verb in _CUSTOM_VERBS if verb in resource.verbs - resource.hidden_verbs]
    return sorted(resource.verbs)


def _subresources(resource: Resource) -> list[Subresource]:
    if resource.custom:
        return [resource.subresources[name] for name in _CUSTOM_SUBRESOURCES if name in resource.subresources]
    return [resource.subresources[name] for name in sorted(resource.subresources)]


def _names(resource: Resource) -> Document:
    """What only some resources have."""
    found: Document = {}
    if resource.short_names:
        found["shortNames"] = list(resource.short_names)
    if resource.categories:
        found["categories"] = list(resource.categories)
    return found


def _listed(resource: Resource) -> list[Document]:
    """A resource and what is below it, each an APIResource."""
    main = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _verbs(resource),
        **_names(resource),
    }
    if resource.storage_version_hash:
        main["storageVersionHash"] = resource.storage_version_hash
    return [main, *(_listed_subresource(resource, subresource) for subresource in _subresources(resource))]


def _listed_subresource(resource: Resource, subresource: Subresource) -> Document:
    entry: Document = {
        "name": f"{resource.plural}/{subresource.name}",
        "singularName": "",
        "namespaced": resource.namespaced,
    }
    if _foreign(resource, subresource):
        entry |= {"group": subresource.gvk.group, "version": subresource.gvk.version}
    return entry | {"kind": subresource.gvk.kind, "verbs": sorted(subresource.verbs)}


def _aggregated(resource: Resource) -> Document:
    entry: Document = {
        "resource": resource.plural,
        "responseKind": _response_kind(resource.gvk.group, resource.gvk.version, resource.kind, told=resource.custom),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": _verbs(resource),
        **_names(resource),
    }
    below = [
        {
            "subresource": subresource.name,
            "responseKind": _response_kind(
                subresource.gvk.group,
                subresource.gvk.version,
                subresource.gvk.kind,
                told=resource.custom or _foreign(resource, subresource),
            ),
            "verbs": sorted(subresource.verbs),
        }
        for subresource in _subresources(resource)
    ]
    return entry | {"subresources": below} if below else entry


def _response_kind(group: str, version: str, kind: str, *, told: bool) -> Document:
    return {"group": group if told else "", "version": version if told else "", "kind": kind}


def _foreign(resource: Resource, subresource: Subresource) -> bool:
    """Does it speak a kind of another group or version?"""
    return (subresource.gvk.group, subresource.gvk.version) != (resource.group, resource.version)
