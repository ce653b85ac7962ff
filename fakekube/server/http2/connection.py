"""Serves a connection with HTTP/2: the loop owns the socket, and each request has a thread while the application serves it.

The loop's thread receives, sends pending bytes, and serves all watches; worker threads run the application and send as much as
the client's windows and the socket accept. Threads hold `_lock` while they use the protocol or the socket, and do not wait for
the client meanwhile. A worker that has sent a response polls the socket itself for a moment, so that a client with one request
after the other is served without a change of threads. It returns the socket to the loop while it serves a request.

Invariant: the socket is closed, and the server notified, when the connection has ended and no worker serves it.
"""

from __future__ import annotations

import functools
import logging
import math
import select
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Protocol

from fakekube.server.connection import Service
from fakekube.server.http1 import BodyError
from fakekube.server.http2 import frames
from fakekube.server.http2.exchange import exchange
from fakekube.server.http2.frames import ErrorCode
from fakekube.server.http2.protocol import Protocol as ServerProtocol
from fakekube.server.http2.stream import RequestStream
from fakekube.server.http2.stream_transport import StreamTransport
from fakekube.server.loop import READ, WRITE
from fakekube.server.transport import Disconnected, Transport
from fakekube.threads import WORKERS

__all__ = ["MultiplexedConnection"]

_logger = logging.getLogger(__name__)

_PREFACE_SECONDS = 10.0
"""The timeout for the preface and the first SETTINGS (prefaceTimeout)."""
_IDLE_SECONDS = 90.0
"""The idle timeout of kube-apiserver (secure_serving.go)."""
_GOAWAY_SECONDS = 1.0
"""The time for the last frames of a connection after an error (goAwayTimeout)."""
_LISTENING_MILLISECONDS = 100
"""How long a worker waits for the next request."""
_CONTINUE = b"\x08\x03100"
"""The header block of `100 Continue`."""


class Owner(Protocol):
    """The connection as the server knows it."""

    deadline: float

    def close(self) -> None:
        """Called once, when the connection has ended and no worker serves it."""


class MultiplexedConnection:
    """Serves one connection until it ends."""

    def __init__(self, transport: Transport, service: Service, base: dict[str, Any], owner: Owner) -> None:
        """`base` has the variables for the environs of all its requests."""
        self.service = service
        self.base = base
        self._transport = transport
        self._owner = owner
        self._loop = service.pump.loop
        self._protocol = ServerProtocol(service.max_streams)
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._waiting = 0
        """The number of threads that wait for `_changed`."""
        self._events = 0
        """The events that the loop watches."""
        self._poll: select.poll | None = None
        self._listener = 0
        """The identifier of the worker thread that polls the socket for the next request, or will; 0 for none."""
        self._flush_called = False
        self._ended = self._closed = False
        self._is_silent = False
        self._running = 0
        self._threads: set[int] = set()
        self._listeners: dict[RequestStream, StreamTransport] = {}
        self._blocked: dict[RequestStream, StreamTransport] = {}

    def start(self) -> None:
        """Hands the socket to the loop."""
        self._owner.deadline = time.monotonic() + _PREFACE_SECONDS
        self._transport.set_blocking(False)
        if not self._loop.call(lambda: self._happened(READ)):
            self._ended = True
            self._owner.close()

    def abort(self) -> None:
        """Ends the connection from any thread; the loop's thread closes it."""
        with self._lock:
            if not self._ended:
                self._protocol.go_away()
                with suppress(Disconnected):
                    self._send()
        self._transport.abort()

    @property
    def served_by(self) -> int:
        """The identifier of the thread that serves the connection, if there is exactly one; else 0."""
        with self._lock:
            return next(iter(self._threads)) if len(self._threads) == self._running == 1 else 0

    # ------------------------------------------------------------ the socket, with the lock held

    def _receive(self) -> list[RequestStream]:
        """Receives data, processes it, and sends replies; returns the requests to serve now."""
        protocol = self._protocol
        try:
            data = self._transport.receive_ready()
            if data:
                protocol.receive(data)
            elif data is not None:
                raise Disconnected("the client has ended the connection")
            self._send()
        except Disconnected:
            self._lose()
        except Exception:
            _logger.exception("Unexpected error on a connection")
            protocol.fail(ErrorCode.INTERNAL_ERROR)
        return self._started()

    def _started(self) -> list[RequestStream]:
        started: list[RequestStream] = []
        while (stream := self._protocol.next_request()) is not None:
            started.append(stream)
        self._running += len(started)
        return started

    def _send(self) -> None:
        """Sends output until the socket is full."""
        protocol = self._protocol
        output = protocol.output
        while output:
            sent = len(output) if self._is_silent else self._transport.send_ready(output)
            if not sent:
                break
            del output[:sent]
            protocol.drained()

    def fall_silent(self) -> None:
        """See `exchange.Host`."""
        if self._is_silent:
            return
        with self._lock, suppress(Disconnected):
            self._send()  # earlier output
        self._is_silent = True

    def _lose(self) -> None:
        """Ends all streams, because the client has disconnected."""
        self._protocol.close()
        self._protocol.output.clear()

    def _send_or_leave(self) -> None:
        """Sends output until the socket is full; leaves the rest to the loop."""
        if self._ended:
            self._protocol.output.clear()
            return
        try:
            self._send()
        except Disconnected:
            self._lose()
        self._leave_to_loop()

    def _leave_to_loop(self) -> None:
        """Makes the loop's thread continue, if there is work left."""
        protocol, listeners = self._protocol, self._listeners
        if protocol.ended and not any(stream in listeners for stream in protocol.ended):
            protocol.ended.clear()  # no watch is among them
        somebody_waits = protocol.ended or (protocol.changed and (self._blocked or self._waiting))
        if protocol.output or protocol.has_waiting or protocol.is_finished or somebody_waits:
            self._call_flush()

    def _call_flush(self) -> None:
        if not self._flush_called:
            self._flush_called = True
            self._loop.call(self._flush)

    def _watch(self, events: int) -> None:
        """Makes the loop call `_happened` for these events only."""
        if events != self._events:
            self._events = events
            self._loop.watch(self._transport.fileno(), events, self._happened)

    # ------------------------------------------------------------ in the loop's thread

    def _flush(self) -> None:
        self._flush_called = False
        self._happened(0)

    def _happened(self, events: int) -> None:
        protocol = self._protocol
        with self._lock:
            if self._ended:
                return
            if events & READ:
                started = self._receive()
            else:
                started = self._started()
                try:
                    self._send()
                except Disconnected:
                    self._lose()
            ended, protocol.ended = protocol.ended, []
            has_changed, protocol.changed = protocol.changed, False
            if has_changed and self._waiting:
                self._changed.notify_all()
            is_gone = protocol.is_finished and not protocol.output
            if not is_gone:
                self._update_watch()
        for stream in started:
            self._start(stream)
        if is_gone:
            self._end()
        self._notify(ended, has_changed)

    def _update_watch(self) -> None:
        """Makes the loop watch the events that the connection waits for. With the lock held."""
        protocol = self._protocol
        events = 0 if protocol.is_congested or self._listener else READ
        self._watch(events | WRITE if protocol.output else events)
        if protocol.failed:
            self._owner.deadline = min(self._owner.deadline, time.monotonic() + _GOAWAY_SECONDS)
        elif protocol.settings_received:
            self._owner.deadline = math.inf if protocol.streams else time.monotonic() + _IDLE_SECONDS

    def _notify(self, ended: Iterable[RequestStream], has_changed: bool) -> None:
        """Notifies the watches that have ended, and those that can send more."""
        for stream in ended:
            listener = self._listeners.get(stream)
            if listener is not None:
                listener.notify()
        if has_changed:
            for listener in list(self._blocked.values()):
                listener.notify()

    def _end(self) -> None:
        """Ends the connection; closes the socket if no worker uses it."""
        self._owner.deadline = math.inf
        with self._lock:
            self._ended = True
            self._loop.forget(self._transport.fileno())
            self._protocol.close()
            self._changed.notify_all()
            ended, self._protocol.ended = self._protocol.ended, []
            is_unused = self._is_unused()
        self._notify(ended, has_changed=False)
        if is_unused:
            self._close()

    def _is_unused(self) -> bool:
        """Reports, once, that the connection has ended and no worker serves it. With the lock held."""
        if self._closed or not self._ended or self._running:
            return False
        self._closed = True
        return True

    def _close(self) -> None:
        """Closes the socket; after a GOAWAY or an error, first gives the client time to read it."""
        if self._protocol.going_away or self._protocol.error_sent:
            with suppress(RuntimeError):
                WORKERS.run(self._linger)
                return
        self._owner.close()

    def _linger(self) -> None:
        self._transport.linger()
        self._owner.close()

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
        """Serves a request, and those that follow soon. Never raises."""
        thread = threading.get_ident()
        with self._lock:
            self._threads.add(thread)
        following: RequestStream | None = stream
        while following is not None:
            goes_on = self._exchange(following)
            following = self._answered(goes_on)
        with self._lock:
            self._threads.discard(thread)
            self._running -= 1
            is_unused = self._is_unused()
        if is_unused:
            self._close()

    def _exchange(self, stream: RequestStream) -> bool:
        try:
            return exchange(self, stream)
        except Disconnected:
            pass
        except Exception:
            _logger.exception("Unexpected error on a stream")
        self.break_stream(stream)
        return False

    def _answered(self, goes_on: bool) -> RequestStream | None:
        """Called when a request is served, or its response is handed to the pump; returns the next request for this thread."""
        protocol = self._protocol
        with self._lock:
            if not goes_on:
                protocol.answered()
            self._leave_to_loop()
            if not protocol.streams and not protocol.failed:
                self._owner.deadline = time.monotonic() + _IDLE_SECONDS
            self._claim_listening()
            if self._listener != threading.get_ident():
                return None
        return self._listen()

    def _claim_listening(self) -> None:
        """Takes the socket from the loop, to poll it in this thread, unless another worker does. With the lock held."""
        protocol = self._protocol
        if not (self._listener or self._ended or protocol.failed or protocol.is_congested) and self._loop.is_concurrent:
            self._listener = threading.get_ident()
            self._watch(self._events & WRITE)

    def _listen(self) -> RequestStream | None:
        """Polls the socket for the next request for a while."""
        if self._poll is None:
            self._poll = select.poll()
            self._poll.register(self._transport.fileno(), select.POLLIN)
        started: list[RequestStream] = []
        while not started and self._listener:
            is_ready = bool(self._poll.poll(_LISTENING_MILLISECONDS))
            with self._lock:
                if is_ready and not self._ended:
                    started = self._receive()
                    self._leave_to_loop()
                if started or not is_ready or self._ended or self._protocol.failed:
                    self._stop_listening()
        if not started:
            return None
        with self._lock:
            self._running -= 1  # this thread is counted already
        for stream in started[1:]:
            self._start(stream)
        return started[0]

    def _stop_listening(self) -> None:
        """Returns the socket to the loop. With the lock held."""
        self._listener = 0
        if not self._ended:
            self._update_watch()

    # ------------------------------------------------------------ for exchanges

    def whole_body(self, stream: RequestStream) -> bytes | None:
        """See `exchange.Host`."""
        if stream.remote_ended and not stream.received:
            return b"" if not stream.body_error else None
        with self._lock:
            if not stream.remote_ended or stream.body_error or stream.closed:
                return None
            return self._protocol.read_body(stream, len(stream.body))

    def read_body(self, stream: RequestStream, limit: int) -> bytes:
        """See `body.BodySource`. Raises BodyError if the body cannot be read to its end."""
        with self._lock:
            if stream.request.fields.expects_continue and not (stream.received or stream.closed or stream.continued):
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
                protocol.send_rest(stream, body)
            # Before the client can send its next request, so that this thread and not the loop receives it.
            self._claim_listening()
            self._send_or_leave()

    def send_head(self, stream: RequestStream, block: bytes) -> None:
        """See `answer.AnswerSink`."""
        with self._lock:
            self._protocol.send_head(stream, block, ends=False)
            if stream.is_last:
                self._protocol.go_away()  # now, because the body may take long
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
        """Waits for a change of the protocol. With the lock held."""
        self._waiting += 1
        try:
            self._changed.wait()
        finally:
            self._waiting -= 1

    # ------------------------------------------------------------ for watches in the pump

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
        """See `stream_transport.Multiplexer`. The error code is that of Go's server after a panic of the handler."""
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
            self._loop.call(transport.notify)

    def released(self, stream: RequestStream, is_complete: bool) -> None:
        """See `exchange.Host`."""
        with self._lock:
            self._protocol.answered()
            if not stream.closed and is_complete:
                self._protocol.send_data(stream, b"", ends=True)
            elif not stream.closed:
                self._protocol.reset(stream.stream_id, ErrorCode.INTERNAL_ERROR)
            self._call_flush()
