"""Parses HTTP/1.1 responses from bytes, as Go's HTTP client reads them, with its error messages.

`ResponseParser` takes bytes in pieces of any size: `response` returns the next response when its header is complete, then `body`
its body in pieces until `b""`. `ResponseReader` does the same with a function that waits for bytes.

Invariant: the result depends on the bytes and not on the sizes of the pieces.

Specified by: net/http of Go (response.go: ReadResponse; transfer.go: readTransfer; transport.go: readResponse), compress/gzip.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from fakekube.base.golang.strconv import go_quote
from fakekube.net.http1.messages import (
    END_OF_HEADER,
    Body,
    BodyError,
    ChunkedBody,
    MIMEHeaderError,
    SizedBody,
    UnboundedBody,
    header_tokens,
    parse_content_length,
    parse_mime_header,
    quote_line,
)

MAX_RESPONSE_HEADER_BYTES: Final = 10 << 20
"""The maximum size of status lines and headers, in bytes (the Transport's MaxResponseHeaderBytes)."""

_PIECE: Final = 65536
_VERSION: Final = re.compile(r"HTTP/[0-9]\.[0-9]")
_SWITCHING_PROTOCOLS: Final = 101
_WITHOUT_BODY: Final = frozenset({204, 304})


class ConnectionEndedError(EOFError):
    """The connection ended before the first byte of a response."""


class MalformedResponseError(Exception):
    """The status line or a header is malformed or incomplete; has the message of net/http."""


@dataclass(slots=True, frozen=True)
class Response:
    """A response without its body."""

    version: tuple[int, int]
    status: int
    headers: list[tuple[str, str]]
    """As sent, in their order."""
    length: int | None
    """The length of the body; None if the body says where it ends, or ends with the connection."""
    keep_alive: bool
    """Whether another request can be sent on the connection after the body has been read."""

    def values(self, name: str) -> list[str]:
        """Returns the values of a header, by its lower-case name."""
        return [value for other, value in self.headers if other.lower() == name]


class ResponseParser:
    """The parser of the responses on one connection."""

    __slots__ = ("_body", "_ended", "_head_bytes", "_searched", "buffer")

    def __init__(self) -> None:
        self.buffer = bytearray()
        """The bytes that are not parsed yet; read-only for others."""
        self._ended = False
        self._searched = 0
        self._head_bytes = 0
        self._body: Body | None = None

    def feed(self, data: bytes) -> None:
        """Adds received bytes; `b""` says that the connection has ended."""
        self.buffer += data
        self._ended = self._ended or not data

    @property
    def ended(self) -> bool:
        """Whether the connection has ended."""
        return self._ended

    def response(self, method: str) -> Response | None:
        """Returns the next response that is not informational; None if it is incomplete.

        Args:
            method: the method of the request.

        Raises:
            ConnectionEndedError: the connection ended before it.
            MalformedResponseError: it is malformed, or incomplete when the connection ended.
        """
        while (response := self._next(method)) is not None:
            if response.status // 100 != 1 or response.status == _SWITCHING_PROTOCOLS:
                self._head_bytes = 0
                return response
        return None

    def _next(self, method: str) -> Response | None:
        """Returns the next response, which may be informational."""
        buffer = self.buffer
        if not buffer:
            if self._ended:
                raise MalformedResponseError("unexpected EOF") if self._head_bytes else ConnectionEndedError
            return None
        end = END_OF_HEADER.search(buffer, self._searched)
        size = self._head_bytes + (len(buffer) if end is None else end.end())
        if size > MAX_RESPONSE_HEADER_BYTES:
            raise MalformedResponseError(f"net/http: server response headers exceeded {MAX_RESPONSE_HEADER_BYTES} bytes; aborted")
        if end is None:
            self._searched = max(0, len(buffer) - 2)
            self._check_incomplete()
            return None
        head = buffer[: end.end()].decode("latin-1")
        del buffer[: end.end()]
        self._searched, self._head_bytes = 0, size
        line, _, block = head.partition("\n")
        return self._begin(method, *_parse_status_line(line.removesuffix("\r")), block)

    def _check_incomplete(self) -> None:
        """Raises MalformedResponseError if an incomplete header is invalid already, or remains incomplete."""
        end = self.buffer.find(b"\n")
        if end >= 0 or self._ended:
            line = self.buffer[:end] if end >= 0 else self.buffer
            _parse_status_line(line.decode("latin-1").removesuffix("\r"))
        if self._ended:
            block = self.buffer[end + 1 :].decode("latin-1") if end >= 0 else ""
            if block:  # net/textproto takes the bytes before the end of the stream as a line
                _parse_header(block.removesuffix("\n") + "\n\n")
            raise MalformedResponseError("unexpected EOF")

    def _begin(self, method: str, version: tuple[int, int], status: int, block: str) -> Response:
        """Makes the response and its body from the parts of its header."""
        headers = _parse_header(block)
        response = Response(version, status, headers, None, False)
        is_1_1 = version >= (1, 1)
        encodings = response.values("transfer-encoding") if is_1_1 else []
        if len(encodings) > 1:
            raise MalformedResponseError(f"too many transfer encodings: [{' '.join(map(go_quote, encodings))}]")
        if encodings and encodings[0].lower() != "chunked":
            raise MalformedResponseError(f"unsupported transfer encoding: {go_quote(encodings[0])}")
        try:
            length = parse_content_length(response.values("content-length"))
        except ValueError as error:
            raise MalformedResponseError(str(error)) from None
        self._body = None
        if method == "HEAD" or status // 100 == 1 or status in _WITHOUT_BODY:
            length = 0
        elif encodings:
            self._body, length = ChunkedBody(self.buffer), None
        elif length is None:
            self._body = UnboundedBody(self.buffer)
        elif length:
            self._body = SizedBody(self.buffer, length)
        connection = header_tokens(response.values("connection"))
        keep_alive = "close" not in connection and (is_1_1 or "keep-alive" in connection)
        keep_alive = keep_alive and not isinstance(self._body, UnboundedBody) and status != _SWITCHING_PROTOCOLS
        return Response(version, status, headers, length, keep_alive)

    def body(self, limit: int = _PIECE) -> bytes | None:
        """Returns up to `limit` bytes of the body, `b""` at its end, None if more must be fed.

        Raises:
            BodyError: the body is malformed, or incomplete when the connection ended.
        """
        if self._body is None:
            return b""
        piece = self._body.read(limit)
        if piece is not None or not self._ended:
            return piece
        if self._body.truncation:
            raise BodyError(self._body.truncation)
        return b""


def _parse_status_line(line: str) -> tuple[tuple[int, int], int]:
    """Returns the protocol version and the status code of a status line. Raises MalformedResponseError."""
    version, space, rest = line.partition(" ")
    if not space:
        raise MalformedResponseError(f"malformed HTTP response {quote_line(line)}")
    code = rest.lstrip(" ").partition(" ")[0]
    if len(code) != 3 or not code.isascii() or not code.isdigit():
        raise MalformedResponseError(f"malformed HTTP status code {quote_line(code)}")
    if not _VERSION.fullmatch(version):
        raise MalformedResponseError(f"malformed HTTP version {quote_line(version)}")
    return (int(version[5]), int(version[7])), int(code)


def _parse_header(block: str) -> list[tuple[str, str]]:
    try:
        return parse_mime_header(block)
    except MIMEHeaderError as error:
        raise MalformedResponseError(str(error)) from None


class ResponseReader:
    """Reads responses from a source that waits for bytes.

    Args:
        receive: returns the next bytes, `b""` at the end; may raise errors of its own.
    """

    __slots__ = ("_parser", "_receive", "has_head")

    def __init__(self, receive: Callable[[], bytes]) -> None:
        self._receive = receive
        self._parser = ResponseParser()
        self.has_head = False
        """Whether the header of a response has been read."""

    def read_response(self, method: str) -> Response:
        """Waits for the next response. Raises ConnectionEndedError, MalformedResponseError, and what `receive` raises."""
        while (response := self._parser.response(method)) is None:
            self._parser.feed(self._receive())
        self.has_head = True
        return response

    def iterate_body(self) -> Iterator[bytes]:
        """Waits for the pieces of the body. Raises BodyError, and what `receive` raises."""
        while (piece := self._parser.body()) != b"":
            if piece is None:
                self._parser.feed(self._receive())
            else:
                yield piece

    def take_buffered(self) -> bytes:
        """Returns the bytes that were received after the response, such as those of another protocol."""
        data = bytes(self._parser.buffer)
        self._parser.buffer.clear()
        return data

    @property
    def has_buffered(self) -> bool:
        """Whether bytes were received after what has been read."""
        return bool(self._parser.buffer)


def decompress_gzip(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Decompresses a body in pieces of limited size.

    Raises:
        BodyError: the body is no gzip stream, or ends early; with the text of compress/gzip.
    """
    decompressor = zlib.decompressobj(wbits=31)
    is_empty = True
    try:
        for piece in pieces:
            is_empty = False
            data = decompressor.decompress(piece, _PIECE)
            while data:
                yield data
                data = decompressor.decompress(decompressor.unconsumed_tail, _PIECE)
    except zlib.error as error:
        raise BodyError(f"gzip: invalid {'checksum' if 'data check' in str(error) else 'header'}") from None
    if not is_empty and not decompressor.eof:
        raise BodyError("unexpected EOF")
