"""Sends one response of the application to the client: `start_response`, and the body.

What the application left of the request's body is read away before the head is sent, as net/http does: only
then is it known whether the connection can go on, which the head must say. Head and body leave in one piece
where that costs no copy worth mentioning.
"""

from __future__ import annotations

from collections.abc import Callable

from fakekube.server.body import Body
from fakekube.server.http1 import Request
from fakekube.server.response import Head, encode_head
from fakekube.server.transport import Transport
from fakekube.server.wsgi import Fields, WSGIResponse

__all__ = ["Answer"]

_MEASURED_BYTES = 2048
"""Bodies up to this size have their length told; net/http sends longer ones in chunks (bufferBeforeChunkingSize)."""
_LAST_CHUNK = b"\r\n0\r\n\r\n"
_JOINED_BYTES = 65536
"""Up to this size bodies are copied behind their heads."""


class Answer(WSGIResponse):
    """The answer to one request."""

    __slots__ = ("_body", "_date", "_left", "_request", "_transport", "head")

    def __init__(self, request: Request, body: Body, transport: Transport, date: Callable[[], str]) -> None:
        super().__init__()
        self._request = request
        self._body = body
        self._transport = transport
        self._date = date
        self._left: int | None = None
        self.head: Head | None = None
        """None until it is being sent."""

    @property
    def is_complete(self) -> bool:
        """Another request may follow on the connection: a body cut short can only be shown by its end."""
        return self.head is not None and self.head.keep_alive and not self._left

    @property
    def head_sent(self) -> bool:
        return self.head is not None

    def give_plain(self, status: str, fields: Fields = (), text: bytes = b"") -> None:
        """Send an answer of the server's own, in place of any other."""
        self.status = status
        self._fields = [*fields, ("Content-Type", "text/plain; charset=utf-8")] if text else fields
        self._give_whole(text)

    def encode_head(self, length: int | None) -> Head:
        """Decide on the head, for a body of that length if it is known; nothing is sent yet."""
        if not self.status:
            raise RuntimeError("the application did not call start_response")
        body = self._body
        keep_alive = not body.unread or self._is_last() or body.discard()
        self.head = encode_head(self._request, self.status, self._fields, date=self._date(), length=length, keep_alive=keep_alive)
        if self.head.has_body:
            self._left = self.head.length
        return self.head

    def encode_switch(self) -> bytes:
        """The head of an answer that switches protocols: as the application gave it."""
        lines = [f"HTTP/1.1 {self.status}", *(f"{name}: {value}" for name, value in self._fields)]
        return "\r\n".join([line.replace("\r", " ").replace("\n", " ") for line in lines] + ["", ""]).encode("latin-1")

    def _is_last(self) -> bool:
        """The connection ends in any case: nothing needs to be read away."""
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
            data += self._measured(piece)
        if data:
            self._transport.send(data)

    def _give_whole(self, body: bytes) -> None:
        head = self.encode_head(len(body) if len(body) <= _MEASURED_BYTES else None)
        if head.chunked:
            self._give_in_one_chunk(head, body)
            return
        body = self._measured(body) if head.has_body else b""
        if len(body) <= _JOINED_BYTES:
            self._transport.send(head.data + body)
        else:
            self._transport.send(head.data + body[:_JOINED_BYTES])
            self._transport.send(memoryview(body)[_JOINED_BYTES:])

    def _end(self) -> None:
        if self.head is not None and self.head.chunked:
            self._transport.send(b"0\r\n\r\n")

    def _give_in_one_chunk(self, head: Head, body: bytes) -> None:
        begin = b"%b%x\r\n" % (head.data, len(body))
        if len(body) <= _JOINED_BYTES:
            self._transport.send(b"".join((begin, body, _LAST_CHUNK)))
            return
        for piece in (begin, body, _LAST_CHUNK):
            self._transport.send(piece)

    def _measured(self, piece: bytes) -> bytes:
        """As much of a piece as still fits what the head promised."""
        if self._left is None:
            return piece
        if len(piece) > self._left:
            piece = piece[: self._left]
        self._left -= len(piece)
        return piece
