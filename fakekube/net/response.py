"""Responses: `start_response`, the iteration over the body, the headers in the format of net/http, and HTTP/1.1's responses.

The fields of the application come first, unchanged; then Date, Content-Length, Connection and Transfer-Encoding if needed.
All versions of HTTP use `start_response` and the headers; `Answer` at the end sends a response over HTTP/1.1.

Invariant: the header is sent once, before the first piece of the body.

Specified by: PEP 3333; net/http (server.go).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType

from fakekube.base.caches import LONGEST_TEXT, cache_by_key, cache_by_text
from fakekube.net.environ import Body
from fakekube.net.http1 import Request
from fakekube.net.transport import Transport

APPLICATION_FAILED = "The application failed: %s %s"
"""What is logged about an exception of the application, with method and target."""
NO_RESPONSE = "the application did not call start_response"
BODILESS = frozenset({"204", "304"})

_SPECIAL = frozenset({"connection", "content-length", "content-type", "date", "transfer-encoding"})


@cache_by_text(1000)
def _meaning_of(name: str) -> str:
    """Returns the name of a field, as applications write it, in lower case if the server treats the field, else ""."""
    lower = name.lower()
    return lower if lower in _SPECIAL else ""


@dataclass(slots=True)
class Head:
    """An encoded header, and what it declares."""

    data: bytes
    has_body: bool
    """False for a response to HEAD, and for statuses without a body."""
    length: int | None
    """The declared Content-Length; None if there is none."""
    chunked: bool
    keep_alive: bool
    """Whether another request may follow on the connection."""


def encode_head(
    request: Request, status: str, fields: Sequence[tuple[str, str]], *, date: str, length: int | None, keep_alive: bool
) -> Head:
    """Encodes the header of a response.

    Args:
        request: the request.
        status, fields: those of the application.
        date: the value of Date.
        length: the length of the whole body, if it is known and the application has not declared it.
        keep_alive: whether the server keeps the connection open, if the client does.
    """
    begin, end, first, own_length = 0, len(fields), "", ""
    if fields:
        name, value = fields[0]
        if not _meaning_of(name):  # it differs in each response: Audit-Id
            begin, first = 1, _line(name, value)
        name, value = fields[-1]
        if name == "Content-Length" and end > begin:
            end, own_length = end - 1, value
    known = _known_lines((status, *fields[begin:end]))
    is_1_1 = request.version >= (1, 1)
    has_body, declared = not known.is_bodiless and request.method != "HEAD", None
    if not known.is_bodiless:
        declared = int(own_length) if own_length else known.length
        if declared is None and (has_body or length):
            declared = length
    chunked = has_body and declared is None and is_1_1
    has_end = not has_body or declared is not None or chunked
    keep_alive = keep_alive and has_end and request.fields.keep_alive and not known.closes
    framing = f"Content-Length: {declared}\r\n" if declared is not None else ""
    if keep_alive is not is_1_1 and not known.closes:
        framing += "Connection: keep-alive\r\n" if keep_alive else "Connection: close\r\n"
    if chunked:
        framing += "Transfer-Encoding: chunked\r\n"
    version = "HTTP/1.1" if is_1_1 else "HTTP/1.0"
    text = f"{version} {known.status}\r\n{first}{known.text}Date: {known.date or date}\r\n{framing}\r\n"
    return Head(text.encode("latin-1"), has_body, declared, chunked, keep_alive)


@dataclass(slots=True, frozen=True)
class _Lines:
    """What the status and some fields of a response become in its header."""

    status: str
    text: str
    """The lines of the fields that the server does not write itself."""
    length: int | None
    """The value of Content-Length."""
    date: str
    closes: bool
    """Whether there is `Connection: close`."""
    is_bodiless: bool
    """Whether responses with the status have no body."""


_Key = tuple[str, *tuple[tuple[str, str], ...]]
"""A status, and fields."""
_MAX_KNOWN = 512


def _are_short(key: _Key) -> bool:
    status, *fields = key
    return len(status) + sum([len(name) + len(value) for name, value in fields]) <= LONGEST_TEXT


@cache_by_key(_are_short, _MAX_KNOWN)
def _known_lines(key: _Key) -> _Lines:
    """Returns the lines for a status and those fields that many responses have in common."""
    status, *fields = key
    text, length, date, closes, is_bodiless = "", None, "", False, status[:3] in BODILESS or status[0] == "1"
    for name, value in fields:
        meaning = _meaning_of(name)
        if meaning == "content-length":
            length = None if is_bodiless else int(value)
        elif meaning == "date":
            date = _clean(value)
        elif meaning == "connection":
            if value.lower() == "close":
                closes = True
                text += _line(name, value)
        elif not meaning or (meaning == "content-type" and not status.startswith("304")):
            text += _line(name, value)
    return _Lines(_clean(status), text, length, date, closes, is_bodiless)


def _line(name: str, value: str) -> str:
    line = f"{name}: {value}"
    if "\r" in line or "\n" in line:
        line = _clean(line)
    return f"{line}\r\n"


def _clean(text: str) -> str:
    """Returns a text without line breaks, which would end its line."""
    return text.replace("\r", " ").replace("\n", " ")


Fields = Sequence[tuple[str, str]]
_ExcInfo = tuple[type[BaseException], BaseException, TracebackType]


class WSGIResponse(ABC):
    """The response of the application to one request."""

    __slots__ = ("_fields", "status")

    def __init__(self) -> None:
        self._fields: Fields = ()
        self.status = ""
        """The status of the application; "" until it has called `start_response`."""

    @property
    @abstractmethod
    def head_sent(self) -> bool:
        """Whether the header is sent or being sent."""

    def start_response(self, status: str, fields: Fields, exc_info: _ExcInfo | None = None) -> Callable[[bytes], object]:
        """The callable of PEP 3333."""
        if exc_info is not None and self.head_sent:
            raise exc_info[1].with_traceback(exc_info[2])
        if exc_info is None and self.status:
            raise RuntimeError("start_response was called before, and there is no exc_info")
        self.status = status
        self._fields = fields
        return self.write

    def send_result(self, result: Iterable[bytes]) -> None:
        """Sends the iterable that the application returned. Raises Disconnected if the client has disconnected."""
        if isinstance(result, (list, tuple)) and not self.head_sent:
            self._send_whole(result[0] if len(result) == 1 else b"".join(result))
            return
        for piece in result:
            if piece:
                self.write(piece)
        if self.head_sent:
            self._send_end()
        else:
            self._send_whole(b"")

    @abstractmethod
    def write(self, piece: bytes) -> None:
        """Sends a piece of the body, preceded by the header if it is the first one."""

    @abstractmethod
    def _send_whole(self, body: bytes) -> None:
        """Sends the header and the whole body."""

    @abstractmethod
    def _send_end(self) -> None:
        """Ends a body that was sent in pieces."""


# --- One response over HTTP/1.1 ----------------------------------------------------------------------------------------
# As in net/http, the rest of the request's body is read before the header of the response is sent, because the header declares
# whether the connection is kept. Header and body are sent in one piece if the body is small.


_MEASURED_BYTES = 2048
"""Bodies up to this size have a Content-Length; net/http sends longer ones in chunks (bufferBeforeChunkingSize)."""
_LAST_CHUNK = b"\r\n0\r\n\r\n"
_JOINED_BYTES = 65536
"""Bodies up to this size are copied, to send them together with the header."""


class Answer(WSGIResponse):
    """The response to one request."""

    __slots__ = ("_body", "_date", "_left", "_request", "_transport", "head")

    def __init__(self, request: Request, body: Body, transport: Transport, date: Callable[[], str]) -> None:
        super().__init__()
        self._request = request
        self._body = body
        self._transport = transport
        self._date = date
        self._left: int | None = None
        self.head: Head | None = None
        """The header; None until it is being sent."""

    @property
    def is_complete(self) -> bool:
        """Whether another request may follow on the connection. It may not after an incomplete body."""
        return self.head is not None and self.head.keep_alive and not self._left

    @property
    def head_sent(self) -> bool:
        return self.head is not None

    def send_plain(self, status: str, fields: Fields = (), text: bytes = b"") -> None:
        """Sends a response of the server itself."""
        self.status = status
        self._fields = [*fields, ("Content-Type", "text/plain; charset=utf-8")] if text else fields
        self._send_whole(text)

    def encode_head(self, length: int | None) -> Head:
        """Encodes the header for a body of this length, or of unknown length; sends nothing."""
        if not self.status:
            raise RuntimeError(NO_RESPONSE)
        body = self._body
        keep_alive = not body.unread or self._is_last() or body.discard()
        self.head = encode_head(self._request, self.status, self._fields, date=self._date(), length=length, keep_alive=keep_alive)
        if self.head.has_body:
            self._left = self.head.length
        return self.head

    def encode_switch(self) -> bytes:
        """Encodes the header of a 101 response, with the fields of the application only."""
        lines = [f"HTTP/1.1 {self.status}", *(f"{name}: {value}" for name, value in self._fields)]
        return "\r\n".join([line.replace("\r", " ").replace("\n", " ") for line in lines] + ["", ""]).encode("latin-1")

    def _is_last(self) -> bool:
        """Reports whether the connection ends after this response; then the request's body need not be read."""
        if not self._request.fields.keep_alive:
            return True
        return any(name.lower() == "connection" and value.lower() == "close" for name, value in self._fields)

    def write(self, piece: bytes) -> None:
        data = b""
        head = self.head
        if head is None:
            head = self.encode_head(None)
            data = head.data
        if head.chunked:
            data += b"%x\r\n%b\r\n" % (len(piece), piece) if piece else b""
        elif head.has_body:
            data += self._limit_to_length(piece)
        if data:
            self._transport.send(data)

    def _send_whole(self, body: bytes) -> None:
        head = self.encode_head(len(body) if len(body) <= _MEASURED_BYTES else None)
        if head.chunked:
            self._send_in_one_chunk(head, body)
            return
        body = self._limit_to_length(body) if head.has_body else b""
        if len(body) <= _JOINED_BYTES:
            self._transport.send(head.data + body)
        else:
            self._transport.send(head.data + body[:_JOINED_BYTES])
            self._transport.send(memoryview(body)[_JOINED_BYTES:])

    def _send_end(self) -> None:
        if self.head is not None and self.head.chunked:
            self._transport.send(b"0\r\n\r\n")

    def _send_in_one_chunk(self, head: Head, body: bytes) -> None:
        begin = b"%b%x\r\n" % (head.data, len(body))
        if len(body) <= _JOINED_BYTES:
            self._transport.send(b"".join((begin, body, _LAST_CHUNK)))
            return
        for piece in (begin, body, _LAST_CHUNK):
            self._transport.send(piece)

    def _limit_to_length(self, piece: bytes) -> bytes:
        """Returns the part of a piece that does not exceed the declared length."""
        if self._left is None:
            return piece
        if len(piece) > self._left:
            piece = piece[: self._left]
        self._left -= len(piece)
        return piece
