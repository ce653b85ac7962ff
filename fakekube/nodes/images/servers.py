"""Servers in programs of known images: HTTP over TCP or TLS at ports of the pod, and requests that programs send.

A program listens with `listen_http` or the listeners of its pod, and waits in `serve_until_end`. Requests are handled in threads
of the process, one for each request, as those of a test's WSGI application.

Invariant: a port is free again when the program ends.

Specified by: net/http of Go, as far as agnhost uses it.
"""

from __future__ import annotations

import errno
import re
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from fakekube.apimachinery.codecs import json
from fakekube.apiserver.endpoints.negotiation import HTML
from fakekube.net.http1.responses import ConnectionEndedError, MalformedResponseError, ResponseReader
from fakekube.net.streaming.kubelet_api import Connection
from fakekube.net.streams import Notifier
from fakekube.net.wsgi import Application
from fakekube.nodes.runtime.listeners import Peer
from fakekube.nodes.runtime.ports import serve
from fakekube.nodes.runtime.program import Program
from fakekube.nodes.runtime.scheduling import SIGTERM, Killed, sleep, wait_until

#: How HTML begins (DetectContentType).
_HTML_START: Final = re.compile(
    rb"[\t\n\f\r ]*(?:<!--|<(?:!DOCTYPE HTML|HTML|HEAD|SCRIPT|IFRAME|H1|DIV|FONT|TABLE|A|STYLE|TITLE|B|BODY|BR|P)[ >])",
    re.IGNORECASE,
)
#: The real seconds within which a server must answer a request of a program.
_FETCH_TIMEOUT: Final = 5.0


@dataclass(slots=True, frozen=True)
class Request:
    """An HTTP request."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """Names are those of the CGI environment, such as HTTP_HOST."""
    body: bytes
    peer: str
    """Address and port of the client."""

    @property
    def form(self) -> Mapping[str, str]:
        """The values of the query and of a form in the body."""
        if self.headers.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded"):
            return {**_first_values(self.body.decode("utf-8", "replace")), **self.query}
        return self.query


@dataclass(slots=True, frozen=True)
class Answer:
    """An HTTP response."""

    body: str | bytes = b""
    code: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


def redirect(location: str, code: int = 302) -> Answer:
    """Returns the response that http.Redirect writes."""
    body = f'<a href="{escape(location)}">{HTTPStatus(code).phrase}</a>.\n\n'
    return Answer(body, code, {"Content-Type": HTML, "Location": location})


class Exit:
    """The end of a program, which a request may cause."""

    def __init__(self) -> None:
        self._notifier = Notifier()
        self._code: int | None = None

    def set(self, code: int) -> None:
        """Ends the program with this code; from any thread."""
        self._code = code
        self._notifier.notify()

    async def wait(self) -> int:
        """Waits for the end of the program. Returns its exit code."""
        return await wait_until(lambda: self._code, self._notifier)


async def serve_until_end(program: Program, end: Exit, delay: float, begin_to_stop: Callable[[], None] = lambda: None) -> int:
    """Waits for a request that ends the program, or for SIGTERM, after which it serves for some seconds if there is a delay.

    Args:
        program: the program.
        end: what the request sets.
        delay: the seconds.
        begin_to_stop: called before them.
    """
    program.task.caught = frozenset({SIGTERM}) if delay > 0 else frozenset()
    try:
        return await end.wait()
    except Killed as killed:
        if killed.signal != SIGTERM or not delay:
            raise
    begin_to_stop()
    await sleep(delay)
    return 0


def _first_values(query: str) -> dict[str, str]:
    """Returns the first value of each parameter."""
    return {name: values[0] for name, values in parse_qs(query, keep_blank_values=True).items()}


def application(handle: Callable[[Request], Answer]) -> Application:
    """Returns a WSGI application that calls a function."""

    def respond(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        request = Request(
            environ["REQUEST_METHOD"],
            environ["PATH_INFO"],
            _first_values(environ.get("QUERY_STRING", "")),
            {name: value for name, value in environ.items() if name.startswith("HTTP_") or name == "CONTENT_TYPE"},
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)),
            environ.get("REMOTE_ADDR", "127.0.0.1") + ":" + environ.get("REMOTE_PORT", "0"),
        )
        answer = handle(request)
        body = answer.body.encode() if isinstance(answer.body, str) else answer.body
        headers = {
            "Content-Type": f"text/{'html' if _HTML_START.match(body) else 'plain'}; charset=utf-8",
            **answer.headers,
            "Content-Length": str(len(body)),
        }
        phrase = HTTPStatus(answer.code).phrase if answer.code in HTTPStatus._value2member_map_ else "status code"
        start_response(f"{answer.code} {phrase}", list(headers.items()))
        return [body]

    return respond


@contextmanager
def listen_http(
    program: Program, port: int, handle: Callable[[Request], Answer], context: ssl.SSLContext | None = None
) -> Iterator[None]:
    """Serves HTTP at a port of the pod; over TLS if a context is given. Raises OSError if the port is taken."""
    with listen(program, port, application(handle), context):
        yield


@contextmanager
def listen(program: Program, port: int, served: Application, context: ssl.SSLContext | None = None) -> Iterator[None]:
    """Serves a WSGI application at a port of the pod; see `listen_http`."""

    def accept(peer: Peer) -> Connection:
        if context is None:
            return serve(served, peer)
        from fakekube.nodes.runtime.tls import secure

        return secure(lambda _certificate: serve(served, peer), context)

    with program.host.network.listeners.tcp(port, accept, secure=context is not None):
        yield


def tls_context(program: Program, certificate: str, key: str) -> ssl.SSLContext:
    """Returns the context of a server with a certificate and a key in files of the container. Raises OSError, SSLError."""
    from fakekube.nodes.runtime.tls import load_credentials

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(["http/1.1"])
    load_credentials(context, program.read_file(certificate), program.read_file(key))
    return context


def fetch(program: Program, url: str, body: bytes | None = None, timeout: float = _FETCH_TIMEOUT) -> tuple[int, bytes]:
    """Sends a request from the pod, GET or POST of a JSON document, and blocks until it is answered. Returns status and body.

    Raises OSError.
    """
    parts = urlsplit(url)
    connection = program.host.network.connect(parts.hostname or "", parts.port or 80)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    method = "GET" if body is None else "POST"
    head = f"{method} {target} HTTP/1.0\r\nHost: {parts.netloc}\r\nUser-Agent: Go-http-client/1.1\r\n"
    if body is not None:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    reader = ResponseReader(lambda: connection.to_client.read_blocking(timeout=timeout))
    try:
        connection.from_client.write_all(f"{head}\r\n".encode() + (body or b""))
        response = reader.read_response(method)
        return response.status, b"".join(reader.iterate_body())
    except (ConnectionEndedError, MalformedResponseError) as error:
        raise OSError(errno.ECONNRESET, str(error) or "EOF") from None
    finally:
        connection.from_client.close()
        connection.to_client.abandon()


def as_json(value: object) -> str:
    """Returns a value as Go's encoding/json prints it."""
    return json.dumps(value).decode()
