"""Encodes the frames of a stream for a connection: as chunks, unchanged, as WebSocket messages, or as data of another protocol.

A framing implements the protocol of a streaming response, in both directions; the pump only transfers its bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from fakekube.net import websocket
from fakekube.net.http1 import RequestParser
from fakekube.net.streams import Fragment, Tunnel


class Framing(Protocol):
    """The encoding of a streaming response on one connection."""

    key: str
    """Framings with the same key encode the same frames as the same bytes."""
    last: bytes
    """The bytes after the last frame."""
    reusable: bool
    """Whether another request may follow on the connection."""

    def frame(self, frames: list[bytes]) -> bytes:
        """Encodes frames."""

    def receive(self, data: bytes) -> bytes:
        """Processes data from the client; returns the bytes to reply with."""

    @property
    def client_closed(self) -> bool:
        """Reports whether the client has closed the stream; then only `last` is sent."""

    @property
    def paused(self) -> bool:
        """Reports whether no data should be received for now."""


_MAX_PIPELINED = 65536


class Chunked:
    """Chunks of HTTP/1.1. Pipelined requests of the client are kept in the parser of the connection."""

    key = "chunked"
    last = b"0\r\n\r\n"
    client_closed = False

    def __init__(self, parser: RequestParser, reusable: bool) -> None:
        self._parser = parser
        self.reusable = reusable

    def frame(self, frames: list[bytes]) -> bytes:
        # An empty chunk would end the response.
        return b"".join([b"%x\r\n%b\r\n" % (len(frame), frame) for frame in frames if frame])

    def receive(self, data: bytes) -> bytes:
        self._parser.feed(data)
        return b""

    @property
    def paused(self) -> bool:
        return len(self._parser.buffer) > _MAX_PIPELINED


class Bare(Chunked):
    """HTTP/1.0: the response ends with the connection."""

    key = "bare"
    last = b""

    def __init__(self, parser: RequestParser) -> None:
        super().__init__(parser, reusable=False)

    def frame(self, frames: list[bytes]) -> bytes:
        return b"".join(frames)


class WebSocketMessages:
    """WebSocket: every frame is one message, a `Fragment` a part of one."""

    last = websocket.close()
    reusable = False
    paused = False

    def __init__(self, is_binary: bool) -> None:
        self.key = "binary" if is_binary else "text"
        self._message: Callable[[bytes], bytes] = websocket.binary if is_binary else websocket.text
        self._reader = websocket.FrameReader()

    def frame(self, frames: list[bytes]) -> bytes:
        return b"".join([self._encode(frame) for frame in frames])

    def _encode(self, frame: bytes) -> bytes:
        if not isinstance(frame, Fragment):
            return self._message(frame)
        return websocket.fragment(frame, is_binary=self.key == "binary", begins=frame.begins, ends=frame.ends)

    def receive(self, data: bytes) -> bytes:
        return self._reader.feed(data)

    @property
    def client_closed(self) -> bool:
        return self._reader.closed


class Raw:
    """Another protocol, of a `Tunnel`: bytes are transferred unchanged in both directions."""

    key = "bare"
    last = b""
    reusable = False
    client_closed = False

    def __init__(self, tunnel: Tunnel, parser: RequestParser) -> None:
        self._tunnel = tunnel
        if parser.buffer:  # data that the client sent after its request
            tunnel.receive(bytes(parser.buffer))
            parser.buffer.clear()

    def frame(self, frames: list[bytes]) -> bytes:
        return b"".join(frames)

    def receive(self, data: bytes) -> bytes:
        if data:
            self._tunnel.receive(data)
        return b""

    @property
    def paused(self) -> bool:
        return self._tunnel.full
