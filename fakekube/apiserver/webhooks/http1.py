"""Reads an HTTP/1.1 response as Go's net/http does, with the same error messages.

The bytes come from a `Source`; its `receive` enforces the deadline and the size limit.

Specified by: net/http (response.go, transfer.go, transport.go, internal/chunked.go) and net/textproto of Go.
"""

from __future__ import annotations

import re
import zlib
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from fakekube.base.golang.http import parse_status_line, quoted_line
from fakekube.base.golang.quoting import go_quote

__all__ = ["LARGEST_HEAD", "Answer", "BodyError", "ClosedError", "HeadError", "Source", "read_answer"]

#: The maximum size of status line and headers in bytes (the Transport's MaxResponseHeaderBytes).
LARGEST_HEAD = 10 << 20
#: The maximum size of a chunk header or trailer in bytes.
_LARGEST_CHUNK_LINE = 4096

_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_HEX = re.compile(rb"[0-9a-fA-F]+")
_LENGTH = re.compile(r"[0-9]+")
_WITHOUT_BODY = (204, 304)
_MAXIMUM_LENGTH = 2**63


class ClosedError(Exception):
    """The server closed the connection before it sent any bytes."""


class HeadError(Exception):
    """The status line or a header is malformed; has Go's error message."""


class BodyError(Exception):
    """The chunking or compression of the body is malformed; has Go's error message."""


@dataclass(slots=True, frozen=True)
class Answer:
    """A response."""

    status: int
    headers: dict[str, str]
    """By lower-case name; the values of repeated headers are joined with commas."""
    body: bytes


class Source:
    """A buffered reader of the bytes that a server sends.

    Args:
        receive: returns the next bytes; b"" at the end.
    """

    __slots__ = ("_buffer", "_receive", "ended", "headed")

    def __init__(self, receive: Callable[[], bytes]) -> None:
        self._receive = receive
        self._buffer = bytearray()
        self.ended = False
        self.headed = False
        """Whether the headers have been read."""

    @property
    def empty(self) -> bool:
        """Whether the buffer is empty."""
        return not self._buffer

    def fill(self) -> bool:
        """Waits for more bytes. Returns false at the end."""
        more = b"" if self.ended else self._receive()
        self.ended = not more
        self._buffer += more
        return bool(more)

    def line(self, limit: int) -> bytes | None:
        """Reads a line without its line end; None if the bytes end before it. Raises OverflowError if it is too long."""
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            if searched > limit:
                raise OverflowError
            if not self.fill():
                return None
        return self._taken(end + 1)[:-1].removesuffix(b"\r")

    def rest_of_line(self) -> bytes:
        """Reads the bytes of an incomplete last line."""
        return self._taken(len(self._buffer))

    def _taken(self, count: int) -> bytes:
        found = bytes(self._buffer[:count])
        del self._buffer[:count]
        return found

    def exactly(self, count: int) -> bytes:
        """Reads `count` bytes. Raises BodyError if there are fewer."""
        parts, missing = [], count
        while True:
            part = self._taken(missing)
            parts.append(part)
            missing -= len(part)
            if not missing:
                return b"".join(parts)
            if not self.fill():
                raise BodyError("unexpected EOF")

    def all(self) -> bytes:
        """Reads all bytes until the end."""
        while self.fill():
            pass
        return self._taken(len(self._buffer))


def read_answer(source: Source, largest: int) -> tuple[Answer, bool]:
    """Reads a response. Returns it, and whether another request can be sent on the connection.

    Args:
        largest: the maximum size of a decompressed body in bytes.

    Raises:
        ClosedError, HeadError, BodyError: the response is missing or malformed.
        OverflowError: the decompressed body is too large.
    """
    if source.empty and not source.fill():
        raise ClosedError
    while True:
        version, status, headers = _head(source)
        if not 100 <= status < 200 or status == 101:
            break
    source.headed = True
    body, bounded = _body(source, status, headers)
    if headers.get("content-encoding") == "gzip" and body:
        body = _decompressed(body, largest)
    keeps = version == b"HTTP/1.1" and "close" not in headers.get("connection", "").lower()
    return Answer(status, headers, body), bounded and keeps and source.empty


# ---------------------------------------------------------------- the head


def _head(source: Source) -> tuple[bytes, int, dict[str, str]]:
    try:
        return _read_head(source)
    except OverflowError:
        raise HeadError(f"net/http: server response headers exceeded {LARGEST_HEAD} bytes; aborted") from None


def _read_head(source: Source) -> tuple[bytes, int, dict[str, str]]:
    line = source.line(LARGEST_HEAD)
    if line is None:
        raise HeadError("unexpected EOF")
    try:
        version, status = parse_status_line(line)
    except ValueError as error:
        raise HeadError(str(error)) from None
    headers: defaultdict[str, list[str]] = defaultdict(list)
    size = 0
    while header := _header(source, LARGEST_HEAD - size):
        name, text = header
        size += len(name) + len(text)
        headers[name].append(text)
    return version, status, {name: ", ".join(texts) for name, texts in headers.items()}


def _header(source: Source, limit: int) -> tuple[str, str] | None:
    """Reads a header. Returns its lower-case name and its value; None after the last header."""
    line = source.line(limit)
    if line == b"":
        return None
    ended = line is None
    if line is None:
        line = source.rest_of_line()
    name, colon, value = line.partition(b":")
    if not colon and line:
        raise HeadError(f"malformed MIME header: missing colon: {quoted_line(line)}")
    if ended:
        raise HeadError("unexpected EOF")
    if not _TOKEN.fullmatch(name):
        raise HeadError(f"malformed MIME header line: {line.decode('latin-1')}")
    return name.decode().lower(), value.strip(b" \t").decode("latin-1")


# ---------------------------------------------------------------- the body


def _body(source: Source, status: int, headers: dict[str, str]) -> tuple[bytes, bool]:
    """Reads the body. Returns it, and whether its length is known without the end of the connection."""
    encoding = headers.get("transfer-encoding")
    if encoding is not None and encoding.lower() != "chunked":
        raise HeadError(f"unsupported transfer encoding: {go_quote(encoding)}")
    length = headers.get("content-length") if encoding is None else None
    if length is not None and (not _LENGTH.fullmatch(length) or len(length) > 19 or int(length) >= _MAXIMUM_LENGTH):
        raise HeadError(f"bad Content-Length {go_quote(length)}")
    if status == 101:
        return b"", False
    if status in _WITHOUT_BODY:
        return b"", True
    if encoding is not None:
        return _chunks(source), True
    if length is not None:
        return source.exactly(int(length)), True
    return source.all(), False


def _chunks(source: Source) -> bytes:
    parts = []
    while size := _chunk_size(source):
        parts.append(source.exactly(size))
        if source.exactly(2) != b"\r\n":
            raise BodyError("malformed chunked encoding")
    while _chunk_line(source):  # trailers
        pass
    return b"".join(parts)


def _chunk_size(source: Source) -> int:
    digits = _chunk_line(source).partition(b";")[0].strip(b" \t")
    if not digits:
        raise BodyError("empty hex number for chunk length")
    if not _HEX.fullmatch(digits):
        raise BodyError("invalid byte in chunk length")
    if len(digits) > 16:
        raise BodyError("http chunk length too large")
    return int(digits, 16)


def _chunk_line(source: Source) -> bytes:
    try:
        line = source.line(_LARGEST_CHUNK_LINE)
    except OverflowError:
        raise BodyError("header line too long") from None
    if line is None:
        raise BodyError("unexpected EOF")
    return line


def _decompressed(data: bytes, largest: int) -> bytes:
    unpacking = zlib.decompressobj(wbits=31)
    try:
        found = unpacking.decompress(data, largest)
    except zlib.error as error:
        problem = "invalid checksum" if "data check" in str(error) else "invalid header"
        raise BodyError(f"gzip: {problem}") from None
    if unpacking.unconsumed_tail:
        raise OverflowError
    if not unpacking.eof:
        raise BodyError("unexpected EOF")
    return found
