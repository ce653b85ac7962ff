"""WebSocket channels, whose messages begin with a byte that names one of several streams, and logs over WebSocket.

`ChannelConnection` encodes and decodes messages; `ChannelTunnel` is the base class of tunnels with channels. A log is sent as
messages of at most 2048 bytes, of which the first is empty; messages of the client are ignored.

Invariant: invalid data of a client ends its own connection only; while a channel is full, the connection is `full` and nothing
is read from it, as the read loop of the real server blocks on the reader of a channel.

Specified by: k8s.io/streaming/pkg/httpstream/wsstream (conn.go, stream.go).
"""

from __future__ import annotations

import base64
import binascii
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from fakekube.net import websocket
from fakekube.net.streams import Notifier, Source, Stream, frames_of

if TYPE_CHECKING:
    from fakekube.base.clock import Clock


_CLOSE_CHANNEL = 255
V5_CHANNEL = "v5.channel.k8s.io"
#: If more bytes of replies than this wait for the client, nothing more is read from it.
MAX_ANSWER_BYTES = 64 * 1024


class UnsupportedProtocolError(Exception):
    """The client offers no subprotocol that the server supports."""


def handshake(method: str, headers: Mapping[str, str], supported: Sequence[str]) -> tuple[str, list[tuple[str, str]]]:
    """Negotiates the subprotocol; returns it ("" if the client offers none) and the headers of the 101 response.

    Args:
        headers: of the request, by names in lower case.
        supported: subprotocols; "" allows none.

    Raises:
        websocket.Refused: the request is not a valid WebSocket handshake.
        UnsupportedProtocolError: none of the subprotocols is supported.
    """
    key = websocket.requested_key(method, lambda name: headers.get(name, ""))
    offered = headers.get("sec-websocket-protocol", "").strip()
    names = [name.strip() for name in offered.split(",")]
    chosen = next((name for name in names if name in supported), None)
    if chosen is None:
        raise UnsupportedProtocolError(offered)
    return chosen, [
        ("Upgrade", "websocket"),
        ("Connection", "Upgrade"),
        ("Sec-WebSocket-Accept", websocket.accept(key)),
        ("Sec-WebSocket-Protocol", chosen),
    ]


class ChannelConnection:
    """Encodes and decodes the messages of one connection.

    Args:
        protocol: the negotiated subprotocol, which determines whether messages are base64, and whether channels can be closed.
        count: the number of channels.
        receive: called with the channel and the data of each message.
        close: called with the channel that the client closes (v5).
    """

    def __init__(
        self, protocol: str, count: int, receive: Callable[[int, bytes], None], close: Callable[[int], None] = lambda _: None
    ) -> None:
        self._base64 = "base64" in protocol
        self._closes = protocol == V5_CHANNEL
        self._count = count
        self._receive_data = receive
        self._close_channel = close
        self._reader = websocket.FrameReader(self._piece)
        self._pieces: list[bytes] = []
        self.failed = False
        """Whether the client violated the protocol, which ends the connection."""

    @property
    def closed(self) -> bool:
        """Whether the client has ended the connection."""
        return self.failed or self._reader.closed

    def feed(self, data: bytes) -> bytes:
        """Processes received bytes; returns the bytes to reply with."""
        return b"" if self.failed else self._reader.feed(data)

    def message(self, channel: int, data: bytes) -> bytes:
        """Returns the frame of a message."""
        if self._base64:
            return websocket.text(b"%c" % (48 + channel) + base64.b64encode(data))
        return websocket.binary(b"%c" % channel + data)

    def _piece(self, piece: websocket.Piece) -> None:
        self._pieces.append(piece.data)
        if piece.ends:
            message = b"".join(self._pieces)
            self._pieces.clear()
            if message and not self.failed:
                self._message(message)

    def _message(self, message: bytes) -> None:
        channel = message[0]
        if self._closes and channel == _CLOSE_CHANNEL:
            if len(message) != 2 or message[1] >= self._count:
                self.failed = True
                return
            self._close_channel(message[1])
            return
        data = message[1:]
        if self._base64:
            channel -= 48
            try:
                data = base64.b64decode(data.translate(None, b"\r\n"), validate=True)
            except binascii.Error:
                return
        if 0 <= channel < self._count:
            self._receive_data(channel, data)


class ChannelTunnel(ABC):
    """The base class of a `streams.Tunnel` over the channels of a WebSocket.

    Args:
        protocol: the negotiated subprotocol.
        count: the number of channels.
        clock: of the cluster.
    """

    deadline: float | None = None

    def __init__(self, protocol: str, count: int, clock: Clock) -> None:
        self.source = Notifier()
        self._clock = clock
        self._connection = ChannelConnection(protocol, count, self._receive, self._close_channel)
        self._answers: list[bytes] = []
        """Frames for the client that are replies to its frames."""
        self._ended = False

    @property
    def ended(self) -> bool:
        return self._ended

    @property
    def full(self) -> bool:
        return self._blocked or sum(map(len, self._answers)) > MAX_ANSWER_BYTES

    def receive(self, data: bytes) -> None:
        answer = self._connection.feed(data)
        if answer:
            self._answers.append(answer)
        if answer or self._connection.closed:
            self.source.notify()

    @abstractmethod
    def take(self) -> list[bytes]: ...

    @abstractmethod
    def close(self) -> None: ...

    def __iter__(self) -> Iterator[bytes]:
        return frames_of(self, self._clock)

    @property
    @abstractmethod
    def _blocked(self) -> bool:
        """Whether the pod accepts no more data for now."""

    @abstractmethod
    def _receive(self, channel: int, data: bytes) -> None:
        """Called with each message of the client."""

    @abstractmethod
    def _close_channel(self, channel: int) -> None:
        """Called with a channel that the client closes (v5)."""

    def _end_tunnel(self, frames: list[bytes]) -> None:
        """Ends the tunnel after these frames."""
        frames.append(websocket.close())
        self._ended = True


_PROTOCOLS = ("", "binary.k8s.io", "base64.binary.k8s.io")
_PIECE = 2048


def log_messages(method: str, headers: Mapping[str, str], log: Stream, clock: Clock) -> tuple[list[tuple[str, str]], LogMessages]:
    """Returns the header and the stream of the response (101) to a request for a log over WebSocket.

    Args:
        headers: of the request, by names in lower case.

    Raises:
        websocket.Refused: the request is not a valid WebSocket handshake.
    """
    try:
        protocol, answer = handshake(method, headers, _PROTOCOLS)
    except UnsupportedProtocolError:
        raise websocket.Refused("403 Forbidden") from None
    return answer, LogMessages(log, protocol.startswith("base64"), clock)


class LogMessages:
    """A log as messages: a `streams.Tunnel`."""

    full = False

    def __init__(self, log: Stream, is_base64: bool, clock: Clock) -> None:
        self._log = log
        self._base64 = is_base64
        self._clock = clock
        self._notifier = Notifier()
        self.source: Source = self._notifier
        self._reader = websocket.FrameReader()
        self._frames = [self._message(b"")]
        self._ended = False
        log.source.subscribe(self._notifier.notify)

    @property
    def ended(self) -> bool:
        return self._ended

    @property
    def deadline(self) -> float | None:
        return self._log.deadline

    def receive(self, data: bytes) -> None:
        answer = self._reader.feed(data)
        if answer:
            self._frames.append(answer)
        if answer or self._reader.closed:
            self._notifier.notify()

    def take(self) -> list[bytes]:
        frames, self._frames = self._frames, []
        if self._ended:
            return frames
        data = b"".join(self._log.take())
        frames += [self._message(data[start : start + _PIECE]) for start in range(0, len(data), _PIECE)]
        if self._log.ended or self._reader.closed:
            frames.append(websocket.close())
            self._ended = True
        return frames

    def close(self) -> None:
        self._ended = True
        self._log.source.unsubscribe(self._notifier.notify)
        self._log.close()

    def __iter__(self) -> Iterator[bytes]:
        return frames_of(self, self._clock)

    def _message(self, data: bytes) -> bytes:
        return websocket.text(base64.b64encode(data)) if self._base64 else websocket.binary(data)
