"""The actions of faults: a class for each, and the table `ACTIONS` by name.

Invariant: an action never makes up state. It changes objects only through the API, and the history only through the store; the
responses are those of the real server, or those that clients get from broken servers and proxies.

Specified by: k8s.io/apimachinery/pkg/api/errors/errors.go (the constructors, NewGenericServerResponse: the reason and message of
each code); k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go and filters/authentication.go;
k8s.io/kube-aggregator/pkg/apiserver (handler_proxy.go: service unavailable; handler_discovery.go: stale versions).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fakekube.apimachinery.codecs import DecodeError, json
from fakekube.apimachinery.errors import StatusError, status
from fakekube.apiserver.endpoints.negotiation import PLAIN_TEXT
from fakekube.apiserver.endpoints.request import Request, RequestInfo, Response
from fakekube.base.golang.strconv import go_quote
from fakekube.base.objects import Object, group_resource
from fakekube.net.streams import BrokenStreamError, TruncatedStreamError
from fakekube.powers.fault import Action
from fakekube.powers.streams import CUT, ObservedStream

if TYPE_CHECKING:
    from fakekube.powers.action_context import ActionContext
    from fakekube.powers.exchange import Exchange
    from fakekube.powers.fault import Criteria, Fault


#: The message of a Status, and the body that filters of the API server send without one (tooManyRequests).
TOO_MANY_REQUESTS = "Too many requests, please try again later."

#: code → reason and message; {what} is the resource with its group, {name} the quoted name.
_STATUSES: Mapping[int, tuple[str, str]] = {
    400: ("BadRequest", status.GENERIC_MESSAGES[400]),
    401: ("Unauthorized", "Unauthorized"),
    403: ("Forbidden", "{what} {name} is forbidden: unknown"),
    404: ("NotFound", "{what} {name} not found"),
    405: ("MethodNotAllowed", status.GENERIC_MESSAGES[405]),
    406: ("NotAcceptable", status.GENERIC_MESSAGES[406]),
    409: ("Conflict", f"Operation cannot be fulfilled on {{what}} {{name}}: {status.OPTIMISTIC_LOCK_ERROR}"),
    410: ("Expired", status.TOO_OLD_WATCH),
    413: ("RequestEntityTooLarge", "Request entity too large: limit is 3145728"),
    415: ("UnsupportedMediaType", "the server was unable to process the media type of the request"),
    422: ("Invalid", "{what} {name} is invalid"),
    429: ("TooManyRequests", TOO_MANY_REQUESTS),
    500: ("InternalError", "Internal error occurred: unknown"),
    503: ("ServiceUnavailable", status.GENERIC_MESSAGES[503]),
    504: ("Timeout", "Timeout: request did not complete within the allotted timeout"),
}


def status_of(
    info: RequestInfo | None, code: int, reason: str | None, message: str | None, retry_after: int | None
) -> StatusError:
    """Returns the error with a code, about the object of the request.

    Args:
        info: the request; None if its path could not be parsed.
        code: the HTTP status code.
        reason, message: of the Status; by default those that the real server has for the code.
        retry_after: seconds for details.retryAfterSeconds; None for none.
    """
    known_reason, known_message = _STATUSES.get(code, ("", "unknown"))
    group, resource, name = (info.group, info.resource, info.name) if info is not None else ("", "", "")
    what = group_resource(group, resource)
    details: dict[str, Any] = {"name": name, "group": group, "kind": resource, "retryAfterSeconds": retry_after}
    found = {key: value for key, value in details.items() if value}
    text = known_message.format(what=what, name=go_quote(name)) if message is None else message
    return StatusError(code, known_reason if reason is None else reason, text, found or None)


@dataclass(slots=True, frozen=True)
class ReturnStatus(Action):
    """Responds with a Status and does not perform the request."""

    name = "status"
    on_calls = True
    code: int
    reason: str | None = None
    message: str | None = None
    retry_after: int | None = None

    def before_request(self, fault: Fault, exchange: Exchange, request: Request, context: ActionContext) -> Response | None:
        raise status_of(request.info, self.code, self.reason, self.message, self.retry_after)


@dataclass(slots=True, frozen=True)
class Refuse(Action):
    """Drops the connection and does not perform the request."""

    name = "refuse"
    on_calls = True

    def before_request(self, fault: Fault, exchange: Exchange, request: Request, context: ActionContext) -> Response | None:
        raise BrokenStreamError(f"{fault}: refused")


@dataclass(slots=True, frozen=True)
class Lose(Action):
    """Performs the request and drops the connection before the response."""

    name = "lose"
    on_calls = True
    loses_streams = True

    def after_response(self, fault: Fault, exchange: Exchange, response: Response) -> None:
        close = getattr(response.body, "close", None)
        if close is not None:
            close()
        raise BrokenStreamError("the answer is lost")


@dataclass(slots=True, frozen=True)
class Delay(Action):
    """Performs the request after a delay by the clock."""

    name = "delay"
    on_calls = True
    combines = True
    seconds: float
    jitter: float = 0.0

    def before_request(self, fault: Fault, exchange: Exchange, request: Request, context: ActionContext) -> Response | None:
        seconds = self.seconds + (fault.dice.uniform(0.0, self.jitter) if self.jitter else 0.0)
        context.wait_until(lambda: fault.removed, context.clock.monotonic() + seconds)
        return None


@dataclass(slots=True, frozen=True)
class Hang(Action):
    """Performs the request when the fault is removed."""

    name = "hang"
    on_calls = True

    def before_request(self, fault: Fault, exchange: Exchange, request: Request, context: ActionContext) -> Response | None:
        context.wait_until(lambda: fault.removed, fault.until)
        return None


@dataclass(slots=True, frozen=True)
class Conflict(Action):
    """Updates the object as another client just before the request is performed."""

    name = "conflict"
    change: Callable[[Object], Object | None] | None = None

    def concerns(self, exchange: Exchange) -> bool:
        return exchange.info is not None and bool(exchange.info.name) and exchange.verb not in ("list", "watch")

    def before_request(self, fault: Fault, exchange: Exchange, request: Request, context: ActionContext) -> Response | None:
        context.write(request.info, self.change)
        return None


@dataclass(slots=True, frozen=True)
class Gone(Action):
    """Compacts the history; open watches end with 410 Gone."""

    name = "gone"
    on_open = True

    def apply_once(self, context: ActionContext) -> None:
        context.compact()

    def before_request(self, fault: Fault, exchange: Exchange, request: Request, context: ActionContext) -> Response | None:
        context.compact()
        return None

    def stream(self, stream: ObservedStream, context: ActionContext) -> None:
        stream.expire()


@dataclass(slots=True, frozen=True)
class Stale(Action):
    """Serves reads that accept stale data from an earlier revision."""

    name = "stale"
    by: int

    def concerns(self, exchange: Exchange) -> bool:
        query = exchange.query
        revision = query.get("resourceVersion", "")
        if exchange.verb == "watch":
            return bool(revision) if query.get("sendInitialEvents") == "true" else revision in ("", "0")
        return bool(revision) and (exchange.verb == "get" or (exchange.verb == "list" and not _is_exact(query)))

    def before_request(self, fault: Fault, exchange: Exchange, request: Request, context: ActionContext) -> Response | None:
        request.as_of = context.revision_ago(self.by)
        return None


@dataclass(slots=True, frozen=True)
class End(Action):
    """Ends a watch cleanly after a number of events."""

    name = "end"
    combines = True
    on_others = False
    on_open = True
    after_events: int = 0

    def stream(self, stream: ObservedStream, context: ActionContext) -> None:
        stream.faults.end_after(self.after_events)


@dataclass(slots=True, frozen=True)
class Cut(Action):
    """Resets the connection after a number of events or bytes, possibly within a frame; by default right after the header."""

    name = "cut"
    combines = True
    on_open = True
    after_events: int | None = None
    after_bytes: int | None = None

    def concerns(self, exchange: Exchange) -> bool:
        return exchange.verb == "watch" or self.after_events is None or self.after_bytes is not None

    def stream(self, stream: ObservedStream, context: ActionContext) -> None:
        if self.after_events is not None:
            stream.faults.cut_after_events(self.after_events)
        if self.after_bytes is not None or self.after_events is None:
            stream.faults.cut_after_bytes(self.after_bytes or 0)

    def after_response(self, fault: Fault, exchange: Exchange, response: Response) -> None:
        response.body = _CutBody(response, self.after_bytes or 0)  # type: ignore[assignment]


@dataclass(slots=True, frozen=True)
class Slice(Action):
    """Sends the response in pieces of `size` bytes."""

    name = "slice"
    combines = True
    on_open = True
    size: int

    def stream(self, stream: ObservedStream, context: ActionContext) -> None:
        stream.faults.slice(self.size)

    def after_response(self, fault: Fault, exchange: Exchange, response: Response) -> None:
        response.body = _SlicedBody(response, self.size)  # type: ignore[assignment]


@dataclass(slots=True, frozen=True)
class Silence(Action):
    """Sends nothing more after a number of events; the connection stays open.

    Args:
        after_events: the number of events that are sent.
        connection: with HTTP/2, nothing more is sent on the connection of the watch either, as if its peer could not be reached.
    """

    name = "silence"
    combines = True
    on_others = False
    on_open = True
    after_events: int = 0
    connection: bool = False

    def stream(self, stream: ObservedStream, context: ActionContext) -> None:
        stream.faults.silence_after(self.after_events, connection=self.connection)


@dataclass(slots=True, frozen=True)
class ErrorEvent(Action):
    """Sends an ERROR event with a Status, and ends the watch."""

    name = "error_event"
    on_others = False
    on_open = True
    code: int
    reason: str | None = None
    message: str | None = None

    def stream(self, stream: ObservedStream, context: ActionContext) -> None:
        stream.fail(status_of(stream.exchange.info, self.code, self.reason, self.message, None))


@dataclass(slots=True, frozen=True)
class Bookmarks(Action):
    """Changes when a watch gets bookmarks: "never" (except the one that ends the initial events), "often", only "at end", or one
    additional bookmark "now", with the newest revision of all resources."""

    name = "bookmarks"
    on_others = False
    on_open = True
    when: str

    def stream(self, stream: ObservedStream, context: ActionContext) -> None:
        stream.set_bookmarks(self.when)


@dataclass(slots=True, frozen=True)
class Intercept(Action):
    """Calls a function with the exchange, which returns a status code and an object to respond with, or None."""

    name = "intercept"
    on_calls = True
    function: Callable[[Exchange], tuple[int, Any] | None]

    def before_request(self, fault: Fault, exchange: Exchange, request: Request, context: ActionContext) -> Response | None:
        found = self.function(exchange)
        if found is None:
            return None
        code, obj = found
        return Response(code, [("Content-Type", "application/json")], json.dumps(obj) + b"\n")


def _is_exact(query: Mapping[str, str]) -> bool:
    """Reports whether a list is for one exact revision: by resourceVersionMatch, continue token, or revision and limit."""
    match = query.get("resourceVersionMatch")
    if match or query.get("continue"):
        return match != "NotOlderThan"
    return bool(query.get("limit")) and query.get("resourceVersion", "") not in ("", "0")


@dataclass(slots=True, frozen=True)
class ColdCache(Action):
    """Simulates a watch cache that is not initialized (`Cluster.restart`): requests that only it can serve get a 429.

    Specified by: k8s.io/apiserver/pkg/storage/cacher/delegator.go (GetList, shouldDelegateListOnNotReadyCache),
    delegator/interface.go (ShouldDelegateList) and cacher.go (Watch).
    """

    name = "cold"
    uncached: frozenset[tuple[str, str]]
    """Group and plural of the resources that have no watch cache."""

    def __post_init__(self) -> None:
        """Checks nothing: tests cannot arm this action."""

    def concerns(self, exchange: Exchange) -> bool:
        if (exchange.group, exchange.resource) in self.uncached:
            return False
        return exchange.verb == "watch" or (exchange.verb == "list" and not self._is_delegated(exchange.query))

    @staticmethod
    def _is_delegated(query: Mapping[str, str]) -> bool:
        """Reports whether etcd serves a list in place of the cache."""
        whole = not query.get("labelSelector") and not query.get("fieldSelector")
        return (bool(query.get("limit")) and whole) or _is_exact(query)

    def before_request(self, fault: Fault, exchange: Exchange, request: Request, context: ActionContext) -> Response | None:
        raise status.too_many_requests("storage is (re)initializing", 1)


@dataclass(slots=True, frozen=True)
class Malformed(Action):
    """Performs the request and sends the first half of the response as a complete body; sends a watch half an event."""

    name = "malformed"
    on_open = True
    on_calls = True

    def stream(self, stream: ObservedStream, context: ActionContext) -> None:
        stream.faults.halve()

    def after_response(self, fault: Fault, exchange: Exchange, response: Response) -> None:
        whole = _whole_body(response)
        response.body = whole[: len(whole) // 2]


@dataclass(slots=True, frozen=True)
class Unavailable(Action):
    """Simulates an API group whose server cannot be reached: 503 for its resources and its discovery; its versions are marked as
    stale in the aggregated discovery document."""

    name = "unavailable"
    on_open = True

    def meets(self, criteria: Criteria, exchange: Exchange) -> bool:
        if criteria.matches(exchange):
            return True
        resource = criteria.resource
        if exchange.is_resource_request or resource is None or resource.plural != "*" or resource.group is None:
            return False
        root = f"/apis/{resource.group}"
        return exchange.path in ("/apis", root) or exchange.path.startswith(f"{root}/")

    def before_request(self, fault: Fault, exchange: Exchange, request: Request, context: ActionContext) -> Response | None:
        if exchange.path == "/apis":  # kube-apiserver itself serves this document
            return None
        return Response(503, [("Content-Type", PLAIN_TEXT)], b"service unavailable\n")

    def after_response(self, fault: Fault, exchange: Exchange, response: Response) -> None:
        resource = fault.criteria.resource
        if exchange.path == "/apis" and resource is not None and resource.group is not None:
            _mark_stale(response, resource.group)

    def stream(self, stream: ObservedStream, context: ActionContext) -> None:
        stream.faults.cut_after_bytes(0)


def _mark_stale(response: Response, group: str) -> None:
    """Marks the versions of a group as stale, if a response is the aggregated discovery document."""
    if not isinstance(response.body, bytes) or response.status != 200:
        return
    try:
        document = json.reread(response.body)
    except DecodeError:
        return
    for item in document.get("items") or ():
        if item["metadata"].get("name") == group:
            for version in item["versions"]:
                version["freshness"] = "Stale"
    body = json.dumps(document) + b"\n"
    response.body = body
    tag = f'"{hashlib.sha512(body).hexdigest().upper()}"'
    response.headers[:] = [(name, tag if name.lower() == "etag" else value) for name, value in response.headers]


@dataclass(slots=True, frozen=True)
class ExpireTokens(Action):
    """Refuses bearer tokens that were issued before the fault was armed with a 401; later ones are accepted."""

    name = "expire_tokens"
    at_authentication = True
    fresh: set[str] = field(default_factory=set, init=False, compare=False, repr=False)
    """The tokens issued since the fault was armed."""

    def __post_init__(self) -> None:
        """Accepts the field `fresh`, which is not an argument."""

    def concerns(self, exchange: Exchange) -> bool:
        return bool(exchange.token) and exchange.token not in self.fresh

    def meets(self, criteria: Criteria, exchange: Exchange) -> bool:
        misses = criteria.misses(exchange)
        everything = criteria.resource is not None and criteria.resource.text == "*"
        return not misses or (everything and misses == ["resource"])  # with "*", also requests that are not for resources

    def refuse_token(self, fault: Fault, exchange: Exchange) -> None:
        raise status.unauthorized()

    def note_token(self, token: str) -> None:
        self.fresh.add(token)

    def describe(self) -> dict[str, Any]:
        return {self.name: {}}


ACTIONS: Mapping[str, type[Action]] = {
    action.name: action
    for action in (
        ReturnStatus,
        Refuse,
        Lose,
        Delay,
        Hang,
        Conflict,
        Gone,
        Stale,
        End,
        Cut,
        Slice,
        Silence,
        ErrorEvent,
        Bookmarks,
        Intercept,
        Malformed,
        Unavailable,
        ExpireTokens,
    )
}


# --- Bodies of other requests than watches ----------------------------------------------------------------------------


def _whole_body(response: Response) -> bytes:
    """Returns the body in one piece."""
    return response.body if isinstance(response.body, bytes) else b"".join(response.body)


def _take_body(response: Response) -> bytes:
    """Returns the body in one piece, and adds its Content-Length to the headers, because only a part of it may be sent."""
    whole = _whole_body(response)
    response.headers.append(("Content-Length", str(len(whole))))
    return whole


class _CutBody:
    """The first `size` bytes of a body, after which the connection breaks."""

    def __init__(self, response: Response, size: int) -> None:
        whole = _take_body(response)
        self._head, self._is_whole = whole[:size], len(whole) < size

    def __iter__(self) -> Iterator[bytes]:
        if self._head:
            yield self._head
        if not self._is_whole:
            raise BrokenStreamError(CUT)


class _SlicedBody:
    """A body in pieces of `size` bytes."""

    def __init__(self, response: Response, size: int) -> None:
        self._pieces: Iterable[bytes] = response.body if isinstance(response.body, _CutBody) else [_take_body(response)]
        self._size = size

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            for start in range(0, len(piece), self._size):
                yield piece[start : start + self._size]


def truncate_body(response: Response) -> None:
    """Makes the connection end in the middle of the body of a response, whose first half arrives."""
    whole = _take_body(response)

    def send_half() -> Iterator[bytes]:
        yield whole[: len(whole) // 2]
        raise TruncatedStreamError(CUT)

    response.body = send_half()  # type: ignore[assignment]
