"""The part of SPDY/3.1 that Kubernetes uses: streams with headers, data, half-close and reset; pings; no flow control.

A `FrameReader` parses frames. On top of it is the server side of a connection: `receive` processes received bytes and calls the
methods of a `Handler`; `outgoing` has the frames to send. A stream is half-closed when one side has finished, and is removed when
both have finished or one has reset it.

Invariants: the frames of a `FrameReader` depend on the bytes and not on the sizes of the pieces, except that the data of a
DATA frame is returned in pieces as it arrives; the size of decompressed headers is bounded. No data of a client raises an
exception; invalid data closes the connection.

Specified by: the SPDY protocol, draft 3, section 2; github.com/moby/spdystream (spdy/read.go, spdy/write.go, connection.go,
stream.go); k8s.io/streaming/pkg/httpstream/spdy/connection.go.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

_WORDS = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow "
    "authorization cache-control connection content-base content-encoding content-language content-length "
    "content-location content-md5 content-range content-type date etag expect expires from host if-match "
    "if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma "
    "proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade "
    "user-agent vary via warning www-authenticate method get status"
)
_VALUES = ("200 OK", "version", "HTTP/1.1", "url", "public", "set-cookie", "keep-alive", "origin")
_CODES = (
    100, 101, 201, 202, 205, 206, 300, 302, 303, 304, 305, 306, 307, 402, 405, 406, 407, 408, 409, 410, 411, 412, 413, 414,
    415, 416, 417, 502, 504, 505,
)  # fmt: skip
_REST = (
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden"
    "404 Not Found500 Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug "
    "Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,"
    "application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8"
    "charset=iso-8859-1,utf-,*,enq=0."
)

DICTIONARY = (
    b"".join(len(word).to_bytes(4, "big") + word.encode() for word in (*_WORDS.split(), *_VALUES))
    + "".join(str(code) for code in _CODES).encode()
    + _REST.encode()
)


PROTOCOL_ERROR, REFUSED_STREAM, CANCEL = 1, 3, 5

_VERSION = 3


class _Kind(IntEnum):
    """The types of control frames."""

    SYN_STREAM = 1
    SYN_REPLY = 2
    RST_STREAM = 3
    SETTINGS = 4
    PING = 6
    GOAWAY = 7
    HEADERS = 8
    WINDOW_UPDATE = 9


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
            case _Kind.SYN_STREAM:
                stream_id = _numbers(payload, ">II")[0]
                return SynStream(_nonzero(stream_id), self._headers(payload[10:]), fin)
            case _Kind.SYN_REPLY:
                return SynReply(_nonzero(_numbers(payload, ">I")[0]), self._headers(payload[4:]), fin)
            case _Kind.HEADERS:
                return HeaderBlock(_nonzero(_numbers(payload, ">I")[0]), self._headers(payload[4:]), fin)
            case _Kind.RST_STREAM:
                stream_id, status = _numbers(payload, ">II")
                return RstStream(_nonzero(stream_id), _nonzero(status))
            case _Kind.PING:
                if flags:
                    raise FrameError("a ping has no flags")
                return Ping(_nonzero(_numbers(payload, ">I")[0]))
            case _Kind.GOAWAY:
                if flags or len(payload) != 8:
                    raise FrameError("invalid goaway")
                return GoAway(*_numbers(payload, ">II"))
            case _Kind.SETTINGS | _Kind.WINDOW_UPDATE:
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
                return _control(_Kind.SYN_STREAM, payload, fin)
            case SynReply(stream_id, headers, fin):
                return _control(_Kind.SYN_REPLY, struct.pack(">I", stream_id) + self._headers(headers), fin)
            case HeaderBlock(stream_id, headers, fin):
                return _control(_Kind.HEADERS, struct.pack(">I", stream_id) + self._headers(headers), fin)
            case RstStream(stream_id, status):
                return _control(_Kind.RST_STREAM, struct.pack(">II", stream_id, status))
            case Ping(ping_id):
                return _control(_Kind.PING, struct.pack(">I", ping_id))
            case GoAway(last_stream_id, status):
                return _control(_Kind.GOAWAY, struct.pack(">II", last_stream_id, status))
            case Unused(kind):
                return _control(kind, bytes(4) if kind == _Kind.SETTINGS else struct.pack(">II", 1, 1))

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
        self._reader = FrameReader()
        self._writer = FrameWriter()
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
                self._send(RstStream(stream.stream_id, CANCEL))
            stream.finished = stream.remote_finished = True

    def close(self) -> None:
        """Resets all streams and sends GOAWAY."""
        if self.closed:
            return
        for stream in list(self.streams.values()):
            self.reset(stream)
        self._send(GoAway(max(0, self._next_id - 2)))
        self.closed = True

    def _send(self, frame: Frame) -> None:
        self.outgoing.append(self._writer.encode(frame))

    def _receive(self, frame: Frame) -> None:
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
            case HeaderBlock(stream_id, _, fin):
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
            self._send(RstStream(frame.stream_id, PROTOCOL_ERROR))
            return
        self._next_id = frame.stream_id + 2
        if len(self.streams) >= _MAX_STREAMS:
            self._send(RstStream(frame.stream_id, REFUSED_STREAM))
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
