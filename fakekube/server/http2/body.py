"""A request's body on a stream, as `wsgi.input`: what the application reads, the client may send again."""

from __future__ import annotations

import io
from typing import IO, Protocol

from fakekube.server.body import body_stream
from fakekube.server.http1 import BodyError
from fakekube.server.http2.stream import RequestStream

__all__ = ["BodySource", "open_body"]


class BodySource(Protocol):
    """What bodies need of their connection."""

    def read_body(self, stream: RequestStream, limit: int) -> bytes:
        """Take up to `limit` bytes of a body, `b""` at its end; waits for them, and asks for them if the client waits."""


def open_body(source: BodySource, stream: RequestStream, whole: bytes | None) -> IO[bytes]:
    """The body for `wsgi.input`; `whole` is all of it, if it has come."""
    return io.BytesIO(whole) if whole is not None else body_stream(_Body(source, stream))


class _Body:
    """A body that is still coming."""

    def __init__(self, source: BodySource, stream: RequestStream) -> None:
        self._source = source
        self._stream = stream
        self._error: BodyError | None = None

    def read(self, limit: int) -> bytes:
        if self._error is not None:
            raise self._error
        try:
            return self._source.read_body(self._stream, limit)
        except BodyError as error:
            self._error = error
            raise
