"""The server side of WebSocket (RFC 6455), without sockets: handshake, encoding and parsing of frames.

The API server uses two libraries: golang.org/x/net/websocket for watches and channels, which treats each frame as a message and
ignores reserved bits and opcodes, and github.com/gorilla/websocket for tunnels, which is strict.

Invariant: invalid data of a client ends its own connection only.

Specified by: RFC 6455; golang.org/x/net/websocket/hybi.go; github.com/gorilla/websocket (advanceFrame).
"""

from __future__ import annotations

import base64
import hashlib
import re
import struct
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from fakekube.net.wsgi import Headers

_CLOSE_NORMAL = 1000
_CLOSE_PROTOCOL_ERROR = 1002

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_ORIGIN = re.compile(r"(?:/|[A-Za-z][A-Za-z0-9+.\-]*:)[^\x00-\x20\x7f]*")
_MAX_CONTROL = 125
_LARGEST_FRAME = 32 << 20
"""DefaultMaxPayloadBytes."""

_CONTINUATION, _TEXT, BINARY, _CLOSE, _PING, _PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
_FINAL, _RESERVED = 0x80, 0x70


class Refused(Exception):
    """The handshake is invalid; `answer` is the complete response."""

    def __init__(self, status: str, text: str = "", field: str = "") -> None:
        super().__init__(status)
        self.code = int(status[:3])
        self.text = text
        self.answer = f"HTTP/1.1 {status}\r\n{field}\r\n{text}".encode()


def handshake(environ: Mapping[str, Any]) -> bytes:
    """Returns the header of the 101 response to the request of a WSGI environ.

    Any single subprotocol is accepted, and an Origin is required.

    Raises:
        Refused: the request is not a valid WebSocket handshake.
    """
    headers = Headers(environ)
    key = requested_key(environ["REQUEST_METHOD"], lambda name: headers.get(name, ""))
    if not _ORIGIN.fullmatch(headers.get("origin", "")):
        raise Refused("403 Forbidden")
    protocol = headers.get("sec-websocket-protocol", "").strip()
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


def requested_key(method: str, header: Callable[[str], str]) -> str:
    """Returns the key of a handshake; `header` returns the value of a header, "" if it is absent.

    Raises:
        Refused: the request is not a valid WebSocket handshake.
    """
    if method != "GET":
        raise Refused("405 Method Not Allowed", "bad method")
    if header("upgrade").lower() != "websocket" or "upgrade" not in header("connection").lower():
        raise Refused("400 Bad Request", "not websocket protocol")
    key = header("sec-websocket-key")
    if not key:
        raise Refused("400 Bad Request", "mismatch challenge/response")
    if header("sec-websocket-version") != "13":
        raise Refused("400 Bad Request", "missing or bad WebSocket Version", "Sec-WebSocket-Version: 13\r\n")
    return key


def accept(key: str) -> str:
    """Returns the value of Sec-WebSocket-Accept for a client's Sec-WebSocket-Key (RFC 6455, 4.2.2)."""
    return base64.b64encode(hashlib.sha1(key.encode("latin-1") + _GUID).digest()).decode()


def text(message: bytes) -> bytes:
    """Returns a frame with a whole text message (UTF-8)."""
    return _frame(_TEXT, message)


def binary(message: bytes) -> bytes:
    """Returns a frame with a whole binary message."""
    return _frame(BINARY, message)


def fragment(part: bytes, *, is_binary: bool, begins: bool, ends: bool) -> bytes:
    """Returns a frame with a part of a message (RFC 6455, section 5.4): the first, the last, or one in between."""
    opcode = _CONTINUATION if not begins else BINARY if is_binary else _TEXT
    frame = _frame(opcode, part)
    return frame if ends else bytes([frame[0] & 0x7F]) + frame[1:]


def close(code: int = _CLOSE_NORMAL, reason: str = "") -> bytes:
    """Returns a close frame."""
    return _frame(_CLOSE, struct.pack(">H", code) + reason.encode())


def _frame(opcode: int, payload: bytes) -> bytes:
    length = len(payload)
    if length <= 125:
        return struct.pack(">BB", 0x80 | opcode, length) + payload
    if length < 1 << 16:
        return struct.pack(">BBH", 0x80 | opcode, 126, length) + payload
    return struct.pack(">BBQ", 0x80 | opcode, 127, length) + payload


class Piece(NamedTuple):
    """A part of a data frame, as it arrives."""

    opcode: int
    """The opcode of the message: that of its first frame."""
    data: bytes
    begins: bool
    """Whether it is the beginning of a frame."""
    ends: bool
    """Whether it is the end of a frame."""


class FrameReader:
    """Parses the frames of a client; replies to pings.

    Args:
        receive: called with the data of messages in pieces; by default they are skipped.
        strict: refuse what RFC 6455 forbids, as gorilla does; by default parse as x/net does.
    """

    __slots__ = ("_begins", "_buffer", "_drops", "_final", "_left", "_mask", "_opcode", "_receive", "_strict", "closed")

    def __init__(self, receive: Callable[[Piece], None] | None = None, *, strict: bool = False) -> None:
        self._receive = receive
        self._strict = strict
        self._buffer = bytearray()
        self._left = 0
        self._mask = b""
        self._opcode = _CONTINUATION
        self._final = True
        self._begins = False
        self._drops = False
        self.closed = False
        """Whether the client has sent a close frame, or invalid data that ends the connection."""

    def feed(self, data: bytes) -> bytes:
        """Processes received bytes; returns the bytes to reply with."""
        self._buffer += data
        answers: list[bytes] = []
        while not self.closed:
            if self._left or self._begins:
                if not self._data():
                    break
                continue
            answer = self._frame()
            if answer is None:
                break
            answers.append(answer)
        return b"".join(answers)

    def _data(self) -> bool:
        """Passes on the received part of a data frame; returns False if there is none."""
        buffer = self._buffer
        size = min(self._left, len(buffer))
        if not size and self._left:
            return False
        self._left -= size
        if self._receive is not None and not self._drops:
            piece = _apply_mask(bytes(buffer[:size]), self._mask)
            rotated = size % 4
            self._mask = self._mask[rotated:] + self._mask[:rotated]
            self._receive(Piece(self._opcode, piece, self._begins, not self._left))
        self._begins = False
        del buffer[:size]
        return True

    def _frame(self) -> bytes | None:
        """Parses the header of the next frame, or a whole control frame; returns the reply, None if it is incomplete."""
        buffer = self._buffer
        if len(buffer) < 2:
            return None
        opcode, length, start = buffer[0] & 0x0F, buffer[1] & 0x7F, 2
        if fault := self._fault(buffer[0], buffer[1]):
            self.closed = True
            return close(_CLOSE_PROTOCOL_ERROR, fault if self._strict else "")
        if length >= 126:
            size = 2 if length == 126 else 8
            start += size
            if len(buffer) < start:
                return None
            length = int.from_bytes(buffer[2:start], "big")
        start += 4
        if opcode in (_CLOSE, _PING, _PONG):
            return self._control(opcode, start, length)
        if len(buffer) < start:
            return None
        if length > _LARGEST_FRAME and self._receive is not None and not self._strict:
            self.closed = True
            return b""
        self._mask = bytes(buffer[start - 4 : start])
        self._final = bool(buffer[0] & _FINAL)
        if opcode != _CONTINUATION:
            self._opcode = opcode
        del buffer[:start]
        self._left, self._begins, self._drops = length, True, False
        return b""

    def _fault(self, first: int, second: int) -> str:
        """Returns the error in the first two bytes of a frame; "" if they are valid."""
        if not second & 0x80:
            return "bad MASK"
        if not self._strict:
            return ""
        opcode = first & 0x0F
        if first & _RESERVED:
            return "RSV bits set"
        if opcode in (_CLOSE, _PING, _PONG):
            if second & 0x7F > _MAX_CONTROL:
                return "len > 125 for control"
            return "" if first & _FINAL else "FIN not set on control"
        if opcode not in (_CONTINUATION, _TEXT, BINARY):
            return f"bad opcode {opcode}"
        if opcode == _CONTINUATION and self._final:
            return "continuation after FIN"
        return "data before FIN" if opcode != _CONTINUATION and not self._final else ""

    def _control(self, opcode: int, start: int, length: int) -> bytes | None:
        """Processes a control frame; returns the reply, None if it is incomplete. Data beyond 125 bytes is dropped."""
        buffer = self._buffer
        if opcode == _CLOSE:
            self.closed = True
            return b""
        kept = min(length, _MAX_CONTROL)
        if len(buffer) < start + kept:
            return None
        payload = _apply_mask(bytes(buffer[start : start + kept]), bytes(buffer[start - 4 : start]))
        del buffer[: start + kept]
        self._left, self._drops = length - kept, True
        return _frame(_PONG, payload) if opcode == _PING else b""


def _apply_mask(data: bytes, mask: bytes) -> bytes:
    """Applies a mask to data, or removes it."""
    if not data:
        return data
    size = len(data)
    whole = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(data, "little") ^ int.from_bytes(whole, "little")).to_bytes(size, "little")
