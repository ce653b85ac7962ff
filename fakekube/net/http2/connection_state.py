"""The streams of an HTTP/2 connection: requests to serve, responses within the client's windows, and the end of the connection.

Invariants:

* At most `max_streams` requests are served at once; further ones wait.
* `output` has a bounded size; the rest waits in the streams, within the client's windows.

Specified by: RFC 9113; golang.org/x/net/http2 (server.go, writesched.go, flow.go).
"""

from __future__ import annotations

from collections import deque

from fakekube.net.http2 import frames
from fakekube.net.http2.frames import MAX_FRAME_BYTES, ErrorCode, Setting
from fakekube.net.http2.header_blocks import MAX_LIST_BYTES
from fakekube.net.http2.stream import Inflow, RequestStream, Sender

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

    # ------------------------------------------------------------ requests

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

    # ------------------------------------------------------------ responses

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
        """Reports whether nothing should be received for now, because the client does not read responses."""
        return self._sender.is_congested

    # ------------------------------------------------------------ ends

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
        """Reports whether no request is being served, though some have begun to arrive."""
        return bool(self._incomplete) and len(self._incomplete) == len(self.streams)

    @property
    def has_waiting(self) -> bool:
        """Reports whether requests wait until others are served."""
        return bool(self._waiting)

    @property
    def is_finished(self) -> bool:
        """Reports whether the connection can be closed after `output` is sent."""
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
