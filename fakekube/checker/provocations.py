"""Fault actions that only checks use.

Invariant: like the actions in fakekube.powers they invent no state of the cluster: they refuse requests, end watches, or return
shorter lists.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode

from fakekube.apimachinery.codecs import json
from fakekube.apimachinery.codecs.framing import Chunks
from fakekube.apiserver.endpoints.request import Query, Response
from fakekube.powers.actions import End
from fakekube.powers.fault import Action, Frequency

if TYPE_CHECKING:
    from fakekube.apiserver.endpoints.request import Request
    from fakekube.checker.each_write import EachWrite
    from fakekube.powers.action_context import ActionContext
    from fakekube.powers.exchange import Exchange
    from fakekube.powers.fault import Fault
    from fakekube.powers.faults import FaultSelector
    from fakekube.powers.streams import ObservedStream


def arm(on: FaultSelector, action: Action, *, label: str, **often: Any) -> Fault:
    """Arms a fault with an action of this module."""
    return on.faults.arm(on.criteria, on.own, action, Frequency(**often), label)


def status_object(code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> dict[str, Any]:
    """Returns a Status object of a failed request."""
    failure = {"status": "Failure", "message": message, "reason": reason, "code": code}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, **failure, **({"details": details} if details else {})}


def asked_revision(exchange: Exchange) -> int:
    """Returns the resourceVersion of a request as a number; 0 if it has none."""
    text = exchange.query.get("resourceVersion", "")
    return int(text) if text.isdigit() else 0


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
        stream.join()
        if stream.exchange.query.get("sendInitialEvents") not in ("true", "1"):
            stream.set_bookmarks("first")


@dataclass(slots=True, frozen=True)
class RefuseInText(Action):
    """Answers a request with plain text instead of a Status, as filters and proxies do. Several codes alternate."""

    name = "refuse in text"
    codes: tuple[int, ...]
    text: str
    content_type: str = "text/plain; charset=utf-8"
    retry_after: int | None = None

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
        details = {"retryAfterSeconds": self.retry_after}
        body = status_object(429, "TooManyRequests", "too many requests", details)
        headers = [("Content-Type", "application/json"), ("Retry-After", str(self.retry_after))]
        return Response(429, headers, json.dumps(body) + b"\n")


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
        stream.silence_after(1)


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
