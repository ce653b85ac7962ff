"""Serves one request of a connection in a worker thread: calls the application and sends its response.

If the application raises an exception, the stream is reset and the connection continues, as in Go's server after a panic of the
handler.
"""

from __future__ import annotations

import functools
import logging
import random
from collections.abc import Callable
from typing import IO, Any, Protocol

from fakekube.net.connection import Service, is_stream
from fakekube.net.environ import make_environ
from fakekube.net.http1 import BodyError
from fakekube.net.http2.answer import AnswerSink, StreamAnswer
from fakekube.net.http2.body import BodySource, open_body
from fakekube.net.http2.stream import RequestStream
from fakekube.net.http2.stream_transport import Multiplexer, StreamTransport, Unframed
from fakekube.net.pump import Delivery, Progress
from fakekube.net.streams import BrokenStreamError, Stream
from fakekube.net.transport import Disconnected

_log = logging.getLogger(__name__)

_PLAIN_TEXT = (("Content-Type", "text/plain; charset=utf-8"), ("X-Content-Type-Options", "nosniff"))
_HTML = (("Content-Type", "text/html; charset=utf-8"),)
_TOO_LARGE = b"<h1>HTTP Error 431</h1><p>Request Header Field(s) Too Large</p>"


class Host(AnswerSink, BodySource, Multiplexer, Protocol):
    """The part of the connection that an exchange uses."""

    service: Service
    base: dict[str, Any]
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
        answer.send_plain("431 Request Header Fields Too Large", _HTML, _TOO_LARGE)
    elif request.target == "*" and request.method == "OPTIONS":
        answer.send_plain("200 OK", (), b"")
    else:
        return _run(host, stream, answer)
    return False


def _run(host: Host, stream: RequestStream, answer: StreamAnswer) -> bool:
    request = stream.request
    body: IO[bytes] = open_body(host, stream, host.whole_body(stream))
    environ = make_environ(host.base, request, body)
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
        _log.exception("The application failed: %s %s", request.method, request.target)
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
