"""The socket of an HTTP/2 connection, which several threads share, and the transport of a watch on it.

The loop's thread receives and sends pending bytes. Threads hold `_lock` while they use the protocol or the socket, and do not
wait for the client meanwhile. Once a request was served, the leader of the request threads receives (`_is_parked`), and serves
requests one after the other; the loop receives again when another thread takes the lead.

`StreamTransport` is the transport of a watch on a stream, for the pump: the client's windows limit what it sends, not a socket.
The pump calls it in the loop's thread; the thread that serves the request calls it to begin a watch. Events are reported in the
loop's thread only.

Invariants:

* The loop receives, or the leader, unless the client does not read responses.
* The socket is closed, and the server notified, when the connection has ended and no thread serves it.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Protocol

from fakekube.base.threads import WORKERS
from fakekube.net.http2.frames import ErrorCode
from fakekube.net.http2.protocol import Protocol as ServerProtocol
from fakekube.net.http2.stream import RequestStream
from fakekube.net.leader_followers import REQUEST_THREADS
from fakekube.net.loop import READ, WRITE, Loop
from fakekube.net.pump import RequestService
from fakekube.net.transport import UNEXPECTED_ERROR, Disconnected, Transport

_log = logging.getLogger(__name__)


class Multiplexer(Protocol):
    """The part of the connection that streams use."""

    def send_now(self, stream: RequestStream, data: bytes | bytearray | memoryview) -> int:
        """Sends as much as the windows accept, and returns the number of bytes. Raises Disconnected if the stream has ended."""

    def end_stream(self, stream: RequestStream) -> None:
        """Ends the response."""

    def break_stream(self, stream: RequestStream) -> None:
        """Resets the stream."""

    def listen(self, stream: RequestStream, transport: StreamTransport | None) -> None:
        """Reports the events of a stream to `transport`; None ends this."""


class StreamTransport(Transport):
    """The transport of one stream."""

    __slots__ = ("_happened", "_multiplexer", "_stream", "wants_write")

    def __init__(self, multiplexer: Multiplexer, stream: RequestStream) -> None:
        self._multiplexer = multiplexer
        self._stream = stream
        self._happened: Callable[[int], None] | None = None
        self.wants_write = False

    def fileno(self) -> int:
        return -1

    def set_blocking(self, blocking: bool) -> None:
        """Does nothing: a stream never blocks."""

    def watch(self, loop: Loop, events: int, happened: Callable[[int], None]) -> None:
        self._happened = happened if events else None
        self.wants_write = bool(events & WRITE)
        self._multiplexer.listen(self._stream, self if events else None)

    def notify(self) -> None:
        """Called in the loop's thread when the windows may be larger, or the stream may have ended."""
        happened = self._happened
        if happened is None:
            return
        if self._stream.closed:
            happened(READ)
        elif self.wants_write:
            happened(WRITE)

    def receive_ready(self) -> bytes | None:
        return b"" if self._stream.closed else None

    def send_ready(self, data: bytes | bytearray | memoryview) -> int:
        if self._stream.closed:
            raise Disconnected("the stream has ended")
        return self._multiplexer.send_now(self._stream, data)

    def finish(self, last: bytes) -> None:
        self._multiplexer.end_stream(self._stream)

    def reset(self) -> None:
        self._multiplexer.break_stream(self._stream)


class Unframed:
    """The framing of a watch on a stream: frames are concatenated, and the response ends with the stream."""

    key = "bare"
    last = b""
    reusable = True
    client_closed = False
    paused = False

    def frame(self, frames: list[bytes]) -> bytes:
        return b"".join(frames)

    def receive(self, data: bytes) -> bytes:
        return b""


_PREFACE_SECONDS = 10.0
"""The timeout for the preface and the first SETTINGS (prefaceTimeout)."""
_IDLE_SECONDS = 90.0
"""The idle timeout of kube-apiserver (secure_serving.go)."""
BODY_SECONDS = 60.0
"""The time for bodies while no request of the connection is served."""
_GOAWAY_SECONDS = 1.0
"""The time for the last frames of a connection after an error (goAwayTimeout)."""


class Owner(Protocol):
    """The connection as the server knows it."""

    deadline: float

    def close(self) -> None:
        """Called once, when the connection has ended and no thread serves it."""


class ConnectionSocket:
    """Receives and sends for one connection until it ends; a subclass serves the requests."""

    def __init__(self, transport: Transport, service: RequestService, owner: Owner) -> None:
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
        self._is_parked = False
        """Whether the leader of the request threads receives."""
        self._received: deque[RequestStream] = deque()
        """Requests that the leader has received and no thread has begun to serve."""
        self._flush_called = False
        self._ended = self._closed = False
        self._is_silent = False
        self._running = 0
        """The number of requests that threads serve, or will."""
        self._listeners: dict[RequestStream, StreamTransport] = {}
        """The watches in the pump."""
        self._blocked: dict[RequestStream, StreamTransport] = {}
        """Those that have more to send than the windows accept."""

    def start(self) -> None:
        """Hands the socket to the loop."""
        self._owner.deadline = time.monotonic() + _PREFACE_SECONDS
        self._transport.set_blocking(False)
        if not self._loop.call(lambda: self._on_events(READ)):
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

    def _serve_in_worker(self, stream: RequestStream) -> None:
        """Serves a request in another thread."""
        raise NotImplementedError

    def _on_readable(self) -> bool:
        """Receives in the leader's thread, and serves what has arrived. Returns whether the leader still receives."""
        raise NotImplementedError

    # --- The socket, with the lock held -------------------------------------------------------------------------------

    def _receive(self) -> list[RequestStream]:
        """Receives data, processes it, and sends replies; returns the requests to serve now."""
        protocol = self._protocol
        try:
            data = self._transport.receive_ready()
            if data:
                protocol.receive(data)
            elif data is not None:
                raise Disconnected("the client has ended the connection")
            if protocol.output:
                self._send()
        except Disconnected:
            self._lose()
        except Exception:
            _log.exception(UNEXPECTED_ERROR)
            protocol.fail(ErrorCode.INTERNAL_ERROR)
        return self._count_new_requests()

    def _count_new_requests(self) -> list[RequestStream]:
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
            protocol.on_sent()

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

    def _send_until_full(self) -> None:
        """Sends output until the socket is full."""
        if self._ended:
            self._protocol.output.clear()
            return
        try:
            self._send()
        except Disconnected:
            self._lose()

    def _send_or_leave(self) -> None:
        """Sends output until the socket is full; leaves the rest to the loop."""
        self._send_until_full()
        if not self._ended:
            self._leave_to_loop()

    def _leave_to_loop(self) -> None:
        """Makes the loop's thread continue, if there is work left."""
        protocol, listeners = self._protocol, self._listeners
        if protocol.ended and not (listeners and any(stream in listeners for stream in protocol.ended)):
            protocol.ended.clear()  # no watch is among them
        somebody_waits = protocol.ended or (protocol.changed and (self._blocked or self._waiting))
        if protocol.output or protocol.has_waiting or protocol.is_finished or somebody_waits:
            self._call_flush()

    def _call_flush(self) -> None:
        if not self._flush_called:
            self._flush_called = True
            self._loop.call(self._flush)

    def _watch(self, events: int) -> None:
        """Makes the loop call `_on_events` for these events only."""
        if events != self._events:
            self._events = events
            self._loop.watch(self._transport.fileno(), events, self._on_events)

    def _park(self) -> None:
        """Makes the leader receive instead of the loop, unless the connection ends or the client does not read responses."""
        protocol = self._protocol
        if self._is_parked or self._ended or protocol.failed or protocol.is_congested or not self._loop.is_concurrent:
            return
        if self._received:  # they are left to the loop
            return
        try:
            REQUEST_THREADS.watch(self._transport.fileno(), self._on_readable, self._on_lead_taken)
        except RuntimeError:  # no thread can be started
            return
        self._is_parked = True
        self._watch(self._events & WRITE)

    def _unpark(self) -> None:
        """Makes the loop receive instead of the leader, and serve in workers what the leader has received."""
        if self._is_parked:
            self._is_parked = False
            REQUEST_THREADS.forget(self._transport.fileno())
            self._call_flush()

    def _receive_as_leader(self) -> None:
        """Receives in the leader's thread, unless the loop does."""
        if self._is_parked:
            self._received += self._receive()
            if self._protocol.failed or self._protocol.is_congested:
                self._unpark()
            elif self._received:  # what else there is to do is left to the loop when they are served, or the lead is taken
                self._owner.deadline = math.inf
            else:
                self._set_deadline()
                self._leave_to_loop()

    # --- In any thread ------------------------------------------------------------------------------------------------

    def _on_lead_taken(self) -> None:
        """Called when the thread in `_on_readable` does not lead any more."""
        with self._lock:
            self._unpark()

    # --- In the loop's thread -----------------------------------------------------------------------------------------

    def _flush(self) -> None:
        self._flush_called = False
        self._on_events(0)

    def _on_events(self, events: int) -> None:
        protocol = self._protocol
        with self._lock:
            if self._ended:
                return
            if events & READ:
                started = self._receive()
            else:
                started = self._count_new_requests()
                if not self._is_parked:  # the lead was taken from the thread that would serve them
                    started += self._received
                    self._received.clear()
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
            self._serve_in_worker(stream)
        if is_gone:
            self._end_connection()
        self._notify(ended, has_changed)

    def _update_watch(self) -> None:
        """Makes the loop watch the events that the connection waits for. With the lock held."""
        protocol = self._protocol
        if protocol.is_congested:
            self._unpark()
        events = 0 if protocol.is_congested or self._is_parked else READ
        self._watch(events | WRITE if protocol.output else events)
        self._set_deadline()

    def _set_deadline(self) -> None:
        """Sets the deadline for what is expected of the client. With the lock held."""
        if self._protocol.failed:
            self._owner.deadline = min(self._owner.deadline, time.monotonic() + _GOAWAY_SECONDS)
        elif self._protocol.settings_received:
            self._set_idle_deadline()

    def _set_idle_deadline(self) -> None:
        """Sets the deadline of a connection without requests, or with nothing but incomplete ones."""
        if not self._protocol.streams:
            self._owner.deadline = time.monotonic() + _IDLE_SECONDS
        elif self._protocol.only_receives:
            self._owner.deadline = min(self._owner.deadline, time.monotonic() + BODY_SECONDS)
        else:
            self._owner.deadline = math.inf

    def _notify(self, ended: Iterable[RequestStream], has_changed: bool) -> None:
        """Notifies the watches that have ended, and those that can send more."""
        for stream in ended:
            listener = self._listeners.get(stream)
            if listener is not None:
                listener.notify()
        if has_changed:
            for listener in list(self._blocked.values()):
                listener.notify()

    def _end_connection(self) -> None:
        """Ends the connection; closes the socket if no thread uses it."""
        self._owner.deadline = math.inf
        with self._lock:
            self._ended = True
            self._unpark()
            self._loop.forget(self._transport.fileno())
            self._protocol.close()
            self._changed.notify_all()
            ended, self._protocol.ended = self._protocol.ended, []
            is_unused = self._is_unused()
        self._notify(ended, has_changed=False)
        if is_unused:
            self._close()

    def _is_unused(self) -> bool:
        """Reports, once, that the connection has ended and no thread serves it. With the lock held."""
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
