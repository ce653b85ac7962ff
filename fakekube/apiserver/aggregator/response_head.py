"""Reads the status line and headers of a response like Go's net/http, with the same error messages.

Specified by: net/http (ReadResponse, readTransfer), net/textproto (ReadMIMEHeader).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from fakekube.base.golang.http import parse_status_line, quoted_line
from fakekube.base.golang.quoting import go_quote

__all__ = ["MalformedResponseError", "ResponseHead", "read_head"]

LARGEST = 10 << 20
"""The maximum size of a head in bytes."""


class Lines(Protocol):
    """The reader of a response."""

    def readline(self, size: int, /) -> bytes: ...


class MalformedResponseError(Exception):
    """The status line or a header is malformed; has Go's error message."""


@dataclass(slots=True, frozen=True)
class ResponseHead:
    """Status and headers."""

    status: int
    headers: list[tuple[str, str]]
    raw: bytes
    """The bytes as received, including the empty line at the end."""

    @property
    def chunked(self) -> bool:
        """Whether the body is chunked."""
        return any(name.lower() == "transfer-encoding" and "chunked" in value.lower() for name, value in self.headers)

    def length(self) -> int | None:
        """Returns the length of the body; None if it is unknown. Raises MalformedResponseError."""
        if self.chunked:
            return None
        for name, value in self.headers:
            if name.lower() == "content-length":
                if not value.isascii() or not value.isdigit():
                    raise MalformedResponseError(f"bad Content-Length {go_quote(value)}")
                return int(value)
        return None


def read_head(reader: Lines) -> ResponseHead:
    """Reads the head of the next response.

    Raises:
        MalformedResponseError: it is malformed.
        EOFError: the connection ended before its end; the argument is true if any bytes were received.
        OSError: an error of the reader.
    """
    lines: list[bytes] = []
    left = LARGEST
    while True:
        line = reader.readline(left + 1)
        left -= len(line)
        if left < 0:
            raise MalformedResponseError(f"net/http: server response headers exceeded {LARGEST} bytes; aborted")
        if not line.endswith(b"\n"):
            if not line:
                raise EOFError(bool(lines))
            _status(lines[0] if lines else line)
            _header(line)
            raise EOFError(True)
        lines.append(line)
        if line in (b"\r\n", b"\n"):
            break
        if len(lines) == 1:
            _status(line)
    headers: list[tuple[str, str]] = []
    for line in lines[1:-1]:
        if line[:1] in (b" ", b"\t"):
            if not headers:
                raise MalformedResponseError(f"malformed MIME header initial line: {quoted_line(line)}")
            name, value = headers[-1]
            headers[-1] = (name, f"{value} {line.strip().decode('latin-1')}")
        else:
            headers.append(_header(line))
    return ResponseHead(_status(lines[0]), headers, b"".join(lines))


def _status(line: bytes) -> int:
    try:
        return parse_status_line(line.rstrip(b"\r\n"))[1]
    except ValueError as error:
        raise MalformedResponseError(str(error)) from None


def _header(line: bytes) -> tuple[str, str]:
    name, colon, value = line.partition(b":")
    if not colon:
        raise MalformedResponseError(f"malformed MIME header: missing colon: {quoted_line(line)}")
    if not name or name != name.strip():
        raise MalformedResponseError(f"malformed MIME header line: {line.strip().decode('latin-1')}")
    return name.decode("latin-1"), value.strip(b" \t\r\n").decode("latin-1")
