"""Reads bodies of HTTP/1.1 messages from a buffer: of a known length, in chunks, or until the connection ends.

A body shares the buffer of its parser, and takes only its own bytes from it. `read` returns None while more bytes must be fed.

Specified by: net/http of Go (transfer.go: body.readTrailer; internal/chunked.go).
"""

from __future__ import annotations

import re
from typing import Final, Protocol

from fakekube.net.http1.headers import MIMEHeaderError, parse_mime_header

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
        while self.unread is None:
            if self._left:
                piece = bytes(self._buffer[: min(limit, self._left)])
                if not piece:
                    return None
                del self._buffer[: len(piece)]
                self._left -= len(piece)
                return piece
            if not self._state():
                return None
        return b""

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
        self._left = int(size, 16)
        self._excess = max(0, self._excess + len(line) - 16 - 2 * self._left)
        if self._excess > _MAX_CHUNK_OVERHEAD:
            raise BodyError("chunked encoding contains too much non-data")
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
