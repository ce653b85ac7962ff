"""Serves one request of a connection: calls the application and sends its response on the stream.

If the application raises an exception, the stream is reset and the connection continues, as in Go's server after a panic of
the handler. Reading `wsgi.input`, the body of the request, enlarges the client's window.

A complete body is sent together with its header; the loop's thread sends the part that exceeds the client's windows, so that
no thread waits. An application that sends a body in pieces is blocked while the windows are full.

Specified by: golang.org/x/net/http2 (server.go: responseWriterState.writeChunk).
"""

from __future__ import annotations

import functools
import io
import logging
import operator
import random
from collections.abc import Callable
from typing import IO, Any, Protocol

from fakekube.net.environ import ConnectionVariables, body_stream, make_environ
from fakekube.net.http1 import HEADER_TOO_LARGE, BodyError
from fakekube.net.http2.connection_socket import Multiplexer, StreamTransport, Unframed
from fakekube.net.http2.header_blocks import encode_block
from fakekube.net.http2.stream import RequestStream
from fakekube.net.pump import Delivery, Progress, RequestService
from fakekube.net.response import APPLICATION_FAILED, BODILESS, NO_RESPONSE, Fields, WSGIResponse
from fakekube.net.streams import BrokenStreamError, Stream, is_stream
from fakekube.net.transport import Disconnected

_log = logging.getLogger(__name__)


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


_MEASURED_BYTES = 4096
"""Bodies up to this size have a Content-Length (handlerChunkBytes)."""
_DROPPED = frozenset({"connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"})
_TREATED = _DROPPED | {"content-length", "date"}

_NAME = operator.itemgetter(0)


@functools.lru_cache(maxsize=512)
def _find_meaning(name: str) -> str:
    """Returns the name of a field in lower case if the server treats it, else ""."""
    lower = name.lower()
    return lower if lower in _TREATED else ""


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
            raise RuntimeError(NO_RESPONSE)
        self._head_sent = True
        code = self.status[:3]
        is_bodiless = code in BODILESS
        self._has_body = not is_bodiless and self._stream.request.method != "HEAD"
        date = ""
        declared = None if is_bodiless else length
        fields: list[tuple[str, str]] = []
        for field in self._fields:
            match _find_meaning(field[0]):
                case "":
                    fields.append(field)
                case "content-length":
                    declared = int(field[1])
                case "date":
                    date = field[1]
                case "connection" if field[1] == "close":
                    self._sink.go_away_after(self._stream)
        fields.sort(key=_NAME)
        if declared is not None:
            fields.append(("content-length", str(declared)))
            if self._has_body:
                self._left = declared
        fields.append(("date", date or self._date()))
        return encode_block(code, fields)


_PLAIN_TEXT = (("Content-Type", "text/plain; charset=utf-8"), ("X-Content-Type-Options", "nosniff"))
_HTML = (("Content-Type", "text/html; charset=utf-8"),)
_TOO_LARGE = b"<h1>HTTP Error 431</h1><p>Request Header Field(s) Too Large</p>"


class Host(AnswerSink, BodySource, Multiplexer, Protocol):
    """The part of the connection that an exchange uses."""

    service: RequestService
    variables: ConnectionVariables
    """The variables for all environs."""

    def whole_body(self, stream: RequestStream) -> bytes | None:
        """Returns the body of the request if it has arrived completely, else None."""

    def on_stream_end(self, stream: RequestStream, is_complete: bool) -> None:
        """Called when the pump has ended the response on a stream."""

    def fall_silent(self) -> None:
        """Sends nothing more, not even replies to PINGs, as if the client could not be reached any more."""


def exchange(host: Host, stream: RequestStream) -> bool:
    """Serves a request; returns True if the response is handed to the pump. Raises Disconnected if the stream has ended."""
    request = stream.request
    answer = StreamAnswer(stream, host, host.service.date)
    fault = request.fields.fault
    if fault.startswith("400"):
        answer.send_plain("400 Bad Request", _PLAIN_TEXT, fault[4:].encode() + b"\n")
    elif fault:
        answer.send_plain(HEADER_TOO_LARGE, _HTML, _TOO_LARGE)
    elif request.target == "*" and request.method == "OPTIONS":
        answer.send_plain("200 OK", (), b"")
    else:
        return _run(host, stream, answer)
    return False


def _run(host: Host, stream: RequestStream, answer: StreamAnswer) -> bool:
    request = stream.request
    body: IO[bytes] = open_body(host, stream, host.whole_body(stream))
    environ = make_environ(host.variables, request, body)
    if request.fields.length is None:
        environ["fakekube.open_body"] = True  # there is a body of unknown length
    # WithProbabilisticGoaway of kube-apiserver does this with the field Connection of the response.
    stream.is_last = host.service.goaway_chance > 0 and random.random() < host.service.goaway_chance
    application: Callable[..., Any] = host.service.application
    try:
        result = application(environ, answer.start_response)
        if is_stream(result):
            return _stream(host, stream, answer, result)
        try:
            answer.send_result(result)
        finally:
            if hasattr(result, "close"):
                result.close()
    except Disconnected:
        raise
    except (BrokenStreamError, BodyError):
        host.break_stream(stream)
    except Exception:
        _log.exception(APPLICATION_FAILED, request.method, request.target)
        host.break_stream(stream)
    return False


def _stream(host: Host, stream: RequestStream, answer: StreamAnswer, body: Stream) -> bool:
    """Begins a streaming response; returns True if it is handed to the pump."""
    handed_over = False
    try:
        if answer.status.startswith("101"):
            host.break_stream(stream)  # protocols are switched on HTTP/1.1 only
        elif answer.begin():
            when_silent = getattr(body, "when_silent", None)
            if when_silent is not None:
                when_silent(host.fall_silent)
            delivery = Delivery(body, Unframed(), StreamTransport(host, stream), functools.partial(host.on_stream_end, stream))
            if delivery.begin(b"") is Progress.ENDED:
                host.send_end(stream)
            else:
                handed_over = host.service.pump.add(delivery)
                if not handed_over:
                    delivery.conclude()
        return handed_over
    finally:
        if not handed_over:
            body.close()
