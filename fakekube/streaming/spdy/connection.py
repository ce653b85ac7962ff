"""The server's side of a SPDY connection: which streams there are, and what may happen to them.

Bytes go in through `receive`, events come out through the methods of a `Handler`, and what is to be sent lies in
`outgoing`. A stream is half-closed by `finish` of one side, and gone after both sides finished or one reset it.
Invariant: nothing that a client sends raises; what breaks the protocol ends the connection (`failed`).

Specified by: github.com/moby/spdystream (connection.go, stream.go); k8s.io/streaming/pkg/httpstream/spdy/connection.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from fakekube.streaming.spdy import frames
from fakekube.streaming.spdy.frames import Data, FrameError, GoAway, Ping, RstStream, SynReply, SynStream

__all__ = ["Connection", "Handler", "Stream"]

_LARGEST_ID = 0x7FFFFFFF
_MAX_STREAMS = 10_000


class Stream:
    """One stream. `headers` have names in lower case."""

    __slots__ = ("finished", "headers", "remote_finished", "stream_id")

    def __init__(self, stream_id: int, headers: Mapping[str, str]) -> None:
        self.stream_id = stream_id
        self.headers = headers
        self.finished = False
        """This side has sent all, or has reset the stream."""
        self.remote_finished = False
        """The client has sent all, or the stream was reset."""


class Handler(Protocol):
    """What is told of a connection."""

    def stream_opened(self, stream: Stream) -> bool:
        """Returns whether a new stream is accepted; otherwise it is reset."""

    def stream_data(self, stream: Stream, data: bytes) -> None:
        """Receives data of a stream."""

    def stream_finished(self, stream: Stream, *, reset: bool) -> None:
        """Called when the client has sent all, or has reset the stream."""


class Connection:
    """A connection that a client has opened."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._reader = frames.FrameReader()
        self._writer = frames.FrameWriter()
        self._next_id = 1
        self.streams: dict[int, Stream] = {}
        self.outgoing: list[bytes] = []
        """Encoded frames that are to be sent."""
        self.closed = False
        """Nothing more will be received: the client went away, or broke the protocol, or `close` was called."""

    def receive(self, data: bytes) -> None:
        """Takes in bytes from the network."""
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
        """Sends data; it is dropped if the stream is gone."""
        if not stream.finished and stream.stream_id in self.streams:
            self._send(Data(stream.stream_id, data))

    def finish(self, stream: Stream) -> None:
        """Says that this side sends nothing more. Has no effect the second time."""
        if not stream.finished and stream.stream_id in self.streams:
            stream.finished = True
            self._send(Data(stream.stream_id, b"", fin=True))
            self._forget_if_gone(stream)

    def reset(self, stream: Stream) -> None:
        """Ends a stream in both directions. Has no effect if it is gone."""
        if self.streams.pop(stream.stream_id, None) is not None:
            if not stream.finished:
                self._send(RstStream(stream.stream_id, frames.CANCEL))
            stream.finished = stream.remote_finished = True

    def close(self) -> None:
        """Resets all streams and says goodbye."""
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
                if ping_id & 1:  # others are answers to pings of this side
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
        self._forget_if_gone(stream)
        self._handler.stream_finished(stream, reset=False)

    def _forget_if_gone(self, stream: Stream) -> None:
        if stream.finished and stream.remote_finished:
            self.streams.pop(stream.stream_id, None)
