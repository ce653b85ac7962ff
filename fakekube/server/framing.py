"""Encodes the frames of a stream on a connection: as chunks, unchanged, as WebSocket messages, or in another
protocol.

A framing is the part of a streaming answer that knows the protocol on the wire; the pump only moves its
bytes. It also hears what the client sends meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from fakekube.server.http1 import RequestParser
from fakekube.streaming import websocket
from fakekube.streams import Tunnel

__all__ = ["Bare", "Chunked", "Framing", "Raw", "WebSocketMessages"]


class Framing(Protocol):
    """One connection's side of a streaming answer."""

    key: str
    """Framings with the same key make the same bytes of the same frames."""
    last: bytes
    """What follows the last frame."""
    reusable: bool
    """Another request may follow on the connection."""

    def frame(self, frames: list[bytes]) -> bytes:
        """All of `frames`, ready to send."""

    def receive(self, data: bytes) -> bytes:
        """Hear what the client sent; what to answer."""

    @property
    def hung_up(self) -> bool:
        """True when the client has closed the stream, and only `last` remains to be sent."""

    @property
    def deaf(self) -> bool:
        """True when no more data may be received."""


_MAX_PIPELINED = 65536


class Chunked:
    """HTTP/1.1. Requests that the client sends ahead wait in the connection's parser."""

    key = "chunked"
    last = b"0\r\n\r\n"
    hung_up = False

    def __init__(self, parser: RequestParser, reusable: bool) -> None:
        self._parser = parser
        self.reusable = reusable

    def frame(self, frames: list[bytes]) -> bytes:
        # An empty chunk would end the answer.
        return b"".join([b"%x\r\n%b\r\n" % (len(frame), frame) for frame in frames if frame])

    def receive(self, data: bytes) -> bytes:
        self._parser.feed(data)
        return b""

    @property
    def deaf(self) -> bool:
        return len(self._parser.buffer) > _MAX_PIPELINED


class Bare(Chunked):
    """HTTP/1.0: the end of the connection is the end of the answer."""

    key = "bare"
    last = b""

    def __init__(self, parser: RequestParser) -> None:
        super().__init__(parser, reusable=False)

    def frame(self, frames: list[bytes]) -> bytes:
        return b"".join(frames)


class WebSocketMessages:
    """Every frame is one message."""

    last = websocket.close()
    reusable = False
    deaf = False

    def __init__(self, is_binary: bool) -> None:
        self.key = "binary" if is_binary else "text"
        self._message: Callable[[bytes], bytes] = websocket.binary if is_binary else websocket.text
        self._reader = websocket.FrameReader()

    def frame(self, frames: list[bytes]) -> bytes:
        return b"".join([self._message(frame) for frame in frames])

    def receive(self, data: bytes) -> bytes:
        return self._reader.feed(data)

    @property
    def hung_up(self) -> bool:
        return self._reader.closed


class Raw:
    """Another protocol: bytes go both ways as they are."""

    key = "bare"
    last = b""
    reusable = False
    hung_up = False

    def __init__(self, tunnel: Tunnel, parser: RequestParser) -> None:
        self._tunnel = tunnel
        if parser.buffer:  # what the client sent behind its request
            tunnel.receive(bytes(parser.buffer))
            parser.buffer.clear()

    def frame(self, frames: list[bytes]) -> bytes:
        return b"".join(frames)

    def receive(self, data: bytes) -> bytes:
        if data:
            self._tunnel.receive(data)
        return b""

    @property
    def deaf(self) -> bool:
        return self._tunnel.full
