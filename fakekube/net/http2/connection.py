"""Serves a connection with HTTP/2: its requests, and each watch in the pump.

The requests of all connections are served in turn by the leader of the request threads (`leader_followers`), which receives from
them, too. While the application takes long, the loop receives (`connection_socket`), and each request has a worker thread. The
thread that serves a request sends as much of the response as the client's windows and the socket accept.
"""

from __future__ import annotations

import functools
import logging
import threading

from fakekube.base.threads import WORKERS
from fakekube.net.environ import ConnectionVariables
from fakekube.net.http1 import BodyError
from fakekube.net.http2 import frames
from fakekube.net.http2.connection_socket import ConnectionSocket, Owner, StreamTransport
from fakekube.net.http2.exchange import exchange
from fakekube.net.http2.frames import ErrorCode
from fakekube.net.http2.stream import RequestStream
from fakekube.net.leader_followers import REQUEST_THREADS
from fakekube.net.pump import RequestService
from fakekube.net.transport import Disconnected, Transport

_log = logging.getLogger(__name__)

_CONTINUE = b"\x08\x03100"
"""The header block of `100 Continue`."""


class MultiplexedConnection(ConnectionSocket):
    """Serves one connection until it ends."""

    def __init__(self, transport: Transport, service: RequestService, variables: ConnectionVariables, owner: Owner) -> None:
        """`variables` has those for the environs of all its requests."""
        super().__init__(transport, service, owner)
        self.service = service
        self.variables = variables
        self._threads: set[int] = set()

    @property
    def served_by(self) -> int:
        """The identifier of the thread that serves the connection, if there is exactly one; else 0."""
        with self._lock:
            return next(iter(self._threads)) if len(self._threads) == self._running == 1 else 0

    # --- In the threads that serve ------------------------------------------------------------------------------------

    def _serve_in_worker(self, stream: RequestStream) -> None:
        try:
            WORKERS.run(functools.partial(self._serve, stream))
        except RuntimeError:
            with self._lock:
                self._running -= 1
                self._protocol.end_request()
                self._protocol.reset(stream.stream_id, ErrorCode.REFUSED_STREAM)
                self._call_flush()

    def _serve(self, stream: RequestStream) -> None:
        """Serves a request in a worker. Never raises."""
        with self._lock:
            self._threads.add(threading.get_ident())
        goes_on = self._exchange(stream)
        with self._lock:
            self._end_request(goes_on)
            is_unused = self._is_unused()
        if is_unused:
            self._close()

    def _on_readable(self) -> bool:
        is_unused = False
        with self._lock:
            self._receive_as_leader()
            stream = self._begin_next()
        while stream is not None:
            goes_on = self._exchange(stream)
            with self._lock:
                self._end_request(goes_on)
                stream = self._begin_next()
                is_unused = self._is_unused()
        if is_unused:
            self._close()
        return self._is_parked

    def _begin_next(self) -> RequestStream | None:
        """Returns a request that the leader has received, for this thread to serve. With the lock held."""
        if not self._received:
            return None
        self._threads.add(threading.get_ident())
        return self._received.popleft()

    def _end_request(self, goes_on: bool) -> None:
        """Called when a request is served, or its response is handed to the pump. With the lock held."""
        protocol = self._protocol
        if not goes_on:
            protocol.end_request()
        self._threads.discard(threading.get_ident())
        self._running -= 1
        if not protocol.streams and not protocol.failed:
            self._set_idle_deadline()
        if not self._is_parked:
            self._park()
        self._leave_to_loop()

    def _exchange(self, stream: RequestStream) -> bool:
        try:
            return exchange(self, stream)
        except Disconnected:
            pass
        except Exception:
            _log.exception("Unexpected error on a stream")
        self.break_stream(stream)
        return False

    # --- For exchanges ------------------------------------------------------------------------------------------------

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
        """See `exchange.AnswerSink`."""
        with self._lock:
            protocol = self._protocol
            protocol.send_head(stream, block, ends=not body)
            if body:
                protocol.send_rest(stream, body)
            self._park()  # before the client can send its next request, so that the loop does not receive it
            self._send_until_full()  # the rest is left to the loop at the end of the request, which is now

    def send_head(self, stream: RequestStream, block: bytes) -> None:
        """See `exchange.AnswerSink`."""
        with self._lock:
            self._protocol.send_head(stream, block, ends=False)
            if stream.is_last:
                self._protocol.go_away()  # now, because the body may take long
            self._send_or_leave()

    def send_piece(self, stream: RequestStream, data: bytes) -> None:
        """See `exchange.AnswerSink`. Raises Disconnected if the stream has ended."""
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
        """See `exchange.AnswerSink`."""
        with self._lock:
            self._protocol.send_data(stream, b"", ends=True)
            self._send_or_leave()

    def go_away_after(self, stream: RequestStream) -> None:
        """See `exchange.AnswerSink`."""
        stream.is_last = True

    def _wait(self) -> None:
        """Waits for a change of the protocol, which another thread receives. With the lock held."""
        self._unpark()
        REQUEST_THREADS.yield_lead()
        self._waiting += 1
        try:
            self._changed.wait()
        finally:
            self._waiting -= 1

    # --- For watches in the pump --------------------------------------------------------------------------------------

    def send_now(self, stream: RequestStream, data: bytes | bytearray | memoryview) -> int:
        """See `connection_socket.Multiplexer`."""
        with self._lock:
            sent = self._protocol.send_data(stream, data)
            self._call_flush()
            return sent

    def end_stream(self, stream: RequestStream) -> None:
        """See `connection_socket.Multiplexer`."""
        with self._lock:
            self._protocol.send_data(stream, b"", ends=True)
            self._call_flush()

    def break_stream(self, stream: RequestStream) -> None:
        """See `connection_socket.Multiplexer`. The error code is that of Go's server after a panic of the handler."""
        with self._lock:
            if not stream.closed:
                self._protocol.reset(stream.stream_id, ErrorCode.INTERNAL_ERROR)
                self._call_flush()

    def listen(self, stream: RequestStream, transport: StreamTransport | None) -> None:
        """See `connection_socket.Multiplexer`."""
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

    def on_stream_end(self, stream: RequestStream, is_complete: bool) -> None:
        """See `exchange.Host`."""
        with self._lock:
            self._protocol.end_request()
            if not stream.closed and is_complete:
                self._protocol.send_data(stream, b"", ends=True)
            elif not stream.closed:
                self._protocol.reset(stream.stream_id, ErrorCode.INTERNAL_ERROR)
            self._call_flush()
