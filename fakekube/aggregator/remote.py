"""A server at the other end of a TLS connection, and what Go's net/http says when it fails.

Every exchange has a connection of its own. All reads and writes end at the deadline, however slowly bytes come.

Specified by: net/http (Transport.RoundTrip) as far as its errors are seen; k8s.io/client-go/transport.
"""

from __future__ import annotations

import http.client
import io
import os
import socket
import ssl
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from fakekube.aggregator.backends import BackendAnswer, BackendError, BackendRequest, BackendTimeoutError
from fakekube.golang.quoting import go_quote
from fakekube.golang.strings import bytes_of
from fakekube.webhooks.transport import ConnectionFailedError, Endpoint, connect

__all__ = ["Connection", "RemoteBackend", "serialised"]

_PIECE = 65536
_DIAL_SECONDS = 30.0
"""How long connecting takes at most (net.Dialer of the default transport)."""
_LONGEST_HEAD = 1 << 20
_EXCEEDED = "context deadline exceeded"


class RemoteBackend:
    """See `backends.Backend`."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def connect(self, deadline: float | None) -> Connection:
        """A connection of one's own. Raises BackendError."""
        return Connection(self._endpoint, deadline)

    def send(self, request: BackendRequest, deadline: float | None) -> BackendAnswer:
        connection = self.connect(deadline)
        try:
            unpacks = _accept_gzip(request)
            connection.write(request)
            return connection.answer(request.method, unpacks=unpacks)
        except BaseException:
            connection.close()
            raise


def serialised(request: BackendRequest) -> bytes:
    """The head of a request, as it goes over the wire."""
    lines = [f"{request.method} {request.target} HTTP/1.1", *(f"{name}: {value}" for name, value in request.headers)]
    if request.length is None:
        lines.append("Transfer-Encoding: chunked")
    elif request.length or request.method in ("POST", "PUT", "PATCH"):
        lines.append(f"Content-Length: {request.length}")
    return bytes_of("\r\n".join([line.replace("\r", " ").replace("\n", " ") for line in lines] + ["", ""]))


def _accept_gzip(request: BackendRequest) -> bool:
    """Ask for a compressed answer if the client did not say what it takes. True: the answer is to be unpacked here."""
    names = {name.lower() for name, _ in request.headers}
    if request.method == "HEAD" or "accept-encoding" in names or "range" in names:
        return False
    request.headers.append(("Accept-Encoding", "gzip"))
    return True


class Connection:
    """A connection to a server, for one exchange. Raises BackendError when it cannot be made."""

    def __init__(self, endpoint: Endpoint, deadline: float | None) -> None:
        self._deadline = deadline
        self._ahead = b""
        """What was read, and is to be read again."""
        limit = time.monotonic() + _DIAL_SECONDS
        try:
            self.socket = connect(endpoint, limit if deadline is None else min(limit, deadline))
        except TimeoutError:
            raise self._late() from None
        except ConnectionFailedError as error:
            raise BackendError(str(error)) from None

    def _late(self) -> BackendTimeoutError:
        return BackendTimeoutError(_EXCEEDED)

    def write(self, request: BackendRequest) -> None:
        """Send the request. A server that has answered before it has read all is heard nevertheless."""
        head = serialised(request)
        try:
            self._send(head)
            for piece in request.body:
                self._send(b"%x\r\n%b\r\n" % (len(piece), piece) if request.length is None else piece)
            if request.length is None:
                self._send(b"0\r\n\r\n")
        except TimeoutError:
            raise self._late() from None
        except OSError:
            return

    def _send(self, data: bytes) -> None:
        self._limit()
        self.socket.sendall(data)

    def _limit(self) -> None:
        """The socket waits until the deadline, and no longer. Raises TimeoutError if it has passed."""
        if self._deadline is None:
            self.socket.settimeout(None)
            return
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.socket.settimeout(left)

    def receive_into(self, buffer: Any) -> int:
        """Fill a buffer with what comes. Raises OSError."""
        if self._ahead:
            size = min(len(self._ahead), len(buffer))
            buffer[:size], self._ahead = self._ahead[:size], self._ahead[size:]
            return size
        self._limit()
        return self.socket.recv_into(buffer)

    def upgraded(self) -> tuple[bytes, bytes] | None:
        """The head of an answer that switches protocols, and what came behind it; None: it is another answer, to be had from
        `answer`. Raises BackendError.
        """
        received = bytearray()
        try:
            while (end := received.find(b"\r\n\r\n")) < 0 and len(received) <= _LONGEST_HEAD:
                self._limit()
                piece = self.socket.recv(_PIECE)
                if not piece:
                    raise BackendError("unexpected EOF" if received else "EOF")
                received += piece
        except TimeoutError:
            raise self._late() from None
        except OSError as error:
            raise BackendError(self.broken(error)) from None
        if end >= 0 and received.startswith(b"HTTP/1.1 101"):
            return bytes(received[: end + 4]), bytes(received[end + 4 :])
        self._ahead = bytes(received)
        return None

    def makefile(self, _mode: str) -> io.BufferedReader:
        """For `http.client`."""
        return io.BufferedReader(_Incoming(self), _PIECE)

    def answer(self, method: str, *, unpacks: bool = False) -> BackendAnswer:
        """The answer, once its head is there. Raises BackendError."""
        response = http.client.HTTPResponse(self, method=method)  # type: ignore[arg-type]
        try:
            response.begin()
        except TimeoutError:
            raise self._late() from None
        except http.client.RemoteDisconnected:
            raise BackendError("EOF") from None
        except (http.client.HTTPException, ValueError) as error:
            raise BackendError(_malformed(error)) from None
        except OSError as error:
            raise BackendError(self.broken(error)) from None
        headers = [(name, _latin(value)) for name, value in response.headers.items()]
        packed = unpacks and response.getheader("Content-Encoding", "").lower() == "gzip"
        if packed:
            headers = [entry for entry in headers if entry[0].lower() not in ("content-encoding", "content-length")]
        length = None if packed else response.length
        return BackendAnswer(response.status, headers, _Body(self, response, packed=packed), length)

    def broken(self, error: OSError) -> str:
        """What Go says of a connection that breaks."""
        if isinstance(error, ssl.SSLError) or not error.errno:
            return "EOF"
        try:
            local, peer = self.socket.getsockname()[:2], self.socket.getpeername()[:2]
        except OSError:
            return "EOF"
        return f"read tcp {local[0]}:{local[1]}->{peer[0]}:{peer[1]}: read: {os.strerror(error.errno).lower()}"

    def close(self) -> None:
        """End it, from any thread."""
        with suppress(OSError):  # the plain socket's: SSLSocket.shutdown would take TLS away from under another thread
            socket.socket.shutdown(self.socket, socket.SHUT_RDWR)
        with suppress(OSError):
            self.socket.close()


class _Incoming(io.RawIOBase):
    """What `io.BufferedReader` reads from."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._connection.receive_into(buffer)


class _Body:
    """See `backends.BackendBody`."""

    def __init__(self, connection: Connection, response: http.client.HTTPResponse, *, packed: bool) -> None:
        self._connection = connection
        self._response = response
        self._packed = packed

    def __iter__(self) -> Iterator[bytes]:
        pieces = self._pieces()
        return _unpacked(pieces) if self._packed else pieces

    def _pieces(self) -> Iterator[bytes]:
        response = self._response
        while True:
            try:
                piece = response.read1(_PIECE)
            except TimeoutError:
                raise BackendTimeoutError(_EXCEEDED) from None
            except (http.client.HTTPException, OSError, ValueError) as error:
                raise BackendError(str(error) or "unexpected EOF") from None
            if not piece:
                if response.length:
                    raise BackendError("unexpected EOF")
                return
            yield piece

    def close(self) -> None:
        self._connection.close()


def _unpacked(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """A gzip body unpacked, piece by piece of a bounded size. Raises BackendError if it is none."""
    unpacker = zlib.decompressobj(wbits=31)
    try:
        for piece in pieces:
            data = unpacker.decompress(piece, _PIECE)
            while data:
                yield data
                data = unpacker.decompress(unpacker.unconsumed_tail, _PIECE)
    except zlib.error:
        raise BackendError("gzip: invalid header") from None


def _malformed(error: Exception) -> str:
    """What Go says of an answer that is no HTTP."""
    if isinstance(error, http.client.LineTooLong):
        return "net/http: server response headers exceeded 1048576 bytes; aborted"
    line = str(error).strip()
    said = f"malformed HTTP response {go_quote(line)}" if isinstance(error, http.client.BadStatusLine) else line
    return f"net/http: HTTP/1.x transport connection broken: {said}"


def _latin(value: str) -> str:
    """A header's value with a character for each byte, on one line."""
    return " ".join(value.split("\r\n")).strip() if "\r" in value or "\n" in value else value
