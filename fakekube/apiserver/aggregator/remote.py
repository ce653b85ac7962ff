"""A backend behind a TLS connection, with the error messages of Go's net/http.

Every exchange has a connection of its own. The deadline applies to all reads and writes, and the size of the response head is
limited; the body is forwarded as it is received, with any size. Only clusters with a remote backend import this module.

Specified by: net/http (Transport.RoundTrip) as far as its errors are seen; k8s.io/client-go/transport.
"""

from __future__ import annotations

import os
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import suppress

from fakekube.apiserver.aggregator.backends import BackendError, BackendRequest, BackendResponse, BackendTimeoutError, header
from fakekube.apiserver.webhooks.connections import ConnectionFailedError
from fakekube.apiserver.webhooks.transport import Endpoint, connect
from fakekube.base.golang.strings import bytes_of
from fakekube.net.http1 import BodyError
from fakekube.net.http1.responses import ConnectionEndedError, MalformedResponseError, Response, ResponseReader, decompress_gzip

_PIECE = 65536
_DIAL_SECONDS = 30.0
"""The timeout of dialing (net.Dialer of the default transport)."""
_EXCEEDED = "context deadline exceeded"
_BROKEN = "net/http: HTTP/1.x transport connection broken: "


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


def serialize_head(request: BackendRequest) -> bytes:
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
            raise BackendTimeoutError(_EXCEEDED) from None
        except ConnectionFailedError as error:
            raise BackendError(str(error)) from None
        self.reader = ResponseReader(self._receive)

    def write(self, request: BackendRequest) -> None:
        """Sends the request. A write error is ignored: the server may have responded before it has read the whole body."""
        head = serialize_head(request)
        try:
            for piece in request.body:
                self._send(head + (b"%x\r\n%b\r\n" % (len(piece), piece) if request.length is None else piece))
                head = b""
            if head or request.length is None:
                self._send(head + (b"0\r\n\r\n" if request.length is None else b""))
        except TimeoutError:
            raise BackendTimeoutError(_EXCEEDED) from None
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
        self._apply_deadline()
        return self.socket.recv(_PIECE)

    def read_head(self, method: str) -> Response:
        """Reads the head of the response, after informational (1xx) ones. Raises BackendError, MalformedResponseError."""
        try:
            return self.reader.read_response(method)
        except TimeoutError:
            raise BackendTimeoutError(_EXCEEDED) from None
        except ConnectionEndedError:
            raise BackendError("EOF") from None
        except OSError as error:
            raise BackendError(self._error_message(error)) from None

    def read_response(self, method: str, *, decompress: bool = False) -> BackendResponse:
        """Reads the head of the response and returns it with its body as a stream. Raises BackendError."""
        try:
            return self.response_with_head(self.read_head(method), decompress=decompress)
        except MalformedResponseError as error:
            raise BackendError(f"{_BROKEN}{error}") from None

    def response_with_head(self, head: Response, *, decompress: bool = False) -> BackendResponse:
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
        with suppress(OSError):
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
            raise BackendTimeoutError(_EXCEEDED) from None
        except (BodyError, OSError, ValueError) as error:  # ValueError: closed from another thread
            raise BackendError(str(error)) from None

    def close(self) -> None:
        self._connection.close()
