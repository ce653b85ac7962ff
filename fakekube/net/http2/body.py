"""The body of a request on a stream, as `wsgi.input`. Reading enlarges the client's window."""

from __future__ import annotations

import io
from typing import IO, Protocol

from fakekube.net.body import body_stream
from fakekube.net.http1 import BodyError
from fakekube.net.http2.stream import RequestStream


class BodySource(Protocol):
    """The part of the connection that bodies use."""

    def read_body(self, stream: RequestStream, limit: int) -> bytes:
        """Returns up to `limit` bytes of a body, `b""` at its end; blocks until there are some, and sends `100 Continue` if the
        client waits for it."""


def open_body(source: BodySource, stream: RequestStream, whole: bytes | None) -> IO[bytes]:
    """Returns the file for `wsgi.input`; `whole` is the complete body if it has arrived, else None."""
    return io.BytesIO(whole) if whole is not None else body_stream(_Body(source, stream))


class _Body:
    """A body that has not arrived completely."""

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
