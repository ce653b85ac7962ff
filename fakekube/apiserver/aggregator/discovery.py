"""Collects the discovery of extension API servers for the aggregated discovery document.

A server is requested for its aggregated document first, and for the APIResourceList of the group version if it has none. The
version of an unavailable server stays in the document without resources, with freshness Stale.

Specified by: k8s.io/kube-aggregator/pkg/apiserver/handler_discovery.go; k8s.io/apiserver/pkg/endpoints/installer.go
(ConvertGroupVersionIntoToDiscovery).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from fakekube.apimachinery.codecs import DecodeError, json
from fakekube.apimachinery.schema import decode
from fakekube.apimachinery.schema.builtin import type_of
from fakekube.apis.rest.strategy import Object
from fakekube.apiserver.aggregator.backends import BackendError, BackendResponse, header
from fakekube.apiserver.aggregator.controller import AGGREGATOR, Remote
from fakekube.apiserver.aggregator.locations import Location, Locations, UnresolvedError
from fakekube.apiserver.aggregator.proxy import new_request
from fakekube.apiserver.endpoints.request import User

_SECONDS = 5.0
_LARGEST = 32 << 20
_RESOURCES_TYPE = "k8s.io/apimachinery/pkg/apis/meta/v1.APIResourceList"
_FORMS = tuple(f"application/json;g=apidiscovery.k8s.io;v={form};as=APIGroupDiscoveryList" for form in ("v2", "v2beta1"))
_NO_KIND = {"group": "", "version": "", "kind": ""}
_RESOURCE_MEMBERS = ("resource", "responseKind", "scope", "singularResource", "verbs", "shortNames", "categories")
_SUBRESOURCE_MEMBERS = ("subresource", "responseKind", "acceptedTypes", "verbs")
#: Members that are written even if they are empty.
_ALWAYS = frozenset({"resource", "subresource", "responseKind", "scope", "singularResource", "verbs"})
#: The entry of a resource that is listed with its subresources only.
_ORPHAN: Object = {"resource": "", "responseKind": _NO_KIND, "scope": "", "singularResource": "", "verbs": None}


class InvalidDocumentError(Exception):
    """A document of a server is invalid."""


@dataclass(slots=True, frozen=True)
class _Known:
    """The last known discovery of a server."""

    resources: list[Object] | None = None
    """The resources of the group version; None if they are unknown."""
    current: bool = False


_UNKNOWN = _Known()
_KEY = "discovery"


def version_discovery(remote: Remote) -> Object:
    """Returns the version of an APIService in the form of the aggregated discovery document."""
    known = remote.facts.get(_KEY, _UNKNOWN)
    assert isinstance(known, _Known)
    resources = {"resources": known.resources} if known.resources else {}
    return {"version": remote.group_version[1], **resources, "freshness": "Current" if known.current else "Stale"}


def facts_of(resources: tuple[Object, ...]) -> dict[str, object]:
    """Returns the facts about a server with these resources."""
    return {_KEY: _Known(list(resources), current=True)}


class DiscoveryFetcher:
    """Fetches the discovery of servers; see `controller.Fetcher`."""

    def __init__(self, locations: Locations) -> None:
        self._locations = locations

    def reset(self, remote: Remote) -> bool:
        before = remote.facts.get(_KEY)
        remote.facts[_KEY] = _UNKNOWN
        return before != _UNKNOWN

    def fetch(self, remote: Remote) -> Callable[[], bool]:
        known = self._fetch(remote)

        def apply() -> bool:
            before, remote.facts[_KEY] = remote.facts.get(_KEY), known
            return before != known

        return apply

    def is_current(self, remote: Remote) -> bool:
        known = remote.facts.get(_KEY)
        return isinstance(known, _Known) and known.current

    def _fetch(self, remote: Remote) -> _Known:
        try:
            location = self._locations.locate(remote.name, remote.spec)
            return _Known(_resources(location, *remote.group_version), current=True)
        except (UnresolvedError, BackendError, InvalidDocumentError):
            return _UNKNOWN


def _resources(location: Location, group: str, version: str) -> list[Object] | None:
    """Fetches the resources of a group version. Raises BackendError, InvalidDocumentError."""
    if location.problem:
        raise InvalidDocumentError(location.problem)
    deadline = time.monotonic() + _SECONDS
    response = location.backend.send(new_request("/apis", location, AGGREGATOR, ",".join(_FORMS)), deadline)
    body = read_body(response)
    if response.status == 503:
        raise InvalidDocumentError("service unavailable")
    if response.status == 200 and _is_aggregated(header(response.headers, "content-type")):
        return _resources_of_group_discovery(parse_object(body), group, version)
    path = f"/apis/{group}/{version}" if group else f"/api/{version}"
    user = User(AGGREGATOR.name)
    response = location.backend.send(new_request(path, location, user, "application/json"), time.monotonic() + _SECONDS)
    body = read_body(response)
    if response.status != 200:
        raise InvalidDocumentError(f"failed to download legacy discovery for {path}")
    try:
        found: Object = decode.decode(type_of(_RESOURCES_TYPE), parse_object(body))
    except decode.DecodeError as error:
        raise InvalidDocumentError(str(error)) from None
    return _resources_of_list(found.get("resources") or [])


def read_body(response: BackendResponse) -> bytes:
    """Reads the whole body of a response. Raises BackendError; InvalidDocumentError if it is larger than 32 MiB."""
    pieces, size = [], 0
    try:
        for piece in response.body:
            pieces.append(piece)
            size += len(piece)
            if size > _LARGEST:
                raise InvalidDocumentError("the response is too large")
    finally:
        response.body.close()
    return b"".join(pieces)


def _is_aggregated(content_type: str) -> bool:
    """Reports whether this is the media type of the aggregated form."""
    base, *parameters = (part.strip() for part in content_type.split(";"))
    parameters_by_name = dict(part.partition("=")[::2] for part in parameters)
    wanted = (parameters_by_name.get("g"), parameters_by_name.get("as"), base) == (
        "apidiscovery.k8s.io",
        "APIGroupDiscoveryList",
        "application/json",
    )
    return wanted and parameters_by_name.get("v") in ("v2", "v2beta1")


def parse_object(body: bytes) -> Object:
    """Parses a body that is a JSON object. Raises InvalidDocumentError."""
    try:
        value, _ = json.loads(body)
    except DecodeError as error:
        raise InvalidDocumentError(str(error)) from None
    if not isinstance(value, dict):
        raise InvalidDocumentError("the document is not a JSON object")
    return value


def _resources_of_group_discovery(document: Object, group: str, version: str) -> list[Object] | None:
    """Returns the resources of a group version in an APIGroupDiscoveryList; None if it has none. Raises InvalidDocumentError."""
    try:
        for item in document.get("items") or ():
            if (item.get("metadata") or {}).get("name", "") != group:
                continue
            for entry in item.get("versions") or ():
                if entry.get("version") == version:
                    return [_normalize(resource, _RESOURCE_MEMBERS) for resource in entry.get("resources") or ()]
    except (AttributeError, TypeError):
        raise InvalidDocumentError("the document is not an APIGroupDiscoveryList") from None
    return None


def _normalize(entry: Object, members: tuple[str, ...]) -> Object:
    """Returns a resource or subresource with its members in order and a kind that is not null, which some clients require."""
    found = {name: entry.get(name) for name in members if entry.get(name) or name in _ALWAYS}
    found["responseKind"] = {**_NO_KIND, **(entry.get("responseKind") or {})}
    below = [_normalize(one, _SUBRESOURCE_MEMBERS) for one in entry.get("subresources") or ()]
    return {**found, "subresources": below} if below else found


def _resources_of_list(entries: list[Object]) -> list[Object]:
    """Converts the resources of an APIResourceList to those of an APIGroupDiscoveryList. Raises InvalidDocumentError."""
    found: dict[str, Object] = {}
    for entry in entries:
        if "/" not in entry["name"]:
            found[entry["name"]] = _resource(entry)
    for entry in entries:
        name, slash, below = entry["name"].partition("/")
        if slash:
            parent = found.setdefault(name, {**_ORPHAN, "resource": name, "scope": _scope(entry)})
            if parent["scope"] != _scope(entry):
                raise InvalidDocumentError(f"the scopes of {name} and {below} do not match")
            kind = _kind(entry) if entry.get("kind") else _NO_KIND
            shown = {"subresource": below, "responseKind": kind, "verbs": entry.get("verbs")}
            parent.setdefault("subresources", []).append(shown)
    return list(found.values())


def _resource(entry: Object) -> Object:
    names = {"shortNames": entry.get("shortNames"), "categories": entry.get("categories")}
    return {
        "resource": entry["name"],
        "responseKind": _kind(entry),
        "scope": _scope(entry),
        "singularResource": entry.get("singularName", ""),
        "verbs": entry.get("verbs"),
        **{key: value for key, value in names.items() if value},
    }


def _kind(entry: Object) -> Object:
    return {"group": entry.get("group", ""), "version": entry.get("version", ""), "kind": entry.get("kind", "")}


def _scope(entry: Object) -> str:
    return "Namespaced" if entry.get("namespaced") else "Cluster"
