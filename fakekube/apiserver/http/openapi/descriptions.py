"""Adds descriptions to schemas and operations, if a package with them is installed (`apimachinery.data.descriptions`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from fakekube.apimachinery.data.descriptions import published
from fakekube.apiserver.http.openapi.operations import Operation, Parameter, Paths

Schema = dict[str, Any]


def described(version: str, name: str, schema: Schema) -> Schema:
    """Returns the schema of a built-in type with its descriptions; `schema` itself if there are none.

    Args:
        version: the minor.
        name: the name of the schema, such as `io.k8s.api.core.v1.Pod`.
        schema: the schema in the form of v3; not changed.
    """
    found = published(version).get("definitions", {}).get(name)
    if found is None:
        return schema
    made = _with(found, schema)
    if "properties" in schema:
        texts = found.get("properties", {})
        made["properties"] = {field: _with(texts.get(field, {}), property_) for field, property_ in schema["properties"].items()}
    return made


def _with(published: Mapping[str, Any], schema: Schema) -> Schema:
    text = published.get("description")
    return {"description": text, **schema} if text else dict(schema)


# ---------------------------------------------------------------- operations


def operations_described(version: str, paths: Paths) -> Paths:
    """Returns the operations of built-in paths with the published descriptions of them and their parameters."""
    document = published(version)
    items = document.get("paths", {})
    if not items:
        return paths
    shared = document.get("parameters", {})
    return {
        path: [_operation(operation, items.get(path, {}), shared) for operation in operations]
        for path, operations in paths.items()
    }


def _operation(operation: Operation, item: Mapping[str, Any], shared: Mapping[str, Any]) -> Operation:
    published = item.get(operation.method, {})
    texts = {
        (parameter["name"], parameter["in"]): parameter.get("description", "")
        for parameter in _parameters(item, published, shared)
    }
    return replace(
        operation,
        description=published.get("description") or operation.description,
        parameters=frozenset(_parameter(parameter, texts) for parameter in operation.parameters),
    )


def _parameters(item: Mapping[str, Any], operation: Mapping[str, Any], shared: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yields the parameters of a path and of its operation, with references resolved."""
    for parameter in (*item.get("parameters", ()), *operation.get("parameters", ())):
        yield shared[parameter["$ref"].rpartition("/")[2]] if "$ref" in parameter else parameter


def _parameter(parameter: Parameter, texts: Mapping[tuple[str, str], str]) -> Parameter:
    return replace(parameter, description=texts.get((parameter.name, parameter.place), ""))
