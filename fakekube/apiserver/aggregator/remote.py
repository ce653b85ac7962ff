"""A backend behind a TLS connection, with the error messages of Go's net/http, and upgrades of connections to it.

Every exchange has a connection of its own. The deadline applies to all reads and writes, and the size of the response head is
limited; the body is forwarded as it is received, with any size. Only clusters with a remote backend import this module.

After the backend has switched protocols (SPDY, WebSocket), bytes are forwarded unchanged in both directions. The tunnel has a
thread that reads from and writes to the backend; the server reads from the tunnel and writes the bytes of the client to it. The
buffers of both directions are limited: a slow side makes the other one wait.

Specified by: net/http (Transport.RoundTrip) as far as its errors are seen; k8s.io/client-go/transport;
k8s.io/apimachinery/pkg/util/proxy/upgradeaware.go (tryUpgrade).
"""

from __future__ import annotations

import os
import selectors
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from fakekube.apiserver.aggregator.backends import (
    MAX_READ_AHEAD,
    BackendError,
    BackendRequest,
    BackendResponse,
    BackendTimeoutError,
    ForwardedBody,
    header,
)
from fakekube.apiserver.aggregator.headers import response_headers
from fakekube.apiserver.endpoints.request import Response
from fakekube.apiserver.webhooks.connections import ConnectionFailedError
from fakekube.apiserver.webhooks.transport import CONNECTION_BROKEN, DEADLINE_EXCEEDED, Endpoint, connect
from fakekube.base.golang.strings import bytes_of
from fakekube.base.threads import WORKERS
from fakekube.net.http1 import BodyError, responses
from fakekube.net.http1.responses import ConnectionEndedError, MalformedResponseError, ResponseReader, decompress_gzip
from fakekube.net.streams import Notifier

_PIECE = 65536
_DIAL_SECONDS = 30.0
"""The timeout of dialing (net.Dialer of the default transport)."""


class RemoteBackend:
    """A server at a network address as a `backends.Backend`."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def connect(self, deadline: float | None) -> Connection:
        """Opens a new connection. Raises BackendError."""
        return Connection(self._endpoint, deadline)

    def send(self, request: BackendRequest, deadline: float | None) -> BackendResponse:
        connection = self.connect(deadline)
        try:
            decompress = _accept_gzip(request)
            connection.write(request)
            return connection.read_response(request.method, decompress=decompress)
        except BaseException:
            connection.close()
            raise


def _serialize_head(request: BackendRequest) -> bytes:
    """Returns the request line and headers of a request in wire format."""
    lines = [f"{request.method} {request.target} HTTP/1.1", *(f"{name}: {value}" for name, value in request.headers)]
    if request.length is None:
        lines.append("Transfer-Encoding: chunked")
    elif request.length or request.method in ("POST", "PUT", "PATCH"):
        lines.append(f"Content-Length: {request.length}")
    return bytes_of("\r\n".join([line.replace("\r", " ").replace("\n", " ") for line in lines] + ["", ""]))


def _accept_gzip(request: BackendRequest) -> bool:
    """Adds Accept-Encoding: gzip if the client sent none. Returns whether the response must be decompressed here."""
    names = {name.lower() for name, _ in request.headers}
    if request.method == "HEAD" or "accept-encoding" in names or "range" in names:
        return False
    request.headers.append(("Accept-Encoding", "gzip"))
    return True


class Connection:
    """A connection to a server, for one exchange. Raises BackendError when it cannot be made."""

    def __init__(self, endpoint: Endpoint, deadline: float | None) -> None:
        self._deadline = deadline
        limit = time.monotonic() + _DIAL_SECONDS
        try:
            self.socket = connect(endpoint, limit if deadline is None else min(limit, deadline))
        except TimeoutError:
            raise BackendTimeoutError(DEADLINE_EXCEEDED) from None
        except ConnectionFailedError as error:
            raise BackendError(str(error)) from None
        self._receiving = threading.Lock()
        """Held while a thread receives: the descriptor must not stand for another connection until it is done."""
        self.reader = ResponseReader(self._receive)

    def write(self, request: BackendRequest) -> None:
        """Sends the request. A write error is ignored: the server may have responded before it has read the whole body."""
        head = _serialize_head(request)
        try:
            for piece in request.body:
                self._send(head + (b"%x\r\n%b\r\n" % (len(piece), piece) if request.length is None else piece))
                head = b""
            if head or request.length is None:
                self._send(head + (b"0\r\n\r\n" if request.length is None else b""))
        except TimeoutError:
            raise BackendTimeoutError(DEADLINE_EXCEEDED) from None
        except OSError:
            return

    def _send(self, data: bytes) -> None:
        self._apply_deadline()
        self.socket.sendall(data)
        if hasattr(socket, "TCP_QUICKACK"):  # a server that writes head and body apart waits for an ACK in between
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)

    def _apply_deadline(self) -> None:
        """Sets the timeout of the socket to the time left. Raises TimeoutError if the deadline has passed."""
        if self._deadline is None:
            self.socket.settimeout(None)
            return
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.socket.settimeout(left)

    def _receive(self) -> bytes:
        """Receives bytes; none at the end of the stream. Raises OSError."""
        with self._receiving:
            self._apply_deadline()
            return self.socket.recv(_PIECE)

    def read_head(self, method: str) -> responses.Response:
        """Reads the head of the response, after informational (1xx) ones. Raises BackendError, MalformedResponseError."""
        try:
            return self.reader.read_response(method)
        except TimeoutError:
            raise BackendTimeoutError(DEADLINE_EXCEEDED) from None
        except ConnectionEndedError:
            raise BackendError("EOF") from None
        except OSError as error:
            raise BackendError(self._error_message(error)) from None

    def read_response(self, method: str, *, decompress: bool = False) -> BackendResponse:
        """Reads the head of the response and returns it with its body as a stream. Raises BackendError."""
        try:
            return self.response_with_head(self.read_head(method), decompress=decompress)
        except MalformedResponseError as error:
            raise BackendError(f"{CONNECTION_BROKEN}{error}") from None

    def response_with_head(self, head: responses.Response, *, decompress: bool = False) -> BackendResponse:
        """Returns the response with this head."""
        headers, length = head.headers, head.length
        body = _Body(self)
        if decompress and header(headers, "content-encoding").lower() == "gzip" and length != 0:
            headers = [entry for entry in headers if entry[0].lower() not in ("content-encoding", "content-length")]
            body.compressed, length = True, None
        return BackendResponse(head.status, headers, body, length)

    def _error_message(self, error: OSError) -> str:
        """Returns Go's error message for a broken connection."""
        if isinstance(error, ssl.SSLError) or not error.errno:
            return "EOF"
        try:
            local, peer = self.socket.getsockname()[:2], self.socket.getpeername()[:2]
        except OSError:
            return "EOF"
        return f"read tcp {local[0]}:{local[1]}->{peer[0]}:{peer[1]}: read: {os.strerror(error.errno).lower()}"

    def close(self) -> None:
        """Closes the connection. May be called from any thread."""
        with suppress(OSError):  # not SSLSocket.shutdown: it drops the TLS object that another thread may be reading from
            socket.socket.shutdown(self.socket, socket.SHUT_RDWR)
        with self._receiving, suppress(OSError):  # with TLS a thread that meets the end so sends an alert
            self.socket.close()


class _Body:
    """The body of a response."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.compressed = False
        """Whether the body is gzip, and decompressed here."""

    def __iter__(self) -> Iterator[bytes]:
        pieces = self._connection.reader.iterate_body()
        try:
            yield from decompress_gzip(pieces) if self.compressed else pieces
        except TimeoutError:
            raise BackendTimeoutError(DEADLINE_EXCEEDED) from None
        except (BodyError, OSError, ValueError) as error:  # ValueError: closed from another thread
            raise BackendError(str(error)) from None

    def close(self) -> None:
        self._connection.close()


_RESPONSE_SECONDS = 60.0
_ROUND_SECONDS = 60.0


class UpgradeError(Exception):
    """The backend does not switch protocols; has the reason."""


def try_upgrade(backend: RemoteBackend, request: BackendRequest) -> Response:
    """Requests another protocol from a server.

    Returns a response 101 whose body is an `UpgradeTunnel`, or the error response of the server, after which the connection to
    the client is closed. Raises UpgradeError if there is no connection, or a response below 400 other than 101.
    """
    response = _request_upgrade(backend, request)
    if isinstance(response, UpgradeTunnel):
        return Response(101, response.headers, response)
    if response.status < 400:
        response.body.close()
        raise UpgradeError(f"invalid upgrade response: status code {response.status}")
    body: Any = ForwardedBody(response.body)
    return Response(response.status, [*response_headers(response.headers), ("Connection", "close")], body)


def _request_upgrade(backend: RemoteBackend, request: BackendRequest) -> BackendResponse | UpgradeTunnel:
    try:
        connection = backend.connect(time.monotonic() + _RESPONSE_SECONDS)
    except BackendError as error:
        raise UpgradeError(f"error dialing backend: {error}") from None
    try:
        connection.write(request)
        head = connection.read_head(request.method)
        if head.status == 101:
            return UpgradeTunnel(connection, head)
        return connection.response_with_head(head)
    except (BackendError, responses.MalformedResponseError) as error:
        connection.close()
        raise UpgradeError("unexpected EOF" if str(error) == "EOF" else str(error)) from None
    except BaseException:
        connection.close()
        raise


class UpgradeTunnel:
    """The body of the response: a `streams.Tunnel`."""

    deadline: float | None = None

    def __init__(self, connection: Connection, head: responses.Response) -> None:
        ahead = connection.reader.take_buffered()
        self.headers = head.headers
        """The headers of the response 101."""
        self.source = Notifier()
        self._connection = connection
        self._lock = threading.Condition()
        self._incoming = [ahead] if ahead else []
        self._incoming_size = len(ahead)
        self._outgoing = bytearray()
        self._finished = False
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._wake_reader, selectors.EVENT_READ)
        connection.socket.setblocking(False)
        WORKERS.run(self._run)

    # --- Called by the server -----------------------------------------------------------------------------------------

    @property
    def ended(self) -> bool:
        return self._finished and not self._incoming

    @property
    def full(self) -> bool:
        return len(self._outgoing) > MAX_READ_AHEAD

    def take(self) -> list[bytes]:
        with self._lock:
            was_full = self._incoming_size > MAX_READ_AHEAD
            frames, self._incoming, self._incoming_size = self._incoming, [], 0
        if was_full:
            self._wake()
        return frames

    def receive(self, data: bytes) -> None:
        with self._lock:
            self._outgoing += data
        self._wake()

    def close(self) -> None:
        self._finished = True
        self._wake()

    def __iter__(self) -> Iterator[bytes]:
        while not self.ended:
            yield from self.take()
            with self._lock:
                self._lock.wait_for(lambda: self._incoming or self._finished)

    def _wake(self) -> None:
        with suppress(OSError):
            self._wake_writer.send(b"x")

    # --- Runs in the thread of the tunnel -----------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._finished:
                self._wait()
                if self._finished or not (self._read() and self._write()):
                    return
        except OSError:
            return
        finally:
            with self._lock:
                self._finished = True
                self._lock.notify_all()
            self._selector.close()
            self._connection.close()
            self._wake_reader.close()
            self._wake_writer.close()
            self.source.notify()

    def _wait(self) -> None:
        """Waits until the socket of the backend is readable or writable, or `_wake` is called."""
        plain = self._connection.socket
        reads = self._incoming_size <= MAX_READ_AHEAD
        events = (selectors.EVENT_READ if reads else 0) | (selectors.EVENT_WRITE if self._outgoing else 0)
        if plain in self._selector.get_map():
            self._selector.unregister(plain)
        if events:
            self._selector.register(plain, events)
        pending = reads and getattr(plain, "pending", lambda: 0)()  # bytes that TLS has decrypted already
        for key, _ in self._selector.select(0.0 if pending else _ROUND_SECONDS):
            if key.fileobj is self._wake_reader:
                self._wake_reader.recv(_PIECE)

    def _read(self) -> bool:
        """Reads from the backend. Returns False at the end of the stream."""
        while self._incoming_size <= MAX_READ_AHEAD:
            try:
                data = self._connection.socket.recv(_PIECE)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return True
            if not data:
                return False
            with self._lock:
                self._incoming.append(data)
                self._incoming_size += len(data)
                self._lock.notify_all()
            self.source.notify()
        return True

    def _write(self) -> bool:
        """Writes the bytes of the client to the backend."""
        was_full = self.full
        while self._outgoing:
            with self._lock:
                piece = bytes(self._outgoing[:_PIECE])
            try:
                sent = self._connection.socket.send(piece)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                break
            with self._lock:
                del self._outgoing[:sent]
        if was_full and not self.full:
            self.source.notify()
        return True
