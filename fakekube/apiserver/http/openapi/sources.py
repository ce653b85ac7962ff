"""What the OpenAPI documents of a cluster are made of: operations by document, and the schemas of custom resources.

The names of documents are the paths below /openapi/v3. The documents of built-in resources are the same in every cluster with
the same emulation and --runtime-config. The schemas of custom resources are those of their definitions, with apiVersion, kind
and metadata.

Specified by: k8s.io/kube-aggregator/pkg/controllers/openapiv3 (which documents there are);
k8s.io/apiextensions-apiserver/pkg/controller/openapi/{v2,builder/builder.go}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Final

from fakekube.apiextensions.schema import PRESERVE_UNKNOWN_FIELDS
from fakekube.apimachinery import data
from fakekube.apimachinery.data import META_V1, field_text
from fakekube.apimachinery.data.shapes import schema_name
from fakekube.apimachinery.features import Emulation
from fakekube.apis.rest.resource import Resource
from fakekube.apiserver.auth.jose import OPENID_CONFIGURATION_PATH
from fakekube.apiserver.endpoints import negotiation
from fakekube.apiserver.http import documents
from fakekube.apiserver.http.openapi import v2
from fakekube.apiserver.http.openapi.operations import (
    DISCOVERY_TEXTS,
    Operation,
    Paths,
    discovery_operation,
    operations_described,
    operations_of,
)
from fakekube.apiserver.http.openapi.v3 import REFERENCE_PREFIX
from fakekube.apiserver.registry import builtin
from fakekube.apiserver.registry.served_apis import RuntimeConfig

Json = dict[str, Any]

_TEXT: Final[Json] = {"type": "string"}
_INT_OR_STRING: Final[Json] = {"anyOf": [{"type": "integer"}, {"type": "string"}]}


def type_name(resource: Resource) -> str:
    """Returns the type name of the objects of a custom resource in the form of a Go type."""
    return f"{resource.group}/{resource.version}.{resource.kind}"


def list_type_name(resource: Resource) -> str:
    """Returns the type name of the lists of a custom resource in the form of a Go type."""
    return f"{resource.group}/{resource.version}.{resource.list_kind}"


def definition_version(definition: Mapping[str, Any], version: str) -> Json:
    """Returns a version of a definition (v1)."""
    found: Json = next(entry for entry in definition["spec"]["versions"] if entry["name"] == version)
    return found


_POD: Final = "io.k8s.api.core.v1.Pod"


def _with_text(schema: Json, text: str) -> Json:
    return {"description": text, **schema} if text else schema


def _describe_fields(minor: str, kind: str, properties: Mapping[str, Json]) -> dict[str, Json]:
    """Returns the properties of every object or list, with the descriptions of a built-in kind if there are any."""
    return {name: _with_text(schema, field_text(minor, kind, name)) for name, schema in properties.items()}


def schemas(resource: Resource, definition: Mapping[str, Any], *, old: bool = False) -> dict[str, Json]:
    """Returns the schemas of objects and of lists, by name.

    Args:
        resource: a served version.
        definition: its CustomResourceDefinition (v1).
        old: whether they are for OpenAPI v2.
    """
    name, listed = type_name(resource), list_type_name(resource)
    refer = _old_reference if old else _reference
    version = definition_version(definition, resource.version)
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


def document_name(group: str, version: str = "") -> str:
    """Returns the document name of a group or group version, such as `apis/apps/v1`."""
    root = f"apis/{group}" if group else "api"
    return f"{root}/{version}" if version else root


def beside_resources(groups: Iterable[str]) -> dict[str, Paths]:
    """Returns the documents of paths without resources: discovery, the OpenID issuer, the version."""
    configuration, keys, version = OPENID_CONFIGURATION_PATH, documents.KEYS_PATH, "/version"
    info = "k8s.io/apimachinery/pkg/version.Info"
    found: dict[str, Paths] = {
        configuration[1:]: {f"{configuration}/": [_get("getServiceAccountIssuerOpenIDConfiguration", "WellKnown", "", _JSON)]},
        keys[1:]: {f"{keys}/": [_get("getServiceAccountIssuerOpenIDKeyset", "openid", "", (documents.KEYS_TYPE,))]},
        version[1:]: {f"{version}/": [replace(_get("getCodeVersion", "version", info, _JSON), consumes=_JSON)]},
        "api": {"/api/": [discovery_operation("", "", META_V1 + "APIVersions", "APIVersions")]},
        "apis": {"/apis/": [_apis()]},
    }
    for group in groups:
        operation = discovery_operation(group, "", META_V1 + "APIGroup", "APIGroup")
        found[document_name(group)] = {f"/apis/{group}/": [operation]}
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


@cache
def builtin_paths(emulation: Emulation, config: RuntimeConfig) -> Mapping[str, Paths]:
    """Returns the documents of the built-in resources that a server serves, by name."""
    facts, resources = emulation.facts, builtin.resources(emulation, config)
    found = beside_resources(dict.fromkeys(resource.group for resource in resources if resource.group))
    for resource in resources:
        name = document_name(resource.group, resource.version)
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
    deletes_object = "delete" in resource.verbs and resource.strategy.delete_returns_object
    return operations_of(resource, go_type, listed, go_type if deletes_object else META_V1 + "Status", below)


def _list_type_of(go_type: str) -> str:
    """Returns the list type of a type."""
    return f"{go_type}List"


def _go_type(facts: data.Facts, group: str, version: str, kind: str) -> str:
    row = facts.kind(group, version, kind)
    return row.type if row is not None else ""


def custom_paths(resource: Resource, type_name: str, list_type_name: str) -> Paths:
    """Returns the operations of a custom resource by path; the names are those of the schemas of its objects and lists."""
    scale = "k8s.io/api/autoscaling/v1.Scale"
    below = {name: scale if name == "scale" else type_name for name in resource.subresources}
    return operations_of(resource, type_name, list_type_name, META_V1 + "Status", below)
