"""From a resource request to the verb that serves it, or to the refusal that the real server's router gives.

A path has a shape (collection, object, subresource, deprecated watch); a shape and a method name a verb, and the verb
must be one that the resource serves. The router also looks at Accept and Content-Type before any handler does; custom
resources are served without it.

Specified by: k8s.io/apiserver/pkg/endpoints/installer.go; apiextensions-apiserver's customresource_handler.go.
"""

from __future__ import annotations

from enum import Enum

from fakekube.codecs import negotiation
from fakekube.errors import StatusError
from fakekube.resources.registry import Resource
from fakekube.verbs.backend import Backend
from fakekube.verbs.request import Request
from fakekube.verbs.scope import Scope

__all__ = ["resolve"]


class Shape(Enum):
    """What a path names."""

    COLLECTION = "collection"
    OBJECT = "object"
    SUBRESOURCE = "subresource"
    WATCH = "watch"


_VERBS: dict[Shape, dict[str, str]] = {
    Shape.COLLECTION: {"GET": "list", "POST": "create", "DELETE": "deletecollection"},
    Shape.OBJECT: {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"},
    Shape.SUBRESOURCE: {"GET": "get", "PUT": "update", "PATCH": "patch", "POST": "create", "DELETE": "delete"},
    Shape.WATCH: {"GET": "watch"},
}

#: Subresources that pass on whatever comes after them in the path.
_PASSES_ON = frozenset({"proxy"})


def resolve(request: Request, backend: Backend) -> tuple[str, Scope]:
    """The verb, and the scope in which it works. Raises StatusError 404, 405, 406 or 415."""
    info = request.info
    resource = backend.registry.get(info.group, info.version, info.resource)
    if resource is None:
        raise no_such_resource()
    shape = _shape(request, resource)
    namespace = info.namespace if resource.namespaced else ""
    subresource = resource.subresources[info.subresource] if shape is Shape.SUBRESOURCE else None
    verb = _VERBS[shape].get(request.method, "")
    served = subresource.verbs if subresource is not None else resource.verbs
    everywhere = resource.namespaced and not namespace
    if not _serves(verb, served) or (everywhere and verb not in ("list", "watch")):
        raise no_such_method()
    scope = Scope(request, backend, resource, subresource, namespace, info.name, is_watch_path=shape is Shape.WATCH)
    if not resource.custom:
        _route(request, scope, verb)
    return verb, scope


def _shape(request: Request, resource: Resource) -> Shape:
    """Raises StatusError 404 for a path that the resource does not have."""
    info = request.info
    in_namespace = bool(info.namespace) and info.resource != "namespaces"
    if in_namespace and not resource.namespaced:
        raise no_such_resource()
    if _is_watch_path(request):
        if len(info.parts) > 2:
            raise no_such_resource()
        return Shape.WATCH
    if len(info.parts) <= 1:
        return Shape.COLLECTION
    if resource.namespaced and not info.namespace:
        raise no_such_resource()
    if len(info.parts) == 2:
        return Shape.OBJECT
    if info.subresource not in resource.subresources:
        raise no_such_resource()
    if len(info.parts) > 3 and info.subresource not in _PASSES_ON:
        raise no_such_resource()
    return Shape.SUBRESOURCE


def _is_watch_path(request: Request) -> bool:
    """The deprecated form: `watch` stands between version and resource."""
    info = request.info
    if info.verb != "watch" or "/watch/" not in info.path:
        return False
    segments = info.path.strip("/").split("/")
    return segments[2 if info.api_prefix == "api" else 3] == "watch"


def _serves(verb: str, served: frozenset[str]) -> bool:
    """A list may be a watch: which, the options say later."""
    return verb in served or (verb == "watch" and "list" in served)


def _route(request: Request, scope: Scope, verb: str) -> None:
    headers = request.headers
    produced = scope.offer.media_types
    if verb in ("list", "watch"):
        produced += scope.offer.stream_types
    consumed = negotiation.patch_types(cbor=scope.offer.cbor) if verb == "patch" else ()
    negotiation.route(headers.get("accept", ""), produced, headers.get("content-type", ""), consumed)


def no_such_resource() -> StatusError:
    """404 for a path without a route."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", {})


def no_such_method() -> StatusError:
    """405 for a route without that method."""
    return StatusError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})
