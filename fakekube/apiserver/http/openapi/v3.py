"""OpenAPI v3: a document for each group version and for paths without resources, with the schemas of built-in types.

Specified by: k8s.io/kube-openapi/pkg/builder3 and spec3; k8s.io/apiextensions-apiserver/pkg/controller/openapi;
k8s.io/kube-openapi/pkg/generators and pkg/openapiconv, pkg/handler/default_pruning.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from http import HTTPStatus
from typing import Any, Final

from fakekube.apimachinery import data
from fakekube.apimachinery.data.shapes import schema_name, type_schema
from fakekube.apimachinery.features import Emulation
from fakekube.apis.rest.resource import GVK
from fakekube.apiserver.aggregator.documents import GVK_EXTENSION, Json
from fakekube.apiserver.http.openapi.operations import Operation, Parameter, describe, path_item
from fakekube.base.caches import forgettable

REFERENCE_PREFIX: Final = "#/components/schemas/"


#: The schemas of types that are not among the facts.
_WITHOUT_TYPE: Final[Mapping[str, Json]] = {
    "io.k8s.apimachinery.pkg.apis.meta.v1.Patch": {"type": "object"},
    "io.k8s.apimachinery.pkg.version.Info": {
        "type": "object",
        "required": [
            "major",
            "minor",
            "gitVersion",
            "gitCommit",
            "gitTreeState",
            "buildDate",
            "goVersion",
            "compiler",
            "platform",
        ],
        "properties": {
            "buildDate": {"type": "string", "default": ""},
            "compiler": {"type": "string", "default": ""},
            "emulationMajor": {"type": "string"},
            "emulationMinor": {"type": "string"},
            "gitCommit": {"type": "string", "default": ""},
            "gitTreeState": {"type": "string", "default": ""},
            "gitVersion": {"type": "string", "default": ""},
            "goVersion": {"type": "string", "default": ""},
            "major": {"type": "string", "default": ""},
            "minCompatibilityMajor": {"type": "string"},
            "minCompatibilityMinor": {"type": "string"},
            "minor": {"type": "string", "default": ""},
            "platform": {"type": "string", "default": ""},
        },
    },
}


class Definitions:
    """The schemas of all built-in types of one minor, by their OpenAPI names. They must not be changed."""

    def __init__(self, facts: data.Facts, version: str, *, enums: bool) -> None:
        """`enums`: whether the schemas have the values of enumerations."""
        self._facts = facts
        self._version = version
        self._enums = enums
        self._made: dict[str, Json] = {}

    def schema(self, name: str) -> Json:
        """Returns the schema of a name. Raises KeyError."""
        schema = self._made.get(name)
        if schema is None:
            plain = _WITHOUT_TYPE.get(name) or type_schema(self._go_names[name], self._row)
            if not self._enums:
                plain = _without_enums(plain)
            schema = self._made[name] = describe(self._version, name, plain)
        return schema

    def closure(self, names: Iterable[str]) -> list[str]:
        """Returns the names of these schemas and of all that they refer to, sorted."""
        found: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += references(self.schema(name))
        return sorted(found)

    @cached_property
    def _go_names(self) -> Mapping[str, str]:
        return {schema_name(go_name): go_name for go_name in self._facts.type_names()}

    def _row(self, go_name: str) -> Mapping[str, Any]:
        try:
            return self._facts.type(go_name)
        except KeyError:
            return {}


def _without_enums(schema: Json) -> Json:
    """Returns the schema of a type without the values of its fields."""
    properties = {name: _without_enum(field) for name, field in schema.get("properties", {}).items()}
    return {**schema, "properties": properties} if properties else schema


def _without_enum(field: Json) -> Json:
    found = {name: value for name, value in field.items() if name != "enum"}
    for name in ("items", "additionalProperties"):
        if isinstance(found.get(name), dict):
            found[name] = _without_enum(found[name])
    return found


@forgettable
@cache
def definitions(emulation: Emulation) -> Definitions:
    """Returns the definitions of an emulated minor, built once per process."""
    return Definitions(emulation.facts, emulation.version, enums=emulation.enabled("OpenAPIEnums"))


def references(schema: Any) -> Iterator[str]:
    """Yields the names of the schemas that JSON data refers to at any depth."""
    if isinstance(schema, dict):
        reference = schema.get("$ref")
        if isinstance(reference, str):
            yield reference.rpartition("/")[2]
        for value in schema.values():
            yield from references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from references(value)


#: Kinds that are registered in every group version; a document lists only its own.
_EVERYWHERE: Final = ("DeleteOptions", "WatchEvent")
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
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
            schemas[name] = {**schemas[name], GVK_EXTENSION: _everywhere(kind, everywhere or (("", "v1"), (group, version)))}
    components: Json = {"schemas": schemas} if schemas else {}
    if custom is None:
        components["securitySchemes"] = _SECURITY
    return {"openapi": "3.0.0", "info": info, "paths": shown, "components": components}


def _everywhere(kind: str, versions: Sequence[tuple[str, str]]) -> list[Json]:
    named = dict.fromkeys((group, version) for group, version in versions if version)
    return [{"group": group, "kind": kind, "version": version} for group, version in named]


def _gvk_extension(gvk: GVK) -> Json:
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
        shown[GVK_EXTENSION] = _gvk_extension(operation.gvk)
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
