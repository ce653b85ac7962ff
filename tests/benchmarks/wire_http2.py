"""The smallest HTTP/2 client, as `wire` is one for HTTP/1.1: blocks of literal fields, answers taken whole, wide windows.

Header blocks of answers are not decoded; a status other than 200 is told by the body.
"""

from __future__ import annotations

import socket
import ssl
import struct
import urllib.parse

__all__ = ["PREFACE", "MultiplexedConnection", "frame", "literal"]

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _SETTINGS, _PING, _GOAWAY, _WINDOW_UPDATE = 0, 1, 4, 6, 7, 8
_WIDE = (1 << 31) - 1 - 65_535


def frame(kind: int, flags: int, stream_id: int, payload: bytes = b"") -> bytes:
    """Returns a frame of HTTP/2."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream_id) + payload


def literal(name: str, value: str) -> bytes:
    """Returns a field of a header block, without Huffman coding and not indexed."""
    return b"\0" + _text(name) + _text(value)


def _text(text: str) -> bytes:
    data = text.encode()
    if len(data) < 127:
        return bytes([len(data)]) + data
    rest = len(data) - 127
    return bytes([127, rest & 127 | 128, rest >> 7]) + data


class MultiplexedConnection:
    """One connection to a server. Raises OSError when it cannot be had, or breaks."""

    def __init__(self, url: str, token: str, *, timeout: float = 120) -> None:
        parts = urllib.parse.urlsplit(url)
        self._fields = literal(":scheme", "https") + literal(":authority", parts.netloc)
        self._more = literal("authorization", f"Bearer {token}") + literal("user-agent", "benchmark/1")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
        connected = socket.create_connection((parts.hostname or "", parts.port or 443), timeout)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = context.wrap_socket(connected)
        self.socket.sendall(
            PREFACE
            + frame(_SETTINGS, 0, 0, struct.pack(">HI", 4, (1 << 31) - 1))
            + frame(_WINDOW_UPDATE, 0, 0, struct.pack(">I", _WIDE))
        )
        self._buffer = bytearray()
        self._next = 1
        self._taken = 0

    def __enter__(self) -> MultiplexedConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def prepare(self, path: str, accept: str = "application/json") -> bytes:
        """The header block of a GET."""
        return literal(":method", "GET") + literal(":path", path) + self._fields + self._more + literal("accept", accept)

    def exchange(self, *blocks: bytes) -> int:
        """Send prepared requests at once, and wait for the ends of all answers; how many bytes their bodies had."""
        first = self._begin(*blocks)
        return self._receive(lambda: self._ended >= len(blocks), first)

    def watch(self, *blocks: bytes) -> None:
        """Begin watches."""
        self._begin(*blocks)

    def receive(self, size: int) -> None:
        """Wait for so many bytes of data, of all streams."""
        self._receive(lambda: self._size >= size, 0)

    def _begin(self, *blocks: bytes) -> int:
        first, sent = self._next, b""
        for block in blocks:
            sent += frame(_HEADERS, 5, self._next, block)
            self._next += 2
        self.socket.sendall(sent)
        return first

    def _receive(self, is_over, first: int) -> int:  # type: ignore[no-untyped-def]
        self._ended = self._size = 0
        while not is_over():
            data = self.socket.recv(1 << 14)
            if not data:
                raise ConnectionError("the server closed the connection")
            self._buffer += data
            self._take(first)
        return self._size

    def _take(self, first: int) -> None:
        buffer = self._buffer
        while len(buffer) >= 9:
            length = int.from_bytes(buffer[:3], "big")
            if len(buffer) < 9 + length:
                break
            kind, flags, stream_id = buffer[3], buffer[4], int.from_bytes(buffer[5:9], "big")
            if kind in (_DATA, _HEADERS):
                self._ended += stream_id >= first and flags & 1
                self._size += length if kind == _DATA else 0
                self._refresh(length if kind == _DATA else 0)
            elif kind in (_SETTINGS, _PING) and not flags & 1:
                self.socket.sendall(frame(kind, 1, 0, b"" if kind == _SETTINGS else bytes(buffer[9:17])))
            elif kind == _GOAWAY:
                raise ConnectionError("the server goes away")
            del buffer[: 9 + length]

    def _refresh(self, length: int) -> None:
        self._taken += length
        if self._taken > 1 << 29:
            self.socket.sendall(frame(_WINDOW_UPDATE, 0, 0, struct.pack(">I", self._taken)))
            self._taken = 0
