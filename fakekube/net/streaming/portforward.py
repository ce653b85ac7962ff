"""Port forwarding: connections to ports of a pod, over WebSocket channels or SPDY.

Port forwarding over WebSocket channels: for the n-th port, channel 2n has its data and 2n+1 its error.

The first message of each channel is the port, as two bytes, little-endian.

Port forwarding over SPDY: for each connection the client opens an error and a data stream with the same request id.

A connection to the pod is opened when both streams are open, in a worker thread, so that it does not block the thread that
serves the client.

Specified by: k8s.io/cri-streaming/pkg/streaming/portforward (portforward.go, httpstream.go);
k8s.io/cri-streaming/pkg/streaming/portforward/websocket.go; k8s.io/cri-streaming/pkg/streaming/portforward/httpstream.go.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fakekube.base.golang.strconv import parse_uint16
from fakekube.base.threads import WORKERS
from fakekube.net import spdy
from fakekube.net.pipes import Inlet
from fakekube.net.streaming.channels import ChannelTunnel
from fakekube.net.streaming.kubelet_api import Connection, KubeletError, PortForwardError
from fakekube.net.streams import Notifier, frames_of

if TYPE_CHECKING:
    from fakekube.base.clock import Clock


_log = logging.getLogger(__name__)


Connect = Callable[[int], Connection]
"""Connects to a port. Raises PortForwardError or KubeletError."""

_PIECE = 32 * 1024


class Forward:
    """A connection to a port. Data of the client is buffered until it is established.

    Args:
        port: the port of the pod.
        where: the pod, in error messages.
        connect: connects to the port.
        source: notified when there may be data to send, or space for received data.
    """

    def __init__(self, port: int, where: str, connect: Connect, source: Notifier) -> None:
        self.port = port
        self._where = where
        self._connect = connect
        self._source = source
        self._connection: Connection | None = None
        self._inlet: Inlet | None = None
        self._waiting = bytearray()
        self._input_ended = False
        self._gone = False
        self.error = ""
        """The error of the connection; "" if there is none."""
        self.ended = False
        """Whether the pod has sent all its data, or the connection failed."""

    @property
    def started(self) -> bool:
        """Whether `begin` has ended."""
        return self._connection is not None or bool(self.error)

    def begin(self) -> None:
        """Connects, in any thread. Never raises."""
        try:
            connection = self._connect(self.port)
        except Exception as error:
            if not isinstance(error, PortForwardError | KubeletError):
                _log.exception("A port could not be connected to")
            self.error = self._message(str(error) or type(error).__name__)
        else:
            connection.from_client.subscribe(self._source.notify)
            connection.to_client.subscribe(self._source.notify)
            self._connection = connection
            if self._gone:
                self._hang_up(connection)
        self._source.notify()

    def receive(self, data: bytes) -> None:
        """Receives data of the client."""
        if self._inlet is not None:
            self._inlet.put(data)
        else:
            self._waiting += data

    def end_input(self) -> None:
        """Receives the end of the client's data."""
        self._input_ended = True
        if self._inlet is not None:
            self._inlet.close()

    @property
    def blocked(self) -> bool:
        """Whether there is buffered data for the pod."""
        return self.waiting > 0

    @property
    def waiting(self) -> int:
        """The number of buffered bytes for the pod."""
        return len(self._waiting) + (self._inlet.waiting if self._inlet is not None else 0)

    def read(self) -> bytes:
        """Returns data for the client, possibly none; sets `ended` at its end."""
        if self.ended or not self.started:
            return b""
        connection = self._connection
        if connection is None:
            self.ended = True
            return b""
        if self._inlet is None:
            self._attach(connection)
        else:
            self._inlet.flush()
        data = connection.to_client.read(_PIECE)
        if data == b"":
            self.ended = True
            if connection.error:
                self.error = self._message(connection.error)
        return data or b""

    def _attach(self, connection: Connection) -> None:
        self._inlet = Inlet(connection.from_client)
        self._inlet.put(bytes(self._waiting))
        self._waiting.clear()
        if self._input_ended:
            self._inlet.close()

    def close(self) -> None:
        """Ends the connection, because the client has disconnected."""
        self._gone = True
        if self._connection is not None:
            self._hang_up(self._connection)

    def _hang_up(self, connection: Connection) -> None:
        connection.from_client.unsubscribe(self._source.notify)
        connection.to_client.unsubscribe(self._source.notify)
        connection.from_client.close()
        connection.to_client.abandon()

    def _message(self, problem: str) -> str:
        return f"error forwarding port {self.port} to pod {self._where}, uid : {problem}"


#: "" is no subprotocol.
WEBSOCKET_PROTOCOLS = ("", "v4.channel.k8s.io", "v4.base64.channel.k8s.io")


def ports_of(values: Sequence[str]) -> list[int]:
    """Returns the ports in the query of a request. Raises ValueError with the text of the kubelet."""
    if not values:
        raise ValueError('query parameter "port" is required')
    ports = []
    for value in values:
        if not value:
            raise ValueError('query parameter "port" cannot be empty')
        for text in value.split(","):
            try:
                port = parse_uint16(text)
            except ValueError as error:
                raise ValueError(f'unable to parse "{value}" as a port: {error}') from None
            if port < 1:
                raise ValueError(f'port "{value}" must be > 0')
            ports.append(port)
    return ports


class WebSocketForward(ChannelTunnel):
    """A client's connections to ports of a pod, which are all opened at once: a `streams.Tunnel`."""

    def __init__(self, protocol: str, ports: Sequence[int], where: str, connect: Connect, clock: Clock) -> None:
        super().__init__(protocol, 2 * len(ports), clock)
        self._forwards = [Forward(port, where, connect, self.source) for port in ports]
        self._open = dict(enumerate(self._forwards))
        self._answers = [
            self._connection.message(2 * number + channel, port.to_bytes(2, "little"))
            for number, port in enumerate(ports)
            for channel in (0, 1)
        ]
        for forward in self._forwards:
            forward.begin()

    @property
    def _blocked(self) -> bool:
        return any(forward.blocked for forward in self._open.values())

    def take(self) -> list[bytes]:
        frames, self._answers = self._answers, []
        if self._ended:
            return frames
        for number, forward in list(self._open.items()):
            data = forward.read()
            if data:
                frames.append(self._connection.message(2 * number, data))
            if forward.ended:
                del self._open[number]
                if forward.error:
                    frames.append(self._connection.message(2 * number + 1, forward.error.encode()))
        if self._connection.closed or not self._open:
            self._end_tunnel(frames)
        return frames

    def close(self) -> None:
        self._ended = True
        for forward in self._forwards:
            forward.close()

    def _receive(self, channel: int, data: bytes) -> None:
        number, kind = divmod(channel, 2)
        if not kind and number in self._open:
            self._open[number].receive(data)

    def _close_channel(self, channel: int) -> None:
        """Does nothing: the subprotocols of port forwarding do not close single channels."""


SPDY_PROTOCOLS = ("portforward.k8s.io",)

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

    # --- streams.Tunnel -----------------------------------------------------------------------------------------------

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

    # --- spdy.Handler -------------------------------------------------------------------------------------------------

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

    # --- Data for the client ------------------------------------------------------------------------------------------

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
