"""Serves a connection that speaks HTTP/2: the socket is the loop's, a request has a thread while the application answers it.

The loop's thread receives, sends what is left over, and serves all watches; worker threads run the application and send what the
client takes. All of them hold `_lock` while they touch the protocol or the socket, and none waits for a client while it holds it.
Invariant: the socket is closed by the loop's thread, and the connection is said to be closed when no application runs for it any
more.
"""

from __future__ import annotations

import functools
import logging
import math
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Protocol

from fakekube.server.connection import Service, is_stream
from fakekube.server.environ import make_environ
from fakekube.server.http1 import BodyError
from fakekube.server.http2 import frames
from fakekube.server.http2.answer import StreamAnswer
from fakekube.server.http2.body import open_body
from fakekube.server.http2.frames import ErrorCode
from fakekube.server.http2.protocol import Protocol as ServerProtocol
from fakekube.server.http2.stream import RequestStream
from fakekube.server.http2.stream_transport import StreamTransport, Unframed
from fakekube.server.loop import READ, WRITE
from fakekube.server.pump import Delivery, Progress
from fakekube.server.transport import Disconnected, Transport
from fakekube.streams import BrokenStreamError, Stream
from fakekube.threads import WORKERS

__all__ = ["MultiplexedConnection"]

_logger = logging.getLogger(__name__)

_GREETING_SECONDS = 10.0
"""For the preface and the first SETTINGS (prefaceTimeout)."""
_IDLE_SECONDS = 90.0
"""As kube-apiserver sets it (secure_serving.go)."""
_GOODBYE_SECONDS = 1.0
"""For the last frames of a connection that went wrong (goAwayTimeout)."""
_CONTINUE = b"\x08\x03100"
"""The header block of `100 Continue`."""

_PLAIN_TEXT = (("Content-Type", "text/plain; charset=utf-8"), ("X-Content-Type-Options", "nosniff"))
_TOO_LARGE = b"<h1>HTTP Error 431</h1><p>Request Header Field(s) Too Large</p>"


class Owner(Protocol):
    """The connection as its server knows it."""

    deadline: float

    def close(self) -> None:
        """Called once, when everything has ended."""


class MultiplexedConnection:
    """Serves one connection until it ends."""

    def __init__(self, transport: Transport, service: Service, base: dict[str, Any], owner: Owner) -> None:
        """`base` are the variables of all its requests' environs."""
        self._transport = transport
        self._service = service
        self._base = base
        self._owner = owner
        self._loop = service.pump.loop
        self._protocol = ServerProtocol(service.max_streams)
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._waiting = 0
        self._events = 0
        self._flush_called = False
        self._ended = self._closed = False
        self._running = 0
        self._threads: set[int] = set()
        self._listeners: dict[RequestStream, StreamTransport] = {}
        self._blocked: dict[RequestStream, StreamTransport] = {}

    def start(self) -> None:
        """Give the socket to the loop's thread."""
        self._owner.deadline = time.monotonic() + _GREETING_SECONDS
        self._transport.set_blocking(False)
        if not self._loop.call(lambda: self._happened(READ)):
            self._ended = True
            self._owner.close()

    def abort(self) -> None:
        """End the connection, from any thread; the loop's will close it."""
        with self._lock:
            if not self._ended:
                self._protocol.go_away()
                with suppress(Disconnected):
                    self._send()
        self._transport.abort()

    @property
    def served_by(self) -> int:
        """The identifier of the thread that serves it, if there is only one."""
        with self._lock:
            return next(iter(self._threads)) if len(self._threads) == self._running == 1 else 0

    # ------------------------------------------------------------ in the loop's thread

    def _happened(self, events: int) -> None:
        if self._ended:
            return
        protocol = self._protocol
        with self._lock:
            try:
                if events & READ:
                    self._receive()
                self._send()
                is_gone = protocol.is_finished and not protocol.output
            except Disconnected:
                protocol.close()
                protocol.output.clear()
                is_gone = True
            started = self._started()
            ended, protocol.ended = protocol.ended, []
            has_changed, protocol.changed = protocol.changed, False
            if has_changed and self._waiting:
                self._changed.notify_all()
        for stream in started:
            self._start(stream)
        if is_gone:
            self._end()
        else:
            self._attend()
        self._tell(ended, has_changed)

    def _receive(self) -> None:
        data = self._transport.receive_ready()
        if data:
            self._protocol.receive(data)
        elif data is not None:
            raise Disconnected("the client has ended the connection")

    def _send(self) -> None:
        """Send what the socket takes, and what it made room for. With the lock held."""
        protocol = self._protocol
        output = protocol.output
        while output:
            sent = self._transport.send_ready(output)
            if not sent:
                break
            del output[:sent]
            protocol.drained()

    def _started(self) -> list[RequestStream]:
        started: list[RequestStream] = []
        while (stream := self._protocol.next_request()) is not None:
            started.append(stream)
        self._running += len(started)
        return started

    def _attend(self) -> None:
        """Have the loop watch for what can happen next to the socket."""
        protocol = self._protocol
        events = 0 if protocol.is_congested else READ
        if protocol.output:
            events |= WRITE
        if events != self._events:
            self._events = events
            self._loop.watch(self._transport.fileno(), events, self._happened)
        if protocol.failed:
            self._owner.deadline = min(self._owner.deadline, time.monotonic() + _GOODBYE_SECONDS)
        elif protocol.greeted:
            self._owner.deadline = math.inf if protocol.streams else time.monotonic() + _IDLE_SECONDS

    def _tell(self, ended: Iterable[RequestStream], has_changed: bool) -> None:
        """Have the pump go on with watches whose clients take more, or that have ended."""
        for stream in ended:
            listener = self._listeners.get(stream)
            if listener is not None:
                listener.tell()
        if has_changed:
            for listener in list(self._blocked.values()):
                listener.tell()

    def _end(self) -> None:
        """Nothing more will be sent: close the socket."""
        self._loop.forget(self._transport.fileno())
        self._owner.deadline = math.inf
        with self._lock:
            self._ended = True
            self._protocol.close()
            self._changed.notify_all()
            ended, self._protocol.ended = self._protocol.ended, []
            is_unused = self._is_unused()
        self._tell(ended, has_changed=False)
        if is_unused:
            self._close()

    def _is_unused(self) -> bool:
        """True once: the connection has ended, and no application runs for it. With the lock held."""
        if self._closed or not self._ended or self._running:
            return False
        self._closed = True
        return True

    def _close(self) -> None:
        """Close the socket, and let the client hear why before if it did something wrong."""
        if self._protocol.went_wrong:
            with suppress(RuntimeError):
                WORKERS.run(self._linger)
                return
        self._owner.close()

    def _linger(self) -> None:
        self._transport.linger()
        self._owner.close()

    def _call_flush(self) -> None:
        """Have the loop's thread send, and look at what is left. With the lock held."""
        if not self._flush_called:
            self._flush_called = True
            self._loop.call(self._flush)

    def _flush(self) -> None:
        self._flush_called = False
        self._happened(0)

    # ------------------------------------------------------------ in worker threads

    def _start(self, stream: RequestStream) -> None:
        try:
            WORKERS.run(functools.partial(self._serve, stream))
        except RuntimeError:
            with self._lock:
                self._running -= 1
                self._protocol.answered()
                self._protocol.reset(stream.stream_id, ErrorCode.REFUSED_STREAM)
                self._call_flush()

    def _serve(self, stream: RequestStream) -> None:
        """Answer one request. Never raises."""
        thread = threading.get_ident()
        with self._lock:
            self._threads.add(thread)
        goes_on = False
        try:
            goes_on = self._exchange(stream)
        except Disconnected:
            self.break_stream(stream)
        except Exception:
            _logger.exception("Unexpected error on a stream")
            self.break_stream(stream)
        with self._lock:
            self._threads.discard(thread)
            self._running -= 1
            if not goes_on:
                self._protocol.answered()
                # Streams that end here may let others begin, and the connection become idle.
                self._call_flush_if_needed()
            is_unused = self._is_unused()
        if is_unused:
            self._close()

    def _call_flush_if_needed(self) -> None:
        protocol = self._protocol
        if protocol.output or protocol.has_waiting or protocol.ended or not protocol.streams:
            self._call_flush()

    def _exchange(self, stream: RequestStream) -> bool:
        """Have the application answer; true if the answer goes on in the pump."""
        request = stream.request
        answer = StreamAnswer(stream, self, self._service.date)
        fault = request.fields.fault
        if fault.startswith("400"):
            answer.give_plain("400 Bad Request", _PLAIN_TEXT, fault[4:].encode() + b"\n")
        elif fault:
            answer.give_plain("431 Request Header Fields Too Large", [("Content-Type", "text/html; charset=utf-8")], _TOO_LARGE)
        elif request.target == "*" and request.method == "OPTIONS":
            answer.give_plain("200 OK", (), b"")
        else:
            return self._run(stream, answer)
        return False

    def _run(self, stream: RequestStream, answer: StreamAnswer) -> bool:
        request = stream.request
        environ = make_environ(self._base, request, open_body(self, stream, self._whole_body(stream)))
        try:
            result = self._service.application(environ, answer.start_response)
            if is_stream(result):
                return self._stream(stream, answer, result)
            try:
                answer.give(result)
            finally:
                if hasattr(result, "close"):
                    result.close()
        except Disconnected:
            raise
        except (BrokenStreamError, BodyError):
            self.break_stream(stream)
        except Exception:
            _logger.exception("The application failed: %s %s", request.method, request.target)
            self.break_stream(stream)
        return False

    def _whole_body(self, stream: RequestStream) -> bytes | None:
        """The request's body, if all of it has come."""
        if stream.remote_ended and not stream.received:
            return b"" if not stream.body_error else None
        with self._lock:
            if not stream.remote_ended or stream.body_error or stream.closed:
                return None
            return self._protocol.read_body(stream, len(stream.body))

    def _stream(self, stream: RequestStream, answer: StreamAnswer, body: Stream) -> bool:
        """Begin a streaming answer; true if it goes on, and is the pump's."""
        handed_over = False
        try:
            if not answer.status.startswith("101") and answer.begin():
                transport = StreamTransport(self, stream)
                delivery = Delivery(body, Unframed(), transport, functools.partial(self._released, stream))
                if delivery.begin(b"") is Progress.ENDED:
                    self.send_end(stream)
                else:
                    handed_over = self._service.pump.add(delivery)
                    if not handed_over:
                        delivery.conclude()
            elif not answer.head_sent:
                self.break_stream(stream)  # protocols cannot be switched here
            return handed_over
        finally:
            if not handed_over:
                body.close()

    def _released(self, stream: RequestStream, is_complete: bool) -> None:
        """The pump is done with a stream."""
        with self._lock:
            self._protocol.answered()
            if not stream.closed and is_complete:
                self._protocol.send_data(stream, b"", ends=True)
            elif not stream.closed:
                self._protocol.reset(stream.stream_id, ErrorCode.INTERNAL_ERROR)
            self._call_flush()

    def read_body(self, stream: RequestStream, limit: int) -> bytes:
        """See `body.BodySource`. Raises BodyError if the body cannot be read to its end."""
        with self._lock:
            if stream.request.fields.expects_continue and not stream.received and not stream.closed and not stream.continued:
                stream.continued = True
                self._protocol.output += frames.frame(frames.HEADERS, frames.END_HEADERS, stream.stream_id, _CONTINUE)
                self._send_or_leave()
            while not stream.body:
                if stream.body_error:
                    raise BodyError(stream.body_error)
                if stream.body_is_complete:
                    return b""
                self._wait()
            piece = self._protocol.read_body(stream, limit)
            self._send_or_leave()
            return piece

    def send_answer(self, stream: RequestStream, block: bytes, body: bytes | None) -> None:
        """See `answer.AnswerSink`."""
        with self._lock:
            protocol = self._protocol
            protocol.send_head(stream, block, ends=not body)
            if body:
                protocol.send_rest(stream, body, ends=True)
            self._send_or_leave()

    def send_head(self, stream: RequestStream, block: bytes) -> None:
        """See `answer.AnswerSink`."""
        with self._lock:
            self._protocol.send_head(stream, block, ends=False)
            self._send_or_leave()

    def send_piece(self, stream: RequestStream, data: bytes) -> None:
        """See `answer.AnswerSink`. Raises Disconnected if the stream has ended."""
        view = memoryview(data)
        with self._lock:
            while view:
                if stream.closed:
                    raise Disconnected("the stream has ended")
                sent = self._protocol.send_data(stream, view)
                self._send_or_leave()
                view = view[sent:]
                if not sent and view:
                    self._wait()

    def send_end(self, stream: RequestStream) -> None:
        """See `answer.AnswerSink`."""
        with self._lock:
            self._protocol.send_data(stream, b"", ends=True)
            self._send_or_leave()

    def go_away_after(self, stream: RequestStream) -> None:
        """See `answer.AnswerSink`."""
        stream.is_last = True

    def _wait(self) -> None:
        """Wait until something has changed. With the lock held."""
        self._waiting += 1
        try:
            self._changed.wait()
        finally:
            self._waiting -= 1

    def _send_or_leave(self) -> None:
        """Send what the socket takes; the rest is the loop's. With the lock held."""
        if self._ended:
            self._protocol.output.clear()
            return
        try:
            self._send()
        except Disconnected:
            self._protocol.close()
        protocol = self._protocol
        if protocol.output or protocol.failed or (protocol.changed and (self._blocked or self._waiting)):
            self._call_flush()

    # ------------------------------------------------------------ for streams in the pump

    def send_now(self, stream: RequestStream, data: bytes | bytearray | memoryview) -> int:
        """See `stream_transport.Multiplexer`."""
        with self._lock:
            sent = self._protocol.send_data(stream, data)
            self._call_flush()
            return sent

    def end_stream(self, stream: RequestStream) -> None:
        """See `stream_transport.Multiplexer`."""
        with self._lock:
            self._protocol.send_data(stream, b"", ends=True)
            self._call_flush()

    def break_stream(self, stream: RequestStream) -> None:
        """See `stream_transport.Multiplexer`: as Go's server ends the stream of a handler that panics."""
        with self._lock:
            if not stream.closed:
                self._protocol.reset(stream.stream_id, ErrorCode.INTERNAL_ERROR)
                self._call_flush()

    def listen(self, stream: RequestStream, transport: StreamTransport | None) -> None:
        """See `stream_transport.Multiplexer`."""
        with self._lock:
            self._listeners.pop(stream, None)
            self._blocked.pop(stream, None)
            if transport is None:
                return
            self._listeners[stream] = transport
            if transport.wants_write:
                self._blocked[stream] = transport
            may_send = self._protocol.may_send(stream)
        if stream.closed or (transport.wants_write and may_send):
            self._loop.call(transport.tell)
