"""The WSGI application: one request's way in, through the filters in the real server's order, and its
answer's way out.

    audit id → panics → what is it about → cache control → timeout → warnings → who asks → as whom → may he
    → routes

Each filter may end the way with an answer; which headers that answer has depends on how far the request
came. Nothing that a client sends makes this raise: what no room foresaw is logged and answered with a 500.

Specified by: k8s.io/apiserver/pkg/server/config.go (DefaultBuildHandlerChain) and handler.go.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Protocol

from fakekube import endpoints
from fakekube.aggregator.aggregator import Aggregator
from fakekube.aggregator.proxy import Origin
from fakekube.api import answers, auditing
from fakekube.api.compression import THRESHOLD, compress
from fakekube.api.deadline import is_long_running, timeout_of
from fakekube.api.discovery import DiscoveryEndpoints, Documents, Registrations
from fakekube.api.environment import Environment, Headers, body_reader, path_of, request_uri
from fakekube.api.flows import Flows
from fakekube.api.metrics import Metrics, labels_of
from fakekube.api.openapi import OpenAPIEndpoints
from fakekube.api.request_info import UnknownTargetError, request_info
from fakekube.api.routing import ResourceRouter
from fakekube.api.site import Site
from fakekube.api.warnings import warning_headers
from fakekube.auth.access import Access, UndecidedError
from fakekube.auth.authorization import sanitised
from fakekube.codecs.pieces import Pieces
from fakekube.errors import StatusError
from fakekube.registry.backend import Backend
from fakekube.registry.generic.system_fields import random_uuid
from fakekube.registry.request import Query, Request, RequestInfo, Response, User
from fakekube.registry.resource import Resource
from fakekube.streams import BrokenStreamError

if TYPE_CHECKING:
    from fakekube.audit.auditor import Auditor
    from fakekube.audit.context import AuditContext

__all__ = ["Application"]

StartResponse = Callable[..., Any]


class Observation(Protocol):
    """Is told of one request on its way."""

    def identified(self, info: RequestInfo, user: str) -> None:
        """It is known what the request is about, and (then again) who asks."""

    def perform(self, request: Request, perform: Callable[[], Response]) -> Response:
        """Have the request performed, or answer in its place. Raises StatusError and BrokenStreamError."""

    def answered(self, response: Response) -> None:
        """The answer is made; its body may be changed. Raises BrokenStreamError if the client is not to get it."""

    def dropped(self) -> None:
        """The connection drops before an answer."""


class Observer(Protocol):
    """Stands beside the application: the recorder and the faults of a cluster (`powers.observation`)."""

    def observe(self, environ: Environment, path: str) -> Observation:
        """A request comes in."""


_log = logging.getLogger(__name__)

_NOT_CACHED: Final = ("Cache-Control", "no-cache, private")
#: Up to so many bytes net/http tells the length of a body that a handler has not told (bufferBeforeChunkingSize).
_MEASURED: Final = 2048
_WITHOUT_BODY: Final = frozenset({HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED})
_NO_QUERY: Final = Query()
_REASONS: Final = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}
#: In the names of all headers together, joined: is any of them about impersonation?
_IMPERSONATION: Final = "HTTP_IMPERSONATE_"
#: Below this are the OpenAPI v3 documents.
_DOCUMENTS: Final = "/openapi/v3/"
_CBOR_GATE: Final = "CBORServingAndStorage"


class Application:
    """A cluster's API as a WSGI application, for any WSGI server.

    The body of a watch is a `streams.Stream`: a server that knows it takes frames from it, others iterate.

    Args:
        backend: of the cluster.
        access: who may do what there.
        aggregator: what other servers serve.
        auditor: writes requests down; None: nobody does.
    """

    def __init__(self, backend: Backend, access: Access, aggregator: Aggregator, auditor: Auditor | None = None) -> None:
        version, cbor = backend.settings.version, backend.settings.enabled(_CBOR_GATE)
        self._backend = backend
        self._access = access
        self._aggregator = aggregator
        self._auditor = auditor
        self.observer: Observer | None = None
        """Is told of every request, and may let it fail."""
        self._cbor = cbor
        self._router = ResourceRouter(backend.registry, cbor=cbor)
        self._flows = Flows(backend.services, backend.store.bucket)
        registrations = Registrations(backend.store.bucket("apiservices.apiregistration.k8s.io"), aggregator)
        gates = backend.settings.feature_gates
        objects, seats = partial(_stored_objects, backend), self._flows.nominal_seats
        self.metrics = Metrics(objects, seats, registrations.unavailable, version, gates)
        documents = Documents(backend.registry, registrations, version)
        discovery = DiscoveryEndpoints(documents, self._router.is_builtin, cbor=cbor)
        definition_of = partial(_definition, backend)
        self._openapi = OpenAPIEndpoints(version, backend.registry, definition_of, backend.clock, aggregator)
        self._site = Site(
            documents=documents,
            discovery=discovery,
            openapi=self._openapi,
            metrics=self.metrics,
            signer=access.signer,
            clock=backend.clock,
            version=version,
            cbor=cbor,
        )

    def __call__(self, environ: Environment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        started = time.perf_counter()
        exchange = _Exchange(environ)
        if self.observer is not None:
            exchange.observation = self.observer.observe(environ, exchange.path)
        try:
            response = self._respond(exchange)
        except BrokenStreamError:
            assert exchange.observation is not None
            exchange.observation.dropped()
            raise
        except Exception:
            _log.exception("%s %s", exchange.method, exchange.path)
            response = _panic(exchange, cbor=self._cbor)
            if exchange.audit is not None:
                exchange.audit.panicked("internal error")
                exchange.audit = None
        if exchange.audit is not None and exchange.info is not None:
            auditing.answered(exchange.audit, exchange.info, exchange.annotations, response)
        if exchange.observation is not None:
            exchange.observation.answered(response)
        body = _finished(response, environ)
        if exchange.info is not None:
            labels = labels_of(exchange.info, dry_run="dryRun" in exchange.query)
            self.metrics.answered(labels, response.status, time.perf_counter() - started)
        switches = response.status == HTTPStatus.SWITCHING_PROTOCOLS  # such a head is not ours
        headers = response.headers if switches else _merged(exchange.headers, response.headers)
        start_response(_REASONS.get(response.status) or f"{response.status} Unknown", headers)
        return body if exchange.method != "HEAD" else ()

    def _respond(self, exchange: _Exchange) -> Response:
        """The answer of a request; `exchange` learns on the way what goes with it."""
        environ, raw_query = exchange.environ, exchange.environ.get("QUERY_STRING")
        if raw_query:
            exchange.query = Query(raw_query)
        try:
            info = exchange.info = request_info(exchange.method, exchange.path, exchange.query)
            if exchange.observation is not None:
                exchange.observation.identified(info, "")
        except UnknownTargetError:
            return _unknown_target(environ)
        exchange.headers.append(_NOT_CACHED)
        try:
            timeout = timeout_of(info, exchange.query)
            user = self._access.authenticator.user_of(environ, exchange.warnings)
        except StatusError as error:
            if self._auditor is not None:
                self._audit_refusal(exchange, info, error)
            return _refused(exchange, error)
        if self._auditor is not None:
            exchange.audit = self._auditor.begin(info, user, auditing.facts_of(environ, exchange.headers[0][1]))
            if exchange.audit is not None:
                exchange.audit.received()
        if exchange.warnings:
            exchange.headers += warning_headers(exchange.warnings)
        try:
            user = self._admitted(exchange, info, user)
        except UndecidedError as error:
            return _internal_error(environ, str(error))
        except StatusError as error:
            response = _refused(exchange, error)
            response.headers.append(answers.NO_SNIFFING)
            return response
        headers, read = exchange.request_headers, body_reader(environ)
        request = Request(exchange.method, exchange.path, exchange.query, headers, info, user, read)
        request.deadline, request.address = time.monotonic() + timeout, environ.get("REMOTE_ADDR", "")
        if exchange.audit is not None:
            request.audit, request.annotations = exchange.audit, exchange.annotations
        observation = exchange.observation
        try:
            if observation is None:
                response = self._performed(request, environ, exchange)
            else:
                observation.identified(info, user.name)
                response = observation.perform(request, partial(self._performed, request, environ, exchange))
        except StatusError as error:
            response = answers.error_response(error, headers, exchange.query, cbor=self._cbor)
        if request.warnings:
            exchange.headers += warning_headers(request.warnings)
        return response

    def _performed(self, request: Request, environ: Environment, exchange: _Exchange) -> Response:
        """The answer of this server, or of another one that serves the path. Raises StatusError."""
        elsewhere = self._aggregated(request, environ, exchange) if self._aggregator.remotes else None
        return elsewhere or self._route(request)

    def _admitted(self, exchange: _Exchange, info: RequestInfo, user: User) -> User:
        """As whom the request counts, who may make it. Raises StatusError 400 or 403."""
        if _IMPERSONATION in " ".join(exchange.environ):
            found = self._access.impersonated(exchange.request_headers, info, user)
            if found is not None:
                user = found.user
                if exchange.audit is not None:
                    exchange.audit.impersonated(user, found.constraint)
        if info.verb == "watch" or not is_long_running(info):
            exchange.headers += self._flows.headers(info, user)
        self._access.require(info, user, exchange.audit)
        return user

    def _audit_refusal(self, exchange: _Exchange, info: RequestInfo, error: StatusError) -> None:
        """Write down a request that was refused before anybody knew who asks."""
        assert self._auditor is not None
        facts = auditing.facts_of(exchange.environ, exchange.headers[0][1])
        audit = self._auditor.begin(info, None, facts)
        if audit is not None:
            audit.refused(error.status())

    def _aggregated(self, request: Request, environ: Environment, exchange: _Exchange) -> Response | None:
        """The answer of another server, if one serves the path."""
        name, document = self._aggregator.service_of(request.path), request.path.removeprefix(_DOCUMENTS)
        if name is None and document != request.path and not self._openapi.has(document):
            name = self._aggregator.publisher_of(document)
        if name is None:
            return None
        audit_id, long_running = exchange.headers[0][1], is_long_running(request.info)
        origin = Origin(environ.get("REMOTE_ADDR", ""), audit_id, long_running, environ)
        return self._aggregator.respond(name, request, origin)

    def _route(self, request: Request) -> Response:
        """Raises StatusError."""
        if not request.info.is_resource_request:
            return self._site.respond(request)
        try:
            admitted = self._router.admit(request)
        except StatusError as error:
            return answers.error_response(error, request.headers, request.query)
        if not admitted:
            return answers.page_not_found()
        return endpoints.handle(request, self._backend)


def _refused(exchange: _Exchange, error: StatusError) -> Response:
    """The answer of a filter. Filters know no CBOR, and the router neither."""
    return answers.error_response(error, exchange.request_headers, exchange.query)


class _Exchange:
    """What is known of a request so far, and the headers that its answer will have whatever it is."""

    __slots__ = (
        "annotations", "audit", "environ", "headers", "info", "method", "observation", "path", "query", "request_headers",
        "warnings",
    )

    def __init__(self, environ: Environment) -> None:
        self.environ = environ
        self.method: str = environ["REQUEST_METHOD"]
        self.path = path_of(environ)
        self.query = _NO_QUERY
        self.info: RequestInfo | None = None
        self.audit: AuditContext | None = None
        self.observation: Observation | None = None
        self.annotations: dict[str, tuple[str, str]] = {}
        """What admission tells the audit."""
        self.warnings: list[str] = []
        """Of the filters."""
        self.request_headers = Headers(environ)
        self.headers: list[tuple[str, str]] = [("Audit-Id", environ.get("HTTP_AUDIT_ID") or random_uuid())]


def _finished(response: Response, environ: Environment) -> Iterable[bytes]:
    """The body as WSGI wants it: compressed where that is due; the length of a short one is told."""
    body = response.body
    if not isinstance(body, bytes | Pieces):
        return body
    if len(body) > THRESHOLD:
        body = compress(response, body, environ.get("HTTP_ACCEPT_ENCODING", ""))
    if len(body) <= _MEASURED and response.status not in _WITHOUT_BODY:
        response.headers.append(("Content-Length", str(len(body))))
    return (body,) if isinstance(body, bytes) else body


def _merged(common: list[tuple[str, str]], own: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """All headers; an answer's own Cache-Control takes the place of the common one."""
    if "Cache-Control" in dict(own):
        common.remove(_NOT_CACHED)
    return common + own


def _unknown_target(environ: Environment) -> Response:
    problem = f"failed to create RequestInfo: unable to determine kind and namespace from url, {request_uri(environ)}"
    return _internal_error(environ, problem)


def _internal_error(environ: Environment, problem: str) -> Response:
    """What a filter says that fails."""
    uri = request_uri(environ)
    return answers.http_error(500, sanitised(f"Internal Server Error: {answers.go_quote(uri)}: {problem}"))


def _panic(exchange: _Exchange, *, cbor: bool) -> Response:
    message = 'an error on the server ("") has prevented the request from succeeding'
    error = StatusError(500, "InternalError", message, {})
    return answers.error_response(error, exchange.request_headers, exchange.query, cbor=cbor)


def _definition(backend: Backend, resource: Resource) -> dict[str, Any] | None:
    """The CustomResourceDefinition behind a custom resource."""
    name = f"{resource.plural}.{resource.group}"
    return backend.services.get("apiextensions.k8s.io", "customresourcedefinitions", "", name)


def _stored_objects(backend: Backend) -> Iterator[tuple[str, str, int]]:
    """Group, resource and number of what is stored; resources that share storage count once."""
    seen: set[str] = set()
    for resource in backend.registry:
        if "list" in resource.verbs and resource.bucket not in seen:
            seen.add(resource.bucket)
            yield resource.group, resource.plural, backend.store.bucket(resource.bucket).count()
