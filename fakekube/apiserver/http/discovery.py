"""Discovery: the documents of groups, versions and resources, unaggregated and aggregated, and their paths.

The list of groups has the groups of the APIServices by priority. The aggregated document has all served groups, including
those of other servers. Verbs of built-in resources are sorted, those of custom resources are in the order of
apiextensions-apiserver. In the aggregated form, responseKind of a built-in resource has no group and version, that of a custom
one has.

In the real server, three chained servers handle the paths, which differ: /apis and /apis/GROUP accept every method, /api,
group versions and the group of the aggregator only GET; for an unknown version of a built-in group the response is a Status,
otherwise plain text. The resources of custom groups are not told in CBOR, nor until 1.36 the lists of groups and versions.

Invariant: `state` changes whenever something in discovery changes; reading it does not read any object.

Specified by: k8s.io/apiserver/pkg/endpoints/discovery (root.go, group.go, version.go, aggregated/{wrapper,etag}.go),
k8s.io/apiextensions-apiserver/pkg/apiserver (customresource_discovery_controller.go), k8s.io/kube-aggregator/pkg/apiserver
(handler_apis.go) and pkg/apis/apiregistration/v1/helper (SortedByGroupAndVersion), pkg/controlplane/apiserver/aggregator.go
(DefaultGenericAPIServicePriorities).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any, Final, NamedTuple, Protocol

from fakekube.apimachinery.codecs.document import Document
from fakekube.apimachinery.data import META_V1
from fakekube.apimachinery.errors import StatusError
from fakekube.apimachinery.features import Emulation
from fakekube.apis.rest.resource import Registry, Resource
from fakekube.apis.rest.strategy import Subresource
from fakekube.apis.validation.names import preference
from fakekube.apis.validation.objectmeta import has_condition
from fakekube.apiserver.endpoints import negotiation
from fakekube.apiserver.endpoints.negotiation import MediaType, Offer, Target, plain_offer
from fakekube.apiserver.endpoints.request import Request, Response
from fakekube.apiserver.http import responses
from fakekube.apiserver.http.request_info import split_path
from fakekube.apiserver.registry import served_apis
from fakekube.store import Bucket

#: The group that is listed first, without an APIService.
_AGGREGATOR_GROUP: Final = "apiregistration.k8s.io"
_AGGREGATOR: Final = (_AGGREGATOR_GROUP, "v1")


class GroupVersionPriority(NamedTuple):
    """A group version with its priorities; greater ones come first."""

    group: str
    version: str
    group_priority: int
    version_priority: int


class RemoteVersions(Protocol):
    """The interface of the aggregator: the discovery of other servers."""

    @property
    def state(self) -> object: ...

    def versions(self) -> Mapping[tuple[str, str], dict[str, Any]]:
        """Returns the versions of other servers as in the aggregated document, by group and version."""


class Registrations:
    """The APIServices of one cluster."""

    def __init__(self, bucket: Bucket[Document], remotes: RemoteVersions) -> None:
        self._bucket = bucket
        self._remotes = remotes

    @property
    def state(self) -> tuple[int, object]:
        """A value that is equal as long as nothing changes."""
        return self._bucket.end, self._remotes.state

    def services(self) -> tuple[GroupVersionPriority, ...]:
        """Returns all APIServices, sorted by group priority."""
        found = [(record.key, _priority(record.value.object["spec"])) for record in self._bucket.page().records]
        return tuple(entry for _, entry in sorted(found, key=lambda one: (-one[1].group_priority, one[0])))

    def unavailable(self) -> Mapping[str, bool]:
        """Returns the names of all APIServices, and whether each is unavailable."""
        objects = [record.value.object for record in self._bucket.page().records]
        return {obj["metadata"]["name"]: _is_unavailable(obj) for obj in objects}

    def remotes(self) -> Mapping[tuple[str, str], dict[str, Any]]:
        """See `RemoteVersions.versions`."""
        return self._remotes.versions()


@cache
def _builtin_priorities(version: str) -> Mapping[tuple[str, str], GroupVersionPriority]:
    """Returns the default priorities of the group versions of this server, independent of its APIServices."""
    found = [GroupVersionPriority(*key, *priorities) for key, priorities in served_apis.priorities(version).items()]
    first = GroupVersionPriority(*_AGGREGATOR, 20001, 0)
    return {(entry.group, entry.version): entry for entry in [*found, first]}


def _priority(spec: Mapping[str, Any]) -> GroupVersionPriority:
    return GroupVersionPriority(
        spec.get("group", ""), spec["version"], spec.get("groupPriorityMinimum", 0), spec.get("versionPriority", 0)
    )


def _is_unavailable(obj: Mapping[str, Any]) -> bool:
    return has_condition(obj.get("status") or {}, "Available", "False")


DiscoveryDocument = dict[str, Any]

_CUSTOM_VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_CUSTOM_SUBRESOURCES: Final = ("status", "scale")
#: The priorities of group and version: of custom resources, and of groups without an APIService.
_CUSTOM_PRIORITIES: Final = (1000, 100)
_DEFAULT_PRIORITIES: Final = (1000, 15)
#: The first minor that leaves the creationTimestamp out of metadata that has none.
_OMITS_DATES: Final = 34


class Documents:
    """The discovery documents of one cluster, rebuilt when the registry or the APIServices have changed."""

    def __init__(self, registry: Registry, registrations: Registrations, version: str) -> None:
        """`version` is the emulated minor."""
        self._registry = registry
        self._registrations = registrations
        self._builtin = _builtin_priorities(version)
        self._current: tuple[object, object, Snapshot] = (None, None, Snapshot((), (), {}, {}))
        """The states of the registry and the APIServices, and their documents."""

    def current(self) -> Snapshot:
        """Returns the documents of the current state; the same object as long as nothing changes."""
        state, registered, (known, known_registered, snapshot) = self._registry.state, self._registrations.state, self._current
        if state is not known or registered != known_registered:
            served = tuple(resource for resource in self._registry if not resource.unservable)
            services, remotes = self._registrations.services(), self._registrations.remotes()
            if (served, services, remotes) != (snapshot.served, snapshot.services, snapshot.remotes):
                snapshot = _snapshot(served, services, remotes, self._builtin)
            self._current = (state, registered, snapshot)
        return snapshot


#: The newest snapshot of built-in resources alone in this process: most clusters serve the same, at least at first.
_newest: list[Snapshot] = []


def _snapshot(
    served: tuple[Resource, ...],
    services: tuple[GroupVersionPriority, ...],
    remotes: Mapping[tuple[str, str], DiscoveryDocument],
    builtin: Mapping[tuple[str, str], GroupVersionPriority],
) -> Snapshot:
    """Returns the documents of a state: those that another cluster has built, if it has the same state."""
    for newest in _newest:
        if (served, services, remotes) == (newest.served, newest.services, newest.remotes) and builtin is newest.builtin:
            return newest
    made = Snapshot(served, services, remotes, builtin)
    if not remotes and not any(resource.custom for resource in served):  # those belong to one cluster
        _newest[:] = [made]
    return made


class Snapshot:
    """The documents of one state, each built on first use. They must not be changed."""

    def __init__(
        self,
        served: tuple[Resource, ...],
        services: tuple[GroupVersionPriority, ...],
        remotes: Mapping[tuple[str, str], DiscoveryDocument],
        builtin: Mapping[tuple[str, str], GroupVersionPriority],
    ) -> None:
        self.served = served
        self.services = services
        self.remotes = remotes
        self.builtin = builtin
        self._shows_dates = any(resource.emulation.minor < _OMITS_DATES for resource in served[:1])
        self.encodings: dict[object, tuple[bytes, str]] = {}
        """A cache for the endpoints: encoded responses with their ETags."""
        self.plain_encodings: dict[tuple[str, ...], dict[MediaType, bytes]] = {}
        """A cache for the endpoints: encodings of the unaggregated documents, by the parts of the path below /apis."""
        self._resources: dict[tuple[str, str], DiscoveryDocument] = {}

    @cached_property
    def _by_group(self) -> dict[str, dict[str, list[Resource]]]:
        """Group → version → resources that this server serves."""
        found: dict[str, dict[str, list[Resource]]] = {}
        for resource in self.served:
            found.setdefault(resource.group, {}).setdefault(resource.version, []).append(resource)
        return found

    @cached_property
    def _registered(self) -> dict[str, list[str]]:
        """Group → versions of the APIServices; both in order of priority."""
        found: dict[str, list[GroupVersionPriority]] = {}
        for entry in self.services:
            found.setdefault(entry.group, []).append(entry)
        return {
            group: [entry.version for entry in sorted(entries, key=lambda one: (-one.version_priority, preference(one.version)))]
            for group, entries in found.items()
        }

    def paths(self) -> Iterator[tuple[str, str]]:
        """Returns the paths of all group versions that are served or have an APIService."""
        yield from {(group, version): None for group, versions in self._by_group.items() for version in versions}
        yield from ((entry.group, entry.version) for entry in self.services)

    # --- Unaggregated -------------------------------------------------------------------------------------------------

    @cached_property
    def groups(self) -> DiscoveryDocument:
        """The APIGroupList of /apis: the group of the aggregator, and those of the APIServices."""
        listed = [self._group(_AGGREGATOR_GROUP, list(self._by_group.get(_AGGREGATOR_GROUP, ())))]
        listed += [self._group(name, versions) for name, versions in self._registered.items() if name]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [group for group in listed if group["versions"]]}

    def is_registered(self, group: str) -> bool:
        """Reports whether the group has an APIService."""
        return group in self._registered

    def group(self, name: str) -> DiscoveryDocument | None:
        """Returns the APIGroup of /apis/NAME; None if there is none. A group without an APIService may be served, too."""
        versions = self._registered.get(name) or self._sort_versions(name)
        if not name or not versions:
            return None
        return {"kind": "APIGroup", "apiVersion": "v1", **self._group(name, versions)}

    def _group(self, name: str, versions: Sequence[str]) -> DiscoveryDocument:
        shown = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
        return {"name": name, "versions": shown, **({"preferredVersion": shown[0]} if shown else {})}

    def _sort_versions(self, group: str) -> list[str]:
        """Returns the versions of a group that this server serves, by their own priorities."""
        return sorted(self._by_group.get(group, ()), key=lambda version: self._sort_key(group, version))

    def _sort_key(self, group: str, version: str) -> tuple[int, tuple[int, int, int, int, str]]:
        """Returns the sort key of a version in the aggregated document."""
        return -self._priority(group, version).version_priority, preference(version)

    def _priority(self, group: str, version: str) -> GroupVersionPriority:
        """Returns the priority of a group version in the aggregated document: for another server that of its APIService."""
        if (group, version) in self.remotes:
            return next(one for one in self.services if (one.group, one.version) == (group, version))
        resources = self._by_group.get(group, {}).get(version)
        if resources and resources[0].custom:
            return GroupVersionPriority(group, version, *_CUSTOM_PRIORITIES)
        return self.builtin.get((group, version)) or GroupVersionPriority(group, version, *_DEFAULT_PRIORITIES)

    def resources(self, group: str, version: str) -> DiscoveryDocument | None:
        """Returns the APIResourceList of a group version; None if it is not served. That of v1 has no apiVersion."""
        known = self._resources.get((group, version))
        if known is None:
            known = self._make_resources(group, version)
            if known is not None:
                self._resources[group, version] = known
        return known

    def _make_resources(self, group: str, version: str) -> DiscoveryDocument | None:
        resources = self._by_group.get(group, {}).get(version)
        if resources is None:
            return None
        listed = [entry for resource in resources for entry in _list_resources(resource)]
        if not group:
            return {"kind": "APIResourceList", "groupVersion": version, "resources": listed}
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{group}/{version}", "resources": listed}

    # --- Aggregated ---------------------------------------------------------------------------------------------------

    @cached_property
    def group_names(self) -> list[str]:
        """The groups of the aggregated document but the core group, by the highest priority of their versions."""
        highest: dict[str, int] = {}
        for group, version in self._group_versions:
            highest[group] = max(highest.get(group, 0), self._priority(group, version).group_priority)
        return sorted((group for group in highest if group), key=lambda group: (-highest[group], group))

    @cached_property
    def _group_versions(self) -> dict[tuple[str, str], None]:
        """All group versions that are served, by this or another server."""
        here = {(group, version): None for group, versions in self._by_group.items() for version in versions}
        return {**here, **dict.fromkeys(self.remotes)}

    def aggregate(self, groups: Iterable[str]) -> DiscoveryDocument:
        """Returns the APIGroupDiscoveryList of these groups."""
        items = [{"metadata": self._metadata(group), "versions": self._versions(group)} for group in groups]
        return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}

    def _metadata(self, group: str) -> dict[str, Any]:
        named: dict[str, Any] = {"name": group} if group else {}
        return {**named, "creationTimestamp": None} if self._shows_dates else named

    def _versions(self, group: str) -> list[DiscoveryDocument]:
        """Returns the versions of a group in the aggregated document, in order."""
        versions = [version for name, version in self._group_versions if name == group]
        return [self._version(group, version) for version in sorted(versions, key=partial(self._sort_key, group))]

    def _version(self, group: str, version: str) -> DiscoveryDocument:
        remote = self.remotes.get((group, version))
        if remote is not None:
            return remote
        resources = [_aggregate_resource(resource) for resource in self._by_group[group][version]]
        return {"version": version, "resources": resources, "freshness": "Current"}


def _verbs(resource: Resource) -> list[str]:
    if resource.custom:
        return [verb for verb in _CUSTOM_VERBS if verb in resource.verbs - resource.hidden_verbs]
    return sorted(resource.verbs)


def _subresources(resource: Resource) -> list[Subresource]:
    if resource.custom:
        return [resource.subresources[name] for name in _CUSTOM_SUBRESOURCES if name in resource.subresources]
    return [resource.subresources[name] for name in sorted(resource.subresources)]


def _names(resource: Resource) -> DiscoveryDocument:
    """Returns the optional names of a resource: short names and categories."""
    found: DiscoveryDocument = {}
    if resource.short_names:
        found["shortNames"] = list(resource.short_names)
    if resource.categories:
        found["categories"] = list(resource.categories)
    return found


def _list_resources(resource: Resource) -> list[DiscoveryDocument]:
    """Returns the APIResources of a resource and its subresources."""
    main = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _verbs(resource),
        **_names(resource),
    }
    if resource.storage_version_hash and (resource.custom or resource.emulation.enabled("StorageVersionHash")):
        main["storageVersionHash"] = resource.storage_version_hash
    return [main, *(_list_subresource(resource, subresource) for subresource in _subresources(resource))]


def _list_subresource(resource: Resource, subresource: Subresource) -> DiscoveryDocument:
    entry: DiscoveryDocument = {
        "name": f"{resource.plural}/{subresource.name}",
        "singularName": "",
        "namespaced": resource.namespaced,
    }
    if _has_foreign_kind(resource, subresource):
        entry |= {"group": subresource.gvk.group, "version": subresource.gvk.version}
    return entry | {"kind": subresource.gvk.kind, "verbs": sorted(subresource.verbs)}


def _aggregate_resource(resource: Resource) -> DiscoveryDocument:
    entry: DiscoveryDocument = {
        "resource": resource.plural,
        "responseKind": _response_kind(resource.gvk.group, resource.gvk.version, resource.kind, with_version=resource.custom),
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
                with_version=resource.custom or _has_foreign_kind(resource, subresource),
            ),
            "verbs": sorted(subresource.verbs),
        }
        for subresource in _subresources(resource)
    ]
    return entry | {"subresources": below} if below else entry


def _response_kind(group: str, version: str, kind: str, *, with_version: bool) -> DiscoveryDocument:
    return {"group": group if with_version else "", "version": version if with_version else "", "kind": kind}


def _has_foreign_kind(resource: Resource, subresource: Subresource) -> bool:
    """Reports whether its kind belongs to another group or version."""
    return (subresource.gvk.group, subresource.gvk.version) != (resource.group, resource.version)


_AGGREGATED: Final = Target("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList")
_BETA: Final = Target("apidiscovery.k8s.io", "v2beta1", "APIGroupDiscoveryList")
_AGGREGATED_TYPE: Final = "k8s.io/api/apidiscovery/v2.APIGroupDiscoveryList"
"""The type of both: their fields and numbers are equal."""


@dataclass(slots=True, frozen=True)
class _AggregatedOffer(Offer):
    """An offer of only the aggregated form."""

    targets: tuple[Target, ...] = (_AGGREGATED,)

    def allows(self, media_type: str, target: Target | None) -> bool:
        return target in self.targets


class DiscoveryEndpoints:
    """Serves the discovery paths.

    Args:
        documents: the documents of the cluster.
        is_builtin: reports whether a group is built in.
        emulation: the minor and its feature gates, of which CBORServingAndStorage and AggregatedDiscoveryRemoveBetaType count.
    """

    def __init__(self, documents: Documents, is_builtin: Callable[[str], bool], emulation: Emulation) -> None:
        self._documents = documents
        self._is_builtin = is_builtin
        cbor = emulation.enabled("CBORServingAndStorage")
        self._offer = plain_offer(cbor)
        self._group_offer = plain_offer(cbor and emulation.minor >= responses.ALL_SPEAK_CBOR_SINCE)
        """That of the lists of groups and versions."""
        beta = () if emulation.enabled("AggregatedDiscoveryRemoveBetaType") else (_BETA,)
        self._aggregated_offer = _AggregatedOffer(cbor=cbor, targets=(_AGGREGATED, *beta))

    def respond(self, request: Request) -> Response | None:
        """Returns the response for a path that starts with /api or /apis; None if it is not a discovery path. Raises
        StatusError.
        """
        path = request.info.path
        parts = split_path(path)
        if path == "/apis":
            return self._respond_aggregated(request, self._documents.current().group_names) or self._groups(request)
        if path == "/apis/":
            return self._groups(request)
        if path.startswith("//") or not parts:
            return None
        if parts[0] == "api":
            return self._core(request, parts)
        if parts[0] != "apis" or len(parts) < 2 or not parts[1]:
            return None
        group = parts[1]
        return self._group(request, group) if len(parts) == 2 else self._version(request, group, parts[2])

    def _core(self, request: Request, parts: list[str]) -> Response:
        if len(parts) == 1:
            self._check(request, self._group_offer)
            found = self._respond_aggregated(request, [""])
            return found or self._negotiate_groups(_core_versions(request), "APIVersions", request)
        current = self._documents.current()
        document = current.resources("", parts[1]) if len(parts) == 2 else None
        if document is None:
            raise responses.not_found()
        return self._resources(document, request, _find_encodings(current, "", parts[1]))

    def _groups(self, request: Request) -> Response:
        current = self._documents.current()
        return self._negotiate_groups(current.groups, "APIGroupList", request, _find_encodings(current))

    def _group(self, request: Request, group: str) -> Response | None:
        current = self._documents.current()
        if not current.is_registered(group) and self._is_builtin(group):
            self._check(request, self._group_offer)  # the router responds, since no aggregator is in front of it
        document = current.group(group)
        if document is None:
            return None
        return self._negotiate_groups(document, "APIGroup", request, _find_encodings(current, group))

    def _version(self, request: Request, group: str, version: str) -> Response | None:
        current = self._documents.current()
        document = current.resources(group, version)
        if self._is_builtin(group):
            if document is None:
                raise responses.not_found()
            return self._resources(document, request, _find_encodings(current, group, version))
        if document is None:
            return None
        kept = _find_encodings(current, group, version)
        return responses.negotiate_response(document, f"{META_V1}APIResourceList", request, kept=kept)

    def _resources(self, document: dict[str, Any], request: Request, kept: dict[MediaType, bytes]) -> Response:
        """Returns the resources of a built-in group version."""
        self._check(request, self._offer)
        return responses.negotiate_response(document, f"{META_V1}APIResourceList", request, cbor=self._offer.cbor, kept=kept)

    def _negotiate_groups(
        self, document: dict[str, Any], kind: str, request: Request, kept: dict[MediaType, bytes] | None = None
    ) -> Response:
        """Returns a list of groups or versions."""
        return responses.negotiate_response(document, META_V1 + kind, request, cbor=self._group_offer.cbor, kept=kept)

    def _check(self, request: Request, offer: Offer) -> None:
        """Checks the method and the Accept header like the router. Raises StatusError 405 or 406."""
        if request.method != "GET":
            raise responses.method_not_allowed()
        negotiation.route(request.headers.get("accept", ""), offer.media_types)

    # --- Encodings ----------------------------------------------------------------------------------------------------

    def _respond_aggregated(self, request: Request, groups: list[str]) -> Response | None:
        """Returns the aggregated form of these groups if the client prefers it, else None."""
        headers = request.headers
        try:
            pretty = responses.wants_pretty(headers, request.query)
            chosen = self._aggregated_offer.output(headers.get("accept") or "*/*", pretty=pretty)
        except StatusError:
            return None
        body, etag = _encode_aggregated(self._documents.current(), groups, chosen)
        caching = [("Cache-Control", "public"), ("Etag", etag), ("Vary", "Accept")]
        if headers.get("if-none-match") == etag:
            return Response(304, caching, b"")
        target = chosen.target or _AGGREGATED
        parameters = f"g={target.group};v={target.version};as={target.kind}"
        return Response(200, [("Content-Type", f"{chosen.media_type};{parameters}"), *caching], body)


def _find_encodings(current: Snapshot, *parts: str) -> dict[MediaType, bytes]:
    """Returns the encodings of the document of a group, or of a group version; without arguments of the list of groups."""
    return current.plain_encodings.setdefault(parts, {})


def _encode_aggregated(current: Snapshot, groups: list[str], chosen: MediaType) -> tuple[bytes, str]:
    """Returns the cached body and ETag. The ETag is that of the content in any format."""
    key = (groups == [""], chosen)
    found = current.encodings.get(key)
    if found is None:
        document = current.aggregate(groups)
        json = responses.encode_object(document, _AGGREGATED_TYPE, MediaType("json", negotiation.JSON))
        etag = f'"{hashlib.sha512(json).hexdigest().upper()}"'
        if chosen.target == _BETA:
            document = {**document, "apiVersion": _BETA.api_version}
        found = current.encodings[key] = (responses.encode_object(document, _AGGREGATED_TYPE, chosen), etag)
    return found


def _core_versions(request: Request) -> dict[str, Any]:
    """Returns the APIVersions of /api; the server address is that of the request."""
    address = {"clientCIDR": "0.0.0.0/0", "serverAddress": request.headers.get("host", "")}
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [address]}
