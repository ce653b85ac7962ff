"""The WSGI application: passes a request through the filters, in the order of the real server, and writes its response.

    audit id → panic recovery → request info → cache control → timeout → warnings → authentication
    → impersonation → authorization → routes

Each filter may respond itself; the headers of that response depend on the filters that the request has passed.

Invariant: the application never raises because of a request. Unexpected exceptions are logged and answered with a
500.

Specified by: k8s.io/apiserver/pkg/server/config.go (DefaultBuildHandlerChain) and handler.go.
"""

from __future__ import annotations

import errno
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, partial
from http import HTTPStatus
from math import inf
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from fakekube.apimachinery import features
from fakekube.apimachinery.codecs.document import Chunks
from fakekube.apimachinery.errors import StatusError, status
from fakekube.apimachinery.errors.field import TooManyErrorsError, lift_limit, limit_errors
from fakekube.apis.rest.resource import Resource
from fakekube.apiserver.aggregator.aggregator import Aggregator
from fakekube.apiserver.aggregator.documents import OPENAPI_V3_ROOT
from fakekube.apiserver.aggregator.proxy import NOT_CACHED, Origin
from fakekube.apiserver.auth.access import Access
from fakekube.apiserver.auth.authorization import UndecidedError
from fakekube.apiserver.endpoints import handlers
from fakekube.apiserver.endpoints.request import Query, Request, RequestInfo, Response, User
from fakekube.apiserver.http import auditing, responses
from fakekube.apiserver.http.compression import THRESHOLD, compress, compress_watch_list
from fakekube.apiserver.http.discovery import DiscoveryEndpoints, Documents, Registrations
from fakekube.apiserver.http.metrics import Labels, Metrics, labels_of
from fakekube.apiserver.http.openapi import OpenAPIEndpoints
from fakekube.apiserver.http.priority_and_fairness import Classified, Flows
from fakekube.apiserver.http.request_info import (
    UnknownTargetError,
    has_siblings,
    is_long_running,
    request_info,
    sibling_info,
    timeout_of,
)
from fakekube.apiserver.http.responses import warning_headers
from fakekube.apiserver.http.routing import Admitted, NonResourceRouter, ResourceRouter
from fakekube.apiserver.registry.scope import Backend
from fakekube.base.caches import LONGEST_TEXT, BoundedCache, cache_by_key
from fakekube.base.chance import Chance, random_uuid
from fakekube.base.golang.strconv import go_quote
from fakekube.net.streams import BrokenStreamError
from fakekube.net.websocket import Refused
from fakekube.net.wsgi import HEADER_NAMES, Environment, Headers, body_reader, negotiated_headers, path_of, request_uri

if TYPE_CHECKING:
    from fakekube.apiserver.audit.auditor import AuditContext, Auditor

_log = logging.getLogger(__name__)


StartResponse = Callable[..., Any]


class Observation(Protocol):
    """Observes the stages of one request."""

    info: RequestInfo | None
    """Set when it is known what the request is about."""
    user: str
    """Set to the name of the user, after impersonation."""
    request: Request | None
    """Set when the request is about to be performed."""

    @property
    def observer(self) -> Observer:
        """The observer that it belongs to."""

    def note_user(self, user: str) -> None:
        """Called with the name of the user, before authorization. Raises StatusError 401."""

    def perform(self, request: Request, perform: Callable[[], Response]) -> Response:
        """Called in place of `perform`, if the observer has faults: performs the request, or responds in its place.

        Raises StatusError and BrokenStreamError.
        """

    def note_response(self, response: Response) -> None:
        """Called with the response, whose body may be changed. Raises BrokenStreamError to drop the connection instead."""

    def note_drop(self) -> None:
        """Called when the connection is dropped before a response."""


class Observer(Protocol):
    """Observes the requests of an application: the recorder and the faults of a cluster (`powers.observation`)."""

    has_faults: bool
    """No fault is armed: observations need not be asked before a request is performed."""

    def observe(self, environ: Environment, path: str) -> Observation:
        """Called for every incoming request."""


#: Characters of a target, with its method, that is kept.
_MAXIMUM_TARGET: Final = 500
#: The targets that are kept, in a process and of a cluster.
_MAXIMUM_TARGETS: Final = 1024
#: Bytes: net/http sets Content-Length for bodies up to this size when the handler does not
#: (bufferBeforeChunkingSize).
_MEASURED: Final = 2048
_WITHOUT_BODY: Final = frozenset({HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED})
_SWITCHING_PROTOCOLS: Final = HTTPStatus.SWITCHING_PROTOCOLS.value
_NO_QUERY: Final = Query()
_NO_ANNOTATIONS: Final[Mapping[str, tuple[str, str]]] = {}
_NO_RESOURCES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
_REASONS: Final = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}
#: Finds impersonation headers in the joined names of all headers.
_IMPERSONATION: Final = "HTTP_IMPERSONATE_"
_CBOR_GATE: Final = "CBORServingAndStorage"


class Application:
    """The API of a cluster as a WSGI application, for any WSGI server.

    The body of a watch is a `streams.Stream`: a server that supports streams takes frames from it, others iterate.

    Args:
        backend: the backend of the cluster.
        access: authenticates and authorizes requests.
        aggregator: proxies the APIs of aggregated API servers.
        auditor: writes audit events; None disables auditing.
    """

    def __init__(self, backend: Backend, access: Access, aggregator: Aggregator, auditor: Auditor | None = None) -> None:
        cbor = backend.settings.enabled(_CBOR_GATE)
        self._compresses = backend.settings.enabled("APIResponseCompression")
        self._compresses_watch_lists = backend.settings.enabled("WatchListCompression")
        self._backend = backend
        self._access = access
        self._aggregator = aggregator
        self._auditor = auditor
        self.observer: Observer | None = None
        """Called for every request; it may let the request fail."""
        self.chance: Chance | None = None
        """That of a cluster with a seed."""
        self._cbor = cbor
        self._router = ResourceRouter(backend.registry, cbor=cbor)
        self._find_target = cache_by_key(_is_kept, _MAXIMUM_TARGETS)(partial(_make_target, BoundedCache(_MAXIMUM_TARGETS)))
        self._flows = Flows(backend.services, backend.store.bucket)
        self._registrations = Registrations(backend.store.bucket("apiservices.apiregistration.k8s.io"), aggregator)
        objects, seats, settings = partial(_stored_objects, backend), self._flows.nominal_seats, backend.settings
        self.metrics = Metrics(objects, seats, self._registrations.unavailable, settings.emulation)
        self._started = backend.clock.now()

    @cached_property
    def _openapi(self) -> OpenAPIEndpoints:
        backend, definition_of = self._backend, partial(_definition, self._backend)
        return OpenAPIEndpoints(
            backend.settings.emulation,
            backend.settings.runtime_config,
            backend.registry,
            definition_of,
            clock=backend.clock,
            started=self._started,
            aggregator=self._aggregator,
        )

    @cached_property
    def _nonresource_router(self) -> NonResourceRouter:
        """The router of paths without a resource, which many tests do not use."""
        emulation = self._backend.settings.emulation
        documents = Documents(self._backend.registry, self._registrations, emulation.version)
        return NonResourceRouter(
            documents=documents,
            discovery=DiscoveryEndpoints(documents, self._router.is_builtin, emulation),
            openapi=self._openapi,
            metrics=self.metrics,
            signer=self._access.signer,
            clock=self._backend.clock,
            started=self._started,
            emulation=emulation,
            cbor=self._cbor,
        )

    def __call__(self, environ: Environment, start_response: StartResponse) -> Iterable[bytes]:
        """Responds to one request."""
        started = time.perf_counter()
        exchange = _Exchange(environ)
        if self.chance is not None and self.chance.before_request is not None:
            self.chance.before_request(environ.get("HTTP_USER_AGENT", ""))
        if self.observer is not None:
            exchange.observation = self.observer.observe(environ, exchange.path)
        emulation = self._backend.settings.emulation
        emulated = None if features.CURRENT.get() is emulation else features.CURRENT.set(emulation)
        limit_errors()
        try:
            response = self._respond(exchange)
        except (BrokenStreamError, Refused):
            if exchange.observation is not None:
                exchange.observation.note_drop()
            raise
        except Exception as error:
            _log.exception("%s %s", exchange.method, exchange.path)
            response = _panic(exchange, error, cbor=self._cbor)
            if exchange.audit is not None:
                exchange.audit.emit_panic("internal error")
                exchange.audit = None
        finally:
            lift_limit()
            if emulated is not None:
                features.CURRENT.reset(emulated)
        target = exchange.target
        if exchange.audit is not None and target is not None:
            auditing.write_event(exchange.audit, target.info, exchange.annotations, response)
        if exchange.observation is not None:
            exchange.observation.note_response(response)
        if response.is_watch_list and self._compresses_watch_lists:
            compress_watch_list(response, environ.get("HTTP_ACCEPT_ENCODING", ""))
        body = _make_body(response, environ, compresses=self._compresses)
        if target is not None:
            self.metrics.count_response(target.family.labels, response.status, time.perf_counter() - started)
        switches = response.status == _SWITCHING_PROTOCOLS  # only the application itself has the header
        headers = response.headers if switches else _merge_headers(exchange.headers, response.headers)
        start_response(_REASONS.get(response.status) or f"{response.status} Unknown", headers)
        return body if exchange.method != "HEAD" else ()

    def _respond(self, exchange: _Exchange) -> Response:
        """Returns the response of a request; `exchange` collects its headers and warnings."""
        environ, observation = exchange.environ, exchange.observation
        try:
            target = self._find_target((exchange.method, exchange.path, environ.get("QUERY_STRING") or ""))
        except UnknownTargetError:
            return _unknown_target(environ)
        exchange.target = target
        info, family = target.info, target.family
        query, timeout = family.query, family.timeout
        if observation is not None:
            observation.info = info
        exchange.headers.append(NOT_CACHED)
        try:
            if timeout is None:
                timeout = timeout_of(info, query)
            user = self._access.authenticator.user_of(environ, exchange.warnings)
            if observation is not None and observation.observer.has_faults:
                observation.note_user(user.name)
        except StatusError as error:
            if self._auditor is not None:
                self._audit_refusal(exchange, info, error)
            return _make_filter_response(exchange, error)
        if self._auditor is not None:
            exchange.audit = self._auditor.begin(info, user, auditing.facts_of(environ, exchange.headers[0][1]))
            if exchange.audit is not None:
                exchange.audit.emit_request_received()
        if exchange.warnings:
            exchange.headers += warning_headers(exchange.warnings)
        try:
            user = self._authorize_request(exchange, target, user, long_running=timeout == inf)
        except UndecidedError as error:
            return _internal_error(environ, str(error))
        except StatusError as error:
            response = _make_filter_response(exchange, error)
            response.headers.append(responses.NO_SNIFFING)
            return response
        headers, read = exchange.request_headers, body_reader(environ)
        accept, content_type, user_agent = negotiated_headers(environ)
        request = Request(exchange.method, exchange.path, query, headers, info, user, accept, content_type, user_agent, read)
        request.deadline, request.address = time.monotonic() + timeout, environ.get("REMOTE_ADDR", "")
        if exchange.audit is not None:
            request.audit, exchange.annotations = exchange.audit, request.annotations
        if observation is not None:
            observation.user, observation.request = user.name, request
        perform = self._perform if self.chance is None else self._perform_by_chance
        try:
            if observation is None or not observation.observer.has_faults:
                response = perform(request, target, exchange)
            else:
                response = observation.perform(request, partial(perform, request, target, exchange))
        except TooManyErrorsError:
            late = status.context_deadline_exceeded()
            response = responses.error_response(late, headers, query, cbor=self._cbor)
        except StatusError as error:
            response = responses.error_response(error, headers, query, cbor=self._cbor)
        if request.warnings:
            exchange.headers += warning_headers(request.warnings)
        return response

    def _perform_by_chance(self, request: Request, target: _Target, exchange: _Exchange) -> Response:
        """See `_perform`; random values come from the seed of the cluster."""
        assert self.chance is not None
        asked = f"{request.method} {request.path} ".encode("utf-8", "surrogatepass")
        with self.chance.serve(lambda: asked + request.read_body()):
            return self._perform(request, target, exchange)

    def _perform(self, request: Request, target: _Target, exchange: _Exchange) -> Response:
        """Returns the response of this server, or of the aggregated API server that serves the path. Raises StatusError."""
        elsewhere = self._proxy_aggregated(request, exchange) if self._aggregator.remotes else None
        return elsewhere or self._route(request, target)

    def _authorize_request(self, exchange: _Exchange, target: _Target, user: User, *, long_running: bool) -> User:
        """Impersonates and authorizes; returns the user of the request. Raises StatusError 400 or 403."""
        environ, info, is_own = exchange.environ, target.info, True
        if _IMPERSONATION in (environ.get(HEADER_NAMES) or " ".join(environ)):
            found = self._access.impersonate(exchange.request_headers, info, user)
            if found is not None:
                user, is_own = found.user, False
                if exchange.audit is not None:
                    exchange.audit.record_impersonation(user, found.constraint)
        if not long_running or info.verb == "watch":
            flow = self._flows.classify(info, user, target.family.flow)
            exchange.headers += flow.headers
            if is_own:  # an impersonated user is another object in each request
                target.family.flow = flow
        self._access.require(info, user, exchange.audit)
        return user

    def _audit_refusal(self, exchange: _Exchange, info: RequestInfo, error: StatusError) -> None:
        """Writes an audit event for a request that failed authentication."""
        assert self._auditor is not None
        facts = auditing.facts_of(exchange.environ, exchange.headers[0][1])
        audit = self._auditor.begin(info, None, facts)
        if audit is not None:
            audit.emit_refusal(error.status())

    def _proxy_aggregated(self, request: Request, exchange: _Exchange) -> Response | None:
        """Returns the response of an aggregated API server, if one serves the path."""
        name, document = self._aggregator.service_of(request.path), request.path.removeprefix(OPENAPI_V3_ROOT)
        if name is None and document != request.path and not self._openapi.has(document):
            name = self._aggregator.publisher_of(document)
        if name is None:
            return None
        environ, audit_id, long_running = exchange.environ, exchange.headers[0][1], is_long_running(request.info)
        origin = Origin(environ.get("REMOTE_ADDR", ""), audit_id, long_running, environ)
        return self._aggregator.respond(name, request, origin)

    def _route(self, request: Request, target: _Target) -> Response:
        """Raises StatusError."""
        if not request.info.is_resource_request:
            return self._nonresource_router.respond(request)
        family = target.family
        try:
            admitted = self._router.admit(request, family.admitted)
        except StatusError as error:
            cbor = None if self._router.is_builtin(request.info.group) else False  # as the server of definitions has none
            return responses.error_response(error, request.headers, request.query, cbor=cbor)
        if admitted is None:
            return responses.page_not_found()
        if admitted is not family.admitted and len(request.accept) + len(request.content_type) <= LONGEST_TEXT:
            family.admitted = admitted
        return handlers.handle(request, self._backend, admitted.resource)


class _Meaning(NamedTuple):
    """What method, path and query say of a request, whatever the cluster has."""

    query: Query
    info: RequestInfo
    timeout: float | None
    """None if the query says one that is not a duration."""
    labels: Labels
    has_siblings: bool
    """Whether it is kept for the paths of other objects."""


def _is_kept(target: tuple[str, str, str]) -> bool:
    return sum(map(len, target)) <= _MAXIMUM_TARGET


@cache_by_key(_is_kept, _MAXIMUM_TARGETS)
def _interpret(target: tuple[str, str, str]) -> _Meaning:
    """Returns what method, path and query of a request say. Clients send few different ones, so the latest are kept.

    Raises UnknownTargetError.
    """
    method, path, raw_query = target
    query = Query(raw_query) if raw_query else _NO_QUERY
    info = request_info(method, path, query)
    try:
        timeout = timeout_of(info, query)
    except StatusError:
        timeout = None
    labels = labels_of(info, dry_run="dryRun" in query)
    return _Meaning(query, info, timeout, labels, has_siblings(info) and _is_kept(target))


class _Family:
    """What a cluster keeps of the requests of one method and query for the objects of a collection, or else for one path.

    What method and query say, and what the filters found for the last such request.
    """

    __slots__ = ("admitted", "flow", "labels", "query", "timeout")

    def __init__(self, meaning: _Meaning) -> None:
        self.query, self.timeout, self.labels = meaning.query, meaning.timeout, meaning.labels
        self.flow: Classified | None = None
        self.admitted: Admitted | None = None


class _Target:
    """What a cluster keeps of a method, path and query."""

    __slots__ = ("family", "info")

    def __init__(self, info: RequestInfo, family: _Family) -> None:
        self.info, self.family = info, family


def _make_target(siblings: BoundedCache[tuple[str, str, str], _Target], key: tuple[str, str, str]) -> _Target:
    """Returns the target of a method, path and query. Raises UnknownTargetError.

    Most new paths are those of other objects of a known collection: `siblings` has one target of each, by method, path and query.
    """
    method, path, query = key
    collection, _, name = path.rpartition("/")
    siblings_key = method, collection, query
    sibling = siblings.get(siblings_key)
    if sibling is not None and name:
        return _Target(sibling_info(sibling.info, path, name), sibling.family)
    meaning = _interpret(key)
    target = _Target(meaning.info, _Family(meaning))
    if meaning.has_siblings:
        siblings.add(siblings_key, target)
    return target


def _make_filter_response(exchange: _Exchange, error: StatusError) -> Response:
    """Returns the response of a filter."""
    return responses.error_response(error, exchange.request_headers, exchange.query)


class _Exchange:
    """The state of a request between filters, and the headers that every response to it has."""

    __slots__ = (
        "annotations",
        "audit",
        "environ",
        "headers",
        "method",
        "observation",
        "path",
        "request_headers",
        "target",
        "warnings",
    )

    def __init__(self, environ: Environment) -> None:
        self.environ = environ
        self.method: str = environ["REQUEST_METHOD"]
        self.path = path_of(environ)
        self.target: _Target | None = None
        self.audit: AuditContext | None = None
        self.annotations = _NO_ANNOTATIONS
        """Those of the request, if it is audited."""
        self.observation: Observation | None = None
        self.warnings: list[str] = []
        """Of the filters."""
        self.request_headers = Headers(environ)
        self.headers: list[tuple[str, str]] = [("Audit-Id", environ.get("HTTP_AUDIT_ID") or random_uuid())]

    @property
    def query(self) -> Query:
        """The parameters; empty before the target is known."""
        return _NO_QUERY if self.target is None else self.target.family.query


def _make_body(response: Response, environ: Environment, *, compresses: bool) -> Iterable[bytes]:
    """Returns the WSGI body, compressed if applicable; sets Content-Length for short bodies."""
    body = response.body
    if not isinstance(body, (bytes, Chunks)):  # a union costs more
        return body
    if len(body) > THRESHOLD and compresses:
        body = compress(response, body, environ.get("HTTP_ACCEPT_ENCODING", ""))
    if len(body) <= _MEASURED and response.status not in _WITHOUT_BODY:
        response.headers.append(("Content-Length", str(len(body))))
    return (body,) if isinstance(body, bytes) else body


def _merge_headers(common: list[tuple[str, str]], own: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Returns all headers; the Cache-Control of a response overrides the common one."""
    for name, _ in own:
        if name == "Cache-Control":
            common.remove(NOT_CACHED)
            break
    return common + own


def _unknown_target(environ: Environment) -> Response:
    problem = f"failed to create RequestInfo: unable to determine kind and namespace from url, {request_uri(environ)}"
    return _internal_error(environ, problem)


def _internal_error(environ: Environment, problem: str) -> Response:
    """Returns the response for a filter that fails."""
    uri = request_uri(environ)
    return responses.http_error(500, status.sanitise(f"Internal Server Error: {go_quote(uri)}: {problem}"))


def _panic(exchange: _Exchange, problem: Exception, *, cbor: bool) -> Response:
    """Returns the response for an unexpected error; for one that passes, such as that of too many open files, a 503."""
    message = 'an error on the server ("") has prevented the request from succeeding'
    error = StatusError(500, "InternalError", message, {})
    if isinstance(problem, OSError) and problem.errno in _NO_RESOURCES:
        error = StatusError(503, "ServiceUnavailable", f"the server has no resources left: {problem.strerror}", {})
    response = responses.error_response(error, exchange.request_headers, exchange.query, cbor=cbor)
    if error.code == HTTPStatus.SERVICE_UNAVAILABLE:
        response.headers.append(("Retry-After", "1"))
    return response


def _definition(backend: Backend, resource: Resource) -> dict[str, Any] | None:
    """Returns the CustomResourceDefinition of a custom resource."""
    name = f"{resource.plural}.{resource.group}"
    return backend.services.get("apiextensions.k8s.io", "customresourcedefinitions", "", name)


def _stored_objects(backend: Backend) -> Iterator[tuple[str, str, int]]:
    """Yields group, resource and number of the stored objects; resources that share storage are counted once."""
    seen: set[str] = set()
    for resource in backend.registry:
        if "list" in resource.verbs and resource.bucket not in seen:
            seen.add(resource.bucket)
            yield resource.group, resource.plural, backend.store.bucket(resource.bucket).count()
