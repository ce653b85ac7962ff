"""The smallest HTTP/1.1 client that keeps its connection: a benchmark measures the server, not its client.

It understands exactly what both servers send: answers with a Content-Length or in chunks, on one connection, one at a
time; no redirects, no compression. A watch is read with `select` by whoever opened it.
"""

from __future__ import annotations

import functools
import json
import socket
import ssl
import threading
import urllib.parse
from typing import Any

__all__ = ["Connection", "RequestFailed"]

JSON = "application/json"
RECORD = 1 << 14
"""The longest record of TLS: a buffer for what is received has room for one at least."""
_AT_ONCE = 1 << 18
"""How many bytes are read from a socket at most at once."""
_TAIL = 32
"""How many of the last bytes received are searched for the end of an event."""


class RequestFailed(Exception):
    """The server answered with an error."""


@functools.cache
def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class _Rooms(threading.local):
    """Where the bytes of sockets are received: fresh memory for each answer would cost the client more than the bytes do."""

    def __init__(self) -> None:
        self.view = memoryview(bytearray(_AT_ONCE))


_rooms = _Rooms()


class SecureSocket:
    """A client's connection with TLS. With `ssl.SSLSocket` each record takes two system calls; here one call takes many records."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = _context().wrap_bio(self._incoming, self._outgoing)
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self._flush()
                if not self._fill():
                    raise ConnectionError("the server closed the connection in the handshake") from None
        self._flush()
        self.fileno, self.setblocking, self.close = connected.fileno, connected.setblocking, connected.close

    def sendall(self, data: bytes) -> None:
        self._tls.write(data)
        self._flush()

    def recv_into(self, view: memoryview) -> int:
        """Receive at most one record; returns 0 at the end. Raises BlockingIOError."""
        while self._incoming.pending or self._fill():
            try:
                return self._tls.read(len(view), view)
            except ssl.SSLWantReadError:
                continue  # a part of a record
        return 0

    def _flush(self) -> None:
        self._socket.sendall(self._outgoing.read())

    def _fill(self) -> int:
        view = _rooms.view
        count = self._socket.recv_into(view)
        self._incoming.write(view[:count])
        return count


class Connection:
    """One kept connection to a server. Raises OSError when it cannot be had, or breaks."""

    def __init__(self, url: str, token: str, *, timeout: float = 120) -> None:
        self._parts = parts = urllib.parse.urlsplit(url)
        self._timeout = timeout
        self.socket = self._connected()
        self._view = memoryview(bytearray(2 * RECORD))
        """Where answers are received, one after another: fresh memory for a large one costs as much as to receive it."""
        self._end = 0
        """Where that which was received ends."""
        self._head = f"Host: {parts.netloc}\r\nAuthorization: Bearer {token}\r\nUser-Agent: benchmark/1\r\n"

    def _connected(self) -> socket.socket | SecureSocket:
        connected = socket.create_connection((self._parts.hostname or "", self._parts.port or 443), self._timeout)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return SecureSocket(connected) if self._parts.scheme == "https" else connected

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

    def exchange(self, request: bytes) -> int:
        """Send a prepared request and receive the answer; returns the length of its body. Raises RequestFailed."""
        return sum([end - begin for begin, end in self._answer(request)])

    def request(self, method: str, path: str, body: Any = None, content_type: str = JSON) -> Any:
        """Prepare, exchange, decode. Raises RequestFailed."""
        return json.loads(self._join(self._answer(self.prepare(method, path, body, content_type))))

    def watch(self, path: str) -> None:
        """Begin a watch; its events are what comes on the socket from now on, in chunks."""
        self.socket.sendall(self.prepare("GET", path))
        if self._receive_head()[0] != 200:
            raise RequestFailed(f"{path}: {bytes(self._view[: self._end])!r}")

    def receive_until(self, end: bytes) -> None:
        """Receive the events of a watch until one ends so, and is the last that came."""
        while end not in bytes(self._view[max(0, self._end - _TAIL) : self._end]):
            self._receive()
        self._end = 0

    def _answer(self, request: bytes) -> list[tuple[int, int]]:
        """Send a request and receive the answer; returns where the parts of its body begin and end. Raises RequestFailed."""
        self.socket.sendall(request)
        status, length, place = self._receive_head()
        if length is None:
            parts = self._receive_chunks(place)
        else:
            parts = [(place, place + length)]
            self._receive_to(place + length)
        if status >= 300:
            raise RequestFailed(f"{request[:100]!r}: {status} {self._join(parts)[:300]!r}")
        return parts

    def _join(self, parts: list[tuple[int, int]]) -> bytes:
        return b"".join([self._view[begin:end] for begin, end in parts])

    def _receive(self) -> None:
        """Receive more, after what there is."""
        end = self._end
        if len(self._view) - end < RECORD:
            self._view = memoryview(bytearray(self._view) + bytes(len(self._view)))
        count = self.socket.recv_into(self._view[end:])
        if not count:
            raise ConnectionError("the server closed the connection")
        self._end = end + count

    def _receive_to(self, place: int) -> None:
        while self._end < place:
            self._receive()

    def _receive_past(self, mark: bytes, place: int) -> int:
        """Receive until there is a mark after a place; returns where it ends."""
        while (found := self._view.obj.find(mark, place, self._end)) < 0:
            self._receive()
        return found + len(mark)

    def _receive_head(self) -> tuple[int, int | None, int]:
        """Receive the head of an answer; returns its status, its Content-Length if there is one, and where it ends."""
        self._end = 0
        place = self._receive_past(b"\r\n\r\n", 0)
        head = bytes(self._view[:place]).lower()
        _, found, rest = head.partition(b"\r\ncontent-length:")
        return int(head[9:12]), int(rest.partition(b"\r\n")[0]) if found else None, place

    def _receive_chunks(self, place: int) -> list[tuple[int, int]]:
        parts = []
        while True:
            begin = self._receive_past(b"\r\n", place)
            length = int(bytes(self._view[place:begin]), 16)
            place = begin + length + 2
            self._receive_to(place)
            if not length:
                return parts
            parts.append((begin, begin + length))
