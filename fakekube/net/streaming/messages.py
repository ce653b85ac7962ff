"""Sends a log over WebSocket, as messages; messages of the client are ignored.

The first message is empty. A message has at most 2048 bytes of the log.

Specified by: k8s.io/streaming/pkg/httpstream/wsstream/stream.go.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from fakekube.net import websocket
from fakekube.net.streaming.channels import UnsupportedProtocolError, handshake
from fakekube.net.streams import Notifier, Source, Stream, frames_of

if TYPE_CHECKING:
    from fakekube.base.clock import Clock


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
