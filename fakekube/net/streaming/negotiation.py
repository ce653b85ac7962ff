"""The handshake of SPDY upgrades, and SPDY inside a WebSocket.

SPDY inside a WebSocket: the binary messages contain the bytes of a SPDY connection.

Specified by: k8s.io/streaming/pkg/httpstream/httpstream.go (Handshake), spdy/upgrade.go (UpgradeResponse);
k8s.io/client-go/tools/portforward/tunneling_connection.go; k8s.io/apiserver/pkg/util/proxy/streamtunnel.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fakekube.base.golang.strconv import go_quote
from fakekube.net import websocket
from fakekube.net.streaming.channels import MAX_ANSWER_BYTES
from fakekube.net.streams import Tunnel

_VERSION_HEADER = "X-Stream-Protocol-Version"
_ACCEPTED_HEADER = "X-Accepted-Stream-Protocol-Versions"
_SPDY = "SPDY/3.1"


class HandshakeError(Exception):
    """The negotiation failed: the status code, the text and additional headers of the response."""

    def __init__(self, code: int, text: str, headers: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.headers = headers


def negotiate(headers: Mapping[str, str], supported: Sequence[str]) -> str:
    """Returns the first protocol of the client that is supported.

    Args:
        headers: the headers of the request, by names in lower case.

    Raises:
        HandshakeError: none is supported, or the request is not an upgrade to SPDY.
    """
    offered = headers.get(_VERSION_HEADER.lower())
    if offered is None:
        count = len(headers)
        raise HandshakeError(400, f"unable to upgrade: header {_VERSION_HEADER} does not exist in request with {count} headers")
    names = [name.strip(" ") for name in offered.split(",") if name.strip(" ")]
    if not names:
        raise HandshakeError(400, f"unable to upgrade: header {_VERSION_HEADER} contains [{offered}], but no valid protocols")
    chosen = next((name for name in names if name in supported), None)
    if chosen is None:
        text = f"client supports [{' '.join(names)}], server accepts [{' '.join(supported)}]"
        accepted = [(_ACCEPTED_HEADER, name) for name in supported]
        raise HandshakeError(403, f"unable to upgrade: unable to negotiate protocol: {text}", accepted)
    if _SPDY.lower() not in headers.get("upgrade", "").lower():
        pairs = [(_canonical_header_key(name), value) for name, value in sorted(headers.items())]
        dump = ", ".join(f"{go_quote(name)}:[]string{{{go_quote(value)}}}" for name, value in pairs)
        text = f"unable to upgrade: missing upgrade headers in request: http.Header{{{dump}}}"
        raise HandshakeError(400, text, [(_VERSION_HEADER, chosen)])
    return chosen


def _canonical_header_key(name: str) -> str:
    return "-".join(part.capitalize() for part in name.split("-"))


def switching_headers(protocol: str) -> list[tuple[str, str]]:
    """Returns the headers of the 101 response."""
    return [("Connection", "Upgrade"), ("Upgrade", _SPDY), (_VERSION_HEADER, protocol)]


PREFIX = "SPDY/3.1+"
_SUFFIX = ".k8s.io"


def offered_protocols(headers: Mapping[str, str]) -> list[str]:
    """Returns the SPDY protocols that a request for a WebSocket offers to tunnel; headers by names in lower case."""
    names = [name.strip() for name in headers.get("sec-websocket-protocol", "").split(",")]
    return [name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX) and name.endswith(_SUFFIX)]


def handshake(method: str, headers: Mapping[str, str], protocol: str) -> Sequence[tuple[str, str]]:
    """Returns the headers of the 101 response that tunnels a SPDY protocol.

    Raises:
        websocket.Refused: the request is not a valid WebSocket handshake.
    """
    key = websocket.requested_key(method, lambda name: headers.get(name, ""))
    return [
        ("Upgrade", "websocket"),
        ("Connection", "Upgrade"),
        ("Sec-WebSocket-Accept", websocket.accept(key)),
        ("Sec-WebSocket-Protocol", PREFIX + protocol),
    ]


class TunnellingWebSocket:
    """A WebSocket that contains a SPDY connection: a `streams.Tunnel`."""

    def __init__(self, inner: Tunnel) -> None:
        self.source = inner.source
        self._inner = inner
        self._reader = websocket.FrameReader(self._receive, strict=True)
        self._answers = b""
        self._failed = False
        self._ended = False

    @property
    def ended(self) -> bool:
        return self._ended

    @property
    def deadline(self) -> float | None:
        return self._inner.deadline

    @property
    def full(self) -> bool:
        return self._inner.full or len(self._answers) > MAX_ANSWER_BYTES

    def receive(self, data: bytes) -> None:
        self._answers += self._reader.feed(data)
        if self._answers or self._reader.closed or self._failed:
            self.source.notify()

    def take(self) -> list[bytes]:
        answers, self._answers = self._answers, b""
        frames = [answers] if answers else []
        if self._ended:
            return frames
        data = b"".join(self._inner.take())
        if data:
            frames.append(websocket.binary(data))
        if self._inner.ended or self._reader.closed or self._failed:
            frames.append(websocket.close())
            self._ended = True
        return frames

    def close(self) -> None:
        self._ended = True
        self._inner.close()

    def __iter__(self) -> Iterator[bytes]:
        while not self._ended:
            yield from self.take()

    def _receive(self, piece: websocket.Piece) -> None:
        if piece.opcode != websocket.BINARY:
            self._failed = True
        elif not self._failed:
            self._inner.receive(piece.data)
