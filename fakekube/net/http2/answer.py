"""Sends one response of the application on its stream.

A complete body is sent together with its header; the loop's thread sends the part that exceeds the client's windows, so that no
thread waits. An application that sends a body in pieces is blocked while the windows are full.

Specified by: golang.org/x/net/http2 (server.go: responseWriterState.writeChunk).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Protocol

from fakekube.net.http2.header_blocks import encode_block
from fakekube.net.http2.stream import RequestStream
from fakekube.net.wsgi_response import Fields, WSGIResponse

_MEASURED_BYTES = 4096
"""Bodies up to this size have a Content-Length (handlerChunkBytes)."""
_BODILESS = frozenset({"204", "304"})
_DROPPED = frozenset({"connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"})

_NAME = operator.itemgetter(0)


class AnswerSink(Protocol):
    """The part of the connection that responses use."""

    def send_answer(self, stream: RequestStream, block: bytes, body: bytes | None) -> None:
        """Sends a complete response without blocking; `body` is None if there is none."""

    def send_head(self, stream: RequestStream, block: bytes) -> None:
        """Sends the header of a response whose body follows."""

    def send_piece(self, stream: RequestStream, data: bytes) -> None:
        """Sends a piece of the body; blocks while the client's windows are full."""

    def send_end(self, stream: RequestStream) -> None:
        """Ends the response."""

    def go_away_after(self, stream: RequestStream) -> None:
        """Makes this the last request of the connection; see `RequestStream.is_last`."""


class StreamAnswer(WSGIResponse):
    """The response to one request."""

    __slots__ = ("_date", "_has_body", "_head_sent", "_left", "_sink", "_stream")

    def __init__(self, stream: RequestStream, sink: AnswerSink, date: Callable[[], str]) -> None:
        super().__init__()
        self._stream = stream
        self._sink = sink
        self._date = date
        self._has_body = True
        self._left: int | None = None
        self._head_sent = False

    @property
    def head_sent(self) -> bool:
        return self._head_sent

    def send_plain(self, status: str, fields: Fields, text: bytes) -> None:
        """Sends a response of the server itself."""
        self.status = status
        self._fields = fields
        self._send_whole(text)

    def begin(self) -> bool:
        """Sends the header before the first piece; returns False if there is no body."""
        block = self._encode_head(None)
        if self._has_body:
            self._sink.send_head(self._stream, block)
        else:
            self._sink.send_answer(self._stream, block, None)
        return self._has_body

    def write(self, piece: bytes) -> None:
        if not self.head_sent:
            self.begin()
        if self._left is not None:
            piece = piece[: self._left]
            self._left -= len(piece)
        if piece and self._has_body:
            self._sink.send_piece(self._stream, piece)

    def _send_whole(self, body: bytes) -> None:
        is_head = self._stream.request.method == "HEAD"
        length = len(body) if len(body) <= _MEASURED_BYTES and (body or not is_head) else None
        block = self._encode_head(length)
        if self._left is not None:
            body = body[: self._left]
        self._sink.send_answer(self._stream, block, body if self._has_body and body else None)

    def _send_end(self) -> None:
        if self._has_body:
            self._sink.send_end(self._stream)

    def _encode_head(self, length: int | None) -> bytes:
        if not self.status:
            raise RuntimeError("the application did not call start_response")
        self._head_sent = True
        code = self.status[:3]
        is_bodiless = code in _BODILESS
        self._has_body = not is_bodiless and self._stream.request.method != "HEAD"
        date = ""
        declared = None if is_bodiless else length
        fields: list[tuple[str, str]] = []
        for name, value in self._fields:
            match name.lower():
                case "content-length":
                    declared = int(value)
                case "date":
                    date = value
                case lower if lower in _DROPPED:
                    if lower == "connection" and value == "close":
                        self._sink.go_away_after(self._stream)
                case _:
                    fields.append((name, value))
        fields.sort(key=_NAME)
        if declared is not None:
            fields.append(("content-length", str(declared)))
            if self._has_body:
                self._left = declared
        fields.append(("date", date or self._date()))
        return encode_block(code, fields)
