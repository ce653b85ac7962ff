"""The client's side of the protocols, for tests: frames of a WebSocket, and of SPDY."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from fakekube.net import spdy
from fakekube.net.streams import Tunnel

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
CLOSE_FRAME = (CLOSE, b"\x03\xe8")


def masked(opcode: int, payload: bytes, *, final: bool = True) -> bytes:
    """A frame as a client sends it."""
    mask = os.urandom(4)
    length = len(payload)
    if length <= 125:
        head = bytes([opcode | 0x80 * final, 0x80 | length])
    elif length < 1 << 16:
        head = bytes([opcode | 0x80 * final, 0x80 | 126]) + length.to_bytes(2, "big")
    else:
        head = bytes([opcode | 0x80 * final, 0x80 | 127]) + length.to_bytes(8, "big")
    return head + mask + bytes(byte ^ mask[index % 4] for index, byte in enumerate(payload))


def messages(data: bytes) -> list[tuple[int, bytes]]:
    """The frames that a server has sent: opcode and payload."""
    found = []
    while data:
        length, start = data[1], 2
        if length >= 126:
            start += 2 if length == 126 else 8
            length = int.from_bytes(data[2:start], "big")
        found.append((data[0] & 0x0F, data[start : start + length]))
        assert len(data) >= start + length
        data = data[start + length :]
    return found


def cut(data: bytes, places: Sequence[int]) -> Iterator[bytes]:
    """The data in pieces."""
    start = 0
    for place in sorted({place % (len(data) + 1) for place in places} | {len(data)}):
        yield data[start:place]
        start = place


def taken(tunnel: Tunnel) -> bytes:
    """All that a tunnel has to send now."""
    return b"".join(iter(lambda: b"".join(tunnel.take()), b""))


class SPDYClient:
    """Opens streams, and reads what comes back."""

    def __init__(self) -> None:
        self._writer = spdy.FrameWriter()
        self._reader = spdy.FrameReader()
        self._next_id = 1

    def open(self, **headers: str) -> tuple[int, bytes]:
        """The id of a new stream, and the bytes that open it."""
        stream_id, self._next_id = self._next_id, self._next_id + 2
        return stream_id, self._writer.encode(spdy.SynStream(stream_id, headers))

    def data(self, stream_id: int, data: bytes, *, fin: bool = False) -> bytes:
        """The bytes of a DATA frame."""
        return self._writer.encode(spdy.Data(stream_id, data, fin))

    def encode(self, frame: Any) -> bytes:
        """The bytes of a frame."""
        return self._writer.encode(frame)

    def read(self, data: bytes) -> list[spdy.Frame]:
        """The frames that a server has sent; pieces of the data of one stream are joined."""
        return joined(self._reader.feed(data))


def joined(found: Iterable[spdy.Frame]) -> list[spdy.Frame]:
    """Frames, with pieces of the data of one stream joined."""
    together: list[spdy.Frame] = []
    for frame in found:
        last = together[-1] if together else None
        if isinstance(frame, spdy.Data) and isinstance(last, spdy.Data) and frame.stream_id == last.stream_id and not last.fin:
            together[-1] = spdy.Data(last.stream_id, last.data + frame.data, frame.fin)
        else:
            together.append(frame)
    return together
