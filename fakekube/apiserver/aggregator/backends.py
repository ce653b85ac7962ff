"""Servers of aggregated APIs as backends: the interface, applications of this process, and streaming responses.

A backend is an application of this process, which runs in the thread of the request and whose exceptions become responses 500,
or a server at an address (`remote`). A thread reads a streaming response, such as a watch, and the server takes the received
bytes.

Invariant: the caller closes every response. A backend never waits beyond its deadline. The number of bytes that are read ahead of
the client is limited, so that a slow client costs no memory; the thread ends with the response, or when the client disconnects.

Specified by: net/http (RoundTripper); PEP 3333.
"""

from __future__ import annotations

import io
import logging
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import unquote_to_bytes

from fakekube.apiserver.endpoints.negotiation import PLAIN_TEXT
from fakekube.base.threads import WORKERS
from fakekube.net.streams import BrokenStreamError, Notifier
from fakekube.net.wsgi import Application, environ_key

_log = logging.getLogger(__name__)

Headers = list[tuple[str, str]]


class BackendError(Exception):
    """There is no response; has the error message of net/http."""


class BackendTimeoutError(BackendError):
    """The deadline has passed."""


@dataclass(slots=True)
class BackendRequest:
    """A request."""

    method: str
    path: str
    """The encoded path of the request line, without the query."""
    query: str
    """The encoded query of the request line, or ""."""
    headers: Headers
    body: Iterable[bytes] = ()
    length: int | None = 0
    """The length of the body in bytes; None if it is sent in chunks."""

    @property
    def target(self) -> str:
        """Path and query."""
        return f"{self.path}?{self.query}" if self.query else self.path


class BackendBody(Protocol):
    """The body of a response."""

    def __iter__(self) -> Iterator[bytes]:
        """Yields the body as it is received. Raises BackendError if the connection breaks."""

    def close(self) -> None:
        """Closes the connection. May be called from any thread, and twice."""


@dataclass(slots=True)
class BackendResponse:
    """A response."""

    status: int
    headers: Headers
    """The headers as received, including hop-by-hop headers."""
    body: BackendBody
    length: int | None = None
    """The length of the body in bytes; None if it is unknown."""


class Backend(Protocol):
    """A server."""

    def send(self, request: BackendRequest, deadline: float | None) -> BackendResponse:
        """Sends a request and reads the head of the response.

        Args:
            request: its headers are complete, except for Content-Length and Transfer-Encoding.
            deadline: the deadline of the request and its response, by `time.monotonic()`; None for none.

        Raises:
            BackendError: there is no response.
            BackendTimeoutError: the deadline has passed.
        """
        ...


class ForwardedBody:
    """A body that is forwarded while it is received; the WSGI server closes it."""

    def __init__(self, body: BackendBody) -> None:
        self._body = body

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._body
        except BackendError as error:
            raise BrokenStreamError(str(error)) from None
        finally:
            self._body.close()

    def close(self) -> None:
        self._body.close()


def header(headers: Headers, name: str) -> str:
    """Returns the first header with a name, which is in lower case; "" if there is none."""
    return next((value for key, value in headers if key.lower() == name), "")


class MountedBackend:
    """A WSGI application as a `backends.Backend`. Deadlines are not applied to it."""

    def __init__(self, application: Application) -> None:
        self._application = application

    def send(self, request: BackendRequest, deadline: float | None) -> BackendResponse:
        started: list[tuple[int, list[tuple[str, str]]]] = []
        written: list[bytes] = []

        def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Callable[[bytes], object]:
            started.append((int(status[:3]), list(headers)))
            return written.append

        try:
            environ = _environ(request)
        except OSError as error:  # the client went away while it sent the body
            raise BackendError(str(error)) from None
        try:
            result = self._application(environ, start_response)
            body = MountedBody(result, written, call_ahead=not started)
            status, headers = started[-1]
        except Exception:
            _log.exception("The mounted application failed: %s %s", request.method, request.target)
            text = b"Internal Server Error"
            return BackendResponse(500, [("Content-Type", PLAIN_TEXT)], MountedBody([text], []), len(text))
        length = header(headers, "content-length")
        return BackendResponse(status, headers, body, int(length) if length.isdecimal() else None)


class MountedBody:
    """The result of the application; see `backends.BackendBody`."""

    def __init__(self, result: Iterable[bytes], written: list[bytes], *, call_ahead: bool = False) -> None:
        self.result = result
        """The result as returned; a `streams.Stream` is served as a stream."""
        self._written = written
        self._pieces: Iterator[bytes] = iter(result)
        self._first = (
            next(self._pieces, b"") if call_ahead else b""
        )  # a generator calls start_response only when its first item is taken

    def __iter__(self) -> Iterator[bytes]:
        yield from self._written
        yield self._first
        yield from self._pieces

    def close(self) -> None:
        if hasattr(self.result, "close"):
            with suppress(Exception):
                self.result.close()


def _environ(request: BackendRequest) -> dict[str, Any]:
    body = b"".join(request.body)
    environ: dict[str, Any] = {
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(request.path).decode("latin-1"),
        "QUERY_STRING": request.query,
        "REQUEST_URI": request.target,
        "SERVER_PROTOCOL": "HTTP/1.1",
        "SERVER_NAME": header(request.headers, "host").rpartition(":")[0] or "localhost",
        "SERVER_PORT": header(request.headers, "host").rpartition(":")[2] or "443",
        "REMOTE_ADDR": "127.0.0.1",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "https",
        "wsgi.input": io.BytesIO(body),
        "wsgi.input_terminated": True,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        "CONTENT_LENGTH": str(len(body)),
    }
    for name, value in request.headers:
        key = environ_key(name)
        if key != "CONTENT_LENGTH":  # that of the body is set
            environ[key] = f"{environ[key]},{value}" if key in environ else value
    return environ


MAX_READ_AHEAD = 256 * 1024


class Following:
    """The body of a streaming response: a `streams.Stream`."""

    deadline: float | None = None

    def __init__(self, body: BackendBody) -> None:
        self.source = Notifier()
        self._body = body
        self._changed = threading.Condition()
        self._frames: list[bytes] = []
        self._size = 0
        self._finished = False
        self._broken = False
        self._closed = False
        WORKERS.run(self._read)

    @property
    def ended(self) -> bool:
        return self._finished and not self._frames and not self._broken

    def take(self) -> list[bytes]:
        with self._changed:
            frames, self._frames, self._size = self._frames, [], 0
            self._changed.notify_all()
        if self._broken and not frames:
            raise BrokenStreamError
        return frames

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._body.close()

    def __iter__(self) -> Iterator[bytes]:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._frames or self._finished or self._closed)
            frames = self.take()
            if not frames:
                return
            yield from frames

    def _read(self) -> None:
        try:
            for piece in self._body:
                with self._changed:
                    self._changed.wait_for(lambda: self._size < MAX_READ_AHEAD or self._closed)
                    if self._closed:
                        return
                    self._frames.append(piece)
                    self._size += len(piece)
                    self._changed.notify_all()
                self.source.notify()
        except BackendError:
            self._broken = not self._closed
        finally:
            with self._changed:
                self._finished = True
                self._changed.notify_all()
            self._body.close()
            self.source.notify()
