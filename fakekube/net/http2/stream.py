"""The streams of a connection: requests to serve, responses within the client's windows, and the end of the connection.

Invariants:

* At most `max_streams` requests are served at once; further ones wait.
* Bytes of a request's body that the application has not read count against both windows, so that they never exceed the window
  of the stream.
* `output` has a bounded amount of data. The rest of a complete body waits in the outbox of its stream; the outboxes are sent in
  turn, within the client's windows, so that no stream delays another.

Specified by: RFC 9113, sections 5.2 and 6; golang.org/x/net/http2 (server.go: stream, writeFrame,
processSettingInitialWindowSize; writesched.go; flow.go: inflow).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from fakekube.net.http1 import Request
from fakekube.net.http2 import frames
from fakekube.net.http2.frames import MAX_FRAME_BYTES, ConnectionFailure, ErrorCode, Setting
from fakekube.net.http2.header_blocks import MAX_LIST_BYTES

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
        """Whether no more of the request's body will arrive."""
        return self.remote_ended or self.closed or bool(self.body_error)


_OUTPUT_BYTES = 256 << 10
"""The amount of data that is encoded before the socket has accepted it."""
_MAX_CONTROL_FRAMES = 10_000
"""The maximum number of control frames that wait for a client that does not read (maxQueuedControlFrames)."""


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
            output += frames.FRAME_HEADER.pack(length >> 16, length & 0xFFFF, frames.DATA, flags, stream.stream_id)
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
        """Whether the client does not read responses."""
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


# --- The streams of an HTTP/2 connection ------------------------------------------------------------------------------


#: The window of a stream (resourceBody99Percentile in secure_serving.go).
STREAM_BUFFER = 256 << 10
MAX_AWAITED_BODY = 128 << 10
"""Bodies up to this size are received before a thread serves the request; those of larger ones while it does."""


class ConnectionState:
    """The state of one connection. Not thread-safe."""

    def __init__(self, max_streams: int) -> None:
        """`max_streams`: the maximum number of concurrent streams."""
        self.streams: dict[int, RequestStream] = {}
        self.going_away = False
        """Whether one side has sent GOAWAY: no new streams are accepted."""
        self.failed = False
        """Whether the connection has ended, except for the bytes in `output`."""
        self.error_sent = False
        """Whether a GOAWAY with an error was sent."""
        self.changed = False
        """Set when a stream has more of its body, a larger window, or has ended; the connection resets it."""
        self.ended: list[RequestStream] = []
        """Streams that have ended; the connection empties the list."""
        self._max_streams = max_streams
        self._sender = Sender(self._on_response_encoded)
        self.output = self._sender.output
        """The bytes to send. The sender deletes sent bytes, and calls `on_sent`."""
        self._inflow = Inflow(frames.INITIAL_WINDOW)
        self._last_stream = 0
        self._waiting: deque[RequestStream] = deque()
        self._incomplete: set[RequestStream] = set()
        """Requests that are not served yet, because their bodies have not arrived."""
        self._answering = 0
        self._stopped: deque[int] = deque(maxlen=max_streams)
        """The latest streams that were reset with NO_ERROR because the response was complete before the request."""
        self._send_preface()

    def _send_preface(self) -> None:
        self.output += frames.settings(
            [
                (Setting.MAX_FRAME_SIZE, MAX_FRAME_BYTES),
                (Setting.MAX_CONCURRENT_STREAMS, self._max_streams),
                (Setting.MAX_HEADER_LIST_SIZE, MAX_LIST_BYTES),
                (Setting.HEADER_TABLE_SIZE, 4096),
                (Setting.INITIAL_WINDOW_SIZE, STREAM_BUFFER),
            ]
        )
        increment = self._inflow.grant(min(STREAM_BUFFER * self._max_streams, frames.LARGEST_WINDOW) - frames.INITIAL_WINDOW)
        self.output += frames.window_update(0, increment)

    # --- Requests -----------------------------------------------------------------------------------------------------

    def next_request(self) -> RequestStream | None:
        """Returns the next request to serve; None if there is none. `answered` must be called once for each."""
        waiting = self._waiting
        while waiting and self._answering < self._max_streams:
            stream = waiting.popleft()
            if not stream.closed:
                self._answering += 1
                return stream
        return None

    def end_request(self) -> None:
        """Called when the application has served a request."""
        self._answering -= 1

    def read_body(self, stream: RequestStream, limit: int) -> bytes:
        """Removes and returns up to `limit` received bytes of a body, and enlarges the client's window by as many."""
        piece = bytes(stream.body[:limit])
        del stream.body[:limit]
        self._grant(stream, len(piece))
        return piece

    def _grant(self, stream: RequestStream, count: int) -> None:
        self._grant_connection(count)
        if not stream.remote_ended and not stream.closed and (increment := stream.inflow.grant(count)):
            self._control(frames.window_update(stream.stream_id, increment))

    def _grant_connection(self, count: int) -> None:
        if increment := self._inflow.grant(count):
            self._control(frames.window_update(0, increment))

    # --- Responses ----------------------------------------------------------------------------------------------------

    def send_head(self, stream: RequestStream, block: bytes, ends: bool) -> None:
        """Sends the header of a response; does nothing if the stream has ended."""
        if not stream.closed:
            stream.is_answered = True
            self._sender.head(stream, block, ends)

    def send_data(self, stream: RequestStream, data: bytes | bytearray | memoryview, ends: bool = False) -> int:
        """Sends as much as the windows and the output accept, and returns the number of bytes. `ends`: the stream ends if all are
        sent."""
        return len(data) if stream.closed else self._sender.data(stream, data, ends)

    def send_rest(self, stream: RequestStream, data: bytes) -> None:
        """Sends the body of a response; the part that exceeds the windows waits."""
        if not stream.closed:
            self._sender.rest(stream, data)

    def on_sent(self) -> None:
        """Called after bytes of `output` were sent."""
        self.changed = True
        self._sender.on_sent()

    def may_send(self, stream: RequestStream) -> bool:
        """Reports whether `send_data` would send something."""
        return self._sender.room(stream) > 0

    @property
    def is_congested(self) -> bool:
        """Whether nothing should be received for now, because the client does not read responses."""
        return self._sender.is_congested

    # --- Ends ---------------------------------------------------------------------------------------------------------

    def reset(self, stream_id: int, code: ErrorCode) -> None:
        """Resets a stream."""
        self._control(frames.rst_stream(stream_id, code))
        stream = self.streams.get(stream_id)
        if stream is not None:
            stream.body_error = stream.body_error or "stream error"
            self._close(stream)

    def go_away(self) -> None:
        """Sends GOAWAY: open streams continue, new ones are not accepted."""
        if not self.going_away:
            self.going_away = True
            self._control(frames.goaway(self._last_stream, ErrorCode.NO_ERROR))

    def fail(self, code: ErrorCode) -> None:
        """Ends the connection with an error; only the bytes in `output` are still sent."""
        if self.failed:
            return
        self.output += frames.goaway(self._last_stream, code)
        self.error_sent = True
        self.close()

    def close(self) -> None:
        """Ends all streams, because the connection has ended."""
        self.failed = True
        for stream in list(self.streams.values()):
            stream.body_error = stream.body_error or "client disconnected"
            self._close(stream)
        self._waiting.clear()

    @property
    def only_receives(self) -> bool:
        """Whether no request is being served, though some have begun to arrive."""
        return bool(self._incomplete) and len(self._incomplete) == len(self.streams)

    @property
    def has_waiting(self) -> bool:
        """Whether requests wait until others are served."""
        return bool(self._waiting)

    @property
    def is_finished(self) -> bool:
        """Whether the connection can be closed after `output` is sent."""
        return self.failed or (self.going_away and not self.streams)

    def _on_response_encoded(self, stream: RequestStream) -> None:
        """Called when a response is complete; resets the stream if the client still sends its request."""
        if not stream.remote_ended:
            self._stopped.append(stream.stream_id)
            self._sender.send_late(frames.rst_stream(stream.stream_id, ErrorCode.NO_ERROR))
        if stream.is_last:
            self.go_away()
        self._close(stream)

    def _close(self, stream: RequestStream) -> None:
        stream.closed = True
        self._incomplete.discard(stream)
        self._sender.forget(stream)
        self.streams.pop(stream.stream_id, None)
        self.ended.append(stream)
        self.changed = True
        if stream.body:
            unread, stream.body = len(stream.body), bytearray()
            self._grant_connection(unread)

    def _control(self, frame: bytes) -> None:
        if not self._sender.control(frame):
            self.close()
