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

from fakekube.aggregator.availability import AGGREGATOR
from fakekube.aggregator.backends import BackendAnswer, BackendError, header
from fakekube.aggregator.controller import Remote
from fakekube.aggregator.locations import Location, Locations, UnresolvedError
from fakekube.aggregator.proxy import outgoing
from fakekube.codecs import json
from fakekube.codecs.errors import DecodeError
from fakekube.registry.request import User
from fakekube.registry.strategy import Object
from fakekube.schema import decode
from fakekube.schema.builtin import type_of

__all__ = ["DiscoveryInquiry", "NotUnderstoodError", "body_of", "parsed_object", "told", "version_discovery"]

_SECONDS = 5.0
_LARGEST = 32 << 20
_RESOURCES_TYPE = "k8s.io/apimachinery/pkg/apis/meta/v1.APIResourceList"
_FORMS = tuple(f"application/json;g=apidiscovery.k8s.io;v={form};as=APIGroupDiscoveryList" for form in ("v2", "v2beta1"))
_NO_KIND = {"group": "", "version": "", "kind": ""}
_RESOURCE_MEMBERS = ("resource", "responseKind", "scope", "singularResource", "verbs", "shortNames", "categories")
_SUBRESOURCE_MEMBERS = ("subresource", "responseKind", "acceptedTypes", "verbs")
#: Members that are shown whatever they hold.
_ALWAYS = frozenset({"resource", "subresource", "responseKind", "scope", "singularResource", "verbs"})
#: The entry of a resource of which only subresources are known.
_ORPHAN: Object = {"resource": "", "responseKind": _NO_KIND, "scope": "", "singularResource": "", "verbs": None}


class NotUnderstoodError(Exception):
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
    """The version of an APIService, as the aggregated document shows it."""
    known = remote.facts.get(_KEY, _UNKNOWN)
    assert isinstance(known, _Known)
    resources = {"resources": known.resources} if known.resources else {}
    return {"version": remote.group_version[1], **resources, "freshness": "Current" if known.current else "Stale"}


def told(resources: tuple[Object, ...]) -> dict[str, object]:
    """Returns the facts about a server with these resources."""
    return {_KEY: _Known(list(resources), current=True)}


class DiscoveryInquiry:
    """See `controller.Inquiry`."""

    def __init__(self, locations: Locations) -> None:
        self._locations = locations

    def begin(self, remote: Remote) -> bool:
        before = remote.facts.get(_KEY)
        remote.facts[_KEY] = _UNKNOWN
        return before != _UNKNOWN

    def ask(self, remote: Remote) -> Callable[[], bool]:
        known = self._heard(remote)

        def take_over() -> bool:
            before, remote.facts[_KEY] = remote.facts.get(_KEY), known
            return before != known

        return take_over

    def satisfied(self, remote: Remote) -> bool:
        known = remote.facts.get(_KEY)
        return isinstance(known, _Known) and known.current

    def _heard(self, remote: Remote) -> _Known:
        try:
            location = self._locations.locate(remote.name, remote.spec)
            return _Known(_resources(location, *remote.group_version), current=True)
        except (UnresolvedError, BackendError, NotUnderstoodError):
            return _UNKNOWN


def _resources(location: Location, group: str, version: str) -> list[Object] | None:
    """The resources of a group version. Raises BackendError, NotUnderstoodError."""
    if location.problem:
        raise NotUnderstoodError(location.problem)
    deadline = time.monotonic() + _SECONDS
    answer = location.backend.send(outgoing("/apis", location, AGGREGATOR, ",".join(_FORMS)), deadline)
    body = body_of(answer)
    if answer.status == 503:
        raise NotUnderstoodError("service unavailable")
    if answer.status == 200 and _is_aggregated(header(answer.headers, "content-type")):
        return _of_aggregated(parsed_object(body), group, version)
    path = f"/apis/{group}/{version}" if group else f"/api/{version}"
    anybody = User(AGGREGATOR.name)
    answer = location.backend.send(outgoing(path, location, anybody, "application/json"), time.monotonic() + _SECONDS)
    body = body_of(answer)
    if answer.status != 200:
        raise NotUnderstoodError(f"failed to download legacy discovery for {path}")
    try:
        found: Object = decode.decode(type_of(_RESOURCES_TYPE), parsed_object(body))
    except decode.DecodeError as error:
        raise NotUnderstoodError(str(error)) from None
    return _of_list(found.get("resources") or [])


def body_of(answer: BackendAnswer) -> bytes:
    """The whole body of an answer. Raises BackendError; NotUnderstoodError if it is too large."""
    pieces, size = [], 0
    try:
        for piece in answer.body:
            pieces.append(piece)
            size += len(piece)
            if size > _LARGEST:
                raise NotUnderstoodError("the answer is too large")
    finally:
        answer.body.close()
    return b"".join(pieces)


def _is_aggregated(content_type: str) -> bool:
    """Reports whether this is the media type of the aggregated form."""
    base, *parameters = (part.strip() for part in content_type.split(";"))
    told = dict(part.partition("=")[::2] for part in parameters)
    wanted = (told.get("g"), told.get("as"), base) == ("apidiscovery.k8s.io", "APIGroupDiscoveryList", "application/json")
    return wanted and told.get("v") in ("v2", "v2beta1")


def parsed_object(body: bytes) -> Object:
    """The JSON object of a body. Raises NotUnderstoodError."""
    try:
        value, _ = json.loads(body)
    except DecodeError as error:
        raise NotUnderstoodError(str(error)) from None
    if not isinstance(value, dict):
        raise NotUnderstoodError("it is no object")
    return value


def _of_aggregated(document: Object, group: str, version: str) -> list[Object] | None:
    """The resources of a group version in the aggregated form. Raises NotUnderstoodError."""
    try:
        for item in document.get("items") or ():
            if (item.get("metadata") or {}).get("name", "") != group:
                continue
            for entry in item.get("versions") or ():
                if entry.get("version") == version:
                    return [_shown(resource, _RESOURCE_MEMBERS) for resource in entry.get("resources") or ()]
    except (AttributeError, TypeError):
        raise NotUnderstoodError("it is not in the form that it claims") from None
    return None


def _shown(entry: Object, members: tuple[str, ...]) -> Object:
    """Returns a resource or subresource with its members in order and a kind that is not null, which some clients require."""
    found = {name: entry.get(name) for name in members if entry.get(name) or name in _ALWAYS}
    found["responseKind"] = {**_NO_KIND, **(entry.get("responseKind") or {})}
    below = [_shown(one, _SUBRESOURCE_MEMBERS) for one in entry.get("subresources") or ()]
    return {**found, "subresources": below} if below else found


def _of_list(entries: list[Object]) -> list[Object]:
    """The resources of a list, those below others in their places. Raises NotUnderstoodError."""
    found: dict[str, Object] = {}
    for entry in entries:
        if "/" not in entry["name"]:
            found[entry["name"]] = _resource(entry)
    for entry in entries:
        name, slash, below = entry["name"].partition("/")
        if slash:
            parent = found.setdefault(name, {**_ORPHAN, "resource": name, "scope": _scope(entry)})
            if parent["scope"] != _scope(entry):
                raise NotUnderstoodError(f"the scopes of {name} and {below} do not match")
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
