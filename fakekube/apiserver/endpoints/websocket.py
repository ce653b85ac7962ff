"""Serves watches over WebSocket: each event is one message.

`net/` performs the handshake and writes the frames of the protocol. This module decides which requests get a
WebSocket, and makes the messages: the encoded event, without the length prefix that Protobuf has in a plain body. Text
formats use text messages.

Specified by: k8s.io/apiserver/pkg/endpoints/handlers/watch.go (HandleWS), pkg/util/httpstream/wsstream.
"""

from __future__ import annotations

from collections.abc import Iterator

from fakekube.apiserver.endpoints.negotiation import MediaType
from fakekube.apiserver.endpoints.request import Request
from fakekube.net.streams import Source, Stream

_TEXTS = ("json", "yaml")
_LENGTH_PREFIXES = {"protobuf": 4}


def is_web_socket(request: Request) -> bool:
    """Reports whether the client asks for a WebSocket upgrade."""
    headers = request.headers
    return headers.get("upgrade", "").lower() == "websocket" and "upgrade" in headers.get("connection", "").lower()


class Messages:
    """A watch whose frames are messages; see `streams.Stream`."""

    def __init__(self, stream: Stream, chosen: MediaType) -> None:
        self._stream = stream
        self._skipped = _LENGTH_PREFIXES.get(chosen.format, 0)
        self.source: Source = stream.source
        self.binary = chosen.format not in _TEXTS

    @property
    def ended(self) -> bool:
        return self._stream.ended

    @property
    def deadline(self) -> float | None:
        return self._stream.deadline

    def take(self) -> list[bytes]:
        frames = self._stream.take()
        return [frame[self._skipped :] for frame in frames] if self._skipped else frames

    def close(self) -> None:
        self._stream.close()

    def __iter__(self) -> Iterator[bytes]:
        for frame in self._stream:
            yield frame[self._skipped :]
