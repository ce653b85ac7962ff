"""Records the API server's calls of webhooks as exchanges with the verb `call`, and applies faults with that verb to them.

    cluster.faults.on("call", "pods").refuse()
    cluster.faults.on("call", path="/validate*").delay(20)      # longer than its timeoutSeconds

Invariant: errors have the texts of Go's net/http, so that the API responds as with a real webhook that fails in this way.

Specified by: k8s.io/apiserver/pkg/util/webhook/client.go; net/http of Go.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from fakekube.apimachinery.codecs import json
from fakekube.apis.rest.cluster_access import CallError, CallTimeoutError
from fakekube.apiserver.endpoints.negotiation import JSON, PLAIN_TEXT
from fakekube.apiserver.endpoints.request import RequestInfo
from fakekube.apiserver.webhooks.transport import Answer, Endpoint
from fakekube.base.golang.strconv import go_quote
from fakekube.base.golang.urls import refused_dial
from fakekube.base.objects import Object
from fakekube.controllers.client.client import OWN
from fakekube.powers.exchange import WEBHOOKS_USER_AGENT, Exchange
from fakekube.powers.fault import CALL

if TYPE_CHECKING:
    from fakekube.base.clock import Clock
    from fakekube.powers.action_context import ActionContext
    from fakekube.powers.fault import Fault


def exchange_of(number: int, endpoint: Endpoint, body: bytes, review: Object, clock: Clock) -> Exchange:
    """Returns the exchange of a call, with the resource and the object of the review."""
    url = urlsplit(endpoint.url)
    environ = {
        "REQUEST_METHOD": "POST",
        "QUERY_STRING": url.query,
        "HTTP_HOST": url.netloc,
        "HTTP_USER_AGENT": WEBHOOKS_USER_AGENT,
        "CONTENT_TYPE": JSON,
        OWN: True,
    }
    exchange = Exchange(number, environ, url.path, clock)
    asked = review.get("request") or {}
    resource = asked.get("resource") or {}
    exchange.info = RequestInfo(
        url.path,
        CALL,
        True,
        group=resource.get("group", ""),
        version=resource.get("version", ""),
        namespace=asked.get("namespace", ""),
        resource=resource.get("resource", ""),
        subresource=asked.get("subResource", ""),
        name=asked.get("name", ""),
    )
    exchange.user = (asked.get("userInfo") or {}).get("username", "")
    exchange.raw_body = body
    return exchange


class ObservedCall:
    """A call in progress; implements `apiserver.webhooks.caller.CallObservation`."""

    def __init__(
        self,
        exchange: Exchange,
        endpoint: Endpoint,
        seconds: float,
        hits: Sequence[Fault],
        *,
        context: ActionContext,
        notify: Callable[[], None],
    ) -> None:
        self.exchange = exchange
        self.endpoint = endpoint
        self.context = context
        self._began = time.perf_counter()
        self._deadline = time.monotonic() + seconds
        self._hits = hits
        self._notify = notify
        self.has_faults = bool(hits)

    def perform(self, send: Callable[[], Answer]) -> Answer:
        """See `CallObservation`."""
        for fault in self._hits:
            send = _WRAPPERS[fault.action.name](self, fault, send)
        try:
            answer = send()
            self.exchange.status = answer.status
            self.exchange.raw_answer = answer.body
            self.exchange.answer_headers = [("Content-Type", answer.headers.get("content-type", JSON))]
            return answer
        except CallError as error:
            self.exchange.ended = str(error)
            raise
        finally:
            self.exchange.seconds = time.perf_counter() - self._began
            self._notify()

    def error_of(self, problem: str) -> CallError:
        """Returns the error of a failed call with the text of Go's HTTP client."""
        return CallError(f"Post {go_quote(self.endpoint.url)}: {problem}")

    def wait(self, is_over: Callable[[], bool], due: float | None = None) -> None:
        """Waits until `is_over()` or until the clock reaches `due`. Raises CallTimeoutError after the timeout of the call."""
        if not self.context.wait_until(is_over, due, max(self._deadline - time.monotonic(), 0.0)):
            raise CallTimeoutError(f"Post {go_quote(self.endpoint.url)}: context deadline exceeded")


Send = Callable[[], Answer]


def _status(call: ObservedCall, fault: Fault, send: Send) -> Send:
    action: Any = fault.action
    text = (action.message or "").encode()
    return lambda: Answer(action.code, {"content-type": PLAIN_TEXT}, text)


def _refuse(call: ObservedCall, fault: Fault, send: Send) -> Send:
    def fail_to_connect() -> Answer:
        url = urlsplit(call.endpoint.url)
        host, port = call.endpoint.address or (url.hostname or "", url.port or 443)
        raise call.error_of(refused_dial(f"{host}:{port}"))

    return fail_to_connect


def _lose(call: ObservedCall, fault: Fault, send: Send) -> Send:
    def lose_answer() -> Answer:
        send()
        raise call.error_of("EOF")

    return lose_answer


def _delay(call: ObservedCall, fault: Fault, send: Send) -> Send:
    def send_later() -> Answer:
        action: Any = fault.action
        seconds = action.seconds + (fault.dice.uniform(0.0, action.jitter) if action.jitter else 0.0)
        call.wait(lambda: fault.removed, call.context.clock.monotonic() + seconds)
        return send()

    return send_later


def _hang(call: ObservedCall, fault: Fault, send: Send) -> Send:
    def hanging() -> Answer:
        call.wait(lambda: fault.removed, fault.until)
        return send()

    return hanging


def _halve(call: ObservedCall, fault: Fault, send: Send) -> Send:
    def send_half() -> Answer:
        answer = send()
        return Answer(answer.status, answer.headers, answer.body[: len(answer.body) // 2])

    return send_half


def _intercept(call: ObservedCall, fault: Fault, send: Send) -> Send:
    def call_function() -> Answer:
        action: Any = fault.action
        given = action.function(call.exchange)
        return send() if given is None else Answer(given[0], {"content-type": JSON}, json.dumps(given[1]))

    return call_function


#: Name of an action → the function that wraps the sending of a call.
_WRAPPERS: Mapping[str, Callable[[ObservedCall, Fault, Send], Send]] = {
    "status": _status,
    "refuse": _refuse,
    "lose": _lose,
    "delay": _delay,
    "hang": _hang,
    "malformed": _halve,
    "intercept": _intercept,
}
