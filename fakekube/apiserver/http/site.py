"""Serves the non-resource paths, and the index of all paths.

A path is matched exactly, then with the web services of the router (GET only; a Status for unknown paths below them),
then with discovery, then by prefix; otherwise the response is a plain text 404.

Specified by: k8s.io/apiserver/pkg/server (handler.go, mux/pathrecorder.go, routes/index.go).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

from fakekube.apimachinery.features import Emulation
from fakekube.apiserver.auth.service_accounts import Signer
from fakekube.apiserver.endpoints import negotiation
from fakekube.apiserver.endpoints.request import Request, Response
from fakekube.apiserver.http import debug, health, responses
from fakekube.apiserver.http.discovery import DiscoveryEndpoints, Documents
from fakekube.apiserver.http.documents import CONFIGURATION_PATH, KEYS_PATH, KEYS_TYPE, configuration, keys, version_info
from fakekube.apiserver.http.metrics import Metrics
from fakekube.apiserver.http.openapi import OpenAPIEndpoints
from fakekube.apiserver.http.responses import gzip_body, takes_gzip
from fakekube.base.clock import Clock
from fakekube.base.depth import with_deep_stack

Handler = Callable[[Request], Response]

_ROOTS: Final = ("/api", "/apis", "/apis/")
_INDEX: Final = ("/", "/index.html")


@dataclass(slots=True, frozen=True)
class _Service:
    """A web service of the router."""

    handler: Handler
    produces: tuple[str, ...] = (negotiation.JSON,)


class Site:
    """The non-resource paths of one cluster."""

    def __init__(
        self,
        *,
        documents: Documents,
        discovery: DiscoveryEndpoints,
        openapi: OpenAPIEndpoints,
        metrics: Metrics,
        signer: Signer,
        clock: Clock,
        started: datetime,
        emulation: Emulation,
        cbor: bool,
    ) -> None:
        self._documents = documents
        self._discovery = discovery
        self._services: Mapping[str, _Service] = {
            "/version": _Service(lambda _: responses.indented_json(version_info(emulation.version, emulation.emulated))),
            CONFIGURATION_PATH: _Service(lambda request: configuration(signer, request)),
            KEYS_PATH: _Service(lambda _: keys(signer), (KEYS_TYPE,)),
        }
        self._listed: Mapping[str, Handler] = {
            **health.endpoints(emulation),
            "/metrics": partial(_metrics, metrics.response, metrics.reset),
            "/metrics/slis": partial(_metrics, metrics.health_response, lambda: None),  # it counts nothing
            **openapi.endpoints(),
        }
        self._exact: Mapping[str, Handler] = {**self._listed, **debug.endpoints(clock, started, emulation, cbor=cbor)}
        self._prefixes: Mapping[str, Handler] = {**debug.PREFIXES, **openapi.prefixes()}

    @with_deep_stack
    def respond(self, request: Request) -> Response:
        """Returns the response for a path. Raises StatusError."""
        path = request.info.path
        if path in _INDEX:
            return self._index()
        handler = self._exact.get(path)
        if handler is not None:
            return handler(request)
        response = self._service(path, request) or self._discovery.respond(request)
        if response is not None:
            return response
        for prefix, handler in self._prefixes.items():
            if path.startswith(prefix):
                return handler(request)
        return responses.page_not_found()

    def _service(self, path: str, request: Request) -> Response | None:
        """Returns the response of the web service that has the path, if any. Raises StatusError 404, 405 or 406."""
        for root, service in self._services.items():
            if not path.startswith(root) or path[len(root) : len(root) + 1] not in ("", "/"):
                continue
            if path.rstrip("/") != root:
                raise responses.not_found()
            if request.method != "GET":
                raise responses.method_not_allowed()
            negotiation.route(request.headers.get("accept", ""), service.produces)
            return service.handler(request)
        return None

    def _index(self) -> Response:
        """Returns the sorted list of paths."""
        current = self._documents.current()
        pages = {path for path in ("/flagz", "/statusz") if path in self._exact}
        paths = {*_ROOTS, *self._listed, *self._services, *pages, "/openapi/v3/"}
        for group, version in current.paths():
            root = f"/apis/{group}" if group else "/api"
            paths |= {root, f"{root}/{version}"}
        return responses.indented_json({"paths": sorted(paths)})


def _metrics(metrics: Callable[[str], Response], reset: Callable[[], None], request: Request) -> Response:
    """Returns the metrics, compressed if the client accepts gzip, regardless of their size."""
    if request.method == "DELETE":
        reset()
        return responses.plain_text("metrics reset\n")
    response = metrics(request.headers.get("accept", ""))
    assert isinstance(response.body, bytes)
    if takes_gzip(request.headers.get("accept-encoding", "")):
        response.headers.append(("Content-Encoding", "gzip"))
        response.body = gzip_body(response.body)
    return response
