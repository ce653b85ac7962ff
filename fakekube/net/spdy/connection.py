"""The server side of a SPDY connection, and its streams.

`receive` processes received bytes and calls the methods of a `Handler`; `outgoing` has the frames to send. A stream is
half-closed when one side has finished, and is removed when both have finished or one has reset it.

Invariant: no data of a client raises an exception; invalid data closes the connection.

Specified by: github.com/moby/spdystream (connection.go, stream.go); k8s.io/streaming/pkg/httpstream/spdy/connection.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from fakekube.net.spdy import frames
from fakekube.net.spdy.frames import Data, FrameError, GoAway, Ping, RstStream, SynReply, SynStream

_LARGEST_ID = 0x7FFFFFFF
_MAX_STREAMS = 10_000


class Stream:
    """One stream. `headers` have names in lower case."""

    __slots__ = ("finished", "headers", "remote_finished", "stream_id")

    def __init__(self, stream_id: int, headers: Mapping[str, str]) -> None:
        self.stream_id = stream_id
        self.headers = headers
        self.finished = False
        """Whether this side has sent all its data, or the stream was reset."""
        self.remote_finished = False
        """Whether the client has sent all its data, or the stream was reset."""


class Handler(Protocol):
    """Receives the events of a connection."""

    def stream_opened(self, stream: Stream) -> bool:
        """Called with a new stream; returns False to reset it."""

    def stream_data(self, stream: Stream, data: bytes) -> None:
        """Called with data of a stream."""

    def stream_finished(self, stream: Stream, *, reset: bool) -> None:
        """Called when the client has sent all its data, or has reset the stream."""


class Connection:
    """A connection that a client has opened."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._reader = frames.FrameReader()
        self._writer = frames.FrameWriter()
        self._next_id = 1
        self.streams: dict[int, Stream] = {}
        self.outgoing: list[bytes] = []
        """Encoded frames to send."""
        self.closed = False
        """Whether the connection has ended: the client sent GOAWAY or invalid data, or `close` was called."""

    def receive(self, data: bytes) -> None:
        """Processes received bytes."""
        if self.closed:
            return
        try:
            for frame in self._reader.feed(data):
                self._receive(frame)
                if self.closed:
                    return
        except FrameError:
            self.closed = True

    def write(self, stream: Stream, data: bytes) -> None:
        """Sends data; does nothing if the stream has ended."""
        if not stream.finished and stream.stream_id in self.streams:
            self._send(Data(stream.stream_id, data))

    def finish(self, stream: Stream) -> None:
        """Half-closes a stream: this side sends nothing more. May be called twice."""
        if not stream.finished and stream.stream_id in self.streams:
            stream.finished = True
            self._send(Data(stream.stream_id, b"", fin=True))
            self._remove_if_ended(stream)

    def reset(self, stream: Stream) -> None:
        """Ends a stream in both directions; does nothing if it has ended."""
        if self.streams.pop(stream.stream_id, None) is not None:
            if not stream.finished:
                self._send(RstStream(stream.stream_id, frames.CANCEL))
            stream.finished = stream.remote_finished = True

    def close(self) -> None:
        """Resets all streams and sends GOAWAY."""
        if self.closed:
            return
        for stream in list(self.streams.values()):
            self.reset(stream)
        self._send(GoAway(max(0, self._next_id - 2)))
        self.closed = True

    def _send(self, frame: frames.Frame) -> None:
        self.outgoing.append(self._writer.encode(frame))

    def _receive(self, frame: frames.Frame) -> None:
        match frame:
            case Data(stream_id, data, fin):
                self._receive_data(stream_id, data, fin)
            case SynStream():
                self._open(frame)
            case RstStream(stream_id, _):
                stream = self.streams.pop(stream_id, None)
                if stream is not None:
                    stream.finished = stream.remote_finished = True
                    self._handler.stream_finished(stream, reset=True)
            case Ping(ping_id):
                if ping_id & 1:  # others are replies to pings of this side
                    self._send(frame)
            case GoAway():
                self.streams.clear()
                self.close()
            case frames.HeaderBlock(stream_id, _, fin):
                self._receive_data(stream_id, b"", fin)

    def _receive_data(self, stream_id: int, data: bytes, fin: bool) -> None:
        stream = self.streams.get(stream_id)
        if stream is None or stream.remote_finished:
            return
        if data:
            self._handler.stream_data(stream, data)
        if fin:
            self._finish_remote(stream)

    def _open(self, frame: SynStream) -> None:
        if not self._next_id <= frame.stream_id <= _LARGEST_ID:
            self._send(RstStream(frame.stream_id, frames.PROTOCOL_ERROR))
            return
        self._next_id = frame.stream_id + 2
        if len(self.streams) >= _MAX_STREAMS:
            self._send(RstStream(frame.stream_id, frames.REFUSED_STREAM))
            return
        stream = self.streams[frame.stream_id] = Stream(frame.stream_id, frame.headers)
        if not self._handler.stream_opened(stream):
            self.reset(stream)
            return
        self._send(SynReply(frame.stream_id, {}))
        if frame.fin:
            self._finish_remote(stream)

    def _finish_remote(self, stream: Stream) -> None:
        stream.remote_finished = True
        self._remove_if_ended(stream)
        self._handler.stream_finished(stream, reset=False)

    def _remove_if_ended(self, stream: Stream) -> None:
        if stream.finished and stream.remote_finished:
            self.streams.pop(stream.stream_id, None)
