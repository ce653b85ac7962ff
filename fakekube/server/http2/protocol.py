"""The server side of an HTTP/2 connection, without sockets and threads: converts bytes to requests, and responses to bytes.

`receive` processes received bytes, `next_request` returns requests to serve, `send_head` and `send_data` send responses; `output`
has the bytes to send. Invariants:

* The result depends on the received bytes, not on the sizes of the pieces.
* At most `max_streams` requests are served at once, and four times as many wait; more (by cancelling) end the connection.
* `output` has a bounded size; the rest waits in the streams, within the client's windows.

Specified by: RFC 9113; golang.org/x/net/http2 (server.go, frame.go), also for the reactions to invalid frames.
"""

from __future__ import annotations

import struct
import time
from collections import deque
from collections.abc import Callable

from fakekube.server.http2 import frames
from fakekube.server.http2.frames import ConnectionFailure, ErrorCode, Setting, StreamFailure
from fakekube.server.http2.header_blocks import MAX_LIST_BYTES, BlockDecoder, MalformedRequest, parse_request
from fakekube.server.http2.limits import Limits
from fakekube.server.http2.reader import MAX_FRAME_BYTES, FrameReader
from fakekube.server.http2.sender import Sender
from fakekube.server.http2.stream import Inflow, RequestStream

__all__ = ["Protocol"]

_STREAM_BUFFER = 256 << 10
"""The window of a stream (resourceBody99Percentile in secure_serving.go)."""
_MAX_SETTINGS = 100


class Protocol:
    """One connection. Not thread-safe."""

    def __init__(self, max_streams: int = 100, monotonic: Callable[[], float] = time.monotonic) -> None:
        """
        Args:
            max_streams: the maximum number of concurrent streams.
            monotonic: returns the time in seconds, for `Limits`.
        """
        self.streams: dict[int, RequestStream] = {}
        self.going_away = False
        """Whether one side has sent GOAWAY: no new streams are accepted."""
        self.failed = False
        """Whether the connection has ended, except for the bytes in `output`."""
        self.error_sent = False
        """Whether a GOAWAY with an error was sent."""
        self.settings_received = False
        """Whether the client's first SETTINGS have arrived."""
        self.changed = False
        """Set when a stream has more of its body, a larger window, or has ended; the connection resets it."""
        self.ended: list[RequestStream] = []
        """Streams that have ended; the connection empties the list."""
        self._max_streams = max_streams
        self._reader = FrameReader()
        self._decoder = BlockDecoder()
        self._limits = Limits(monotonic)
        self._sender = Sender(self._completed)
        self.output = self._sender.output
        """The bytes to send. The sender deletes sent bytes, and calls `drained`."""
        self._inflow = Inflow(frames.INITIAL_WINDOW)
        self._last_stream = 0
        self._unacknowledged = 1
        self._waiting: deque[RequestStream] = deque()
        self._answering = 0
        self._stopped: deque[int] = deque(maxlen=max_streams)
        """The latest streams that were reset with NO_ERROR because the response was complete before the request."""
        self.output += frames.settings(
            [
                (Setting.MAX_FRAME_SIZE, MAX_FRAME_BYTES),
                (Setting.MAX_CONCURRENT_STREAMS, max_streams),
                (Setting.MAX_HEADER_LIST_SIZE, MAX_LIST_BYTES),
                (Setting.HEADER_TABLE_SIZE, 4096),
                (Setting.INITIAL_WINDOW_SIZE, _STREAM_BUFFER),
            ]
        )
        increment = self._inflow.grant(min(_STREAM_BUFFER * max_streams, frames.LARGEST_WINDOW) - frames.INITIAL_WINDOW)
        self.output += frames.window_update(0, increment)

    # ------------------------------------------------------------ frames of the client

    def receive(self, data: bytes) -> None:
        """Processes received bytes. Replies, also to errors, are added to `output`."""
        if self.failed:
            return
        try:
            for kind, flags, stream_id, payload in self._reader.feed(data):
                self._frame(kind, flags, stream_id, payload)
                if self.failed:
                    return
        except ConnectionFailure as failure:
            self.fail(failure.code)
        if self._reader.wrong_preface:
            self.close()

    def _frame(self, kind: int, flags: int, stream_id: int, payload: bytes) -> None:
        if not self.settings_received and kind != frames.SETTINGS:
            raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR)
        handle = _HANDLERS.get(kind)
        if handle is None:
            self._limits.idle_frame()
            return
        try:
            handle(self, flags, stream_id, payload)
        except StreamFailure as failure:
            self.reset(failure.stream_id, failure.code)

    def _data(self, flags: int, stream_id: int, payload: bytes) -> None:
        length = len(payload)
        data = frames.unpadded(payload) if flags & frames.PADDED else payload
        if self._is_ignored(stream_id):
            self._discard_data(stream_id, length)
            return
        if stream_id == 0 or stream_id > self._last_stream:
            raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR)
        stream = self.streams.get(stream_id)
        if stream is None or stream.remote_ended or stream.got_trailers:
            self._discard_data(stream_id, length)
            if stream is None and stream_id in self._stopped:
                return  # sent before the client received the reset
            raise StreamFailure(stream_id, ErrorCode.STREAM_CLOSED)
        declared = stream.request.fields.length
        if declared is not None and stream.received + len(data) > declared:
            self._discard_data(stream_id, length)
            stream.body_error = f"sender tried to send more than declared Content-Length of {declared} bytes"
            raise StreamFailure(stream_id, ErrorCode.PROTOCOL_ERROR)
        if length > min(self._inflow.available, stream.inflow.available):
            raise StreamFailure(stream_id, ErrorCode.FLOW_CONTROL_ERROR)
        if length:
            self._inflow.take(length)
            stream.inflow.take(length)
            stream.received += len(data)
            stream.body += data
            self._grant(stream, length - len(data))
            self._limits.useful_frame()
        elif not flags & frames.END_STREAM:
            self._limits.idle_frame()
        if flags & frames.END_STREAM:
            self._end_remote(stream)
        self.changed = True

    def _discard_data(self, stream_id: int, length: int) -> None:
        """Discards data of a stream that is not open; it counts for the window of the connection."""
        if not self._inflow.take(length):
            raise StreamFailure(stream_id, ErrorCode.FLOW_CONTROL_ERROR)
        self._grant_connection(length)
        self._limits.idle_frame()

    def _headers(self, flags: int, stream_id: int, block: bytes) -> None:
        depends_on_itself = False
        if flags & frames.PRIORITY_FLAG:
            if len(block) < 5:
                raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR)
            depends_on_itself = int.from_bytes(block[:4], "big") & frames.LARGEST_WINDOW == stream_id
            block = block[5:]
        self._header_block(flags, stream_id, block)
        if depends_on_itself:
            raise StreamFailure(stream_id, ErrorCode.PROTOCOL_ERROR)

    def _header_block(self, flags: int, stream_id: int, block: bytes) -> None:
        fields = self._decoder.decode(block)
        if not stream_id & 1:
            raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR)
        ends = bool(flags & frames.END_STREAM)
        stream = self.streams.get(stream_id)
        if stream is not None:
            self._trailers(stream, any(name[:1] == b":" for name, _ in fields), ends)
            return
        if stream_id <= self._last_stream:
            raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR)
        if self.going_away:
            return
        self._last_stream = stream_id
        if len(self.streams) >= self._max_streams:
            raise StreamFailure(stream_id, ErrorCode.REFUSED_STREAM if self._unacknowledged else ErrorCode.PROTOCOL_ERROR)
        try:
            request = parse_request(fields, not ends)
        except MalformedRequest:
            raise StreamFailure(stream_id, ErrorCode.PROTOCOL_ERROR) from None
        if len(self._waiting) > 4 * self._max_streams:
            raise ConnectionFailure(ErrorCode.ENHANCE_YOUR_CALM)
        stream = RequestStream(stream_id, request, self._sender.stream_window, _STREAM_BUFFER, ends)
        self.streams[stream_id] = stream
        self._waiting.append(stream)
        self._limits.useful_frame()

    def _trailers(self, stream: RequestStream, has_pseudo: bool, ends: bool) -> None:
        """Checks trailers and drops them, because the Kubernetes API does not use them."""
        if stream.remote_ended:
            raise StreamFailure(stream.stream_id, ErrorCode.STREAM_CLOSED)
        if stream.got_trailers:
            raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR)
        stream.got_trailers = True
        if not ends or has_pseudo:
            raise StreamFailure(stream.stream_id, ErrorCode.PROTOCOL_ERROR)
        self._end_remote(stream)

    def _end_remote(self, stream: RequestStream) -> None:
        declared = stream.request.fields.length
        if declared is not None and declared != stream.received:
            stream.body_error = f"request declared a Content-Length of {declared} but only wrote {stream.received} bytes"
        stream.remote_ended = True
        self.changed = True

    def _priority(self, flags: int, stream_id: int, payload: bytes) -> None:
        if stream_id == 0:
            raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR)
        if len(payload) != 5:
            raise ConnectionFailure(ErrorCode.FRAME_SIZE_ERROR)
        self._limits.idle_frame()
        if int.from_bytes(payload[:4], "big") & frames.LARGEST_WINDOW == stream_id:
            raise StreamFailure(stream_id, ErrorCode.PROTOCOL_ERROR)

    def _priority_update(self, flags: int, stream_id: int, payload: bytes) -> None:
        if stream_id != 0 or (len(payload) >= 4 and not any(payload[:4])):
            raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR)
        if len(payload) < 4:
            raise ConnectionFailure(ErrorCode.FRAME_SIZE_ERROR)
        self._limits.idle_frame()

    def _rst_stream(self, flags: int, stream_id: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise ConnectionFailure(ErrorCode.FRAME_SIZE_ERROR)
        self._limits.idle_frame()
        if self._is_ignored(stream_id):
            return
        if stream_id == 0 or stream_id > self._last_stream:
            raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR)
        stream = self.streams.get(stream_id)
        if stream is not None:
            if not stream.is_answered:
                self._limits.cancelled_request()
            stream.body_error = stream.body_error or "client disconnected"
            self._close(stream)

    def _settings(self, flags: int, stream_id: int, payload: bytes) -> None:
        acknowledges = flags & frames.ACK
        if len(payload) % 6 or (acknowledges and payload):
            raise ConnectionFailure(ErrorCode.FRAME_SIZE_ERROR)
        if stream_id != 0:
            raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR)
        self.settings_received = True
        self._limits.idle_frame()
        if acknowledges:
            self._unacknowledged -= 1
            if self._unacknowledged < 0:
                raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR)
            return
        values = list(struct.iter_unpack(">HI", payload))
        if len(values) > _MAX_SETTINGS or len({name for name, _ in values}) != len(values):
            raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR)
        for name, value in values:
            self._setting(name, value)
        self._control(frames.frame(frames.SETTINGS, frames.ACK, 0))
        self.changed = True

    def _setting(self, name: int, value: int) -> None:
        match name:
            case Setting.ENABLE_PUSH | Setting.NO_RFC7540_PRIORITIES if value > 1:
                raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR)
            case Setting.INITIAL_WINDOW_SIZE:
                if value > frames.LARGEST_WINDOW:
                    raise ConnectionFailure(ErrorCode.FLOW_CONTROL_ERROR)
                self._sender.resize_windows(value, self.streams.values())
                self._sender.fill()
            case Setting.MAX_FRAME_SIZE:
                if not frames.INITIAL_FRAME_BYTES <= value < 1 << 24:
                    raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR)
                self._sender.frame_bytes = value

    def _push_promise(self, flags: int, stream_id: int, payload: bytes) -> None:
        raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR)

    def _ping(self, flags: int, stream_id: int, payload: bytes) -> None:
        if len(payload) != 8:
            raise ConnectionFailure(ErrorCode.FRAME_SIZE_ERROR)
        if stream_id != 0:
            raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR)
        self._limits.idle_frame()
        if not flags & frames.ACK:
            self._control(frames.frame(frames.PING, frames.ACK, 0, payload))

    def _goaway(self, flags: int, stream_id: int, payload: bytes) -> None:
        if stream_id != 0:
            raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR)
        if len(payload) < 8:
            raise ConnectionFailure(ErrorCode.FRAME_SIZE_ERROR)
        self._limits.idle_frame()
        self.go_away()

    def _window_update(self, flags: int, stream_id: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise ConnectionFailure(ErrorCode.FRAME_SIZE_ERROR)
        increment = int.from_bytes(payload, "big") & frames.LARGEST_WINDOW
        if stream_id == 0:
            if increment == 0:
                raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR)
            self._sender.window += increment
            if self._sender.window > frames.LARGEST_WINDOW:
                raise ConnectionFailure(ErrorCode.FLOW_CONTROL_ERROR)
        elif not self._is_ignored(stream_id):
            if stream_id > self._last_stream:
                raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR)
            if increment == 0:
                raise StreamFailure(stream_id, ErrorCode.PROTOCOL_ERROR)
            stream = self.streams.get(stream_id)
            if stream is None:
                return
            stream.window += increment
            if stream.window > frames.LARGEST_WINDOW:
                raise StreamFailure(stream_id, ErrorCode.FLOW_CONTROL_ERROR)
        self.changed = True
        self._sender.fill()

    def _is_ignored(self, stream_id: int) -> bool:
        """Reports whether a stream was begun after a GOAWAY."""
        return self.going_away and stream_id > self._last_stream

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

    def answered(self) -> None:
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

    def drained(self) -> None:
        """Called after bytes of `output` were sent."""
        self.changed = True
        self._sender.drained()

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
    def has_waiting(self) -> bool:
        """Reports whether requests wait until others are served."""
        return bool(self._waiting)

    @property
    def is_finished(self) -> bool:
        """Reports whether the connection can be closed after `output` is sent."""
        return self.failed or (self.going_away and not self.streams)

    def _completed(self, stream: RequestStream) -> None:
        """Called when a response is complete; resets the stream if the client still sends its request."""
        if not stream.remote_ended:
            self._stopped.append(stream.stream_id)
            self._sender.late(frames.rst_stream(stream.stream_id, ErrorCode.NO_ERROR))
        if stream.is_last:
            self.go_away()
        self._close(stream)

    def _close(self, stream: RequestStream) -> None:
        stream.closed = True
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


_HANDLERS: dict[int, Callable[[Protocol, int, int, bytes], None]] = {
    frames.DATA: Protocol._data,
    frames.HEADERS: Protocol._headers,
    frames.PRIORITY: Protocol._priority,
    frames.RST_STREAM: Protocol._rst_stream,
    frames.SETTINGS: Protocol._settings,
    frames.PUSH_PROMISE: Protocol._push_promise,
    frames.PING: Protocol._ping,
    frames.GOAWAY: Protocol._goaway,
    frames.WINDOW_UPDATE: Protocol._window_update,
    frames.PRIORITY_UPDATE: Protocol._priority_update,
}
