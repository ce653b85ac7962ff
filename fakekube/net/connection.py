"""Serves one client connection in a thread: reads requests, sends the responses of the application.

The thread ends with the connection, or hands it to the pump for the duration of a streaming response. At most `WAITING_THREADS`
threads of a server wait for clients, whatever their number: other connections whose handshake, header or body has not arrived are
parked, and the loop receives for them. Keep-alive, and the end of
the connection, are those of net/http's server.

Invariant: one thread at a time owns the connection; other threads only call `abort`.
"""

from __future__ import annotations

import enum
import functools
import logging
import math
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

from fakekube.net import websocket
from fakekube.net.answer import Answer
from fakekube.net.body import CONTINUE, Body
from fakekube.net.environ import make_environ
from fakekube.net.framing import Bare, Chunked, Framing, Raw, WebSocketMessages
from fakekube.net.http1 import BodyError, ProtocolError, Request, RequestParser
from fakekube.net.loop import READ
from fakekube.net.pump import Delivery, Progress, Pump
from fakekube.net.streams import BrokenStreamError, Stream, Tunnel
from fakekube.net.transport import RECEIVE_BYTES, Disconnected, Transport

if TYPE_CHECKING:
    from fakekube.net.http2.connection import MultiplexedConnection

__all__ = ["Application", "Connection", "Service", "WaitingThreads", "is_stream"]

_logger = logging.getLogger(__name__)

HANDSHAKE_SECONDS = 32.0
HEAD_SECONDS = 32.0
IDLE_SECONDS = 90.0
"""The timeouts of kube-apiserver (secure_serving.go)."""
BODY_SECONDS = 60.0
"""The time for a body, from the request's header: the --request-timeout of kube-apiserver."""
WAITING_THREADS = 64
"""The maximum number of threads of a server that wait for clients."""
_PARKED_BODY_BYTES = 4 << 20
"""A longer body of a parked connection gets a thread; the API accepts 3 MiB."""
PARKED_BYTES = 256 << 20
"""The maximum number of bytes of the bodies of parked connections of a server; beyond it the connection is closed."""

Application = Callable[[dict[str, Any], Callable[..., Callable[[bytes], object]]], Iterable[bytes]]


class WaitingThreads:
    """Counts the threads that wait for clients. Thread-safe."""

    __slots__ = ("_left", "_lock")

    def __init__(self, limit: int = WAITING_THREADS) -> None:
        self._lock = threading.Lock()
        self._left = limit

    def enter(self) -> bool:
        """Counts the caller; returns False if there are too many. `leave` must be called after it has waited."""
        with self._lock:
            if self._left <= 0:
                return False
            self._left -= 1
            return True

    def leave(self) -> None:
        """Called after `enter` has returned True."""
        with self._lock:
            self._left += 1


class _Parked(Exception):
    """The thread leaves the connection to the loop, because too many threads wait."""


class Service(Protocol):
    """The part of the server that connections use."""

    application: Application
    pump: Pump
    waiting: WaitingThreads
    max_streams: int
    """The maximum number of concurrent requests on a connection with HTTP/2."""
    goaway_chance: float
    """The probability with which such a request is the last one of its connection."""
    parked_bytes: int
    """The number of bytes of the bodies of parked connections. Used in the loop's thread only."""

    def date(self) -> str:
        """Returns the value of Date for a response now."""

    def serve(self, connection: Connection) -> None:
        """Serves the connection again, in a thread."""

    def closed(self, connection: Connection) -> None:
        """Called when the connection is closed."""


class _After(enum.Enum):
    """The state of the connection after an exchange."""

    NEXT = enum.auto()
    CLOSE = enum.auto()
    LINGER = enum.auto()
    """Close after a moment: the client may still be sending, and would lose the response by a reset."""
    HANDED_OVER = enum.auto()


# Enum members are slow to look up before Python 3.12.
_NEXT, _CLOSE, _LINGER, _HANDED_OVER = _After


class Connection:
    """A client's connection."""

    __slots__ = (
        "_base",
        "_body_due",
        "_handshake_done",
        "_multiplexed",
        "_parked_request",
        "_parser",
        "_served_by",
        "_service",
        "_spool",
        "_transport",
        "deadline",
    )

    def __init__(self, transport: Transport, service: Service, base: dict[str, Any]) -> None:
        """`base` has the variables for the environs of all its requests."""
        self._transport = transport
        self._service = service
        self._base = base
        self._parser = RequestParser()
        self._handshake_done = False
        self.deadline = math.inf
        """The time of `time.monotonic()` at which the server aborts the connection."""
        self._served_by = 0
        self._body_due = math.inf
        self._parked_request: Request | None = None
        """The request whose body the loop receives into `_spool`."""
        self._spool: bytearray | None = None
        self._multiplexed: MultiplexedConnection | None = None

    def serve(self) -> None:
        """Serves requests until the connection ends or is handed to the pump. Never raises."""
        after = _CLOSE
        self._served_by = threading.get_ident()
        try:
            self._handshake()
            after = _NEXT
            if self._transport.speaks_http2:
                self._hand_over_to_http2()
                after = _HANDED_OVER
            while after is _NEXT:
                request = self._parked_request or self._next_request()
                after = _CLOSE if request is None else self._exchange(request)
        except (ProtocolError, websocket.Refused) as refusal:
            after = self._refuse(refusal.answer)
        except Disconnected:
            after = _CLOSE
        except _Parked:
            self._park()
            return
        except Exception:
            _logger.exception("Unexpected error on a connection")
            after = _CLOSE
        if after is _LINGER:
            self._transport.linger()
        if after is not _HANDED_OVER:
            self.close()

    @property
    def served_by(self) -> int:
        """The identifier of the thread that serves the connection."""
        return self._served_by if self._multiplexed is None else self._multiplexed.served_by

    def abort(self) -> None:
        """Ends the connection from any thread; the thread that serves it closes it."""
        if self._multiplexed is not None:
            self._multiplexed.abort()
        else:
            self._transport.abort()

    def close(self) -> None:
        """Closes the connection; only called by its owner."""
        self.deadline = math.inf
        self._service.closed(self)
        self._transport.close()

    def _handshake(self) -> None:
        if self._handshake_done:
            return
        if self.deadline == math.inf:
            self.deadline = time.monotonic() + HANDSHAKE_SECONDS
        may_wait = self._service.waiting.enter()
        try:
            variables = self._transport.handshake(may_wait)
        finally:
            if may_wait:
                self._service.waiting.leave()
        if variables is None:
            raise _Parked
        self._base |= variables
        self._handshake_done = True

    # ------------------------------------------------------------ parked, in the loop's thread

    def _park(self) -> None:
        """Leaves the connection to the loop until more has arrived."""
        self._served_by = 0
        self._transport.set_blocking(False)
        loop = self._service.pump.loop
        watch = functools.partial(self._transport.watch, loop, READ, self._arrived)
        if not loop.call(watch if not self._handshake_done else functools.partial(self._arrived, READ, watch)):
            self.close()

    def _arrived(self, _events: int, watch: Callable[[], None] | None = None) -> None:
        """Receives for the connection, and returns it to a thread when a header or body is complete."""
        is_complete = not self._handshake_done
        if self._handshake_done:
            try:
                data = self._transport.receive_ready()
            except Disconnected:
                data = b""
            if data == b"":
                self._service.parked_bytes -= len(self._spool or b"")
                self._transport.watch(self._service.pump.loop, 0, lambda events: None)
                self.close()
                return
            if data:
                self._parser.feed(data)
            is_complete = self._is_complete()
        if not is_complete:
            if self._service.parked_bytes > PARKED_BYTES and self._spool is not None:
                self._transport.abort()  # the loop finds the end of the connection next
            if watch is not None:
                watch()
            return
        self._service.parked_bytes -= len(self._spool or b"")
        if watch is None:
            self._transport.watch(self._service.pump.loop, 0, lambda events: None)
        self._transport.set_blocking(True)
        self._service.serve(self)

    def _is_complete(self) -> bool:
        """Reports whether the header, or the body, has arrived, or is invalid."""
        if self._spool is None:
            if self._parser.buffer:
                self.deadline = min(self.deadline, time.monotonic() + HEAD_SECONDS)
            return self._parser.has_head
        try:
            while piece := self._parser.body(RECEIVE_BYTES):
                self._spool += piece
                self._service.parked_bytes += len(piece)
        except BodyError:
            return True  # raised again to the reader of the body
        return piece is not None or len(self._spool) > _PARKED_BODY_BYTES

    def _hand_over_to_http2(self) -> None:
        from fakekube.net.http2.connection import MultiplexedConnection

        self._multiplexed = MultiplexedConnection(self._transport, self._service, self._base, self)
        self._multiplexed.start()

    def _next_request(self) -> Request | None:
        """Returns the next request; None if the client has ended the connection. Raises ProtocolError for an invalid request."""
        parser = self._parser
        request = parser.request() if parser.buffer else None
        if request is None:
            self.deadline = time.monotonic() + (HEAD_SECONDS if parser.buffer else IDLE_SECONDS)
        while request is None:
            has_begun = bool(parser.buffer)
            if not self._service.waiting.enter():
                raise _Parked
            try:
                data = self._transport.receive()
            finally:
                self._service.waiting.leave()
            if not data:
                return None
            parser.feed(data)
            request = parser.request()
            if request is None and not has_begun:
                self.deadline = time.monotonic() + HEAD_SECONDS
        self.deadline = math.inf
        return request

    def _exchange(self, request: Request) -> _After:
        """Serves one request. Raises _Parked if its body has not arrived, and too many threads wait."""
        transport, waiting = self._transport, self._service.waiting
        length, spool = request.fields.length, self._spool
        waits = False
        if spool is not None:
            self.deadline = math.inf
            self._parked_request = self._spool = None
        elif length is None or length > len(self._parser.buffer):
            self._body_due = time.monotonic() + BODY_SECONDS
            waits = waiting.enter()
            if not waits:
                self._spool_body(request)
        body = Body(request, self._parser, transport, self._waits_for_body, spool)
        try:
            return self._answer(request, body)
        finally:
            body.detach()
            if waits:
                waiting.leave()

    def _spool_body(self, request: Request) -> None:
        """Makes the loop receive the body. Raises _Parked."""
        if request.fields.expects_continue:
            self._transport.send(CONTINUE)
        self._parked_request, self._spool = request, bytearray()
        self.deadline = self._body_due
        raise _Parked

    def _waits_for_body(self, waits: bool) -> None:
        self.deadline = self._body_due if waits else math.inf

    def _answer(self, request: Request, body: Body) -> _After:
        transport = self._transport
        answer = Answer(request, body, transport, self._service.date)
        if request.fields.expectation_failed:
            answer.send_plain("417 Expectation Failed", [("Connection", "close")])
        elif request.target == "*" and request.method == "OPTIONS":
            answer.send_plain("200 OK")
        elif self._run(request, body, answer):
            return _HANDED_OVER
        if answer.is_complete:
            return _NEXT
        return _LINGER if self._parser.unread != 0 else _CLOSE

    def _run(self, request: Request, body: Body, answer: Answer) -> bool:
        """Calls the application and sends its response; returns True if the connection is handed to the pump."""
        environ = make_environ(self._base, request, body.open())
        try:
            result = self._service.application(environ, answer.start_response)
            if is_stream(result):
                return self._stream(environ, answer, result)
            try:
                answer.send_result(result)
            finally:
                if hasattr(result, "close"):
                    result.close()
        except (Disconnected, websocket.Refused):
            raise
        except BrokenStreamError as error:
            if answer.status and answer.head is None:
                answer.write(b"")  # the body broke before its first byte
            self._transport.reset()
            raise Disconnected(str(error)) from None
        except BodyError as error:
            if answer.head is not None:
                raise
            raise ProtocolError from error
        except Exception:
            _logger.exception("The application failed: %s %s", request.method, request.target)
            if answer.head is not None:
                raise Disconnected("the application failed after the header was sent") from None
            answer.send_plain("500 Internal Server Error", text=b"500 Internal Server Error")
        return False

    def _stream(self, environ: dict[str, Any], answer: Answer, stream: Stream) -> bool:
        """Begins a streaming response; returns True if it continues and the connection is handed to the pump."""
        handed_over = False
        try:
            begun = self._begin(environ, answer, stream)
            if begun is not None:
                handed_over = self._service.pump.add(begun)
                if not handed_over:
                    begun.conclude()
                    raise Disconnected("the server stops")
            return handed_over
        finally:
            if not handed_over:
                stream.close()

    def _begin(self, environ: dict[str, Any], answer: Answer, stream: Stream) -> Delivery | None:
        """Sends the header and the frames that are available; returns None if the response is complete."""
        framing: Framing
        if answer.status.startswith("101") and _is_tunnel(stream):
            head = answer.encode_switch()
            framing = Raw(stream, self._parser)
        elif answer.status.startswith("101"):
            head = websocket.handshake(environ)
            framing = WebSocketMessages(bool(getattr(stream, "binary", False)))
        else:
            encoded = answer.encode_head(None)
            head = encoded.data
            if not encoded.has_body:
                self._transport.send(head)
                return None
            framing = Chunked(self._parser, encoded.keep_alive) if encoded.chunked else Bare(self._parser)
        delivery = Delivery(stream, framing, self._transport, self._released)
        self._transport.set_blocking(False)
        if delivery.begin(head) is not Progress.ENDED:
            return delivery
        self._transport.set_blocking(True)
        return None

    def _released(self, reusable: bool) -> None:
        """Called when the pump has ended the response."""
        if reusable:
            self._transport.set_blocking(True)
            self._service.serve(self)
        else:
            self.close()

    def _refuse(self, answer: bytes) -> _After:
        try:
            self._transport.send(answer)
        except Disconnected:
            return _CLOSE
        return _LINGER


def is_stream(result: object) -> TypeGuard[Stream]:
    """Reports whether a result of the application is a `fakekube.net.streams.Stream`."""
    return not isinstance(result, (list, tuple)) and hasattr(result, "take") and hasattr(result, "source")


def _is_tunnel(stream: Stream) -> TypeGuard[Tunnel]:
    """Reports whether the stream has another protocol."""
    return hasattr(stream, "receive")
