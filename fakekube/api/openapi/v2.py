"""OpenAPI v2: one document for everything, with the parameters that many operations share said once.

Schemas say less than in v3: what v2 has no words for is dropped (defaults, nullable, anyOf and its like),
and a reference is never wrapped.

Specified by: k8s.io/kube-openapi/pkg/builder (openapi.go, parameters.go), pkg/openapiconv and
k8s.io/apiextensions-apiserver/pkg/controller/openapi/v2 (conversion.go).
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from fakekube.api.openapi.operations import META, Operation, Parameter, path_item
from fakekube.api.openapi.schemas import Definitions, references
from fakekube.codecs import json
from fakekube.data.shapes import schema_name
from fakekube.registry.resource import GVK

__all__ = ["custom_schema", "document", "everywhere_in", "schema"]

Json = dict[str, Any]

_DEFINITIONS: Final = "#/definitions/"
_PARAMETERS: Final = "#/parameters/"
_GVK: Final = "x-kubernetes-group-version-kind"
_META_NAMES: Final = schema_name(META)
#: Kinds that belong to every group version.
_EVERYWHERE: Final = tuple(f"{_META_NAMES}{kind}" for kind in ("DeleteOptions", "WatchEvent"))
#: Parameters that are said where they are used: clients look for them there.
_INLINE: Final = frozenset({"name", "fieldValidation", "dryRun"})
_BEARER: Final = {
    "BearerToken": {"description": "Bearer Token authentication", "type": "apiKey", "name": "authorization", "in": "header"}
}


def document(
    version: str,
    paths: Mapping[str, Sequence[Operation]],
    definitions: Definitions,
    group_versions: Iterable[str],
    custom: Mapping[str, Json],
) -> Json:
    """The document.

    Args:
        version: the emulated minor.
        paths: the operations of all paths.
        definitions: of built-in types.
        group_versions: every one that the server knows, served or not.
        custom: the schemas of custom resources by name, in v2's words.
    """
    shared: dict[str, Json] = {}
    shown = {path: _path(operations, shared) for path, operations in sorted(paths.items())}
    wanted = set(references(shown)) | set(references(shared)) | {name for own in custom.values() for name in references(own)}
    wanted.difference_update(custom, (reference.rpartition("/")[2] for reference in _parameter_names(shared)))
    everywhere = everywhere_in(group_versions)
    schemas: dict[str, Json] = dict(custom)
    for name in definitions.closure(wanted):
        schemas[name] = schema(definitions.schema(name))
        if name in _EVERYWHERE:
            kind = name.rpartition(".")[2]
            schemas[name][_GVK] = [{"group": group, "kind": kind, "version": known} for group, known in everywhere]
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": version},
        "paths": shown,
        "definitions": dict(sorted(schemas.items())),
        "parameters": dict(sorted(shared.items())),
        "securityDefinitions": _BEARER,
        "security": [{"BearerToken": []}],
    }


def _parameter_names(shared: Mapping[str, Json]) -> Iterable[str]:
    return (f"{_PARAMETERS}{name}" for name in shared)


def everywhere_in(group_versions: Iterable[str]) -> list[tuple[str, str]]:
    """The groups and versions that the kinds of every group are named for."""
    return sorted((group, version) for group, _, version in (name.rpartition("/") for name in group_versions))


# ---------------------------------------------------------------- paths


def _path(operations: Sequence[Operation], shared: dict[str, Json]) -> Json:
    return path_item(
        operations,
        lambda operation, parameters: _operation(operation, parameters, shared),
        lambda parameter: _shown(_parameter(parameter), shared),
    )


def _operation(operation: Operation, parameters: Iterable[Parameter], shared: dict[str, Json]) -> Json:
    shown: Json = {"description": operation.description} if operation.description else {}
    if operation.consumes:
        shown["consumes"] = list(operation.consumes)
    shown |= {
        "produces": list(operation.produces),
        "schemes": ["https"],
        "tags": [operation.tag],
        "operationId": operation.identifier,
    }
    listed = [_parameter(parameter) for parameter in parameters]
    if operation.body:
        listed.insert(0, _body(operation))
    if listed:
        shown["parameters"] = [_shown(parameter, shared) for parameter in listed]
    shown["responses"] = {
        **{
            str(code): {"description": HTTPStatus(code).phrase, "schema": _reference(answer)}
            for code, answer in operation.answers
        },
        "401": {"description": HTTPStatus.UNAUTHORIZED.phrase},
    }
    if operation.action:
        shown["x-kubernetes-action"] = operation.action
    if operation.gvk is not None:
        shown[_GVK] = _gvk(operation.gvk)
    return shown


def _gvk(gvk: GVK) -> Json:
    return {"group": gvk.group, "kind": gvk.kind, "version": gvk.version}


def _reference(type_name: str) -> Json:
    return {"$ref": _DEFINITIONS + schema_name(type_name)} if type_name else {"type": "string"}


def _body(operation: Operation) -> Json:
    body: Json = {"name": "body", "in": "body"}
    if operation.body_required:
        body["required"] = True
    return {**body, "schema": _reference(operation.body)}


def _parameter(parameter: Parameter) -> Json:
    shown: Json = {"uniqueItems": True, "type": parameter.type}
    if parameter.description:
        shown["description"] = parameter.description
    shown |= {"name": parameter.name, "in": parameter.place}
    return {**shown, "required": True} if parameter.place == "path" else shown


def _shown(parameter: Json, shared: dict[str, Json]) -> Json:
    """A parameter where it is used: a reference to a shared one, or itself."""
    if parameter["in"] == "body":
        inline = not parameter["schema"]["$ref"].startswith(_DEFINITIONS + _META_NAMES)
    else:
        inline = parameter["name"] in _INLINE
    if inline:
        return parameter
    name = f"{parameter['name']}-{_hash(json.dumps(parameter))}"
    shared[name] = parameter
    return {"$ref": _PARAMETERS + name}


def _hash(content: bytes) -> str:
    """Eight characters of the FNV-1 hash."""
    value = 0xCBF29CE484222325
    for byte in content:
        value = (value * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF ^ byte
    return urlsafe_b64encode(value.to_bytes(8)[:6]).decode()


# ---------------------------------------------------------------- schemas

#: What v2 has no words for.
_UNSPEAKABLE: Final = ("default", "nullable", "anyOf", "oneOf", "not")
#: Where schemas stand by name.
_BY_NAME: Final = ("properties", "patternProperties", "definitions")


def schema(v3: Json) -> Json:
    """A built-in schema in the words of v2."""
    shown: Json = {}
    for key, value in v3.items():
        if key in _UNSPEAKABLE:
            continue
        if key in _BY_NAME:
            shown[key] = {name: schema(inner) for name, inner in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            shown[key] = schema(value)
        elif key == "$ref":
            shown[key] = _DEFINITIONS + value.rpartition("/")[2]
        elif key == "allOf" and len(value) == 1 and "$ref" in value[0]:
            described = {"description": shown.pop("description")} if "description" in shown else {}
            shown = {**described, "$ref": _DEFINITIONS + value[0]["$ref"].rpartition("/")[2], **shown}
        else:
            shown[key] = value
    if "oneOf" in v3:  # types with more than one form are strings here
        shown["type"] = "string"
    return shown


def custom_schema(v3: Json) -> Json:
    """The schema of a custom resource in the words of v2; what may be null, or anything, says no more than
    that.
    """
    dropped = {*_UNSPEAKABLE, "allOf"}
    if v3.get("nullable"):
        dropped |= {"type", "items", "properties"}
    if v3.get("x-kubernetes-preserve-unknown-fields"):
        dropped |= {"items", "properties", *(("type",) if v3.get("type") == "object" else ())}
    if v3.get("type") == "array" and ("items" not in v3 or "items" in dropped):
        dropped.add("type")
    shown: Json = {}
    for key, value in v3.items():
        if key in dropped:
            continue
        if key in _BY_NAME:
            shown[key] = {name: custom_schema(inner) for name, inner in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            shown[key] = custom_schema(value)
        else:
            shown[key] = value
    properties = v3.get("properties", {})
    required = [name for name in v3.get("required", ()) if not properties.get(name, {}).get("nullable")]
    shown.pop("required", None)
    return {**shown, "required": required} if required else shown
