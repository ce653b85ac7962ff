"""Sends one response of the application over HTTP/1.1.

As in net/http, the rest of the request's body is read before the header of the response is sent, because the header declares
whether the connection is kept. Header and body are sent in one piece if the body is small.
"""

from __future__ import annotations

from collections.abc import Callable

from fakekube.net.environ import Body
from fakekube.net.http1 import Request
from fakekube.net.response import Fields, Head, WSGIResponse, encode_head
from fakekube.net.transport import Transport

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
        """Reports whether another request may follow on the connection. It may not after an incomplete body."""
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
            raise RuntimeError("the application did not call start_response")
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
