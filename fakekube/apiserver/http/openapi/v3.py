"""OpenAPI v3: a document for each group version, and for paths without resources.

Specified by: k8s.io/kube-openapi/pkg/builder3 and spec3;
k8s.io/apiextensions-apiserver/pkg/controller/openapi.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from fakekube.apimachinery.data.shapes import schema_name
from fakekube.apis.rest.resource import GVK
from fakekube.apiserver.http.openapi.operations import Operation, Parameter, path_item
from fakekube.apiserver.http.openapi.schemas import REFERENCE_PREFIX, Definitions, references

Json = dict[str, Any]

#: Kinds that are registered in every group version; a document lists only its own.
_EVERYWHERE: Final = ("DeleteOptions", "WatchEvent")
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_GVK: Final = "x-kubernetes-group-version-kind"
_SECURITY: Final = {
    "BearerToken": {"type": "apiKey", "description": "Bearer Token authentication", "name": "authorization", "in": "header"}
}


def builtin_info(version: str) -> Json:
    """Returns the `info` of built-in documents."""
    return {"title": "Kubernetes", "version": version}


CUSTOM_INFO: Final = {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}


def document(
    info: Json,
    paths: Mapping[str, Sequence[Operation]],
    definitions: Definitions,
    *,
    group: str = "",
    version: str = "",
    custom: Mapping[str, Json] | None = None,
    everywhere: Sequence[tuple[str, str]] = (),
) -> Json:
    """Returns a document with these paths and all schemas that they refer to.

    Args:
        info: its `info`.
        paths: the operations of each path.
        definitions: the schemas of built-in types.
        group: the group of the document.
        version: the version of the group; "" for documents without a group version.
        custom: the schemas of custom resources by name (their documents have no security schemes).
        everywhere: the group versions of the kinds that are registered in every group version.
    """
    own = custom or {}
    shown = {path: _path(operations, definitions) for path, operations in sorted(paths.items())}
    wanted = {*references(shown), *own}
    needed = definitions.closure({*wanted, *(name for schema in own.values() for name in references(schema))} - own.keys())
    schemas = {name: own[name] if name in own else definitions.schema(name) for name in sorted({*needed, *own})}
    for kind in _EVERYWHERE:
        name = _META + kind
        if name in schemas:
            schemas[name] = {**schemas[name], _GVK: _everywhere(kind, everywhere or (("", "v1"), (group, version)))}
    components: Json = {"schemas": schemas} if schemas else {}
    if custom is None:
        components["securitySchemes"] = _SECURITY
    return {"openapi": "3.0.0", "info": info, "paths": shown, "components": components}


def _everywhere(kind: str, versions: Sequence[tuple[str, str]]) -> list[Json]:
    named = dict.fromkeys((group, version) for group, version in versions if version)
    return [{"group": group, "kind": kind, "version": version} for group, version in named]


def gvk_extension(gvk: GVK) -> Json:
    """Returns a kind as in the extensions of operations."""
    return {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}


def _path(operations: Sequence[Operation], definitions: Definitions) -> Json:
    return path_item(operations, lambda operation, parameters: _operation(operation, parameters, definitions), _parameter)


def _operation(operation: Operation, parameters: Iterable[Parameter], definitions: Definitions) -> Json:
    shown: Json = {"tags": [operation.tag]}
    if operation.description:
        shown["description"] = operation.description
    shown["operationId"] = operation.identifier
    listed = [_parameter(parameter) for parameter in parameters]
    if listed:
        shown["parameters"] = listed
    if operation.body:
        body: Json = {"content": _content(sorted(operation.consumes), operation.body, definitions)}
        if operation.body_required:
            body["required"] = True
        shown["requestBody"] = body
    shown["responses"] = {
        **{
            str(code): {
                "description": HTTPStatus(code).phrase,
                "content": _content(sorted(operation.produces), answer, definitions),
            }
            for code, answer in operation.answers
        },
        "401": {"description": HTTPStatus.UNAUTHORIZED.phrase},
    }
    if operation.action:
        shown["x-kubernetes-action"] = operation.action
    if operation.gvk is not None:
        shown[_GVK] = gvk_extension(operation.gvk)
    return shown


def _content(media_types: Iterable[str], type_name: str, definitions: Definitions) -> Json:
    schema = {"$ref": REFERENCE_PREFIX + schema_name(type_name)} if type_name else {"type": "string"}
    return {media_type: {"schema": schema} for media_type in media_types}


def _parameter(parameter: Parameter) -> Json:
    shown: Json = {"name": parameter.name, "in": parameter.place}
    if parameter.description:
        shown["description"] = parameter.description
    if parameter.place == "path":
        shown["required"] = True
    return {**shown, "schema": {"type": parameter.type, "uniqueItems": True}}
