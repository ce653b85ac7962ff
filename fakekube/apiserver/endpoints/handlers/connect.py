"""Handles connect: the subresources that reach into pods and nodes (log, exec, attach, portforward, proxy).

The options in the query are decoded and shown to admission here; the handler of each subresource is imported when it is first
used. What listens in pods and on nodes is found by `Backend.kubelet_of`; without it every connection is refused.

Specified by: k8s.io/apiserver/pkg/endpoints/handlers/rest.go (ConnectResource, getRequestOptions).
"""

from __future__ import annotations

from typing import Final

from fakekube.apimachinery.errors import status
from fakekube.apis.rest.strategy import Subresource
from fakekube.apiserver.endpoints import admission
from fakekube.apiserver.endpoints.connection_info import connect_options
from fakekube.apiserver.endpoints.request import Response
from fakekube.apiserver.registry.scope import Scope

_SUBRESOURCES: Final = frozenset({"attach", "exec", "log", "portforward", "proxy"})


def is_connection(subresource: Subresource) -> bool:
    """Reports whether a request is one for a connect subresource."""
    return subresource.name in _SUBRESOURCES


def handle(scope: Scope) -> Response:
    """Responds to a connect request. Raises StatusError."""
    assert scope.subresource is not None
    name = scope.subresource.name
    if name == "log":  # a read for the API machinery, with options of its own and without admission
        from fakekube.apiserver.endpoints.handlers import log

        return log.handle(scope)
    if "dryRun" in scope.request.query:
        raise status.bad_request("dryRun is not supported")
    options = connect_options(scope)
    admission.connect(scope, options)
    if name == "proxy":
        from fakekube.apiserver.endpoints.handlers import proxy

        return proxy.handle(scope)
    from fakekube.apiserver.endpoints.handlers import upgrades

    return upgrades.HANDLERS[name](scope, options)
