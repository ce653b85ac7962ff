"""The body of a request as `wsgi.input`: received from the client while the application reads.

Invariant: at most one receive is ahead of the application, so that an application that stops reading bounds the memory of the
server.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Protocol

from fakekube.net.http1 import BodyError, Request, RequestParser
from fakekube.net.transport import Transport

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


MAX_DISCARDED_BYTES = 256 << 10
"""The number of unread bytes that net/http discards to keep a connection (maxPostHandlerReadBytes)."""

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Readable(Protocol):
    """A body that arrives in pieces."""

    def read(self, limit: int, /) -> bytes:
        """Returns up to `limit` bytes, `b""` at the end; blocks until there are some."""


def body_stream(body: Readable) -> IO[bytes]:
    """Returns a body as a file for `wsgi.input`."""
    return io.BufferedReader(_Raw(body))


class Body:
    """The body of one HTTP/1.1 request."""

    __slots__ = ("_awaited", "_error", "_length", "_parser", "_spool", "_transport", "_waiting")

    def __init__(
        self,
        request: Request,
        parser: RequestParser,
        transport: Transport,
        waiting: Callable[[bool], None] | None = None,
        spool: bytearray | None = None,
    ) -> None:
        """
        Args:
            request: the request.
            parser: the parser of the connection.
            transport: the transport of the connection.
            waiting: called with whether this thread waits for the client, before and after; until `detach`.
            spool: what was received of the body before the application was called; then `100 Continue` was sent.
        """
        self._waiting = waiting
        self._spool = spool
        self._parser = parser
        self._transport = transport
        self._awaited = request.fields.expects_continue and spool is None
        self._error: BodyError | None = None
        self._length = request.fields.length

    def open(self) -> IO[bytes]:
        """Returns the file for `wsgi.input`. Called once."""
        if self._spool is not None and self._parser.unread == 0:
            return io.BytesIO(self._spool)
        length = self._length
        if length is not None and not self._awaited and length <= len(self._parser.buffer):
            return io.BytesIO(self._parser.body(length) or b"")
        return body_stream(self)

    def read(self, limit: int) -> bytes:
        """Returns up to `limit` bytes, `b""` at the end; sends `100 Continue` if the client waits for it.

        Raises BodyError if the framing is invalid, or the client has disconnected.
        """
        if self._error is not None:
            raise self._error
        if self._spool:
            piece = bytes(self._spool[:limit])
            del self._spool[:limit]
            return piece
        try:
            if self._awaited:
                self._awaited = False
                self._transport.send(CONTINUE)
            while (received := self._parser.body(limit)) is None:
                data = self._receive()
                if not data:
                    raise BodyError("unexpected EOF")
                self._parser.feed(data)
        except BodyError as error:
            self._error = error
            raise
        return received

    def _receive(self) -> bytes:
        waiting = self._waiting
        if waiting is None:
            return self._transport.receive()
        waiting(True)
        data = self._transport.receive()
        waiting(False)
        return data

    def detach(self) -> None:
        """Forgets the connection, so that the recorder, which keeps environs, does not keep the server in memory."""
        self._waiting = None

    @property
    def unread(self) -> bool:
        """Reports whether the end of the body has not been reached."""
        return self._parser.unread != 0

    def discard(self) -> bool:
        """Reads the rest of the body; returns False if it is too long or invalid."""
        unread = self._parser.unread
        if self._awaited or self._error is not None or (unread is not None and unread >= MAX_DISCARDED_BYTES):
            return False
        budget = MAX_DISCARDED_BYTES
        try:
            while budget > 0:
                piece = self.read(budget)
                if not piece:
                    return True
                budget -= len(piece)
        except OSError:
            return False
        return self._parser.unread == 0


class _Raw(io.RawIOBase):
    """Adapts a body to `io.RawIOBase`, for `io.BufferedReader`."""

    def __init__(self, body: Readable) -> None:
        self._body = body

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        view = memoryview(buffer)
        piece = self._body.read(len(view))
        view[: len(piece)] = piece
        return len(piece)
