"""OpenAPI v2: one document for all group versions, with shared parameters.

Schemas contain less than in v3: keywords that v2 does not have are dropped (default, nullable, anyOf and others), and a
reference is never wrapped in allOf.

Specified by: k8s.io/kube-openapi/pkg/builder (openapi.go, parameters.go), pkg/openapiconv and
k8s.io/apiextensions-apiserver/pkg/controller/openapi/v2 (conversion.go).
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Final

from fakekube.apimachinery import data
from fakekube.apimachinery.codecs import json
from fakekube.apimachinery.data import META_V1, Facts
from fakekube.apimachinery.data.shapes import schema_name
from fakekube.apiserver.aggregator.documents import GVK_EXTENSION, PARAMETERS, Json
from fakekube.apiserver.http.openapi.operations import Operation, Parameter, path_item
from fakekube.apiserver.http.openapi.v3 import Definitions, references

_DEFINITIONS: Final = "#/definitions/"
_META_NAMES: Final = schema_name(META_V1)
#: The schemas of kinds that are registered in every group version.
_EVERYWHERE: Final = tuple(f"{_META_NAMES}{kind}" for kind in ("DeleteOptions", "WatchEvent"))
#: Parameters that are never shared, since clients look for them in the operation.
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
    """Returns the document.

    Args:
        version: the emulated minor.
        paths: the operations of all paths.
        definitions: the schemas of built-in types.
        group_versions: all registered group versions, served or not.
        custom: the schemas of custom resources by name, in the form of v2.
    """
    shared: dict[str, Json] = {}
    facts = data.minor(version)
    shown = {path: _path(operations, _Parameters(facts, path, shared)) for path, operations in sorted(paths.items())}
    wanted = set(references(shown)) | set(references(shared)) | {name for own in custom.values() for name in references(own)}
    wanted.difference_update(custom, shared)
    everywhere = everywhere_in(group_versions)
    schemas: dict[str, Json] = dict(custom)
    for name in definitions.closure(wanted):
        schemas[name] = schema(definitions.schema(name))
        if name in _EVERYWHERE:
            kind = name.rpartition(".")[2]
            schemas[name][GVK_EXTENSION] = [{"group": group, "kind": kind, "version": known} for group, known in everywhere]
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": version},
        "paths": shown,
        "definitions": dict(sorted(schemas.items())),
        "parameters": dict(sorted(shared.items())),
        "securityDefinitions": _BEARER,
        "security": [{"BearerToken": []}],
    }


def everywhere_in(group_versions: Iterable[str]) -> list[tuple[str, str]]:
    """Returns the sorted groups and versions of the kinds that are registered in every group version."""
    return sorted((group, version) for group, _, version in (name.rpartition("/") for name in group_versions))


# --- Paths ------------------------------------------------------------------------------------------------------------


def _path(operations: Sequence[Operation], parameters: _Parameters) -> Json:
    return path_item(
        operations,
        lambda operation, own: _operation(operation, own, parameters),
        lambda parameter: parameters.show(_parameter(parameter)),
    )


def _operation(operation: Operation, own: Iterable[Parameter], parameters: _Parameters) -> Json:
    shown: Json = {"description": operation.description} if operation.description else {}
    if operation.consumes:
        shown["consumes"] = list(operation.consumes)
    shown |= {
        "produces": list(operation.produces),
        "schemes": ["https"],
        "tags": [operation.tag],
        "operationId": operation.identifier,
    }
    listed = [_parameter(parameter) for parameter in own]
    if operation.body:
        listed.insert(0, _body(operation))
    if listed:
        shown["parameters"] = [parameters.show(parameter, operation.method) for parameter in listed]
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
        gvk = operation.gvk
        shown[GVK_EXTENSION] = {"group": gvk.group, "kind": gvk.kind, "version": gvk.version}
    return shown


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


class _Parameters:
    """The parameters of the operations of a path, as references to shared ones.

    Args:
        facts: of the minor.
        path: of the operations.
        shared: by name, the parameters of all paths; added to.
    """

    def __init__(self, facts: Facts, path: str, shared: dict[str, Json]) -> None:
        self._facts = facts
        self._below = "/".join([step for step in path.split("/") if step and "{" not in step][-2:])
        self._shared = shared

    def show(self, parameter: Json, member: str = "parameters") -> Json:
        """Returns a reference to a parameter, or the parameter itself if it is never shared.

        `member`: the member of the path item that has the parameter.
        """
        if parameter["in"] == "body":
            inline = not parameter["schema"]["$ref"].startswith(_DEFINITIONS + _META_NAMES)
        else:
            inline = parameter["name"] in _INLINE
        if inline:
            return parameter
        name = f"{parameter['name']}-{self._ending(parameter, member)}"
        self._shared[name] = parameter
        return {"$ref": PARAMETERS + name}

    def _ending(self, parameter: Json, member: str) -> str:
        known = ""
        if "description" not in parameter:
            known = self._facts.parameter_hash(parameter["in"], parameter["name"], member, self._below)
        return known or _hash(json.dumps(parameter))


def _hash(content: bytes) -> str:
    """Returns the FNV-1 hash in base64, cut to eight characters."""
    value = 0xCBF29CE484222325
    for byte in content:
        value = (value * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF ^ byte
    return urlsafe_b64encode(value.to_bytes(8)[:6]).decode()


# --- Schemas ----------------------------------------------------------------------------------------------------------

#: The keywords that v2 does not have.
_UNSUPPORTED: Final = ("default", "nullable", "anyOf", "oneOf", "not")
#: The keywords whose values are schemas by name.
_BY_NAME: Final = ("properties", "patternProperties", "definitions")


def schema(v3: Json) -> Json:
    """Converts the schema of a built-in type to v2."""
    shown: Json = {}
    for key, value in v3.items():
        if key in _UNSUPPORTED:
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
    if "oneOf" in v3:  # a type with several forms is a string in v2
        shown["type"] = "string"
    return shown


def custom_schema(v3: Json) -> Json:
    """Converts the schema of a custom resource to v2; a nullable schema, or one that allows any value, loses its other
    keywords.
    """
    dropped = {*_UNSUPPORTED, "allOf"}
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
