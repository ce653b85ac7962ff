"""Header blocks, trailers and bodies of HTTP/1.1, of requests and of responses.

A body is of a known length, in chunks, or ends with the connection. It shares the buffer of its parser, and takes only its own
bytes from it; `read` returns None while more bytes must be fed.

Invariant: the result is that of net/textproto, and so is the text of an error.

Specified by: net/textproto of Go (ReadMIMEHeader, readContinuedLineSlice, canonicalMIMEHeaderKey), net/http (transfer.go:
body.readTrailer; internal/chunked.go).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from fakekube.base.golang.strconv import go_quote

END_OF_HEADER: Final = re.compile(rb"\n\r?\n")
"""The empty line after a header block, with the end of the line before it."""

TOKEN: Final = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]"
"""The pattern of one character of a token."""

_LENGTH_DIGITS: Final = 19
CONTENT_LENGTH: Final = re.compile(rf"0*[0-9]{{1,{_LENGTH_DIGITS}}}")
"""The pattern of a Content-Length that may fit into 63 bits."""

_PLAIN_BLOCK: Final = re.compile(rf"(?:{TOKEN}++:[\t -~\x80-\xff]*+\r\n)*+")
_NAME: Final = re.compile(rf"(?:{TOKEN}| )+")
_VALUE: Final = re.compile(r"[\t -~\x80-\xff]*")


class MIMEHeaderError(ValueError):
    """A malformed header block; has the text of net/textproto."""


def parse_mime_header(block: str) -> list[tuple[str, str]]:
    """Returns the names, as sent, and the values of a header block.

    Args:
        block: the lines of the block, each with its line end, and the empty line at its end. Latin-1.

    Raises:
        MIMEHeaderError: the block is malformed.
    """
    if block.endswith("\r\n") and _PLAIN_BLOCK.fullmatch(block, 0, len(block) - 2):
        lines = block.split("\r\n")
        del lines[-2:]
    else:
        lines = _continued_lines(block)
    pairs = [line.partition(":") for line in lines]
    return [(name, value.strip(" \t")) for name, _, value in pairs]


def _continued_lines(block: str) -> list[str]:
    """Returns the lines of a block that has bare LFs, continued lines, or faults."""
    parts: list[list[str]] = []  # joined at the end, because a line may be continued often
    for raw in block.split("\n")[:-2]:
        line = raw.removesuffix("\r")
        if line.startswith((" ", "\t")):
            if not parts:
                raise MIMEHeaderError(f"malformed MIME header initial line: {quote_line(line)}")
            parts[-1].append(line.strip(" \t"))
        elif ":" not in line:
            raise MIMEHeaderError(f"malformed MIME header: missing colon: {quote_line(line)}")
        else:
            parts.append([line.rstrip(" \t")])
    lines = [" ".join(line) for line in parts]
    for line in lines:
        name, _, value = line.partition(":")
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise MIMEHeaderError(f"malformed MIME header line: {quote_line(line)}")
    return lines


def quote_line(line: str) -> str:
    """Returns a Latin-1 line as Go's %q prints its bytes."""
    return go_quote(line.encode("latin-1").decode("utf-8", "surrogateescape"))


def parse_content_length(values: Sequence[str]) -> int | None:
    """Returns the value of the fields Content-Length, of which equal ones count once; None if there are none.

    Raises:
        ValueError: the values differ, or one is not a number below 2^63; with the text of net/http.
    """
    distinct = list(dict.fromkeys(values))
    if not distinct:
        return None
    if len(distinct) > 1:
        got = " ".join(go_quote(value) for value in values)
        raise ValueError(f"http: message cannot contain multiple Content-Length headers; got [{got}]")
    text = distinct[0]
    if not text:
        raise ValueError('invalid empty Content-Length ""')
    if not CONTENT_LENGTH.fullmatch(text) or (length := int(text[-_LENGTH_DIGITS:])) >= 1 << 63:
        raise ValueError(f"bad Content-Length {go_quote(text)}")
    return length


def header_tokens(values: Iterable[str]) -> set[str]:
    """Returns the tokens of comma-separated values in lower case."""
    return {token.strip(" \t").lower() for value in values for token in value.split(",")}


_MAX_LINE: Final = 4096
"""The maximum length of a chunk's size line and of all trailers, in bytes: the size of net/http's read buffer."""
_MAX_CHUNK_OVERHEAD: Final = 16 * 1024
_CHUNK_SIZE: Final = re.compile(rb"[0-9A-Fa-f]*")
_MAX_SIZE_DIGITS: Final = 16


class BodyError(OSError):
    """A body that cannot be read to its end; the text is that of net/http."""


class Body(Protocol):
    """The body of one message."""

    unread: int | None
    """The number of bytes that have not been read; None if it is unknown."""

    def read(self, limit: int) -> bytes | None:
        """Returns up to `limit` bytes, `b""` at the end, None if more bytes must be fed. Raises BodyError."""

    @property
    def truncation(self) -> str:
        """The text of the error if the connection ends now; "" if the body may end there."""


class SizedBody:
    """A body of known length."""

    __slots__ = ("_buffer", "unread")
    truncation = "unexpected EOF"

    def __init__(self, buffer: bytearray, length: int) -> None:
        self._buffer = buffer
        self.unread: int | None = length

    def read(self, limit: int) -> bytes | None:
        if not self.unread:
            return b""
        piece = bytes(self._buffer[: min(limit, self.unread)])
        if not piece:
            return None
        del self._buffer[: len(piece)]
        self.unread -= len(piece)
        return piece


class UnboundedBody:
    """A body of a response that ends with the connection."""

    __slots__ = ("_buffer", "unread")
    truncation = ""

    def __init__(self, buffer: bytearray) -> None:
        self._buffer = buffer
        self.unread: int | None = None

    def read(self, limit: int) -> bytes | None:
        piece = bytes(self._buffer[:limit])
        del self._buffer[: len(piece)]
        return piece or None


class ChunkedBody:
    """A chunked body. States: size line, data, CRLF after data, trailers, end."""

    __slots__ = ("_buffer", "_excess", "_left", "_state", "unread")

    def __init__(self, buffer: bytearray) -> None:
        self._buffer = buffer
        self._state = self._read_size
        self._left = 0
        self._excess = 0
        self.unread: int | None = None

    @property
    def truncation(self) -> str:
        return "http: unexpected EOF reading trailer" if self._state == self._read_trailers else "unexpected EOF"

    def read(self, limit: int) -> bytes | None:
        """Joins the data of chunks that are available, as net/http/internal does: a peer may send chunks of a byte."""
        data = bytearray()
        while self.unread is None and len(data) < limit:
            if self._left:
                piece = self._buffer[: min(limit - len(data), self._left)]
                if not piece:
                    break
                data += piece
                del self._buffer[: len(piece)]
                self._left -= len(piece)
                continue
            try:
                if not self._state():
                    break
            except BodyError:
                if data:
                    break  # raised again by the next call
                raise
        return bytes(data) if data or self.unread == 0 else None

    def _read_size(self) -> bool:
        end = self._buffer.find(b"\n", 0, _MAX_LINE)
        if end < 0:
            if len(self._buffer) >= _MAX_LINE:
                raise BodyError("header line too long")
            return False
        line = bytes(self._buffer[: end + 1])
        carriage_return = line.find(b"\r")
        if carriage_return < 0:
            raise BodyError("chunked line ends with bare LF")
        if carriage_return != end - 1:
            raise BodyError("invalid CR in chunked line")
        size = line[:-2].rstrip(b" \t").partition(b";")[0]
        if not size:
            raise BodyError("empty hex number for chunk length")
        if not _CHUNK_SIZE.fullmatch(size):
            raise BodyError("invalid byte in chunk length")
        if len(size) > _MAX_SIZE_DIGITS:
            raise BodyError("http chunk length too large")
        left = int(size, 16)
        excess = max(0, self._excess + len(line) - 16 - 2 * left)
        if excess > _MAX_CHUNK_OVERHEAD:
            raise BodyError("chunked encoding contains too much non-data")
        self._left, self._excess = left, excess
        del self._buffer[: end + 1]
        self._state = self._read_end_of_data if self._left else self._read_trailers
        return True

    def _read_end_of_data(self) -> bool:
        if len(self._buffer) < 2:
            return False
        if not self._buffer.startswith(b"\r\n"):
            raise BodyError("malformed chunked encoding")
        del self._buffer[:2]
        self._state = self._read_size
        return True

    def _read_trailers(self) -> bool:
        """Checks trailers and drops them, because the Kubernetes API does not use them."""
        buffer = self._buffer
        if len(buffer) < 2:
            return False
        end = 2
        if not buffer.startswith(b"\r\n"):
            end = buffer.find(b"\r\n\r\n", 0, _MAX_LINE) + 4
            if end < 4:
                if len(buffer) >= _MAX_LINE:
                    raise BodyError("http: suspiciously long trailer after chunked body")
                return False
            try:
                parse_mime_header(buffer[:end].decode("latin-1"))
            except MIMEHeaderError as error:
                raise BodyError(str(error)) from None
        del buffer[:end]
        self.unread = 0
        return True
