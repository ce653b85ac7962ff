"""The handlers of the verbs: create, update, patch, delete, deletecollection, get, list, watch, connect.

`handle` is the entry point for requests that `apiserver/http/` has routed. It makes the `Scope` and calls the handler of the
verb. The handlers read and write the store through `apiserver.registry.generic`.

Specified by: k8s.io/apiserver/pkg/endpoints/handlers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from fakekube.apimachinery.codecs import EncodeError
from fakekube.apimachinery.errors import status
from fakekube.apis.rest.resource import Resource
from fakekube.apiserver.endpoints.handlers import connect, create, delete, get, patch, update
from fakekube.apiserver.endpoints.request import Request, Response
from fakekube.apiserver.registry.generic import conversion
from fakekube.apiserver.registry.scope import Backend, Scope
from fakekube.base.depth import call_with_deep_stack

__all__ = ["handle"]

_HANDLERS: dict[str, Callable[[Scope], Response]] = {
    "get": get.get,
    "list": get.list_or_watch,
    "watch": get.list_or_watch,
    "create": create.create,
    "update": update.update,
    "patch": patch.patch,
    "delete": delete.delete,
    "deletecollection": delete.handle_collection,
}


def handle(request: Request, backend: Backend, resource: Resource) -> Response:
    """Serves a request for a resource of `backend`.

    A request that exceeds the recursion limit is handled again in a thread with a deep stack. The steps after an object
    is stored (control loops, encoding the response) do so by themselves, so that nothing is written twice.

    Raises StatusError for every error of the request.
    """
    try:
        return _dispatch(request, backend, resource)
    except RecursionError:
        request.warnings.clear()
    try:
        return call_with_deep_stack(partial(_dispatch, request, backend, resource))
    except RecursionError:
        raise status.bad_request("exceeded max depth") from None


def _dispatch(request: Request, backend: Backend, resource: Resource) -> Response:
    info = request.info
    if resource.unservable:
        raise status.internal(resource.unservable)
    if resource.deprecation:
        request.warnings.append(resource.deprecation)
        if request.audit is not None:
            request.audit.record_deprecation()
    if resource.converts_by_call:
        conversion.start_conversions(backend, resource)
    subresource = resource.subresources[info.subresource] if info.subresource else None
    namespace = info.namespace if resource.namespaced else ""
    scope = Scope(request, backend, resource, subresource, namespace, info.name)
    verb = info.verb
    if subresource is not None and not resource.custom:
        scope.require_name()
        if connect.is_connection(subresource):
            return connect.handle(scope)
        if verb in ("list", "watch"):  # the path has no name, but a field selector has
            verb = "get"
    try:
        return _HANDLERS[verb](scope)
    except EncodeError as error:  # the write is done, but the response cannot be encoded
        raise status.generic(500, "", str(error)) from None
