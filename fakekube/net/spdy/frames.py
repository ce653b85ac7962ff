"""Parses and encodes the frames of SPDY/3.

Invariants: the frames of a `FrameReader` depend on the bytes and not on the sizes of the pieces, except that the data of a DATA
frame is returned in pieces as it arrives; the size of decompressed headers is bounded.

Specified by: the SPDY protocol, draft 3, section 2; github.com/moby/spdystream/spdy (read.go, write.go).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fakekube.net.spdy.dictionary import DICTIONARY

PROTOCOL_ERROR, REFUSED_STREAM, CANCEL = 1, 3, 5

_VERSION = 3
_SYN_STREAM, _SYN_REPLY, _RST_STREAM, _SETTINGS, _PING, _GOAWAY, _HEADERS, _WINDOW_UPDATE = 1, 2, 3, 4, 6, 7, 8, 9
_FIN = 0x01
_MAX_CONTROL_PAYLOAD = 1 << 20
_MAX_HEADER_BYTES = 1 << 20
_MAX_HEADERS = 1000
#: Connection-specific headers, which streams may not have.
_INVALID_HEADERS = frozenset({"connection", "host", "keep-alive", "proxy-connection", "transfer-encoding"})
_SEPARATOR = "\x00"


class FrameError(Exception):
    """The peer violated the protocol; the connection must be closed."""


@dataclass(slots=True, frozen=True)
class SynStream:
    """SYN_STREAM: a new stream."""

    stream_id: int
    headers: Mapping[str, str]
    """Names in lower case; of several values (separated by NUL) only the first one."""
    fin: bool = False


@dataclass(slots=True, frozen=True)
class SynReply:
    """SYN_REPLY: the peer has accepted a stream."""

    stream_id: int
    headers: Mapping[str, str]
    fin: bool = False


@dataclass(slots=True, frozen=True)
class RstStream:
    """RST_STREAM: a stream has ended in both directions."""

    stream_id: int
    status: int


@dataclass(slots=True, frozen=True)
class Ping:
    """PING: the reply is the same frame."""

    ping_id: int


@dataclass(slots=True, frozen=True)
class GoAway:
    """GOAWAY: the peer accepts no more streams."""

    last_stream_id: int
    status: int = 0


@dataclass(slots=True, frozen=True)
class HeaderBlock:
    """HEADERS: additional headers of a stream."""

    stream_id: int
    headers: Mapping[str, str]
    fin: bool = False


@dataclass(slots=True, frozen=True)
class Data:
    """DATA: a whole frame, or the received part of one."""

    stream_id: int
    data: bytes
    fin: bool = False


@dataclass(slots=True, frozen=True)
class Unused:
    """SETTINGS or WINDOW_UPDATE, which have no effect here."""

    kind: int


Frame = SynStream | SynReply | RstStream | Ping | GoAway | HeaderBlock | Data | Unused


class FrameReader:
    """Reads the frames of one peer."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._decompressor = zlib.decompressobj(zdict=DICTIONARY)
        self._data: tuple[int, bool] = (0, False)
        self._left = 0

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Processes received bytes; yields the frames that they complete.

        Raises:
            FrameError: the bytes are not frames of SPDY/3.
        """
        buffer = self._buffer
        buffer += data
        while True:
            if self._left:
                if not buffer:
                    return
                yield self._piece()
                continue
            if len(buffer) < 8:
                return
            first, second = struct.unpack_from(">II", buffer)
            flags, length = second >> 24, second & 0xFFFFFF
            if not first & 0x80000000:
                yield from self._begin_data(first, flags, length)
                continue
            if length > _MAX_CONTROL_PAYLOAD:
                raise FrameError("control frame too large")
            if len(buffer) < 8 + length:
                return
            payload = bytes(buffer[8 : 8 + length])
            del buffer[: 8 + length]
            yield self._control(first & 0xFFFF, flags, payload)

    def _begin_data(self, stream_id: int, flags: int, length: int) -> Iterator[Frame]:
        if not stream_id:
            raise FrameError("stream id is zero")
        del self._buffer[:8]
        fin = bool(flags & _FIN)
        self._data, self._left = (stream_id, fin), length
        if not length:
            yield Data(stream_id, b"", fin)

    def _piece(self) -> Data:
        stream_id, fin = self._data
        piece = bytes(self._buffer[: self._left])
        del self._buffer[: len(piece)]
        self._left -= len(piece)
        return Data(stream_id, piece, fin and not self._left)

    def _control(self, kind: int, flags: int, payload: bytes) -> Frame:
        fin = bool(flags & _FIN)
        match kind:
            case 1:  # SYN_STREAM
                stream_id = _numbers(payload, ">II")[0]
                return SynStream(_nonzero(stream_id), self._headers(payload[10:]), fin)
            case 2:  # SYN_REPLY
                return SynReply(_nonzero(_numbers(payload, ">I")[0]), self._headers(payload[4:]), fin)
            case 8:  # HEADERS
                return HeaderBlock(_nonzero(_numbers(payload, ">I")[0]), self._headers(payload[4:]), fin)
            case 3:  # RST_STREAM
                stream_id, status = _numbers(payload, ">II")
                return RstStream(_nonzero(stream_id), _nonzero(status))
            case 6:  # PING
                if flags:
                    raise FrameError("a ping has no flags")
                return Ping(_nonzero(_numbers(payload, ">I")[0]))
            case 7:  # GOAWAY
                if flags or len(payload) != 8:
                    raise FrameError("invalid goaway")
                return GoAway(*_numbers(payload, ">II"))
            case 4 | 9:  # SETTINGS, WINDOW_UPDATE
                return Unused(kind)
        raise FrameError(f"unknown control frame {kind}")

    def _headers(self, block: bytes) -> Mapping[str, str]:
        try:
            plain = self._decompressor.decompress(block, _MAX_HEADER_BYTES)
        except zlib.error as error:
            raise FrameError(f"headers: {error}") from None
        if self._decompressor.unconsumed_tail or self._decompressor.eof:
            raise FrameError("headers: too large")
        headers = dict(_pairs(plain))
        if _INVALID_HEADERS & headers.keys():
            raise FrameError("invalid header present")
        return headers


class FrameWriter:
    """Writes frames for one peer."""

    def __init__(self) -> None:
        self._compressor = zlib.compressobj(zlib.Z_BEST_COMPRESSION, zdict=DICTIONARY)

    def encode(self, frame: Frame) -> bytes:
        """Returns the bytes of a frame. Frames with headers must be sent in the order in which they were encoded."""
        match frame:
            case Data(stream_id, data, fin):
                return struct.pack(">II", stream_id, fin << 24 | len(data)) + data
            case SynStream(stream_id, headers, fin):
                payload = struct.pack(">IIBB", stream_id, 0, 0, 0) + self._headers(headers)
                return _control(_SYN_STREAM, payload, fin)
            case SynReply(stream_id, headers, fin):
                return _control(_SYN_REPLY, struct.pack(">I", stream_id) + self._headers(headers), fin)
            case HeaderBlock(stream_id, headers, fin):
                return _control(_HEADERS, struct.pack(">I", stream_id) + self._headers(headers), fin)
            case RstStream(stream_id, status):
                return _control(_RST_STREAM, struct.pack(">II", stream_id, status))
            case Ping(ping_id):
                return _control(_PING, struct.pack(">I", ping_id))
            case GoAway(last_stream_id, status):
                return _control(_GOAWAY, struct.pack(">II", last_stream_id, status))
            case Unused(kind):
                return _control(kind, bytes(4) if kind == _SETTINGS else struct.pack(">II", 1, 1))

    def _headers(self, headers: Mapping[str, str]) -> bytes:
        pieces = [struct.pack(">I", len(headers))]
        for name, value in headers.items():
            for text in (name.lower().encode("latin-1"), value.encode("latin-1")):
                pieces += (struct.pack(">I", len(text)), text)
        return self._compressor.compress(b"".join(pieces)) + self._compressor.flush(zlib.Z_SYNC_FLUSH)


def _control(kind: int, payload: bytes, fin: bool = False) -> bytes:
    return struct.pack(">HHI", 0x8000 | _VERSION, kind, fin << 24 | len(payload)) + payload


def _numbers(payload: bytes, form: str) -> tuple[int, ...]:
    try:
        return struct.unpack_from(form, payload)
    except struct.error:
        raise FrameError("frame too short") from None


def _nonzero(number: int) -> int:
    if not number:
        raise FrameError("number is zero")
    return number


def _pairs(block: bytes) -> Iterator[tuple[str, str]]:
    """Iterates over names and values of a header block."""
    (count,) = _numbers(block, ">I")
    if count > _MAX_HEADERS:
        raise FrameError("too many headers")
    place, seen = 4, set[str]()
    for _ in range(count):
        texts = []
        for _ in range(2):
            (length,) = _numbers(block[place : place + 4], ">I")
            text = block[place + 4 : place + 4 + length]
            if len(text) < length:
                raise FrameError("header too short")
            texts.append(text.decode("latin-1"))
            place += 4 + length
        name, value = texts
        if name != name.lower() or name in seen:
            raise FrameError(f"invalid header name {name}")
        seen.add(name)
        yield name, value.partition(_SEPARATOR)[0]
