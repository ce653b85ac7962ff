"""Handles connect: the subresources that reach into pods and nodes (log, exec, attach, portforward, proxy).

The options in the query are decoded and shown to admission here; the handler of each subresource is imported when it is first
used. What listens in pods and on nodes is found by `Backend.kubelet_of`; without it every connection is refused.

Specified by: k8s.io/apiserver/pkg/endpoints/handlers/rest.go (ConnectResource, getRequestOptions).
"""

from __future__ import annotations

from collections.abc import Callable

from fakekube.apimachinery.errors import status
from fakekube.apis.rest.strategy import Subresource
from fakekube.apiserver.endpoints import admission
from fakekube.apiserver.endpoints.connection_info import connect_options
from fakekube.apiserver.endpoints.request import Response
from fakekube.apiserver.registry.scope import Scope
from fakekube.base.objects import Object


def is_connection(subresource: Subresource) -> bool:
    """Reports whether a request is one for a connect subresource."""
    return subresource.name in _HANDLERS or subresource.name == "log"


def handle(scope: Scope) -> Response:
    """Responds to a connect request. Raises StatusError."""
    assert scope.subresource is not None
    if scope.subresource.name == "log":
        from fakekube.apiserver.endpoints.handlers import log

        return log.handle(scope)
    if "dryRun" in scope.request.query:
        raise status.bad_request("dryRun is not supported")
    options = connect_options(scope)
    admission.connect(scope, options)
    return _HANDLERS[scope.subresource.name](scope, options)


def _exec(scope: Scope, options: Object) -> Response:
    from fakekube.apiserver.endpoints.handlers import upgrades

    return upgrades.exec_(scope, options)


def _attach(scope: Scope, options: Object) -> Response:
    from fakekube.apiserver.endpoints.handlers import upgrades

    return upgrades.attach(scope, options)


def _port_forward(scope: Scope, options: Object) -> Response:
    from fakekube.apiserver.endpoints.handlers import upgrades

    return upgrades.port_forward(scope, options)


def _proxy(scope: Scope, _options: Object) -> Response:
    from fakekube.apiserver.endpoints.handlers import proxy

    return proxy.handle(scope)


_HANDLERS: dict[str, Callable[[Scope, Object], Response]] = {
    "exec": _exec, "attach": _attach, "portforward": _port_forward, "proxy": _proxy,
}  # fmt: skip
