"""Decodes the query of a connect request (exec, attach, portforward, proxy) into an options object for admission.

Specified by: k8s.io/apiserver/pkg/endpoints/handlers/rest.go (getRequestOptions).
"""

from __future__ import annotations

from typing import Any

from fakekube.apimachinery.errors import status
from fakekube.apimachinery.schema.model import Shape, Type
from fakekube.apis.rest.strategy import Object
from fakekube.apiserver.registry.options import boolean, int64
from fakekube.apiserver.registry.scope import Scope
from fakekube.base.golang.integers import parse_uint16


def of(scope: Scope) -> Object:
    """Returns the options of a request, by the type of its subresource. Raises StatusError 400."""
    query, options = scope.request.query, dict[str, Any]()
    for name, field in scope.type.fields.items():
        values = query.all(name)
        if values and name not in ("kind", "apiVersion"):
            options[name] = _value(field.type, list(values))
    if "path" in scope.type.fields:
        options["path"] = path_of(scope)
    return options


def path_of(scope: Scope) -> str:
    """Returns the part of the path after the subresource, with the slashes around it."""
    info = scope.request.info
    path = "/".join(info.parts[3:])
    path = f"/{path}" if path and not path.startswith("/") else path
    return path if not info.path.endswith("/") or path.endswith("/") else f"{path}/"


def _value(type_: Type, values: list[str]) -> Any:
    if type_.shape is Shape.BOOLEAN:
        return boolean(values)
    if type_.shape is Shape.INTEGER:
        return int64(values)
    if type_.shape is Shape.LIST:
        items = type_.items
        if items is not None and items.shape is Shape.INTEGER:
            return _ports(values)
        return [_value(items, [value]) for value in values] if items is not None else values
    return values[0]


def _ports(values: list[str]) -> list[int]:
    """Returns the port numbers of repeated or comma-separated values. Raises StatusError 400."""
    try:
        return [parse_uint16(text) for value in values for text in value.split(",")]
    except ValueError as problem:
        raise status.bad_request(f"cannot convert to []int32: {problem}") from None
