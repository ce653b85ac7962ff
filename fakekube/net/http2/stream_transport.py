"""The transport of a watch on an HTTP/2 stream, for the pump: the client's windows limit what it sends, not a socket.

The pump calls it in the loop's thread; a worker calls it to begin a watch. Events are reported in the loop's thread only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from fakekube.net.http2.stream import RequestStream
from fakekube.net.loop import READ, WRITE, Loop
from fakekube.net.transport import Disconnected, Transport


class Multiplexer(Protocol):
    """The part of the connection that streams use."""

    def send_now(self, stream: RequestStream, data: bytes | bytearray | memoryview) -> int:
        """Sends as much as the windows accept, and returns the number of bytes. Raises Disconnected if the stream has ended."""

    def end_stream(self, stream: RequestStream) -> None:
        """Ends the response."""

    def break_stream(self, stream: RequestStream) -> None:
        """Resets the stream."""

    def listen(self, stream: RequestStream, transport: StreamTransport | None) -> None:
        """Reports the events of a stream to `transport`; None ends this."""


class StreamTransport(Transport):
    """The transport of one stream."""

    __slots__ = ("_happened", "_multiplexer", "_stream", "wants_write")

    def __init__(self, multiplexer: Multiplexer, stream: RequestStream) -> None:
        self._multiplexer = multiplexer
        self._stream = stream
        self._happened: Callable[[int], None] | None = None
        self.wants_write = False

    def fileno(self) -> int:
        return -1

    def set_blocking(self, blocking: bool) -> None:
        """Does nothing: a stream never blocks."""

    def watch(self, loop: Loop, events: int, happened: Callable[[int], None]) -> None:
        self._happened = happened if events else None
        self.wants_write = bool(events & WRITE)
        self._multiplexer.listen(self._stream, self if events else None)

    def notify(self) -> None:
        """Called in the loop's thread when the windows may be larger, or the stream may have ended."""
        happened = self._happened
        if happened is None:
            return
        if self._stream.closed:
            happened(READ)
        elif self.wants_write:
            happened(WRITE)

    def receive_ready(self) -> bytes | None:
        return b"" if self._stream.closed else None

    def send_ready(self, data: bytes | bytearray | memoryview) -> int:
        if self._stream.closed:
            raise Disconnected("the stream has ended")
        return self._multiplexer.send_now(self._stream, data)

    def finish(self, last: bytes) -> None:
        self._multiplexer.end_stream(self._stream)

    def reset(self) -> None:
        self._multiplexer.break_stream(self._stream)


class Unframed:
    """The framing of a watch on a stream: frames are concatenated, and the response ends with the stream."""

    key = "bare"
    last = b""
    reusable = True
    client_closed = False
    paused = False

    def frame(self, frames: list[bytes]) -> bytes:
        return b"".join(frames)

    def receive(self, data: bytes) -> bytes:
        return b""
