"""Port forwarding over SPDY: for each connection the client opens an error and a data stream with the same request id.

A connection to the pod is opened when both streams are open, in a worker thread, so that it does not block the thread that serves
the client.

Specified by: k8s.io/cri-streaming/pkg/streaming/portforward/httpstream.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fakekube.base.golang.strconv import parse_uint16
from fakekube.base.threads import WORKERS
from fakekube.net import spdy
from fakekube.net.streaming.portforward.forward import Connect, Forward
from fakekube.net.streams import Notifier, frames_of

if TYPE_CHECKING:
    from fakekube.base.clock import Clock


PROTOCOLS = ("portforward.k8s.io",)

_DATA, _ERROR = "data", "error"
_CREATION_SECONDS = 30.0
"""DefaultStreamCreationTimeout."""
_MAX_OUTGOING = 256
_MAX_WAITING = 1 << 20
"""The maximum number of buffered bytes for all pods' connections together; if it is exceeded, nothing more is received."""


@dataclass(slots=True)
class _Pair:
    """The streams of one request."""

    request_id: str
    due: float
    """The time of the clock until which the second stream must be opened."""
    data: spdy.Stream | None = None
    error: spdy.Stream | None = None
    forward: Forward | None = None

    def add(self, kind: str, stream: spdy.Stream) -> bool:
        """Adds a stream; returns False if there is one of its kind."""
        if kind == _DATA:
            added, self.data = self.data is None, self.data or stream
        else:
            added, self.error = self.error is None, self.error or stream
        return added


class SPDYForward:
    """A client's connections to ports of a pod: a `streams.Tunnel`, and the `spdy.Handler` of its connection."""

    def __init__(self, where: str, connect: Connect, clock: Clock) -> None:
        self.source = Notifier()
        self._where = where
        self._connect = connect
        self._clock = clock
        self._connection = spdy.Connection(self)
        self._incomplete: dict[str, _Pair] = {}
        self._open: dict[int, _Pair] = {}
        """Complete pairs by the id of their data stream."""
        self._ended = False

    # ------------------------------------------------------------ streams.Tunnel

    @property
    def ended(self) -> bool:
        return self._ended

    @property
    def deadline(self) -> float | None:
        return min((pair.due for pair in self._incomplete.values()), default=None)

    @property
    def full(self) -> bool:
        waiting = sum(pair.forward.waiting for pair in self._open.values() if pair.forward is not None)
        return waiting > _MAX_WAITING or len(self._connection.outgoing) > _MAX_OUTGOING

    def receive(self, data: bytes) -> None:
        self._connection.receive(data)
        if self._connection.outgoing or self._connection.closed:
            self.source.notify()

    def take(self) -> list[bytes]:
        if not self._ended:
            for pair in list(self._open.values()):
                self._pump(pair)
            if self._incomplete:
                self._expire()
            if self._connection.closed:
                self._ended = True
        frames, self._connection.outgoing = self._connection.outgoing, []
        return frames

    def close(self) -> None:
        self._ended = True
        for pair in self._open.values():
            if pair.forward is not None:
                pair.forward.close()
        self._open.clear()

    def __iter__(self) -> Iterator[bytes]:
        return frames_of(self, self._clock)

    # ------------------------------------------------------------ spdy.Handler

    def stream_opened(self, stream: spdy.Stream) -> bool:
        kind = stream.headers.get("streamtype", "")
        try:
            port = parse_uint16(stream.headers.get("port", ""))
        except ValueError:
            return False
        if port < 1 or kind not in (_DATA, _ERROR):
            return False
        request_id = _request_id(stream, kind)
        pair = self._incomplete.get(request_id)
        if pair is None:
            pair = self._incomplete[request_id] = _Pair(request_id, self._clock.monotonic() + _CREATION_SECONDS)
        if not pair.add(kind, stream):
            self._write_error(pair, f"error processing stream for request {request_id}: {kind} stream already assigned")
        elif pair.data is not None and pair.error is not None:
            del self._incomplete[request_id]
            self._open[pair.data.stream_id] = pair
            pair.forward = Forward(parse_uint16(pair.data.headers["port"]), self._where, self._connect, self.source)
            WORKERS.run(pair.forward.begin)
        return True

    def stream_data(self, stream: spdy.Stream, data: bytes) -> None:
        pair = self._open.get(stream.stream_id)
        if pair is not None and pair.forward is not None:
            pair.forward.receive(data)

    def stream_finished(self, stream: spdy.Stream, *, reset: bool) -> None:
        pair = self._open.get(stream.stream_id)
        if pair is None or pair.forward is None:
            return
        pair.forward.end_input()
        if reset:
            del self._open[stream.stream_id]
            pair.forward.close()

    # ------------------------------------------------------------ data for the client

    def _pump(self, pair: _Pair) -> None:
        """Sends data of the pod, and its end."""
        forward, data, error = pair.forward, pair.data, pair.error
        assert forward is not None and data is not None and error is not None
        if piece := forward.read():
            self._connection.write(data, piece)
        if not forward.ended:
            return
        del self._open[data.stream_id]
        forward.close()
        if forward.error:
            self._connection.write(error, forward.error.encode())
            self._connection.reset(data)
            self._connection.reset(error)
        else:
            self._connection.finish(error)
            self._connection.finish(data)

    def _expire(self) -> None:
        """Drops pairs whose second stream was not opened in time."""
        now = self._clock.monotonic()
        for pair in [pair for pair in self._incomplete.values() if pair.due <= now]:
            del self._incomplete[pair.request_id]
            self._write_error(pair, f"(conn=spdy, request={pair.request_id}) timed out waiting for streams")

    def _write_error(self, pair: _Pair, problem: str) -> None:
        if pair.error is not None:
            self._connection.write(pair.error, problem.encode())


def _request_id(stream: spdy.Stream, kind: str) -> str:
    """Returns the request id of a stream. Old clients send none; their data stream has the number after their error stream."""
    given = stream.headers.get("requestid", "")
    return given or str(stream.stream_id if kind == _ERROR else stream.stream_id - 2)
