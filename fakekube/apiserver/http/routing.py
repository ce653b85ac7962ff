"""Routes requests: resource requests to their resource and methods, and all other paths to what serves them.

Built-in resources are served behind a router that has a route for every path: it responds with 404, 405, 415 and 406
before the handler runs. Custom resources have one handler that uses the RequestInfo only: it is more lenient about
what follows a name, and its 404 is the plain text one.

A path without a resource is matched exactly, then with the web services of the router (GET only; a Status for unknown paths
below them), then with discovery, then by prefix; otherwise the response is a plain text 404.

Specified by: k8s.io/apiserver/pkg/endpoints/installer.go, go-restful's CurlyRouter and jsr311 router;
k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go; k8s.io/apiserver/pkg/server (handler.go,
mux/pathrecorder.go, routes/index.go).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache, partial
from typing import Final

from fakekube.apimachinery.errors import StatusError, status
from fakekube.apimachinery.features import Emulation
from fakekube.apis.rest.resource import Registry, Resource
from fakekube.apiserver.auth.jose import OPENID_CONFIGURATION_PATH
from fakekube.apiserver.auth.service_accounts import Signer
from fakekube.apiserver.endpoints import negotiation
from fakekube.apiserver.endpoints.request import PathForm, Request, Response
from fakekube.apiserver.http import responses
from fakekube.apiserver.http.compression import gzip_body, prefers_gzip
from fakekube.apiserver.http.discovery import DiscoveryEndpoints, Documents
from fakekube.apiserver.http.healthz import health_endpoints
from fakekube.apiserver.http.metrics import Metrics
from fakekube.apiserver.http.nonresource_paths import (
    KEYS_PATH,
    KEYS_TYPE,
    PREFIXES,
    configuration,
    document_endpoints,
    keys,
    version_info,
)
from fakekube.apiserver.http.openapi import OpenAPIEndpoints
from fakekube.base.caches import forgettable
from fakekube.base.clock import Clock
from fakekube.base.depth import with_deep_stack

#: Verbs by HTTP method, for single objects and for collections.
_ITEM: Final = {"get": "GET", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}
_COLLECTION: Final = {"list": "GET", "create": "POST", "deletecollection": "DELETE"}
_SUBRESOURCE: Final = {**_ITEM, "create": "POST"}
#: The subresource with a path of its own, which accepts every method.
_PROXY: Final = "proxy"
_PROXY_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
#: Subresources that connect to a kubelet: the router does not check their media types.
_CONNECTED: Final = frozenset({"attach", "exec", "portforward", _PROXY})
_LOG: Final = "log"

_CUSTOM_VERBS: Final = frozenset({"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"})
_CUSTOM_SUBRESOURCE_VERBS: Final = frozenset({"get", "update", "patch"})
_ACROSS_NAMESPACES: Final = frozenset({"list", "watch"})


@dataclass(slots=True, frozen=True)
class _Route:
    """The media types that a route consumes and produces. Empty: any."""

    produces: tuple[str, ...]
    consumes: tuple[str, ...] = ()


_Routes = Mapping[str, _Route]


@dataclass(slots=True)
class Admitted:
    """A request that was admitted: what decides that besides its method and path, and its resource."""

    served: object
    """The state of the registry."""
    accept: str
    content_type: str
    resource: Resource


class ResourceRouter:
    """Routes resource requests."""

    def __init__(self, registry: Registry, *, cbor: bool = False) -> None:
        self._registry = registry
        self._cbor = cbor

    def is_builtin(self, group: str) -> bool:
        """Reports whether the router has routes for the group."""
        return group in self._registry.builtin_groups

    def admit(self, request: Request, last: Admitted | None = None) -> Admitted | None:
        """Returns the resource of the path if it is served; otherwise the response is a plain text 404.

        `last`: what was returned for an earlier request with the same method, path and query.

        Raises StatusError 404, 405, 406 or 415.
        """
        served, accept, content_type = self._registry.state, request.accept, request.content_type
        if last is not None and last.served is served and last.accept == accept and last.content_type == content_type:
            return last
        resource = self._find(request)
        return None if resource is None else Admitted(served, accept, content_type, resource)

    def _find(self, request: Request) -> Resource | None:
        info, form = request.info, request.info.form
        if form is None:
            return None
        resource = self._registry.get(info.group, info.version, info.resource)
        if resource is None:
            if info.group in self._registry.builtin_groups:
                raise responses.not_found()
            return None
        if resource.custom:
            return resource if _admit_custom(resource, request) else None
        self._admit_builtin(resource, form, request)
        return resource

    def _admit_builtin(self, resource: Resource, form: PathForm, request: Request) -> None:
        info = request.info
        routes = _routes(resource, form, self._cbor)
        is_too_deep = len(info.parts) > form.depth and form.subresource != _PROXY
        if routes is None or is_too_deep or (form.watch_prefix and info.verb == "proxy"):
            raise responses.not_found()
        route = routes.get(request.method)
        if route is None:
            raise responses.method_not_allowed()
        if route.produces and (route.consumes or (request.accept and request.accept not in route.produces)):
            empty = None
            if route.consumes and resource.emulation.minor < _EMPTY_BODIES_NEED_A_TYPE_SINCE:
                length = request.headers.get("content-length", "")
                empty = length if length in ("", "0") else None
            negotiation.route(request.accept, route.produces, request.content_type, route.consumes, empty)


#: The first minor that asks for the media type of a patch without a body (go-restful 3.12).
_EMPTY_BODIES_NEED_A_TYPE_SINCE = 34


@forgettable
@lru_cache(maxsize=4096)
def _routes(resource: Resource, form: PathForm, cbor: bool) -> _Routes | None:
    """Returns the routes of a path by method; None if the path does not exist."""
    offer = negotiation.Offer(cbor=cbor)
    collection = form.depth == 1
    misplaced = form.in_namespace != resource.namespaced
    across = collection and resource.namespaced and not form.in_namespace
    if misplaced and not across:
        return None
    if form.watch_prefix or across:
        if form.depth > 2 or ("watch" if form.watch_prefix else "list") not in resource.verbs:
            return None
        return {"GET": _Route(offer.media_types + offer.stream_types)}
    if form.depth > 2:
        return _subresource_routes(resource, form.subresource, offer)
    return _methods(resource.verbs, _COLLECTION if collection else _ITEM, offer)


def _subresource_routes(resource: Resource, name: str, offer: negotiation.Offer) -> _Routes | None:
    subresource = resource.subresources.get(name)
    if subresource is None:
        return None
    if name == _PROXY:
        return dict.fromkeys(_PROXY_METHODS, _Route(()))
    if name in _CONNECTED:
        return {method: _Route(()) for verb, method in _SUBRESOURCE.items() if verb in subresource.verbs}
    routes = _methods(subresource.verbs, _SUBRESOURCE, offer)
    if name == _LOG and routes is not None:
        return {method: _Route(("text/plain", *route.produces)) for method, route in routes.items()}
    return routes


def _methods(verbs: Iterable[str], methods: Mapping[str, str], offer: negotiation.Offer) -> _Routes | None:
    routes = {}
    for verb, method in methods.items():
        if verb in verbs:
            produces = offer.media_types + (offer.stream_types if verb == "list" else ())
            routes[method] = _Route(produces, negotiation.patch_types(cbor=offer.cbor) if verb == "patch" else ())
    return routes or None


def _admit_custom(resource: Resource, request: Request) -> bool:
    info = request.info
    if info.namespace and not resource.namespaced:
        return False
    if resource.namespaced and not info.namespace and info.verb not in _ACROSS_NAMESPACES:
        return False
    resource.is_in_use = True
    try:
        if info.subresource and info.subresource not in resource.subresources:
            raise status.not_found(resource.group, resource.plural, info.name)
        if info.verb not in (_CUSTOM_SUBRESOURCE_VERBS if info.subresource else _CUSTOM_VERBS):
            raise status.method_not_supported(resource.group, resource.plural, info.verb)
    except StatusError:
        if resource.deprecation:  # a Warning header, whatever the subresource and the verb are
            request.warnings.append(resource.deprecation)
        raise
    return True


# --- Paths without a resource ------------------------------------------------------------------------------------------


Handler = Callable[[Request], Response]

_ROOTS: Final = ("/api", "/apis", "/apis/")
_INDEX: Final = ("/", "/index.html")


@dataclass(slots=True, frozen=True)
class _Service:
    """A web service of the router."""

    handler: Handler
    produces: tuple[str, ...] = (negotiation.JSON,)


class NonResourceRouter:
    """Routes requests for paths without a resource."""

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
            OPENID_CONFIGURATION_PATH: _Service(lambda request: configuration(signer, request)),
            KEYS_PATH: _Service(lambda _: keys(signer), (KEYS_TYPE,)),
        }
        self._listed: Mapping[str, Handler] = {
            **health_endpoints(emulation),
            "/metrics": partial(_metrics, metrics.response, metrics.reset),
            "/metrics/slis": partial(_metrics, metrics.health_response, lambda: None),  # it counts nothing
            **openapi.endpoints(),
        }
        self._exact: Mapping[str, Handler] = {**self._listed, **document_endpoints(clock, started, emulation, cbor=cbor)}
        self._prefixes: Mapping[str, Handler] = {**PREFIXES, **openapi.prefixes()}

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
    if prefers_gzip(request.headers.get("accept-encoding", "")):
        response.headers.append(("Content-Encoding", "gzip"))
        response.body = gzip_body(response.body)
    return response
