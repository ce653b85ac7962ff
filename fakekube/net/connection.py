"""Serves one client connection in a thread: reads requests, sends the responses of the application.

The thread ends with the connection, or hands it to the pump for the duration of a streaming response. At most `WAITING_THREADS`
threads of a server wait for clients, and none while several of them are busy: other connections whose handshake, header or body
has not arrived are parked, and served in turn (`leader_followers`). Keep-alive, and the end of the connection, are those of
net/http's server.

Invariant: one thread at a time owns the connection; other threads only call `abort`.
"""

from __future__ import annotations

import enum
import logging
import math
import threading
import time
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

from fakekube.net import websocket
from fakekube.net.environ import CONTINUE, NO_BODY, Body, ConnectionVariables, make_environ
from fakekube.net.http1 import BodyError, ProtocolError, Request, RequestParser
from fakekube.net.leader_followers import REQUEST_THREADS
from fakekube.net.pump import Bare, Chunked, Delivery, Framing, Progress, Raw, RequestService, WebSocketMessages
from fakekube.net.response import APPLICATION_FAILED, Answer
from fakekube.net.streams import BrokenStreamError, Stream, TruncatedStreamError, Tunnel, is_stream
from fakekube.net.transport import RECEIVE_BYTES, UNEXPECTED_ERROR, Disconnected, Transport

if TYPE_CHECKING:
    from fakekube.net.http2.connection import MultiplexedConnection


_log = logging.getLogger(__name__)

_HANDSHAKE_SECONDS = 32.0
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


class ServingLimits:
    """Counts what clients make a server hold: threads that wait for them, and bytes of bodies without a thread. Thread-safe."""

    __slots__ = ("_busy", "_lock", "_waiting_left", "parked_bytes")

    def __init__(self, waiting_threads: int = WAITING_THREADS) -> None:
        self._lock = threading.Lock()
        self._waiting_left = waiting_threads
        self._busy = 0
        self.parked_bytes = 0
        """The number of bytes of the bodies of parked connections."""

    def begin_serving(self) -> None:
        """Called when a thread begins to serve a connection."""
        with self._lock:
            self._busy += 1

    def end_serving(self) -> None:
        """Called when it has ended."""
        with self._lock:
            self._busy -= 1

    def enter(self) -> bool:
        """Reports whether the caller may wait for its client; if so, `leave` must be called afterwards.

        It may not if too many threads wait, or if another thread is busy: the two would compete for the interpreter.
        """
        with self._lock:
            if self._waiting_left <= 0 or self._busy > 1:
                return False
            self._waiting_left -= 1
            self._busy -= 1
            return True

    def leave(self) -> None:
        """Called after `enter` has returned True."""
        with self._lock:
            self._waiting_left += 1
            self._busy += 1

    def hold(self, size: int) -> None:
        """Counts bytes of a body; `release` must be called with them. Raises Disconnected if the server holds too many."""
        with self._lock:
            self.parked_bytes += size
            if self.parked_bytes > PARKED_BYTES:
                raise Disconnected("too many bytes of bodies are held")

    def release(self, size: int) -> None:
        """Called when the bytes are not held any more."""
        with self._lock:
            self.parked_bytes -= size


class _Parked(Exception):
    """The thread does not wait for the client; the connection is served in turn with others."""


class Service(RequestService, Protocol):
    """The part of the server that connections use."""

    limits: ServingLimits

    def serve(self, connection: Connection) -> None:
        """Serves the connection again, in a thread."""

    def on_connection_closed(self, connection: Connection) -> None:
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
        "_handshake_done",
        "_is_parked",
        "_multiplexed",
        "_parked_request",
        "_parser",
        "_served_by",
        "_service",
        "_spool",
        "_transport",
        "_variables",
        "body_due",
        "deadline",
    )

    def __init__(self, transport: Transport, service: Service, base: dict[str, Any]) -> None:
        """`base` has the variables for the environs of all its requests."""
        self._transport = transport
        self._service = service
        self._variables = ConnectionVariables(base)
        self._parser = RequestParser()
        self._handshake_done = False
        self.deadline = math.inf
        """The time of `time.monotonic()` at which the server aborts the connection."""
        self._served_by = 0
        self.body_due = math.inf
        """The deadline while it waits for the body of the present request."""
        self._parked_request: Request | None = None
        """The request whose body is received into `_spool`."""
        self._is_parked = False
        """Whether the leader waits for the client."""
        self._spool: bytearray | None = None
        self._multiplexed: MultiplexedConnection | None = None

    def serve(self) -> None:
        """Serves requests until the connection ends or is handed to the pump. Never raises."""
        self._service.limits.begin_serving()
        try:
            self._serve()
        finally:
            self._service.limits.end_serving()

    def _serve(self) -> None:
        after = _CLOSE
        self._served_by = threading.get_ident()
        try:
            after = _NEXT if self._handshake_done else self._shake_hands()
            while after is _NEXT:
                request = self._parked_request or self._next_request()
                after = _CLOSE if request is None else self._exchange(request)
                if after is _NEXT and self._is_parked and not self._parser.buffer:
                    self.deadline = time.monotonic() + IDLE_SECONDS
                    self._served_by = 0
                    return
        except (ProtocolError, websocket.Refused) as refusal:
            after = self._refuse(refusal.answer)
        except Disconnected:
            after = _CLOSE
        except _Parked:
            self._park()
            return
        except Exception:
            _log.exception(UNEXPECTED_ERROR)
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
        self._unpark()
        if self._spool:
            self._service.limits.release(len(self._spool))
            self._spool = None
        self._service.on_connection_closed(self)
        self._transport.close()

    def _shake_hands(self) -> _After:
        """Performs the handshake, and finds the version of HTTP. Raises _Parked."""
        if self.deadline == math.inf:
            self.deadline = time.monotonic() + _HANDSHAKE_SECONDS
        may_wait = not self._is_parked and self._service.limits.enter()
        try:
            variables = self._transport.handshake(may_wait)
        finally:
            if may_wait:
                self._service.limits.leave()
        if variables is None:
            raise _Parked
        self._variables.add(variables)
        self._handshake_done = True
        if not self._transport.speaks_http2:
            return _NEXT
        self._hand_over_to_http2()
        return _HANDED_OVER

    # --- Parked -------------------------------------------------------------------------------------------------------

    def _park(self) -> None:
        """Leaves the connection to the leader until more has arrived."""
        self._served_by = 0
        if self._is_parked:
            return
        self._is_parked = True
        try:
            REQUEST_THREADS.watch(self._transport.fileno(), self._on_readable)
        except RuntimeError:  # no thread can be started
            self._is_parked = False
            self.close()

    def _unpark(self) -> None:
        if self._is_parked:
            self._is_parked = False
            REQUEST_THREADS.forget(self._transport.fileno())

    def _on_readable(self) -> bool:
        """Receives, and serves the requests that are complete. Returns whether the connection is still parked."""
        if not self._handshake_done:
            self.serve()
            return self._is_parked
        try:
            data = self._transport.receive_now()
            if data:
                self._parser.feed(data)
            if data is not None and self._is_complete():
                self.serve()
            elif data == b"":
                self.close()
        except Disconnected:
            self.close()
        return self._is_parked

    def _is_complete(self) -> bool:
        """Reports whether the header, or the body, has arrived, or is invalid. Raises Disconnected if too much is held."""
        if self._spool is None:
            if self._parser.has_head:
                return True
            if self._parser.buffer:
                self.deadline = min(self.deadline, time.monotonic() + HEAD_SECONDS)
            return False
        try:
            while piece := self._parser.body(RECEIVE_BYTES):
                self._spool += piece
                self._service.limits.hold(len(piece))
        except BodyError:
            return True  # raised again to the reader of the body
        return piece is not None or len(self._spool) > _PARKED_BODY_BYTES

    def _hand_over_to_http2(self) -> None:
        from fakekube.net.http2.connection import MultiplexedConnection

        self._unpark()
        self._multiplexed = MultiplexedConnection(self._transport, self._service, self._variables, self)
        self._multiplexed.start()

    def _next_request(self) -> Request | None:
        """Returns the next request; None if the client has ended the connection. Raises ProtocolError for an invalid request."""
        parser = self._parser
        request = parser.request() if parser.buffer else None
        if request is None:
            self.deadline = time.monotonic() + (HEAD_SECONDS if parser.buffer else IDLE_SECONDS)
        while request is None:
            has_begun = bool(parser.buffer)
            if self._is_parked or not self._service.limits.enter():
                raise _Parked
            try:
                data = self._transport.receive()
            finally:
                self._service.limits.leave()
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
        transport, limits = self._transport, self._service.limits
        length = request.fields.length
        if length == 0:
            return self._answer(request, NO_BODY)
        waits = False
        if self._spool is None and (length is None or length > len(self._parser.buffer)):
            self.body_due = time.monotonic() + BODY_SECONDS
            waits = not self._is_parked and limits.enter()
            if not waits:
                self._begin_spool(request)
        spool = self._spool
        if spool is not None:
            self.deadline = math.inf
            self._parked_request = self._spool = None
            limits.release(len(spool))
        body = Body(request, self._parser, transport, self, spool)
        try:
            return self._answer(request, body)
        finally:
            body.detach()
            if waits:
                limits.leave()

    def _begin_spool(self, request: Request) -> None:
        """Receives the body before the application is called. Raises _Parked unless it has arrived already."""
        if request.fields.expects_continue:
            self._transport.send(CONTINUE)
        self._parked_request, self._spool = request, bytearray()
        self.deadline = self.body_due
        if not self._is_complete():
            raise _Parked

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
        environ = make_environ(self._variables, request, body.open())
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
            if not isinstance(error, TruncatedStreamError):
                self._transport.reset()
            raise Disconnected(str(error)) from None
        except BodyError as error:
            if answer.head is not None:
                raise
            raise ProtocolError from error
        except Exception:
            _log.exception(APPLICATION_FAILED, request.method, request.target)
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
                self._unpark()
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
        delivery = Delivery(stream, framing, self._transport, self._on_stream_end)
        self._transport.set_blocking(False)
        if delivery.begin(head) is not Progress.ENDED:
            return delivery
        self._transport.set_blocking(True)
        return None

    def _on_stream_end(self, reusable: bool) -> None:
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


def _is_tunnel(stream: Stream) -> TypeGuard[Tunnel]:
    """Reports whether the stream has another protocol."""
    return hasattr(stream, "receive")
