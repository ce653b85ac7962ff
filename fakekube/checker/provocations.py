"""Fault actions that only checks use, and budgets, so that a fault meets each kind of write and not only the first one.

Invariant: like the actions in fakekube.powers they invent no state of the cluster: they refuse requests, end watches, or return
shorter lists. A write is told from others by its verb, its object and the shape of its body, and never by its values.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode

from fakekube.apimachinery.codecs import json
from fakekube.apimachinery.codecs.document import Chunks
from fakekube.apimachinery.errors import status
from fakekube.apiserver.endpoints.request import Query, Response
from fakekube.checker.trace import read_number
from fakekube.powers.fault import Action, Frequency
from fakekube.powers.fault_actions import End, ErrorEvent, Refuse, truncate_body

if TYPE_CHECKING:
    from collections.abc import Callable

    from fakekube.apimachinery.errors.status import StatusError
    from fakekube.apiserver.endpoints.request import Request
    from fakekube.powers.action_context import ActionContext
    from fakekube.powers.exchange import Exchange
    from fakekube.powers.fault import Fault
    from fakekube.powers.faults import FaultSelector
    from fakekube.powers.streams import ObservedStream


def arm(on: FaultSelector, action: Action, *, label: str, **often: Any) -> Fault:
    """Arms a fault with an action of this module."""
    return on.faults.arm(on.criteria, on.own, action, Frequency(**often), label)


def answer_with(error: StatusError) -> tuple[int, dict[str, Any]]:
    """Returns the status code and the Status of a refusal, as `intercept` takes them."""
    return error.code, error.status()


#: The refusal of a request while etcd chooses another leader, as `intercept` takes it.
LEADER_CHANGED = answer_with(status.StatusError(500, "InternalError", "etcdserver: leader changed"))


def asked_revision(exchange: Exchange) -> int:
    """Returns the resourceVersion of a request as a number; 0 if it has none."""
    return read_number(exchange.query.get("resourceVersion", ""))


@dataclass(slots=True, frozen=True)
class EndExpired(End):
    """Opens a watch from an expired revision and ends it at once, without an error.

    Some versions of kube-apiserver do this for watches of events, which have no watch cache.
    """

    name = "end expired"
    on_open = False
    oldest: int = 0
    """The oldest revision that is not expired."""

    def concerns(self, exchange: Exchange) -> bool:
        initial = exchange.query.get("sendInitialEvents") in ("true", "1")
        return exchange.verb == "watch" and not initial and 0 < asked_revision(exchange) < self.oldest


@dataclass(slots=True, frozen=True)
class ExpireResumed(ErrorEvent):
    """Ends a watch from a revision at once with an ERROR event; not one that asks for the present state."""

    name = "expire resumed"
    on_open = False

    def concerns(self, exchange: Exchange) -> bool:
        initial = exchange.query.get("sendInitialEvents") in ("true", "1")
        return exchange.verb == "watch" and not initial and asked_revision(exchange) > 0


@dataclass(slots=True, frozen=True)
class JoinEvents(Action):
    """Sends all waiting events in one chunk, with a bookmark before them.

    It does not apply to WebSockets, which delimit their messages.
    """

    name = "join events"
    on_others = False
    on_open = True
    combines = True

    def concerns(self, exchange: Exchange) -> bool:
        return exchange.verb == "watch" and exchange.headers.get("upgrade", "").lower() != "websocket"

    def stream(self, stream: ObservedStream, context: ActionContext) -> None:
        stream.faults.join()
        if stream.exchange.query.get("sendInitialEvents") not in ("true", "1"):
            stream.set_bookmarks("first")


@dataclass(slots=True, frozen=True)
class RefuseInText(Action):
    """Answers a request with plain text instead of a Status, as filters and proxies do. Several codes alternate."""

    name = "refuse in text"
    codes: tuple[int, ...]
    text: str
    content_type: str = "text/plain; charset=utf-8"
    retry_after: int | str | None = None
    """Seconds, or a date."""

    def __post_init__(self) -> None:
        """Skips the validation of faults that users arm."""

    def before_request(self, fault: Fault, exchange: Exchange, request: Request, context: ActionContext) -> Response | None:
        headers = [("Content-Type", self.content_type)]
        if self.retry_after is not None:
            headers.append(("Retry-After", str(self.retry_after)))
        return Response(self.codes[fault.hits % len(self.codes)], headers, self.text.encode())


@dataclass(slots=True, frozen=True)
class RefuseEach(Action):
    """Refuses each kind of write with 429 and Retry-After, as often as a budget allows."""

    name = "refuse each"
    budget: EachWrite
    retry_after: int

    def __post_init__(self) -> None:
        """Skips the validation of faults that users arm."""

    def before_request(self, fault: Fault, exchange: Exchange, request: Request, context: ActionContext) -> Response | None:
        if not self.budget.take_write(exchange):
            return None
        _, body = answer_with(status.too_many_requests("too many requests", self.retry_after))
        headers = [("Content-Type", "application/json"), ("Retry-After", str(self.retry_after))]
        return Response(429, headers, json.dumps(body) + b"\n")


@dataclass(slots=True, frozen=True)
class BreakUnanswered(Refuse):
    """Does not answer a request while the fault is armed, and then drops its connection; the request is not performed."""

    name = "break unanswered"

    def before_request(self, fault: Fault, exchange: Exchange, request: Request, context: ActionContext) -> Response | None:
        context.wait_until(lambda: fault.removed, fault.until)
        return Refuse.before_request(self, fault, exchange, request, context)


@dataclass(slots=True, frozen=True)
class BreakHalfway(Action):
    """Performs a request and breaks the connection in the middle of the answer."""

    name = "break halfway"
    on_watches = False
    may_break: Callable[[Exchange], bool]
    """Called after a request was performed; reports whether its answer breaks."""
    broken: list[Exchange]
    """Takes the requests whose answers have broken."""

    def __post_init__(self) -> None:
        """Skips the validation of faults that users arm."""

    def after_response(self, fault: Fault, exchange: Exchange, response: Response) -> None:
        if not 200 <= response.status < 300 or not self.may_break(exchange):
            return
        self.broken.append(exchange)
        truncate_body(response)


@dataclass(slots=True, frozen=True)
class IgnoreInitialEvents(Action):
    """Serves a watch with initial events as a server that does not know sendInitialEvents: no bookmark ends its first events."""

    name = "ignore initial events"
    on_others = False
    combines = True

    def concerns(self, exchange: Exchange) -> bool:
        return exchange.verb == "watch" and exchange.query.get("sendInitialEvents") in ("true", "1")

    def before_request(self, fault: Fault, exchange: Exchange, request: Request, context: ActionContext) -> Response | None:
        unknown = {"sendInitialEvents", "resourceVersionMatch"}
        pairs = [(name, value) for name, value in parse_qsl(request.query.raw, keep_blank_values=True) if name not in unknown]
        request.query = Query(urlencode(pairs))
        return None


@dataclass(slots=True, frozen=True)
class AddWarning(Action):
    """Adds a Warning header to every answer."""

    name = "add warning"
    combines = True
    on_watches = False
    text: str

    def after_response(self, fault: Fault, exchange: Exchange, response: Response) -> None:
        response.headers.append(("Warning", f'299 - "{self.text}"'))


@dataclass(slots=True, frozen=True)
class PlainBookmarkFirst(Action):
    """Sends a bookmark without annotation as the first event of a watch with initial events, and nothing after it."""

    name = "plain bookmark first"
    on_others = False

    def concerns(self, exchange: Exchange) -> bool:
        return exchange.verb == "watch" and exchange.query.get("sendInitialEvents") in ("true", "1")

    def stream(self, stream: ObservedStream, context: ActionContext) -> None:
        stream.set_bookmarks("first")
        stream.faults.silence_after(1)


@dataclass(slots=True, frozen=True)
class ShortPages(Action):
    """Returns shorter pages than the limit of the request, without remainingItemCount.

    A list with resourceVersion=0 is paginated, too, as on a server without a watch cache.
    """

    name = "short pages"
    combines = True
    on_watches = False
    size: int

    def concerns(self, exchange: Exchange) -> bool:
        return exchange.verb == "list" and exchange.query.get("limit", "0") not in ("", "0")

    def before_request(self, fault: Fault, exchange: Exchange, request: Request, context: ActionContext) -> Response | None:
        dropped = {"limit", "resourceVersion"} if exchange.query.get("resourceVersion") == "0" else {"limit"}
        pairs = [(name, value) for name, value in parse_qsl(request.query.raw, keep_blank_values=True) if name not in dropped]
        request.query = Query(urlencode([*pairs, ("limit", str(self.size))]))
        return None

    def after_response(self, fault: Fault, exchange: Exchange, response: Response) -> None:
        body = response.body
        if response.status != 200 or not isinstance(body, bytes | Chunks):
            return
        raw = body if isinstance(body, bytes) else b"".join(body)
        if not raw.startswith(b"{"):
            return
        page = json.reread(raw)
        if isinstance(page, dict) and page.get("metadata", {}).pop("remainingItemCount", None) is not None:
            response.body = json.dumps(page) + b"\n"


@dataclass(slots=True, frozen=True)
class ExpireContinue(Action):
    """Compacts the history just before a list is continued, so that the continue token is expired."""

    name = "expire continue"
    combines = True
    on_watches = False

    def concerns(self, exchange: Exchange) -> bool:
        return exchange.verb == "list" and bool(exchange.query.get("continue"))

    def before_request(self, fault: Fault, exchange: Exchange, request: Request, context: ActionContext) -> Response | None:
        context.compact()
        return None


#: How deep the fields of a body are looked at.
_DEPTH = 3


class Budget:
    """Allows something a number of times for each key.

    Args:
        times: the number of times for a key.
        most: the number of times for all keys together.
    """

    def __init__(self, times: int, most: int = 1000) -> None:
        self._times, self._most = times, most
        self._taken: Counter[object] = Counter()
        self._lock = threading.Lock()

    def take(self, key: object) -> bool:
        """Reports whether something may happen to a key once more, and counts it."""
        with self._lock:
            if self._taken[key] >= self._times or self._taken.total() >= self._most:
                return False
            self._taken[key] += 1
            return True

    @property
    def taken(self) -> int:
        """How many times something has happened."""
        return self._taken.total()


class EachWrite(Budget):
    """Allows something a number of times for each kind of write."""

    def take_write(self, exchange: Exchange) -> bool:
        """Reports whether something may happen to a write once more, and counts it."""
        return self.take(kind_of(exchange))


def kind_of(exchange: Exchange) -> object:
    """Returns a value that is equal for writes of the same verb, object and shape."""
    body = exchange.body
    name = exchange.name or (str((body.get("metadata") or {}).get("generateName")) if isinstance(body, dict) else "")
    return (exchange.verb, exchange.resource, exchange.subresource, exchange.namespace, name, shape_of(body))


def shape_of(body: Any) -> tuple[object, ...]:
    """Returns the fields of a body without their values; for a JSON patch the operations and paths."""
    if isinstance(body, list):
        return tuple((one.get("op"), one.get("path")) for one in body if isinstance(one, dict))
    return tuple(sorted(_fields(body, _DEPTH)))


def _fields(value: Any, depth: int) -> set[str]:
    if not isinstance(value, dict) or not depth:
        return set()
    found = set(value)
    for key, inner in value.items():
        found |= {f"{key}.{field}" for field in _fields(inner, depth - 1)}
    return found
