"""The smallest HTTP/1.1 client that keeps its connection: a benchmark measures the server, not its client.

It understands exactly what both servers send: answers with a Content-Length or in chunks, on one connection, one at a
time; no redirects, no compression. A watch is read with `select` by whoever opened it.
"""

from __future__ import annotations

import functools
import json
import socket
import ssl
import urllib.parse
from typing import Any

__all__ = ["Connection", "RequestFailed"]

JSON = "application/json"
_RECEIVE = 1 << 14
"""One record of TLS: more never comes at once, and to ask for more costs."""


class RequestFailed(Exception):
    """The server answered with an error."""


@functools.cache
def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class Connection:
    """One kept connection to a server. Raises OSError when it cannot be had, or breaks."""

    def __init__(self, url: str, token: str, *, timeout: float = 120) -> None:
        self._parts = parts = urllib.parse.urlsplit(url)
        self._timeout = timeout
        self.socket = self._connected()
        self._begun = b""
        self._head = f"Host: {parts.netloc}\r\nAuthorization: Bearer {token}\r\nUser-Agent: benchmark/1\r\n"

    def _connected(self) -> socket.socket:
        connected = socket.create_connection((self._parts.hostname or "", self._parts.port or 443), self._timeout)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return _context().wrap_socket(connected) if self._parts.scheme == "https" else connected

    def renew(self) -> None:
        """Connect again: servers end connections on which nothing was said for a while."""
        self.socket.close()
        self.socket = self._connected()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def prepare(self, method: str, path: str, body: Any = None, content_type: str = JSON, *, accept: str = JSON) -> bytes:
        """The bytes of a request."""
        data = b"" if body is None else json.dumps(body).encode()
        framing = f"Content-Type: {content_type}\r\nContent-Length: {len(data)}\r\n" if data else ""
        return f"{method} {path} HTTP/1.1\r\n{self._head}Accept: {accept}\r\n{framing}\r\n".encode() + data

    def exchange(self, request: bytes) -> bytes | bytearray:
        """Send a prepared request; returns the body of the answer. Raises RequestFailed."""
        self.socket.sendall(request)
        head, rest = self._receive_head()
        status = int(head[9:12])
        headers = dict(line.split(b": ", 1) for line in head.lower().split(b"\r\n")[1:])
        if b"content-length" in headers:
            body = self._receive_length(rest, int(headers[b"content-length"]))
        else:
            body = self._receive_chunks(rest)
        if status >= 300:
            raise RequestFailed(f"{request[:100]!r}: {status} {body[:300]!r}")
        return body

    def request(self, method: str, path: str, body: Any = None, content_type: str = JSON) -> Any:
        """Prepare, exchange, decode. Raises RequestFailed."""
        return json.loads(self.exchange(self.prepare(method, path, body, content_type)))

    def watch(self, path: str) -> None:
        """Begin a watch; its events are what comes on the socket from now on, in chunks."""
        self.socket.sendall(self.prepare("GET", path))
        head, self._begun = self._receive_head()
        if int(head[9:12]) != 200:
            raise RequestFailed(f"{path}: {head!r} {self._begun!r}")

    def receive_until(self, end: bytes) -> None:
        """Read the events of a watch until one ends so, and is the last that came."""
        received, self._begun = self._begun, b""
        while end not in received[-32:]:
            received = received[-32:] + self._receive()

    def _receive(self) -> bytes:
        received = self.socket.recv(_RECEIVE)
        if not received:
            raise ConnectionError("the server closed the connection")
        return received

    def _receive_head(self) -> tuple[bytes, bytes]:
        received = self._receive()
        while b"\r\n\r\n" not in received:
            received += self._receive()
        head, _, rest = received.partition(b"\r\n\r\n")
        return head, rest

    def _receive_length(self, begun: bytes | bytearray, length: int) -> bytes | bytearray:
        have = len(begun)
        if have >= length:
            return begun
        received = bytearray(length)
        received[:have] = begun
        rest = memoryview(received)[have:]
        while rest:
            count = self.socket.recv_into(rest)
            if not count:
                raise ConnectionError("the server closed the connection")
            rest = rest[count:]
        return received

    def _receive_chunks(self, begun: bytes) -> bytes:
        parts: list[bytes | bytearray] = []
        buffer: bytes | bytearray = begun
        while True:
            while b"\r\n" not in buffer:
                buffer += self._receive()
            line, _, buffer = buffer.partition(b"\r\n")
            length = int(line, 16)
            chunk = self._receive_length(buffer, length + 2)
            buffer = chunk[length + 2 :]
            if not length:
                return b"".join(parts)
            parts.append(chunk[:length])
