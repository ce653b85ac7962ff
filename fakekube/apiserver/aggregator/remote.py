"""A backend behind a TLS connection, with the error messages of Go's net/http.

Every exchange has a connection of its own. The deadline applies to all reads and writes, and the size of the response head is
limited; the body is forwarded as it is received, with any size.

Specified by: net/http (Transport.RoundTrip) as far as its errors are seen; k8s.io/client-go/transport.
"""

from __future__ import annotations

import io
import os
import socket
import ssl
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from fakekube.apiserver.aggregator.backends import BackendError, BackendRequest, BackendResponse, BackendTimeoutError, header
from fakekube.apiserver.aggregator.response_head import MalformedResponseError, ResponseHead, read_head
from fakekube.apiserver.webhooks.transport import ConnectionFailedError, Endpoint, connect
from fakekube.base.golang.strings import bytes_of

__all__ = ["Connection", "RemoteBackend", "serialize_head"]

_PIECE = 65536
_DIAL_SECONDS = 30.0
"""The timeout of dialing (net.Dialer of the default transport)."""
_LONGEST_CHUNK_LINE = 4096
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
        self._stopped = False
        limit = time.monotonic() + _DIAL_SECONDS
        try:
            self.socket = connect(endpoint, limit if deadline is None else min(limit, deadline))
        except TimeoutError:
            raise BackendTimeoutError(_EXCEEDED) from None
        except ConnectionFailedError as error:
            raise BackendError(str(error)) from None
        self.reader = io.BufferedReader(_Incoming(self), _PIECE)

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

    def receive_into(self, buffer: Any) -> int:
        """Receives bytes into a buffer; 0 at the end of the stream, or after `read_ahead`. Raises OSError."""
        if self._stopped:
            return 0
        self._apply_deadline()
        return self.socket.recv_into(buffer)

    def read_head(self) -> ResponseHead:
        """Reads the head of the response, after informational (1xx) ones. Raises BackendError, MalformedResponseError."""
        try:
            head = read_head(self.reader)
            while 100 <= head.status < 200 and head.status != 101:
                head = read_head(self.reader)
        except TimeoutError:
            raise BackendTimeoutError(_EXCEEDED) from None
        except EOFError as error:
            raise BackendError("unexpected EOF" if error.args[0] else "EOF") from None
        except OSError as error:
            raise BackendError(self._error_message(error)) from None
        return head

    def read_response(self, method: str, *, decompress: bool = False) -> BackendResponse:
        """Reads the head of the response and returns it with its body as a stream. Raises BackendError."""
        try:
            return self.response_with_head(self.read_head(), method, decompress=decompress)
        except MalformedResponseError as error:
            raise BackendError(f"{_BROKEN}{error}") from None

    def response_with_head(self, head: ResponseHead, method: str, *, decompress: bool = False) -> BackendResponse:
        """Returns the response with this head. Raises MalformedResponseError."""
        headers, length = head.headers, head.length()
        if method == "HEAD" or head.status in (204, 304):
            return BackendResponse(head.status, headers, _Body(self, 0), 0)
        body = _Body(self, length, chunked=head.chunked)
        if decompress and header(headers, "content-encoding").lower() == "gzip":
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

    def read_ahead(self) -> bytes:
        """Returns the bytes received after the head, and reads no more."""
        self._stopped = True
        return self.reader.read()

    def close(self) -> None:
        """Closes the connection. May be called from any thread."""
        with suppress(OSError):  # not SSLSocket.shutdown: it drops the TLS object that another thread may be reading from
            socket.socket.shutdown(self.socket, socket.SHUT_RDWR)
        with suppress(OSError):
            self.socket.close()


class _Incoming(io.RawIOBase):
    """The raw reader for `io.BufferedReader`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._connection.receive_into(buffer)


class _Body:
    """The body of a response; it ends after `length` bytes, with the last chunk, or with the connection."""

    def __init__(self, connection: Connection, length: int | None, *, chunked: bool = False) -> None:
        self._connection = connection
        self._length = length
        self._chunked = chunked
        self.compressed = False
        """Whether the body is gzip, and decompressed here."""

    def __iter__(self) -> Iterator[bytes]:
        pieces = self._read()
        return _decompressed(pieces) if self.compressed else pieces

    def _read(self) -> Iterator[bytes]:
        try:
            if self._chunked:
                yield from self._read_chunks()
            elif self._length is None:
                yield from self._read_until_eof()
            else:
                yield from self._read_exactly(self._length)
        except TimeoutError:
            raise BackendTimeoutError(_EXCEEDED) from None
        except (OSError, ValueError) as error:  # ValueError: closed from another thread
            raise BackendError(str(error)) from None

    def _read_until_eof(self) -> Iterator[bytes]:
        while piece := self._connection.reader.read1(_PIECE):
            yield piece

    def _read_exactly(self, left: int) -> Iterator[bytes]:
        while left:
            piece = self._connection.reader.read1(min(left, _PIECE))
            if not piece:
                raise BackendError("unexpected EOF")
            left -= len(piece)
            yield piece

    def _read_chunks(self) -> Iterator[bytes]:
        reader = self._connection.reader
        while size := self._read_chunk_size():
            yield from self._read_exactly(size)
            if reader.read(2) != b"\r\n":
                raise BackendError("malformed chunked encoding")
        for _ in range(_LONGEST_CHUNK_LINE):  # trailers
            if reader.readline(_LONGEST_CHUNK_LINE) in (b"\r\n", b"\n", b""):
                return

    def _read_chunk_size(self) -> int:
        line = self._connection.reader.readline(_LONGEST_CHUNK_LINE)
        if not line.endswith(b"\n"):
            raise BackendError("header line too long" if len(line) == _LONGEST_CHUNK_LINE else "unexpected EOF")
        digits = line.partition(b";")[0].strip()
        try:
            return int(digits, 16) if digits.isalnum() else -1
        except ValueError:
            raise BackendError("invalid byte in chunk length") from None

    def close(self) -> None:
        self._connection.close()


def _decompressed(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Decompresses a gzip body in chunks of limited size. Raises BackendError if it is invalid."""
    decompressor = zlib.decompressobj(wbits=31)
    try:
        for piece in pieces:
            data = decompressor.decompress(piece, _PIECE)
            while data:
                yield data
                data = decompressor.decompress(decompressor.unconsumed_tail, _PIECE)
    except zlib.error:
        raise BackendError("gzip: invalid header") from None
