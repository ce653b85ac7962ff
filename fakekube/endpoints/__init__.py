"""What can be done with a resource: get, list, watch, create, update, patch, delete, deletecollection, connect.

`handle` is the way in, for requests that `api/` has found a route for. It makes the `Scope`, and the verb's module answers.
Below the verbs stand `reading`, `writing` and `removing`, which speak to the store.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from fakekube.codecs.errors import EncodeError
from fakekube.depth import deeply
from fakekube.endpoints.handlers import connect, create, delete, get, list, patch, update
from fakekube.errors import StatusError, status
from fakekube.registry.backend import Backend, Settings
from fakekube.registry.generic import conversion_cache
from fakekube.registry.request import Request, Response
from fakekube.registry.scope import Scope

__all__ = ["Backend", "Settings", "handle"]

_HANDLERS: dict[str, Callable[[Scope], Response]] = {
    "get": get.handle, "list": list.handle, "watch": list.handle, "create": create.handle, "update": update.handle,
    "patch": patch.handle, "delete": delete.handle, "deletecollection": delete.handle_collection,
}


def handle(request: Request, backend: Backend) -> Response:
    """Serve a request about a resource that `backend` has.

    What nests too deep for the stack is done again where there is room: what a verb does once an object is stored
    (upkeep, the answer) looks for room itself.

    Raises StatusError for everything that is wrong with it.
    """
    try:
        return _handled(request, backend)
    except RecursionError:
        request.warnings.clear()
    try:
        return deeply(partial(_handled, request, backend))
    except RecursionError:
        raise status.bad_request("exceeded max depth") from None


def _handled(request: Request, backend: Backend) -> Response:
    info = request.info
    resource = backend.registry.get(info.group, info.version, info.resource)
    if resource is None:  # it went while the request was on its way
        raise StatusError(404, "NotFound", "the server could not find the requested resource", {})
    if resource.unservable:
        raise status.internal(resource.unservable)
    if resource.deprecation:
        request.warnings.append(resource.deprecation)
        if request.audit is not None:
            request.audit.deprecated()
    if resource.converts_by_call:
        conversion_cache.attend(backend, resource)
    subresource = resource.subresources[info.subresource] if info.subresource else None
    namespace = info.namespace if resource.namespaced else ""
    scope = Scope(request, backend, resource, subresource, namespace, info.name)
    if subresource is not None and connect.is_connection(subresource):
        return connect.handle(scope)
    try:
        return _HANDLERS[info.verb](scope)
    except EncodeError as error:  # it is done, but cannot be told
        raise status.generic(500, "", str(error)) from None
