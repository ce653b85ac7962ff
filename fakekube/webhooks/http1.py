"""Reads the answer to one HTTP/1.1 request, as Go's net/http reads it, with its words for what is wrong.

What is read comes from a `Source`, which keeps the deadline and the bound on the size.

Specified by: net/http (response.go, transfer.go, transport.go, internal/chunked.go) and net/textproto of Go.
"""

from __future__ import annotations

import re
import zlib
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from fakekube.golang.http import parse_status_line, quoted_line
from fakekube.golang.quoting import go_quote

__all__ = ["LARGEST_HEAD", "Answer", "BodyError", "ClosedError", "HeadError", "Source", "read_answer"]

#: How many bytes the head of an answer may have (the Transport's MaxResponseHeaderBytes).
LARGEST_HEAD = 10 << 20
#: How many a line of a chunked body may have.
_LARGEST_CHUNK_LINE = 4096

_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_HEX = re.compile(rb"[0-9a-fA-F]+")
_LENGTH = re.compile(r"[0-9]+")
_WITHOUT_BODY = (204, 304)
_MAXIMUM_LENGTH = 2**63


class ClosedError(Exception):
    """The server closed the connection before it answered anything."""


class HeadError(Exception):
    """Status line or headers are none; the text is Go's."""


class BodyError(Exception):
    """The body is not framed or packed as the headers say; the text is Go's."""


@dataclass(slots=True, frozen=True)
class Answer:
    """An answer."""

    status: int
    headers: dict[str, str]
    """By lower-case name; several of one name are joined."""
    body: bytes


class Source:
    """The bytes that a server sends.

    Args:
        receive: gives some more of them; b"" at the end.
    """

    __slots__ = ("_buffer", "_receive", "ended", "headed")

    def __init__(self, receive: Callable[[], bytes]) -> None:
        self._receive = receive
        self._buffer = bytearray()
        self.ended = False
        self.headed = False
        """Have the headers been read?"""

    @property
    def empty(self) -> bool:
        """Has all been read that has come?"""
        return not self._buffer

    def fill(self) -> bool:
        """Wait for more; false at the end."""
        more = b"" if self.ended else self._receive()
        self.ended = not more
        self._buffer += more
        return bool(more)

    def line(self, limit: int) -> bytes | None:
        """A line without its end; None if the bytes end before it does. Raises OverflowError if it is longer than `limit`."""
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            if searched > limit:
                raise OverflowError
            if not self.fill():
                return None
        return self._taken(end + 1)[:-1].removesuffix(b"\r")

    def rest_of_line(self) -> bytes:
        """What is left when the bytes have ended."""
        return self._taken(len(self._buffer))

    def _taken(self, count: int) -> bytes:
        found = bytes(self._buffer[:count])
        del self._buffer[:count]
        return found

    def exactly(self, count: int) -> bytes:
        """So many bytes. Raises BodyError if there are fewer."""
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
        """All bytes until the end."""
        while self.fill():
            pass
        return self._taken(len(self._buffer))


def read_answer(source: Source, largest: int) -> tuple[Answer, bool]:
    """An answer, and whether another request can be sent on its connection.

    Args:
        largest: how many bytes a body may have when it is unpacked.

    Raises:
        ClosedError, HeadError, BodyError: see there.
        OverflowError: the body is too large.
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
        body = _unpacked(body, largest)
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
    """The next one, by its lower-case name; None after the last."""
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
    """The body, and whether it ends before the connection does."""
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


def _unpacked(data: bytes, largest: int) -> bytes:
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
