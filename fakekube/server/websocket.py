"""WebSocket (RFC 6455), the server's side, bytes only: handshake, frames out, frames in.

The handshake answers as golang.org/x/net/websocket does, which kube-apiserver hands watches to: version 13,
one subprotocol at most (it is taken unseen), and an Origin there must be. Its refusals have neither length
nor date, and the connection ends behind them. What a client sends is of no interest but for pings and its
goodbye.
"""

from __future__ import annotations

import base64
import hashlib
import re
import struct
from collections.abc import Mapping
from typing import Any

__all__ = ["CLOSE_NORMAL", "CLOSE_PROTOCOL_ERROR", "FrameReader", "Refused", "binary", "close", "handshake", "text"]

CLOSE_NORMAL = 1000
CLOSE_PROTOCOL_ERROR = 1002

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_ORIGIN = re.compile(r"(?:/|[A-Za-z][A-Za-z0-9+.\-]*:)[^\x00-\x20\x7f]*")
_MAX_CONTROL = 125

_CONTINUATION, _TEXT, _BINARY, _CLOSE, _PING, _PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA


class Refused(Exception):
    """The handshake is invalid; `answer` is the complete response."""

    def __init__(self, status: str, text: str = "", field: str = "") -> None:
        super().__init__(status)
        self.answer = f"HTTP/1.1 {status}\r\n{field}\r\n{text}".encode()


def handshake(environ: Mapping[str, Any]) -> bytes:
    """The head that agrees to what the request of this WSGI environ asks for.

    Raises:
        Refused: it does not ask for a WebSocket in the right way
    """
    if environ["REQUEST_METHOD"] != "GET":
        raise Refused("405 Method Not Allowed", "bad method")
    upgrades = "upgrade" in environ.get("HTTP_CONNECTION", "").lower()
    if environ.get("HTTP_UPGRADE", "").lower() != "websocket" or not upgrades:
        raise Refused("400 Bad Request", "not websocket protocol")
    key = environ.get("HTTP_SEC_WEBSOCKET_KEY", "")
    if not key:
        raise Refused("400 Bad Request", "mismatch challenge/response")
    if environ.get("HTTP_SEC_WEBSOCKET_VERSION") != "13":
        raise Refused("400 Bad Request", "missing or bad WebSocket Version", "Sec-WebSocket-Version: 13\r\n")
    if not _ORIGIN.fullmatch(environ.get("HTTP_ORIGIN", "")):
        raise Refused("403 Forbidden")
    protocol = environ.get("HTTP_SEC_WEBSOCKET_PROTOCOL", "").strip()
    if "," in protocol:
        raise Refused("400 Bad Request")
    lines = [
        "HTTP/1.1 101 Switching Protocols",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Accept: {accept(key)}",
    ]
    if protocol:
        lines.append(f"Sec-WebSocket-Protocol: {protocol}")
    return "\r\n".join([*lines, "\r\n"]).encode("latin-1")


def accept(key: str) -> str:
    """What answers a client's Sec-WebSocket-Key (RFC 6455, 4.2.2)."""
    return base64.b64encode(hashlib.sha1(key.encode("latin-1") + _GUID).digest()).decode()


def text(message: bytes) -> bytes:
    """A frame with a whole text message (UTF-8)."""
    return _frame(_TEXT, message)


def binary(message: bytes) -> bytes:
    """A frame with a whole binary message."""
    return _frame(_BINARY, message)


def close(code: int = CLOSE_NORMAL) -> bytes:
    """A close frame."""
    return _frame(_CLOSE, struct.pack(">H", code))


def _frame(opcode: int, payload: bytes) -> bytes:
    length = len(payload)
    if length <= 125:
        return struct.pack(">BB", 0x80 | opcode, length) + payload
    if length < 1 << 16:
        return struct.pack(">BBH", 0x80 | opcode, 126, length) + payload
    return struct.pack(">BBQ", 0x80 | opcode, 127, length) + payload


class FrameReader:
    """What a client says. Messages are skipped unseen, however long; only control frames are kept whole."""

    __slots__ = ("_buffer", "_skip", "closed")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._skip = 0
        self.closed = False
        """The client has said goodbye, or something that ends the connection."""

    def feed(self, data: bytes) -> bytes:
        """Take in bytes from the network; what to answer."""
        buffer = self._buffer
        buffer += data
        answers: list[bytes] = []
        while not self.closed:
            skipped = min(self._skip, len(buffer))
            del buffer[:skipped]
            self._skip -= skipped
            answer = self._control_frame() if not self._skip else None
            if answer is None:
                break
            answers.append(answer)
        return b"".join(answers)

    def _control_frame(self) -> bytes | None:
        """The answer to the next frame; None if it has not come whole."""
        buffer = self._buffer
        if len(buffer) < 2:
            return None
        opcode, length, start = buffer[0] & 0x0F, buffer[1] & 0x7F, 2
        if not buffer[1] & 0x80:
            self.closed = True
            return close(CLOSE_PROTOCOL_ERROR)
        if length >= 126:
            size = 2 if length == 126 else 8
            start += size
            if len(buffer) < start:
                return None
            length = int.from_bytes(buffer[2:start], "big")
        start += 4
        if opcode not in (_CLOSE, _PING):
            if len(buffer) < start:
                return None
            del buffer[:start]
            self._skip = length
            return b""
        kept = min(length, _MAX_CONTROL)
        if len(buffer) < start + kept:
            return None
        if opcode == _CLOSE:
            self.closed = True
            return b""
        mask = buffer[start - 4 : start]
        payload = bytes(byte ^ mask[index % 4] for index, byte in enumerate(buffer[start : start + kept]))
        del buffer[: start + kept]
        self._skip = length - kept
        return _frame(_PONG, payload)
