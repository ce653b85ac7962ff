"""Collects the documents of extension API servers: discovery, and OpenAPI.

A server is requested for its aggregated discovery first, and for the APIResourceList of the group version if it has none. The
version of an unavailable server stays in the document without resources, with freshness Stale.

OpenAPI is v3 by its index, or v2, which is converted. A server without documents is skipped; for an unavailable server the last
documents are kept. v2 documents are filtered by paths and merged into one. If two servers define different schemas by one name,
that of the later server is renamed (`NAME_v2`), with its references.

Specified by: k8s.io/kube-aggregator/pkg/apiserver/handler_discovery.go, pkg/controllers/openapiv3/aggregator (aggregator.go,
downloader.go), pkg/controllers/openapi/aggregator; k8s.io/apiserver/pkg/endpoints/installer.go
(ConvertGroupVersionIntoToDiscovery); k8s.io/kube-openapi/pkg/aggregator (aggregator.go), pkg/openapiconv (convert.go).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fakekube.apimachinery.codecs import DecodeError, json
from fakekube.apimachinery.schema import decode
from fakekube.apimachinery.schema.builtin import type_of
from fakekube.apiserver.aggregator.backends import BackendError, BackendResponse, header
from fakekube.apiserver.aggregator.controller import AGGREGATOR, Remote
from fakekube.apiserver.aggregator.locations import Location, Locations, UnresolvedError
from fakekube.apiserver.aggregator.proxy import new_request
from fakekube.apiserver.endpoints.request import User
from fakekube.base.objects import Object, group_version_path

_DISCOVERY_SECONDS = 5.0
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
_DISCOVERY = "discovery"


def version_discovery(remote: Remote) -> Object:
    """Returns the version of an APIService in the form of the aggregated discovery document."""
    known = remote.facts.get(_DISCOVERY, _UNKNOWN)
    assert isinstance(known, _Known)
    resources = {"resources": known.resources} if known.resources else {}
    return {"version": remote.group_version[1], **resources, "freshness": "Current" if known.current else "Stale"}


def facts_of(resources: tuple[Object, ...]) -> dict[str, object]:
    """Returns the facts about a server with these resources."""
    return {_DISCOVERY: _Known(list(resources), current=True)}


class DiscoveryFetcher:
    """Fetches the discovery of servers; see `controller.Fetcher`."""

    def __init__(self, locations: Locations) -> None:
        self._locations = locations

    def reset(self, remote: Remote) -> bool:
        before = remote.facts.get(_DISCOVERY)
        remote.facts[_DISCOVERY] = _UNKNOWN
        return before != _UNKNOWN

    def fetch(self, remote: Remote) -> Callable[[], bool]:
        known = self._fetch(remote)

        def apply() -> bool:
            before, remote.facts[_DISCOVERY] = remote.facts.get(_DISCOVERY), known
            return before != known

        return apply

    def is_current(self, remote: Remote) -> bool:
        known = remote.facts.get(_DISCOVERY)
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
    deadline = time.monotonic() + _DISCOVERY_SECONDS
    response = location.backend.send(new_request("/apis", location, AGGREGATOR, ",".join(_FORMS)), deadline)
    body = read_body(response)
    if response.status == 503:
        raise InvalidDocumentError("service unavailable")
    if response.status == 200 and _is_aggregated(header(response.headers, "content-type")):
        return _resources_of_group_discovery(_parse_object(body), group, version)
    path = group_version_path(group, version)
    user = User(AGGREGATOR.name)
    response = location.backend.send(new_request(path, location, user, "application/json"), time.monotonic() + _DISCOVERY_SECONDS)
    body = read_body(response)
    if response.status != 200:
        raise InvalidDocumentError(f"failed to download legacy discovery for {path}")
    try:
        found: Object = decode.decode(type_of(_RESOURCES_TYPE), _parse_object(body))
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


def _parse_object(body: bytes) -> Object:
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


# --- The OpenAPI documents of extension API servers: v3 by its index, or v2, which is converted ----------------------


_USER = User("system:aggregator")
_OPENAPI_SECONDS = 60.0
_OPENAPI = "openapi"

Json = dict[str, Any]


@dataclass(slots=True, frozen=True)
class Published:
    """The documents of a server."""

    index: Json | None = None
    """The `paths` of /openapi/v3; None if the server does not serve it."""
    v2: Json | None = None
    """The document of /openapi/v2; None if the server does not serve it."""


_NOTHING = Published()


def download_documents(remote: Remote) -> Published:
    """Returns the documents of the server of an APIService."""
    found = remote.facts.get(_OPENAPI, _NOTHING)
    assert isinstance(found, Published)
    return found


def facts_without_documents() -> dict[str, object]:
    """Returns the facts about a server without documents."""
    return {_OPENAPI: _NOTHING}


class OpenAPIFetcher:
    """Fetches the OpenAPI documents of servers; see `controller.Fetcher`."""

    def __init__(self, locations: Locations) -> None:
        self._locations = locations

    def reset(self, remote: Remote) -> bool:
        """See `Fetcher.reset`; the documents are kept until the APIService is deleted."""
        remote.facts.setdefault(_OPENAPI, _NOTHING)
        return False

    def fetch(self, remote: Remote) -> Callable[[], bool]:
        known = self._fetch(remote)

        def apply() -> bool:
            before = download_documents(remote)
            if known is None or known == before:
                return False
            remote.facts[_OPENAPI] = known
            return True

        return apply

    def is_current(self, remote: Remote) -> bool:
        return True  # a server without documents is requested again at the next refresh

    def _fetch(self, remote: Remote) -> Published | None:
        """Requests the documents. None if the server is unavailable."""
        try:
            location = self._locations.locate(remote.name, remote.spec)
            if location.problem:
                return None
            index = _document(location, "/openapi/v3", "")
            v2 = _document(location, "/openapi/v2", "application/json")
        except (UnresolvedError, BackendError, InvalidDocumentError):
            return None
        paths = (index.get("paths") or {}) if index is not None else None
        return Published(paths if isinstance(paths, dict) else None, v2)


def _document(location: Location, path: str, accept: str) -> Json | None:
    """Requests a document; None if there is none. Raises BackendError, InvalidDocumentError."""
    response = location.backend.send(new_request(path, location, _USER, accept), time.monotonic() + _OPENAPI_SECONDS)
    body = read_body(response)
    if response.status == 404:
        return None
    if response.status != 200:
        raise InvalidDocumentError(f"http error: {response.status}")
    return _parse_object(body)


_DEFINITIONS, _SCHEMAS = "#/definitions/", "#/components/schemas/"
OPENAPI_V3_ROOT = "/openapi/v3/"
PARAMETERS = "#/parameters/"
GVK_EXTENSION = "x-kubernetes-group-version-kind"
_OLD_MEMBERS = frozenset({"parameters", "responses", "consumes", "produces", "schemes"})
OPENAPI_METHODS = ("get", "put", "post", "delete", "options", "head", "patch")


# --- Filtering --------------------------------------------------------------------------------------------------------


def filter_paths(document: Json, prefix: str) -> Json:
    """Returns the document with the paths below a prefix, without definitions that only other paths use (FilterSpecByPaths)."""
    paths = _mapping(document.get("paths"))
    kept = {path: item for path, item in paths.items() if path.startswith(prefix)}
    return _with_paths(document, kept)


def _with_paths(document: Json, kept: Json) -> Json:
    definitions = _mapping(document.get("definitions"))
    before, now = (
        _referenced_definitions(_mapping(document.get("paths")), definitions),
        _referenced_definitions(kept, definitions),
    )
    shown = {name: schema for name, schema in definitions.items() if name in now or name not in before}
    return {**document, "paths": kept, "definitions": shown}


def _referenced_definitions(paths: Json, definitions: Json) -> set[str]:
    """Returns the names of the definitions that paths reference, directly or not."""
    found: set[str] = set()
    left = list(_references(paths, _DEFINITIONS))
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += _references(definitions.get(name), _DEFINITIONS)
    return found


def _references(value: Any, prefix: str) -> Iterator[str]:
    pending = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, dict):
            reference = one.get("$ref")
            if isinstance(reference, str) and reference.startswith(prefix):
                yield reference[len(prefix) :]
            pending += one.values()
        elif isinstance(one, list):
            pending += one


def _mapping(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


# --- Merging ----------------------------------------------------------------------------------------------------------


def merge_specs(first: Json, others: Iterable[Json]) -> Json:
    """Merges documents; the first one with a path takes precedence. The arguments are not changed."""
    result = {**first, **{name: dict(_mapping(first.get(name))) for name in ("paths", "definitions", "parameters")}}
    for other in others:
        _merge(result, other)
    return {name: value for name, value in result.items() if value or name == "paths"}


def _merge(result: Json, source: Json) -> None:
    paths = _mapping(source.get("paths"))
    kept = {path: item for path, item in paths.items() if path not in result["paths"]}
    if not kept:
        return
    if len(kept) < len(paths):
        source = _with_paths(source, kept)
    for part, prefix in (("definitions", _DEFINITIONS), ("parameters", PARAMETERS)):
        renames = _renames(result[part], _mapping(source.get(part)))
        if renames:
            source = _rename_references(source, {prefix + old: prefix + new for old, new in renames.items()})
            source[part] = {renames.get(name, name): value for name, value in _mapping(source.get(part)).items()}
    for name, schema in _mapping(source.get("definitions")).items():
        known = result["definitions"].get(name)
        result["definitions"][name] = schema if known is None else _with_kinds(known, schema)
    for name, parameter in _mapping(source.get("parameters")).items():
        result["parameters"].setdefault(name, parameter)
    result["paths"] |= _mapping(source.get("paths"))


def _renames(known: Json, own: Json) -> dict[str, str]:
    """Returns new names for the definitions of `own` that differ from the one of the same name in `known`."""
    renames: dict[str, str] = {}
    taken = {*known, *own}
    for name, value in own.items():
        if name not in known or _without_kinds(known[name]) == _without_kinds(value):
            continue
        number = 2
        new = f"{name}_v{number}"
        while new in taken and not (new in known and _without_kinds(known[new]) == _without_kinds(value)):
            number += 1
            new = f"{name}_v{number}"
        renames[name] = new
        taken.add(new)
    return renames


def _without_kinds(value: Any) -> Any:
    return {name: one for name, one in value.items() if name != GVK_EXTENSION} if isinstance(value, dict) else value


def _with_kinds(known: Json, other: Json) -> Json:
    """Returns a definition with the kinds of both documents."""
    mine, others = known.get(GVK_EXTENSION) or [], other.get(GVK_EXTENSION) or []
    more = [kind for kind in others if kind not in mine]
    return {**known, GVK_EXTENSION: [*mine, *more]} if more else known


def _rename_references(value: Any, references: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {
            key: references.get(one, one) if key == "$ref" and isinstance(one, str) else _rename_references(one, references)
            for key, one in value.items()
        }
    return [_rename_references(one, references) for one in value] if isinstance(value, list) else value


# --- Converting -------------------------------------------------------------------------------------------------------


def convert_v2_to_v3(document: Json) -> Json:
    """Converts an OpenAPI v2 document to v3 (ConvertV2ToV3)."""
    components: Json = {}
    definitions, security = document.get("definitions"), document.get("securityDefinitions")
    if isinstance(definitions, dict):
        components["schemas"] = {name: _schema(schema) for name, schema in definitions.items()}
    if isinstance(security, dict):
        wanted = ("description", "type", "name", "in")
        components["securitySchemes"] = {
            name: {key: scheme[key] for key in wanted if key in scheme} for name, scheme in security.items()
        }
    paths = {path: _path(item) for path, item in _mapping(document.get("paths")).items()}
    return {
        "openapi": "3.0.0",
        **{name: document[name] for name in ("info", "externalDocs") if name in document},
        "paths": paths,
        "components": components,
    }


def _path(item: Any) -> Json:
    found = {name: value for name, value in _mapping(item).items() if name not in (*OPENAPI_METHODS, "parameters")}
    for method in OPENAPI_METHODS:
        if isinstance(_mapping(item).get(method), dict):
            found[method] = _operation(item[method])
    parameters = _mapping(item).get("parameters")
    return {**found, "parameters": [_parameter(one) for one in parameters]} if parameters else found


def _operation(operation: Json) -> Json:
    found = {name: value for name, value in operation.items() if name not in _OLD_MEMBERS}
    parameters = []
    for parameter in operation.get("parameters") or ():
        if parameter.get("name") == "body" and "schema" in parameter:
            schema = _schema(parameter["schema"])
            found["requestBody"] = {"content": {kind: {"schema": schema} for kind in operation.get("consumes") or ()}}
        else:
            parameters.append(_parameter(parameter))
    if parameters:
        found["parameters"] = parameters
    produces = operation.get("produces") or ()
    found["responses"] = {code: _response(response, produces) for code, response in _mapping(operation.get("responses")).items()}
    return found


def _response(response: Json, produces: Iterable[str]) -> Json:
    found = {name: value for name, value in response.items() if name != "schema"}
    if "schema" in response:
        found["content"] = {kind: {"schema": _schema(response["schema"])} for kind in produces}
    return found


def _parameter(parameter: Json) -> Json:
    if "$ref" in parameter:
        return {"$ref": parameter["$ref"].replace(PARAMETERS, "#/components/parameters/", 1)}
    simple = ("type", "format", "uniqueItems")
    found = {name: value for name, value in parameter.items() if name not in (*simple, "schema")}
    schema = parameter.get("schema") or {name: parameter[name] for name in simple if name in parameter}
    return {**found, "schema": _schema(schema)}


def _schema(schema: Any) -> Any:
    """Converts a schema; a reference has no sibling keywords."""
    if isinstance(schema, list):
        return [_schema(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: _member(name, value) for name, value in schema.items()}
    reference = found.get("$ref")
    if isinstance(reference, str):
        found["$ref"] = reference.replace(_DEFINITIONS, _SCHEMAS, 1)
        if len(found) > 1:
            rest = {name: value for name, value in found.items() if name != "$ref"}
            return {**rest, "allOf": [{"$ref": found["$ref"]}]}
    return found


def _member(name: str, value: Any) -> Any:
    if name == "properties" and isinstance(value, dict):
        return {key: _schema(one) for key, one in value.items()}
    return _schema(value) if name in ("items", "additionalProperties", "additionalItems", "allOf") else value
