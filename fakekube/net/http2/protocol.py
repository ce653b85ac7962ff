"""The server side of an HTTP/2 connection, without sockets and threads: converts bytes to requests, and responses to bytes.

`receive` processes received bytes, `next_request` returns requests to serve, `send_head` and `send_data` send responses;
`output` has the bytes to send. Frames without effect and cancelled requests are limited in their rates: a connection that exceeds
them ends. Invariants:

* The result depends on the received bytes, not on the sizes of the pieces.
* At most one frame and one header block are buffered, whether it is split into several frames or not.
* At most `max_streams` requests are served at once, and four times as many wait; more (by cancelling) end the connection.
* `output` has a bounded size (`stream.ConnectionState`).

Specified by: RFC 9113; golang.org/x/net/http2 (server.go, frame.go: ReadFrame, checkFrameOrder, readMetaFrame), also for the
reactions to invalid frames, though it only limits queued frames; nghttp2 for the limits of cancelled requests
(--max-reset-stream-rate).
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator

from fakekube.net.http2 import frames
from fakekube.net.http2.frames import MAX_FRAME_BYTES, ConnectionFailure, ErrorCode, Setting, StreamFailure
from fakekube.net.http2.header_blocks import MAX_LIST_BYTES, BlockDecoder, MalformedRequest
from fakekube.net.http2.stream import MAX_AWAITED_BODY, STREAM_BUFFER, ConnectionState, RequestStream

_MAX_IDLE_FRAMES = 10_000
_IDLE_FRAME_SECONDS = 30.0
"""A client may send `_MAX_IDLE_FRAMES` frames without effect in this time, between two with an effect."""
_MAX_CANCELLED = 1000
_CANCELLED_PER_SECOND = 33
"""The limits of requests that are cancelled before their responses: at once, and per second in the long run."""


class Limits:
    """The counters of one connection. The methods raise ConnectionFailure if a limit is exceeded."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._idle_frames = 0
        self._idle_since = 0.0
        self._cancelled = 0.0
        self._cancelled_at = 0.0

    def useful_frame(self) -> None:
        """Counts a frame with an effect: data, or a request."""
        self._idle_frames = 0

    def idle_frame(self) -> None:
        """Counts a frame without an effect on a request."""
        self._idle_frames += 1
        if self._idle_frames == 1:
            self._idle_since = self._monotonic()
        elif self._idle_frames > _MAX_IDLE_FRAMES:
            if self._monotonic() - self._idle_since < _IDLE_FRAME_SECONDS:
                raise ConnectionFailure(ErrorCode.ENHANCE_YOUR_CALM)
            self._idle_frames = 0

    def cancelled_request(self) -> None:
        """Counts a request that the client cancels before its response."""
        now = self._monotonic()
        self._cancelled = max(0.0, self._cancelled - (now - self._cancelled_at) * _CANCELLED_PER_SECOND) + 1
        self._cancelled_at = now
        if self._cancelled > _MAX_CANCELLED:
            raise ConnectionFailure(ErrorCode.ENHANCE_YOUR_CALM)


_MAX_CONTINUATIONS = 10_000
_OF_BLOCKS = frozenset({frames.HEADERS, frames.CONTINUATION})

Frame = tuple[int, int, int, bytes]
"""Type, flags, stream identifier, payload."""


class FrameReader:
    """The reader of one connection."""

    def __init__(self) -> None:
        self.wrong_preface = False
        """Whether the client did not send the preface of HTTP/2."""
        self._buffer = bytearray()
        self._preface_seen = False
        self._block: bytearray | None = None
        self._block_head: Frame = (0, 0, 0, b"")
        self._continuations = 0

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yields complete frames; HEADERS have their whole header blocks and no padding.

        Raises ConnectionFailure for an invalid frame, or one that may not follow the previous one.
        """
        buffer = self._buffer
        buffer += data
        if not self._preface_seen and not self._see_preface():
            return
        start, end = 0, len(buffer)
        try:
            while end - start >= frames.HEADER_BYTES:
                high, low, kind, flags, stream_id = frames.FRAME_HEADER.unpack_from(buffer, start)
                length = high << 16 | low
                if length > MAX_FRAME_BYTES:
                    raise ConnectionFailure(ErrorCode.FRAME_SIZE_ERROR)
                begin = start + frames.HEADER_BYTES
                if end - begin < length:
                    break
                stream_id &= frames.LARGEST_WINDOW
                start = begin + length
                payload = bytes(buffer[begin:start])
                if self._block is None and kind not in _OF_BLOCKS:
                    yield kind, flags, stream_id, payload
                elif (whole := self._part_of_block(kind, flags, stream_id, payload)) is not None:
                    yield whole
        finally:
            del buffer[:start]

    def _see_preface(self) -> bool:
        expected, buffer = frames.PREFACE, self._buffer
        if not buffer.startswith(expected[: len(buffer)]):
            self.wrong_preface = True
        elif len(buffer) >= len(expected):
            del buffer[: len(expected)]
            self._preface_seen = True
        return self._preface_seen

    def _part_of_block(self, kind: int, flags: int, stream_id: int, payload: bytes) -> Frame | None:
        """Adds a frame to a header block; returns the HEADERS if it is complete, else None."""
        if self._block is None:
            if kind == frames.CONTINUATION or stream_id == 0:
                raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR)
            if flags & frames.PADDED:
                payload = frames.remove_padding(payload)
            if flags & frames.END_HEADERS:
                return kind, flags, stream_id, payload
            self._block, self._continuations = bytearray(payload), 0
            self._block_head = (kind, flags, stream_id, b"")
            return None
        if kind != frames.CONTINUATION or stream_id != self._block_head[2]:
            raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR)
        self._block += payload
        self._continuations += 1
        if len(self._block) > 2 * MAX_LIST_BYTES or self._continuations > _MAX_CONTINUATIONS:
            raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR)
        if not flags & frames.END_HEADERS:
            return None
        block, self._block = bytes(self._block), None
        return *self._block_head[:3], block


_MAX_SETTINGS = 100


class Protocol(ConnectionState):
    """One connection, which receives frames. Not thread-safe."""

    def __init__(self, max_streams: int = 100, monotonic: Callable[[], float] = time.monotonic) -> None:
        """
        Args:
            max_streams: the maximum number of concurrent streams.
            monotonic: returns the time in seconds, for `Limits`.
        """
        super().__init__(max_streams)
        self.settings_received = False
        """Whether the client's first SETTINGS have arrived."""
        self._reader = FrameReader()
        self._decoder = BlockDecoder()
        self._limits = Limits(monotonic)
        self._unacknowledged = 1

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
        data = frames.remove_padding(payload) if flags & frames.PADDED else payload
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
            if len(stream.body) >= MAX_AWAITED_BODY:
                self._let_serve(stream)
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
            request = self._decoder.parse(block, fields, not ends)
        except MalformedRequest:
            raise StreamFailure(stream_id, ErrorCode.PROTOCOL_ERROR) from None
        if len(self._waiting) > 4 * self._max_streams:
            raise ConnectionFailure(ErrorCode.ENHANCE_YOUR_CALM)
        stream = RequestStream(stream_id, request, self._sender.stream_window, STREAM_BUFFER, ends)
        self.streams[stream_id] = stream
        if ends or request.fields.expects_continue:
            self._waiting.append(stream)
        else:
            self._incomplete.add(stream)
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
        self._let_serve(stream)
        self.changed = True

    def _let_serve(self, stream: RequestStream) -> None:
        """Lets the application serve a request whose body has arrived as far as it is waited for."""
        if stream in self._incomplete:
            self._incomplete.discard(stream)
            self._waiting.append(stream)

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
