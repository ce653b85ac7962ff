"""What can be done with a resource: get, list, watch, create, update, patch, delete, deletecollection, connect.

`handle` is the way in. It resolves the request to a verb and a `Scope` (`routing`), and the verb's module answers. Below
the verbs stand `reading`, `writing` and `removing`, which speak to the store.
"""

from __future__ import annotations

from collections.abc import Callable

from fakekube.verbs import connect, create, delete, get, list, patch, update
from fakekube.verbs.backend import Backend, Settings
from fakekube.verbs.request import Request, Response
from fakekube.verbs.routing import resolve
from fakekube.verbs.scope import Scope

__all__ = ["Backend", "Settings", "handle"]

_HANDLERS: dict[str, Callable[[Scope], Response]] = {
    "get": get.handle, "list": list.handle, "watch": list.handle, "create": create.handle, "update": update.handle,
    "patch": patch.handle, "delete": delete.handle, "deletecollection": delete.handle_collection,
}


def handle(request: Request, backend: Backend) -> Response:
    """Serve a request about a resource. Raises StatusError for everything that is not served."""
    verb, scope = resolve(request, backend)
    if scope.subresource is not None and connect.is_connection(scope.subresource):
        return connect.handle(scope)
    return _HANDLERS[verb](scope)
