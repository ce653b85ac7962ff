"""The encoded OpenAPI documents of a cluster, each built on first use, merged with those of other servers.

Documents of built-in resources are built once per emulation and --runtime-config, those with custom resources once per state
of the definitions, and those merged with other servers (the index of v3, the document of v2, and v3 documents of servers that
only publish v2) once per state of the documents of all servers. The ETag of a document is the hash of its JSON in all formats.

Specified by: k8s.io/kube-aggregator/pkg/controllers/openapi/aggregator, pkg/controllers/openapiv3/aggregator.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final
from urllib.parse import quote

import orjson

from fakekube.apimachinery import data
from fakekube.apimachinery.codecs import json
from fakekube.apimachinery.features import Emulation
from fakekube.apis.rest.resource import Registry, Resource
from fakekube.apiserver.aggregator.aggregator import Aggregator
from fakekube.apiserver.aggregator.controller import Remote
from fakekube.apiserver.aggregator.openapi import OPENAPI_V3_ROOT, convert_v2_to_v3, download_documents, filter_paths, merge_specs
from fakekube.apiserver.http.openapi import sources, v2, v3
from fakekube.apiserver.http.openapi.operations import Paths
from fakekube.apiserver.http.openapi.v3 import definitions
from fakekube.apiserver.registry.served_apis import RuntimeConfig

Definition = Mapping[str, Any]
Lookup = Callable[[Resource], Definition | None]
"""Returns the CustomResourceDefinition of a custom resource."""

_APIs = tuple[Emulation, RuntimeConfig]
"""What determines the documents of built-in resources."""

#: The number of the first minor whose documents list only their own group version of kinds that all have.
_OWN_KINDS_SINCE: Final = 36


#: Groups that documents of custom resources do not list, since kube-aggregator and kube-apiserver serve them.
_UNKNOWN_TO_CUSTOM: Final = frozenset(
    {"admission.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "imagepolicy.k8s.io"}
)


@dataclass(slots=True, frozen=True)
class Encoded:
    """A document as JSON, and its hash."""

    json: bytes
    hash: str

    @property
    def etag(self) -> str:
        return f'"{self.hash}"'


def serialize(document: Any) -> Encoded:
    """Encodes a document."""
    try:
        content = orjson.dumps(document)
    except orjson.JSONEncodeError:  # nested too deep for orjson
        content = json.dumps(document)
    return Encoded(content, hashlib.sha512(content).hexdigest().upper())


class OpenAPIDocuments:
    """The documents of one cluster.

    Args:
        emulation: the emulated minor and its gates.
        config: --runtime-config.
        registry: the served resources.
        definition_of: returns the definition of a custom resource.
    """

    def __init__(self, emulation: Emulation, config: RuntimeConfig, registry: Registry, definition_of: Lookup) -> None:
        self._apis = emulation, config
        self._registry = registry
        self._definition_of = definition_of
        self._custom = _Custom(self._apis, ())

    def current(self) -> _Custom:
        """Returns the documents of the current state; the same object as long as nothing changes."""
        served = tuple(self._customs())
        if served != self._custom.served:
            self._custom = _Custom(self._apis, served)
        return self._custom

    def _customs(self) -> Iterator[tuple[Resource, Definition]]:
        for resource in self._registry:
            if resource.custom:
                definition = self._definition_of(resource)
                if definition is not None:
                    yield resource, definition


class _Custom:
    """The documents for one state of the definitions."""

    def __init__(self, apis: _APIs, served: tuple[tuple[Resource, Definition], ...]) -> None:
        self._apis, self._version = apis, apis[0].version
        self.served = served
        self._documents: dict[str, Encoded] = {}

    @cached_property
    def _names(self) -> dict[str, list[tuple[Resource, Definition]]]:
        """The custom group versions by document name."""
        found: dict[str, list[tuple[Resource, Definition]]] = {}
        for resource, definition in self.served:
            name = sources.document_name(resource.group, resource.version)
            found.setdefault(name, []).append((resource, definition))
        return found

    @cached_property
    def index(self) -> Encoded:
        """Returns the index of /openapi/v3."""
        names = sorted({*sources.builtin_paths(*self._apis), *self._names})
        paths = {name: {"serverRelativeURL": self.url(name)} for name in names}
        return serialize({"paths": paths})

    def url(self, name: str) -> str:
        """Returns the URL of a document with its hash."""
        document = self.document(name)
        assert document is not None
        return f"{OPENAPI_V3_ROOT}{quote(name)}?hash={document.hash}"

    def document(self, name: str) -> Encoded | None:
        """Returns the document of a name; None if there is none."""
        customs = self._names.get(name)
        if customs is None:
            return _builtin_document(self._apis, name)
        found = self._documents.get(name)
        if found is None:
            found = self._documents[name] = self._custom_document(customs)
        return found

    def _custom_document(self, customs: list[tuple[Resource, Definition]]) -> Encoded:
        paths: Paths = {}
        schemas: dict[str, dict[str, Any]] = {}
        for resource, definition in customs:
            paths |= sources.custom_paths(resource, sources.type_name(resource), sources.list_type_name(resource))
            schemas |= sources.schemas(resource, definition)
        known = v2.everywhere_in(data.minor(self._version).group_versions)
        everywhere = [(group, version) for group, version in known if group not in _UNKNOWN_TO_CUSTOM]
        return serialize(v3.document(v3.CUSTOM_INFO, paths, definitions(self._apis[0]), custom=schemas, everywhere=everywhere))

    @cached_property
    def v2(self) -> Encoded:
        """Returns the document of /openapi/v2."""
        if not self.served:
            return _builtin_v2(self._apis)
        paths: Paths = _all_builtin_paths(self._apis).copy()
        schemas: dict[str, dict[str, Any]] = {}
        for resource, definition in self.served:
            paths |= sources.custom_paths(resource, sources.type_name(resource), sources.list_type_name(resource))
            schemas |= sources.schemas(resource, definition, old=True)
        return serialize(_v2(self._apis[0], paths, schemas))


@cache
def _builtin_document(apis: _APIs, name: str) -> Encoded | None:
    paths, version = sources.builtin_paths(*apis).get(name), apis[0].version
    if paths is None:
        return None
    group, version_of_group = _group_version(name)
    info = v3.builtin_info(version)
    # The documents of older minors list all group versions of the kinds that are registered in each.
    everywhere = v2.everywhere_in(apis[0].facts.group_versions) if apis[0].minor < _OWN_KINDS_SINCE else ()
    return serialize(v3.document(info, paths, definitions(apis[0]), group=group, version=version_of_group, everywhere=everywhere))


def _group_version(name: str) -> tuple[str, str]:
    """Returns group and version of a document name; empty for other documents."""
    root, _, rest = name.partition("/")
    if root == "api":
        return "", rest
    group, _, version = rest.partition("/")
    return (group, version) if root == "apis" and version else ("", "")


@cache
def _all_builtin_paths(apis: _APIs) -> Paths:
    return {path: operations for paths in sources.builtin_paths(*apis).values() for path, operations in paths.items()}


@cache
def _builtin_v2(apis: _APIs) -> Encoded:
    return serialize(_v2(apis[0], _all_builtin_paths(apis), {}))


def _v2(emulation: Emulation, paths: Paths, schemas: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return v2.document(emulation.version, paths, definitions(emulation), emulation.facts.group_versions, schemas)


class AggregatedDocuments:
    """The merged documents of one cluster."""

    def __init__(self, aggregator: Aggregator) -> None:
        self._aggregator = aggregator
        self._state: object = None
        self._made: dict[tuple[str, str], Encoded] = {}
        """By kind of document, and the hash of the document of this server."""

    def index(self, own: Encoded) -> Encoded:
        """Returns the index of /openapi/v3."""
        return self._cache_document("index", own, lambda: self._index(own))

    def v2(self, own: Encoded) -> Encoded:
        """Returns the document of /openapi/v2."""
        others = [(document, _name(remote)) for remote in self._remotes() if (document := download_documents(remote).v2)]
        if not others:
            return own
        shown = (filter_paths(document, f"/{name}/") for document, name in others)
        return self._cache_document("v2", own, lambda: serialize(merge_specs(orjson.loads(own.json), shown)))

    def converted(self, name: str) -> Encoded | None:
        """Returns the v3 document of a server that only publishes v2; None if there is none of that name."""
        for remote in self._remotes():
            document = download_documents(remote).v2 if download_documents(remote).index is None else None
            if document is not None and name == _name(remote):
                empty = Encoded(b"", "")
                return self._cache_document(name, empty, lambda document=document: serialize(convert_v2_to_v3(document)))  # type: ignore[misc]
        return None

    def _remotes(self) -> list[Remote]:
        """Returns the APIServices of other servers, sorted by descending priority."""
        found = self._aggregator.remotes.values()
        return sorted(found, key=lambda one: (-one.spec["groupPriorityMinimum"], one.name))

    def _index(self, own: Encoded) -> Encoded:
        paths: dict[str, Any] = orjson.loads(own.json)["paths"]
        for remote in self._remotes():
            listed = download_documents(remote).index
            if listed is None:
                document = self.converted(_name(remote))
                listed = {}
                if document is not None:
                    listed[_name(remote)] = {"serverRelativeURL": f"{OPENAPI_V3_ROOT}{quote(_name(remote))}?hash={document.hash}"}
            paths = {**listed, **paths}
        return serialize({"paths": dict(sorted(paths.items()))})

    def _cache_document(self, what: str, own: Encoded, make: Callable[[], Encoded]) -> Encoded:
        state = self._aggregator.state
        if state is not self._state:
            self._state, self._made = state, {}
        found = self._made.get((what, own.hash))
        if found is None:
            found = self._made[what, own.hash] = make()
        return found


def _name(remote: Remote) -> str:
    return "apis/{}/{}".format(*remote.group_version)
