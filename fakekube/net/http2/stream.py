"""The streams of a connection: state, windows and waiting data of each, and the frames that are sent for them.

Invariants:

* Bytes of a request's body that the application has not read count against both windows, so that they never exceed the window
  of the stream.
* `output` has a bounded amount of data. The rest of a complete body waits in the outbox of its stream; the outboxes are sent in
  turn, within the client's windows, so that no stream delays another.

Specified by: RFC 9113, sections 5.2 and 6; golang.org/x/net/http2 (server.go: stream, writeFrame,
processSettingInitialWindowSize; flow.go: inflow).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable

from fakekube.net.http1 import Request
from fakekube.net.http2 import frames
from fakekube.net.http2.frames import ConnectionFailure, ErrorCode

_LEAST_REFRESH = 4096


class Inflow:
    """The window for data of the client. Small increments are combined into one WINDOW_UPDATE."""

    __slots__ = ("available", "unsent")

    def __init__(self, size: int) -> None:
        self.available = size
        self.unsent = 0
        """Bytes by which the window can be enlarged, and has not been yet."""

    def take(self, count: int) -> bool:
        """Reduces the window; returns False if it is too small."""
        if count > self.available:
            return False
        self.available -= count
        return True

    def grant(self, count: int) -> int:
        """Gives back bytes; returns the increment to send now, which may be 0."""
        self.unsent += count
        if not self.unsent or (self.unsent < _LEAST_REFRESH and self.unsent < self.available):
            return 0
        increment, self.unsent = self.unsent, 0
        self.available += increment
        return increment


class RequestStream:
    """A request and its response. Guarded by the lock of its connection."""

    __slots__ = (
        "body",
        "body_error",
        "closed",
        "continued",
        "got_trailers",
        "inflow",
        "is_answered",
        "is_last",
        "outbox",
        "received",
        "remote_ended",
        "request",
        "stream_id",
        "window",
    )

    def __init__(self, stream_id: int, request: Request, window: int, receive_window: int, remote_ended: bool) -> None:
        self.stream_id = stream_id
        self.request = request
        self.window = window
        """The client's window for the stream, in bytes."""
        self.inflow = Inflow(receive_window)
        self.body = bytearray()
        """The received bytes of the request's body that have not been read."""
        self.received = 0
        self.body_error = ""
        self.got_trailers = False
        self.remote_ended = remote_ended
        self.is_answered = False
        """Whether the header of the response was sent."""
        self.is_last = False
        """Whether the connection accepts no new streams after this response, or after its header if its body comes in pieces."""
        self.continued = False
        """Whether `100 Continue` was sent."""
        self.closed = False
        """Whether both sides have ended the stream, one has reset it, or the connection has ended."""
        self.outbox = memoryview(b"")
        """The rest of a complete body that waits for the windows; the response ends with it."""

    @property
    def body_is_complete(self) -> bool:
        """Reports whether no more of the request's body will arrive."""
        return self.remote_ended or self.closed or bool(self.body_error)


_OUTPUT_BYTES = 256 << 10
"""The amount of data that is encoded before the socket has accepted it."""
_MAX_CONTROL_FRAMES = 10_000
"""The maximum number of control frames that wait for a client that does not read (maxQueuedControlFrames)."""
_FRAME_HEADER = struct.Struct(">BHBBI")


class Sender:
    """The sender of one connection. Not thread-safe."""

    def __init__(self, completed: Callable[[RequestStream], None]) -> None:
        """`completed` is called when the last frame of a response is in `output`."""
        self.output = bytearray()
        self.window = frames.INITIAL_WINDOW
        """The client's window for the connection, in bytes."""
        self.stream_window = frames.INITIAL_WINDOW
        """The client's window for new streams, in bytes."""
        self.frame_bytes = frames.INITIAL_FRAME_BYTES
        """The largest frame that the client accepts."""
        self._completed = completed
        self._control_frames = 0
        self._late = bytearray()
        self._with_outbox: dict[RequestStream, None] = {}

    def head(self, stream: RequestStream, block: bytes, ends: bool) -> None:
        """Sends the header of a response."""
        size = self.frame_bytes
        flags = frames.END_STREAM if ends else 0
        if len(block) <= size:
            self.output += frames.frame(frames.HEADERS, flags | frames.END_HEADERS, stream.stream_id, block)
        else:
            self.output += frames.frame(frames.HEADERS, flags, stream.stream_id, block[:size])
            for start in range(size, len(block), size):
                last = frames.END_HEADERS if start + size >= len(block) else 0
                self.output += frames.frame(frames.CONTINUATION, last, stream.stream_id, block[start : start + size])
        if ends:
            self._completed(stream)

    def data(self, stream: RequestStream, data: bytes | bytearray | memoryview, ends: bool) -> int:
        """Sends as much as the windows and the output accept, and returns the number of bytes. `ends`: the stream ends if all are
        sent."""
        total = len(data)
        room = min(total, self.room(stream))
        if room <= 0 and total:
            return 0
        output, size = self.output, self.frame_bytes
        sent = 0
        while sent < room:
            piece = data[sent : min(sent + size, room)]
            sent += len(piece)
            length = len(piece)
            flags = frames.END_STREAM if ends and sent == total else 0
            output += _FRAME_HEADER.pack(length >> 16, length & 0xFFFF, frames.DATA, flags, stream.stream_id)
            output += piece
        stream.window -= sent
        self.window -= sent
        if ends and sent == total:
            if not total:
                output += frames.frame(frames.DATA, frames.END_STREAM, stream.stream_id)
            self._completed(stream)
        return sent

    def rest(self, stream: RequestStream, data: bytes) -> None:
        """Sends a body to its end; the part that exceeds the windows waits in the outbox of the stream."""
        sent = self.data(stream, data, ends=True)
        if sent < len(data):
            stream.outbox = memoryview(data)[sent:]
            self._with_outbox[stream] = None

    def control(self, frame: bytes) -> bool:
        """Sends a control frame; returns False if too many of them wait for the client."""
        self._control_frames += 1
        if self._control_frames > _MAX_CONTROL_FRAMES:
            return False
        self.output += frame
        return True

    def send_late(self, frame: bytes) -> None:
        """Sends a frame after the output is sent: clients that receive both at once may drop the response."""
        self._late += frame

    def room(self, stream: RequestStream) -> int:
        """Returns the number of bytes of data that `data` would send."""
        return min(stream.window, self.window, _OUTPUT_BYTES - len(self.output))

    @property
    def is_congested(self) -> bool:
        """Reports whether the client does not read responses."""
        return len(self.output) > 2 * _OUTPUT_BYTES

    def resize_windows(self, size: int, streams: Iterable[RequestStream]) -> None:
        """Applies a new SETTINGS_INITIAL_WINDOW_SIZE of the client. Raises ConnectionFailure if a window overflows."""
        growth, self.stream_window = size - self.stream_window, size
        for stream in streams:
            stream.window += growth
            if stream.window > frames.LARGEST_WINDOW:
                raise ConnectionFailure(ErrorCode.FLOW_CONTROL_ERROR)

    def on_sent(self) -> None:
        """Called after bytes of `output` were sent."""
        if len(self.output) < _OUTPUT_BYTES // 4:
            self._control_frames = 0
        if self._late and not self.output:
            self.output += self._late
            self._late.clear()
        self.fill()

    def fill(self) -> None:
        """Sends from the outboxes, in turn."""
        moved = True
        while moved and self._with_outbox and self.window > 0 and len(self.output) < _OUTPUT_BYTES:
            moved = False
            for stream in list(self._with_outbox):
                outbox = stream.outbox[: self.frame_bytes]
                sent = self.data(stream, outbox, ends=len(outbox) == len(stream.outbox))
                moved = moved or sent > 0
                stream.outbox = stream.outbox[sent:]

    def forget(self, stream: RequestStream) -> None:
        """Drops the outbox of a stream that has ended."""
        stream.outbox = memoryview(b"")
        self._with_outbox.pop(stream, None)
