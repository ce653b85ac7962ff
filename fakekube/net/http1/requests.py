"""Parses HTTP/1.1 requests from bytes, without sockets and threads.

`feed` takes bytes in pieces of any size; `request` returns the next request when its header is complete, then `body` its body in
pieces until `b""`, then `request` the next one. The parser accepts and refuses what Go's net/http does. Invalid headers are
answered with a short text and `Connection: close`; errors of a body are raised to its reader.

Invariant: the result depends on the bytes and not on the sizes of the pieces, and bytes after a refused request are never parsed
as another request.

Specified by: net/http of Go (request.go: readRequest; server.go: readRequest of conn; transfer.go: readTransfer).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from fakekube.base.caches import LONGEST_TEXT, BoundedCache, cache_if
from fakekube.base.golang.urls import CONTROL_CHARACTER, INVALID_ESCAPE
from fakekube.net.http1.messages import (
    END_OF_HEADER,
    TOKEN,
    Body,
    ChunkedBody,
    MIMEHeaderError,
    SizedBody,
    header_tokens,
    parse_content_length,
    parse_mime_header,
)

MAX_HEAD_BYTES = (1 << 20) + 4096
"""MaxHeaderBytes of kube-apiserver, and the 4096 bytes that net/http adds to it."""

_METHOD = re.compile(TOKEN + "+")
_USUAL_LINE = re.compile(rf"({TOKEN}++) (/[!-$&-~]*+) HTTP/1\.1\r?")
_VERSION = re.compile(r"HTTP/([0-9])\.([0-9])")
_HOST = re.compile(r"[0-9A-Za-z!$%&()*+,\-.:;=\[\]'_~]*")
_HOST_AND_PORT = r"(?:\[[^\[\]/?]*\]|[^\[\]/?:@]*)(?::[0-9]*)?"
_ABSOLUTE = re.compile(rf"[A-Za-z][A-Za-z0-9+.\-]*:(?:(?!//)|//(?:[^/?@]*@)?{_HOST_AND_PORT}(?=[/?]|\Z))")

_CONTENT_LENGTH = "content-length"
_LENGTH_LINE = re.compile(r"\n[Cc]ontent-[Ll]ength: ([1-9][0-9]{0,8})\r\n")
"""The usual form of a Content-Length, in a block after another field."""

#: The status of a request whose header is longer than MAX_HEAD_BYTES.
HEADER_TOO_LARGE = "431 Request Header Fields Too Large"


class ProtocolError(Exception):
    """A header that net/http refuses. The connection must be closed after its `answer`."""

    def __init__(self, status: str = "400 Bad Request", text: str = "") -> None:
        """`status` is the code with its reason phrase; `text` is the body, by default the status."""
        super().__init__(status)
        self.status = status
        self.text = text or status

    @property
    def answer(self) -> bytes:
        """The whole response, as net/http writes it."""
        head = f"HTTP/1.1 {self.status}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
        return (head + self.text).encode("latin-1")


@dataclass(slots=True, frozen=True, eq=False)
class Fields:
    """A parsed header block. Header blocks that clients repeat are parsed once."""

    pairs: tuple[tuple[str, str], ...]
    """Names in lower case, values without surrounding spaces."""
    length: int | None
    """The length of the body; None for a chunked body."""
    keep_alive: bool
    """Whether the client allows another request on this connection."""
    expects_continue: bool
    """Whether the client waits for `100 Continue` before it sends the body."""
    expectation_failed: bool
    """Whether there is an Expect field with another value."""
    has_host: bool
    fault: str
    """The status of a fault that is reported only if there is no other one; "" for none."""
    variables: dict[str, str] = field(default_factory=dict)
    """The variables of `environ` for this block, which are cached here."""
    model: Fields | None = None
    """The block of which this one differs only in its Content-Length; None if it was parsed itself."""

    def with_length(self, length: str) -> Fields:
        """Returns the fields of a block that differs only in its Content-Length, the length of the body."""
        pairs = tuple([(name, length if name == _CONTENT_LENGTH else value) for name, value in self.pairs])
        return Fields(
            pairs,
            int(length),
            self.keep_alive,
            self.expects_continue,
            self.expectation_failed,
            self.has_host,
            self.fault,
            model=self,
        )


@dataclass(slots=True, frozen=True)
class Request:
    """A parsed request without its body. Those that clients repeat are parsed once."""

    method: str
    target: str
    """The target as sent; it may be an absolute URL."""
    version: tuple[int, int]
    fields: Fields


class RequestParser:
    """The parser of one connection."""

    __slots__ = ("_line_checked", "_searched", "_tolerant", "buffer", "current_body")

    def __init__(self) -> None:
        self.buffer = bytearray()
        """The bytes that are not parsed yet; read-only for others."""
        self._searched = 0
        self._line_checked = False
        self._tolerant = False
        self.current_body: Body | None = None
        """The body of the latest request; None if it has none."""

    def feed(self, data: bytes) -> None:
        """Adds received bytes."""
        self.buffer += data

    @property
    def has_head(self) -> bool:
        """Whether `request` should be called: a header is complete or too long."""
        if END_OF_HEADER.search(self.buffer, self._searched) is None:
            self._searched = max(0, len(self.buffer) - 2)
        else:
            return True
        return len(self.buffer) > MAX_HEAD_BYTES

    def request(self) -> Request | None:
        """Returns the next request; None if it is incomplete. The body of the previous one must have been read.

        Raises ProtocolError for an invalid or unsupported request.
        """
        body, buffer = self.current_body, self.buffer
        assert body is None or body.unread == 0, "the body of the last request has not been read"
        if self._tolerant and not self._skip_blank_lines():
            return None
        request = None
        if len(buffer) <= LONGEST_TEXT and buffer.endswith(b"\r\n\r\n"):  # most requests without a body
            request = _known_requests.get(bytes(buffer))
        if request is not None:
            buffer.clear()
        else:
            end = END_OF_HEADER.search(buffer, self._searched)
            if end is None:
                self._searched = max(0, len(buffer) - 2)
                self._check_early()
                return None
            request = _request(bytes(buffer[: end.end()]))
            del buffer[: end.end()]
        self._searched = 0
        self._line_checked = False
        self._tolerant = request.method == "POST"
        length = request.fields.length
        if length == 0:
            self.current_body = None
        else:
            self.current_body = ChunkedBody(buffer) if length is None else SizedBody(buffer, length)
        return request

    def body(self, limit: int) -> bytes | None:
        """Returns up to `limit` bytes of the body, `b""` at its end, None if more must be fed. Raises BodyError for invalid
        framing."""
        return self.current_body.read(limit) if self.current_body is not None else b""

    @property
    def unread(self) -> int | None:
        """The number of bytes of the body that have not been read; None if it is unknown."""
        return self.current_body.unread if self.current_body is not None else 0

    def _skip_blank_lines(self) -> bool:
        """Skips up to four CRs and LFs after a POST, as net/http does; returns False if more bytes may follow."""
        buffer = self.buffer
        count = 0
        while count < min(4, len(buffer)) and buffer[count] in b"\r\n":
            count += 1
        if count == len(buffer) < 4:
            return False
        del buffer[:count]
        self._tolerant = False
        return True

    def _check_early(self) -> None:
        """Raises ProtocolError if an incomplete request is already invalid."""
        if not self._line_checked and (end := self.buffer.find(b"\n")) >= 0:
            _request_line(self.buffer[:end].decode("latin-1"))
            self._line_checked = True
        if len(self.buffer) > MAX_HEAD_BYTES:
            raise ProtocolError(HEADER_TOO_LARGE)


_known_requests: BoundedCache[bytes, Request] = BoundedCache(512)
"""By their headers."""


def _request(head: bytes) -> Request:
    """Returns the request of a complete header with its blank line."""
    request = _known_requests.get(head)
    if request is None:
        request = _parse(head.decode("latin-1"))
        if len(head) <= LONGEST_TEXT:
            _known_requests.add(head, request)
    return request


def _parse(head: str) -> Request:
    """Parses a header. Checks are in the order of net/http."""
    line, _, block = head.partition("\n")
    method, target, version = _request_line(line)
    if len(head) > MAX_HEAD_BYTES:
        raise ProtocolError(HEADER_TOO_LARGE)
    fields = _fields(block, version >= (1, 1))
    if version[0] != 1:
        raise ProtocolError("505 HTTP Version Not Supported: unsupported protocol version")
    if not fields.has_host and version >= (1, 1) and method != "CONNECT":
        raise ProtocolError("400 Bad Request: missing required Host header")
    if fields.fault:
        raise ProtocolError(fields.fault)
    return Request(method, target, version, fields)


def _request_line(line: str) -> tuple[str, str, tuple[int, int]]:
    usual = _USUAL_LINE.fullmatch(line)
    if usual is not None:
        return usual[1], usual[2], (1, 1)
    method, _, rest = line.removesuffix("\r").partition(" ")
    target, _, protocol = rest.partition(" ")
    version = _VERSION.fullmatch(protocol)
    if version is None or not _METHOD.fullmatch(method) or not is_valid_target(method, target):
        raise ProtocolError
    return method, target, (int(version[1]), int(version[2]))


def is_valid_target(method: str, target: str) -> bool:
    """Reports whether net/url's ParseRequestURI accepts a target."""
    if CONTROL_CHARACTER.search(target):
        return False
    if target == "*" or (method == "CONNECT" and not target.startswith("/")):
        return bool(target)
    if not target.startswith("/") and not _ABSOLUTE.match(target):
        return False
    return not INVALID_ESCAPE.search(target.partition("?")[0])


_models: BoundedCache[tuple[str, str, bool], Fields] = BoundedCache(512)
"""By what is before and after the value of Content-Length, and whether the version is 1.1: writes differ in their lengths."""


@cache_if(lambda block, _is_1_1: len(block) <= LONGEST_TEXT, 512)
def _fields(block: str, is_1_1: bool) -> Fields:
    """Returns the fields of a header block; of those that differ only in their Content-Length one is parsed."""
    line = _LENGTH_LINE.search(block)
    if line is None or len(block) > LONGEST_TEXT:
        return _parse_fields(block, is_1_1)
    length, begin, end = line[1], line.start(1), line.end(1)
    rest = block[:begin], block[end:], is_1_1
    model = _models.get(rest)
    if model is not None:
        return model.with_length(length)
    fields = _parse_fields(block, is_1_1)
    # Not if it is continued in the next line, repeated, or not what says where the body ends.
    lengths = [value for name, value in fields.pairs if name == _CONTENT_LENGTH]
    if lengths == [length] and fields.length == int(length):
        _models.add(rest, fields)
    return fields


def _parse_fields(block: str, is_1_1: bool) -> Fields:
    """Parses a header block with the blank line at its end; HTTP/1.0 has fewer fields with a meaning."""
    try:
        pairs = [(name.lower(), value) for name, value in parse_mime_header(block)]
    except MIMEHeaderError:
        raise ProtocolError from None
    special: dict[str, list[str]] = {name: [] for name in _SPECIAL}
    for name, value in pairs:
        if name in _SPECIAL:
            special[name].append(value)
    hosts = special["host"]
    if len(hosts) > 1:
        raise ProtocolError
    length = _length(special, is_1_1)
    fault = ""
    if hosts and not _HOST.fullmatch(hosts[0]):
        fault = "400 Bad Request: malformed Host header"
    elif any(" " in name for name, _ in pairs):
        fault = "400 Bad Request: invalid header name"
    connection = header_tokens(special["connection"])
    expectation = special["expect"][0] if special["expect"] else ""
    expects_continue = "100-continue" in header_tokens([expectation])
    return Fields(
        pairs=tuple(pairs),
        length=length,
        keep_alive="close" not in connection and (is_1_1 or "keep-alive" in connection),
        expects_continue=expects_continue and is_1_1 and length != 0,
        expectation_failed=bool(expectation) and not expects_continue,
        has_host=bool(hosts),
        fault=fault,
    )


_SPECIAL = frozenset({"connection", _CONTENT_LENGTH, "expect", "host", "trailer", "transfer-encoding"})
_FORBIDDEN_TRAILERS = frozenset({_CONTENT_LENGTH, "trailer", "transfer-encoding"})


def _length(special: dict[str, list[str]], is_1_1: bool) -> int | None:
    """Returns the length of the body; None for a chunked body, which takes precedence over Content-Length (RFC 9112)."""
    encodings = special["transfer-encoding"] if is_1_1 else []
    if encodings and [encoding.lower() for encoding in encodings] != ["chunked"]:
        raise ProtocolError("501 Not Implemented", "Unsupported transfer encoding")
    try:
        length = parse_content_length(special[_CONTENT_LENGTH])
    except ValueError:
        raise ProtocolError from None
    if not encodings:
        return length or 0
    if _FORBIDDEN_TRAILERS & header_tokens(special["trailer"]):
        raise ProtocolError
    return None
