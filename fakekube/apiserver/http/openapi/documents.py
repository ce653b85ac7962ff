"""The encoded OpenAPI documents of a cluster: what they are made of, each built on first use, merged with those of other servers.

The names of v3 documents are the paths below /openapi/v3. Documents of built-in resources are built once per emulation and
--runtime-config, those with custom resources once per state of the definitions, and those merged with other servers (the index of
v3, the document of v2, and v3 documents of servers that only publish v2) once per state of the documents of all servers. The
schemas of custom resources are those of their definitions, with apiVersion, kind and metadata. The ETag of a document is the hash
of its JSON in all formats.

Specified by: k8s.io/kube-aggregator/pkg/controllers/openapi/aggregator, pkg/controllers/openapiv3;
k8s.io/apiextensions-apiserver/pkg/controller/openapi/{v2,builder/builder.go}.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, Final
from urllib.parse import quote

import orjson

from fakekube.apiextensions.schema import PRESERVE_UNKNOWN_FIELDS
from fakekube.apimachinery import data
from fakekube.apimachinery.codecs import json
from fakekube.apimachinery.data import META_V1, field_text
from fakekube.apimachinery.data.shapes import schema_name
from fakekube.apimachinery.features import Emulation
from fakekube.apis.rest.resource import GVK, Registry, Resource
from fakekube.apiserver.aggregator.aggregator import Aggregator
from fakekube.apiserver.aggregator.controller import Remote
from fakekube.apiserver.aggregator.documents import (
    OPENAPI_V3_ROOT,
    Json,
    convert_v2_to_v3,
    download_documents,
    filter_paths,
    merge_specs,
)
from fakekube.apiserver.auth.jose import OPENID_CONFIGURATION_PATH
from fakekube.apiserver.endpoints import negotiation
from fakekube.apiserver.http import nonresource_paths
from fakekube.apiserver.http.openapi import v2, v3
from fakekube.apiserver.http.openapi.operations import (
    DISCOVERY_TEXTS,
    Operation,
    Paths,
    discovery_operation,
    operations_described,
    operations_of,
)
from fakekube.apiserver.http.openapi.v3 import REFERENCE_PREFIX, definitions
from fakekube.apiserver.registry import builtin
from fakekube.apiserver.registry.served_apis import RuntimeConfig
from fakekube.base.caches import forgettable

# --- What the OpenAPI documents of a cluster are made of --------------------------------------------------------------


_TEXT: Final[Json] = {"type": "string"}
_INT_OR_STRING: Final[Json] = {"anyOf": [{"type": "integer"}, {"type": "string"}]}
#: Kinds whose deletion returns the object, although the documents say Status (no DeleteReturnsDeletedObject).
_DELETED_AS_STATUS: Final = frozenset({GVK("", "v1", "Namespace")})


def type_name(resource: Resource) -> str:
    """Returns the type name of the objects of a custom resource in the form of a Go type."""
    return f"{resource.group}/{resource.version}.{resource.kind}"


def list_type_name(resource: Resource) -> str:
    """Returns the type name of the lists of a custom resource in the form of a Go type."""
    return f"{resource.group}/{resource.version}.{resource.list_kind}"


def _definition_version(definition: Mapping[str, Any], version: str) -> Json:
    """Returns a version of a definition (v1)."""
    found: Json = next(entry for entry in definition["spec"]["versions"] if entry["name"] == version)
    return found


_POD: Final = "io.k8s.api.core.v1.Pod"


def _with_text(schema: Json, text: str) -> Json:
    return {"description": text, **schema} if text else schema


def _describe_fields(minor: str, kind: str, properties: Mapping[str, Json]) -> dict[str, Json]:
    """Returns the properties of every object or list, with the descriptions of a built-in kind if there are any."""
    return {name: _with_text(schema, field_text(minor, kind, name)) for name, schema in properties.items()}


def _schemas_of_custom_resource(resource: Resource, definition: Mapping[str, Any], *, old: bool = False) -> dict[str, Json]:
    """Returns the schemas of objects and of lists, by name.

    Args:
        resource: a served version.
        definition: its CustomResourceDefinition (v1).
        old: whether they are for OpenAPI v2.
    """
    name, listed = type_name(resource), list_type_name(resource)
    refer = _old_reference if old else _reference
    version = _definition_version(definition, resource.version)
    obj = _object(resource.emulation.version, version, refer, old=old)
    obj["x-kubernetes-group-version-kind"] = _gvk(resource, resource.kind)
    if version.get("selectableFields"):
        obj["x-kubernetes-selectable-fields"] = [
            {"fieldPath": field["jsonPath"].removeprefix(".")} for field in version["selectableFields"]
        ]
    items = {"$ref": f"#/definitions/{schema_name(name)}" if old else REFERENCE_PREFIX + schema_name(name)}
    minor = resource.emulation.version
    of_list = _describe_fields(
        minor, f"{_POD}List", {"apiVersion": _TEXT, "kind": _TEXT, "metadata": refer(META_V1 + "ListMeta")}
    )
    of_items = field_text(minor, f"{_POD}List", "items").replace("pods", resource.plural)
    listing = {
        "description": f"{resource.list_kind} is a list of {resource.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": of_list["apiVersion"],
            "items": _with_text({"type": "array", "items": items}, of_items),
            "kind": of_list["kind"],
            "metadata": of_list["metadata"],
        },
        "x-kubernetes-group-version-kind": _gvk(resource, resource.list_kind),
    }
    if "x-kubernetes-selectable-fields" in obj:
        listing["x-kubernetes-selectable-fields"] = obj["x-kubernetes-selectable-fields"]
    return {schema_name(name): obj, schema_name(listed): listing}


def _gvk(resource: Resource, kind: str) -> list[Json]:
    return [{"group": resource.group, "kind": kind, "version": resource.version}]


def _reference(go_type: str) -> Json:
    return {"allOf": [{"$ref": REFERENCE_PREFIX + schema_name(go_type)}]}


def _old_reference(go_type: str) -> Json:
    return {"$ref": f"#/definitions/{schema_name(go_type)}"}


def _object(minor: str, version: Mapping[str, Any], refer: Callable[[str], Json], *, old: bool) -> Json:
    declared = (version.get("schema") or {}).get("openAPIV3Schema")
    if declared is None or (old and declared.get(PRESERVE_UNKNOWN_FIELDS)):
        return {"type": "object"}
    shown = _complete_schema(v2.custom_schema(declared) if old else declared, refer, old=old)
    common = _describe_fields(minor, _POD, {"apiVersion": _TEXT, "kind": _TEXT, "metadata": refer(META_V1 + "ObjectMeta")})
    return {**shown, "properties": dict(sorted({**shown.get("properties", {}), **common}.items()))}


_CONVENTIONS: Final = "More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
#: The descriptions of the properties of every embedded object (addEmbeddedProperties).
_EMBEDDED: Final = {
    "apiVersion": f"apiVersion defines the versioned schema of this representation of an object. {_CONVENTIONS}#resources",
    "kind": f"kind is a string value representing the type of this object. In CamelCase. {_CONVENTIONS}#types-kinds",
    "metadata": f"Standard object's metadata. {_CONVENTIONS}#metadata",
}


def _complete_schema(declared: Json, refer: Callable[[str], Json], *, old: bool) -> Json:
    """Returns a schema with the standard properties of embedded objects, and with anyOf for int-or-string."""
    shown = dict(declared)
    if "properties" in shown:
        completed = {name: _complete_schema(inner, refer, old=old) for name, inner in shown["properties"].items()}
        shown["properties"] = dict(sorted(completed.items()))
    for key in ("items", "additionalProperties"):
        if isinstance(shown.get(key), dict):
            shown[key] = _complete_schema(shown[key], refer, old=old)
    if shown.get("x-kubernetes-int-or-string") and not old and "anyOf" not in shown and "allOf" not in shown:
        shown |= _INT_OR_STRING
    if shown.get("x-kubernetes-embedded-resource") and not (old and shown.get(PRESERVE_UNKNOWN_FIELDS)):
        of_every_object = {"apiVersion": _TEXT, "kind": _TEXT, "metadata": refer(META_V1 + "ObjectMeta")}
        own = {name: _with_text(schema, _EMBEDDED[name]) for name, schema in of_every_object.items()}
        shown["properties"] = dict(sorted({**shown.get("properties", {}), **own}.items()))
        required = shown.get("required", [])
        shown["required"] = [*required, *(name for name in ("kind", "apiVersion") if name not in required)]
    return shown


_JSON: Final = (negotiation.JSON,)


def _document_name(group: str, version: str = "") -> str:
    """Returns the document name of a group or group version, such as `apis/apps/v1`."""
    root = f"apis/{group}" if group else "api"
    return f"{root}/{version}" if version else root


def _beside_resources(groups: Iterable[str]) -> dict[str, Paths]:
    """Returns the documents of paths without resources: discovery, the OpenID issuer, the version."""
    configuration, keys, version = OPENID_CONFIGURATION_PATH, nonresource_paths.KEYS_PATH, "/version"
    info = "k8s.io/apimachinery/pkg/version.Info"
    found: dict[str, Paths] = {
        configuration[1:]: {f"{configuration}/": [_get("getServiceAccountIssuerOpenIDConfiguration", "WellKnown", "", _JSON)]},
        keys[1:]: {f"{keys}/": [_get("getServiceAccountIssuerOpenIDKeyset", "openid", "", (nonresource_paths.KEYS_TYPE,))]},
        version[1:]: {f"{version}/": [replace(_get("getCodeVersion", "version", info, _JSON), consumes=_JSON)]},
        "api": {"/api/": [discovery_operation("", "", META_V1 + "APIVersions", "APIVersions")]},
        "apis": {"/apis/": [_apis()]},
    }
    for group in groups:
        operation = discovery_operation(group, "", META_V1 + "APIGroup", "APIGroup")
        found[_document_name(group)] = {f"/apis/{group}/": [operation]}
    return found


_TEXTS: Final = {
    "getServiceAccountIssuerOpenIDConfiguration":
        "get service account issuer OpenID configuration, also known as the 'OIDC discovery doc'",
    "getServiceAccountIssuerOpenIDKeyset":
        "get service account issuer OpenID JSON Web Key Set (contains public token verification keys)",
    "getCodeVersion": "get the version information for this server",
}  # fmt: skip


def _get(identifier: str, tag: str, go_type: str, produces: tuple[str, ...]) -> Operation:
    return Operation("get", identifier, tag, ((200, go_type),), produces, consumes=(), description=_TEXTS[identifier])


def _apis() -> Operation:
    offer = negotiation.Offer().media_types
    answers = ((200, META_V1 + "APIGroupList"),)
    return Operation("get", "getAPIVersions", "apis", answers, offer, consumes=offer, description=DISCOVERY_TEXTS["APIVersions"])


@forgettable
@cache
def builtin_paths(emulation: Emulation, config: RuntimeConfig) -> Mapping[str, Paths]:
    """Returns the documents of the built-in resources that a server serves, by name."""
    facts, resources = emulation.facts, builtin.resources(emulation, config)
    found = _beside_resources(dict.fromkeys(resource.group for resource in resources if resource.group))
    for resource in resources:
        name = _document_name(resource.group, resource.version)
        if name not in found:
            index = discovery_operation(resource.group, resource.version, META_V1 + "APIResourceList", "APIResources")
            found[name] = {f"/{name}/": [index]}
        found[name].update(_builtin(facts, resource))
    return {name: operations_described(emulation.version, paths) for name, paths in found.items()}


def _builtin(facts: data.Facts, resource: Resource) -> Paths:
    go_type = _go_type(facts, resource.group, resource.version, resource.kind)
    below = {
        name: _go_type(facts, subresource.gvk.group, subresource.gvk.version, subresource.gvk.kind)
        for name, subresource in resource.subresources.items()
    }
    listed = _list_type_of(go_type) if "list" in resource.verbs else ""
    returns_object = resource.strategy.delete_returns_object and resource.gvk not in _DELETED_AS_STATUS
    deleted = go_type if returns_object else META_V1 + "Status"
    return operations_of(resource, go_type, listed, deleted, below)


def _list_type_of(go_type: str) -> str:
    """Returns the list type of a type."""
    return f"{go_type}List"


def _go_type(facts: data.Facts, group: str, version: str, kind: str) -> str:
    row = facts.kind(group, version, kind)
    return row.type if row is not None else ""


def _custom_paths(resource: Resource, type_name: str, list_type_name: str) -> Paths:
    """Returns the operations of a custom resource by path; the names are those of the schemas of its objects and lists."""
    scale = "k8s.io/api/autoscaling/v1.Scale"
    below = {name: scale if name == "scale" else type_name for name in resource.subresources}
    return operations_of(resource, type_name, list_type_name, META_V1 + "Status", below)


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
            name = _document_name(resource.group, resource.version)
            found.setdefault(name, []).append((resource, definition))
        return found

    @cached_property
    def index(self) -> Encoded:
        """The index of /openapi/v3."""
        names = sorted({*builtin_paths(*self._apis), *self._names})
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
            paths |= _custom_paths(resource, type_name(resource), list_type_name(resource))
            schemas |= _schemas_of_custom_resource(resource, definition)
        known = v2.everywhere_in(data.minor(self._version).group_versions)
        everywhere = [(group, version) for group, version in known if group not in _UNKNOWN_TO_CUSTOM]
        return serialize(v3.document(v3.CUSTOM_INFO, paths, definitions(self._apis[0]), custom=schemas, everywhere=everywhere))

    @cached_property
    def v2(self) -> Encoded:
        """The document of /openapi/v2."""
        if not self.served:
            return _builtin_v2(self._apis)
        paths: Paths = _all_builtin_paths(self._apis).copy()
        schemas: dict[str, dict[str, Any]] = {}
        for resource, definition in self.served:
            paths |= _custom_paths(resource, type_name(resource), list_type_name(resource))
            schemas |= _schemas_of_custom_resource(resource, definition, old=True)
        return serialize(_v2(self._apis[0], paths, schemas))


@forgettable
@cache
def _builtin_document(apis: _APIs, name: str) -> Encoded | None:
    paths, version = builtin_paths(*apis).get(name), apis[0].version
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


@forgettable
@cache
def _all_builtin_paths(apis: _APIs) -> Paths:
    return {path: operations for paths in builtin_paths(*apis).values() for path, operations in paths.items()}


@forgettable
@cache
def _builtin_v2(apis: _APIs) -> Encoded:
    return serialize(_v2(apis[0], _all_builtin_paths(apis), {}))


def _v2(emulation: Emulation, paths: Paths, schemas: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return v2.document(emulation.version, paths, definitions(emulation), emulation.facts.group_versions, schemas)


class AggregatedDocuments:
    """The merged documents of one cluster."""

    def __init__(self, aggregator: Aggregator) -> None:
        self._aggregator = aggregator
        self._known: tuple[object, dict[tuple[str, str], Encoded]] = (None, {})
        """The documents of a state of the aggregator, by their kind and the hash of the document of this server.

        They are one value with the state, so that a document of an older one, made meanwhile, does not get among them.
        """

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

    def converted_document(self, name: str) -> Encoded | None:
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
                document = self.converted_document(_name(remote))
                listed = {}
                if document is not None:
                    listed[_name(remote)] = {"serverRelativeURL": f"{OPENAPI_V3_ROOT}{quote(_name(remote))}?hash={document.hash}"}
            paths = {**listed, **paths}
        return serialize({"paths": dict(sorted(paths.items()))})

    def _cache_document(self, what: str, own: Encoded, make: Callable[[], Encoded]) -> Encoded:
        state, (known, documents) = self._aggregator.state, self._known
        if state is not known:
            documents = {}
            self._known = state, documents
        found = documents.get((what, own.hash))
        if found is None:
            found = documents[what, own.hash] = make()
        return found


def _name(remote: Remote) -> str:
    return "apis/{}/{}".format(*remote.group_version)
