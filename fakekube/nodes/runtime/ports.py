"""Serves the ports of pods: by WSGI applications, functions, ports of this machine, or a default page.

A connection is a pair of pipes. An application uses a thread while a request is read and served, not while the connection is
idle; a function uses one for the duration of its connection.

Specified by: RFC 9112 (HTTP/1.1), the part that applications need.
"""

from __future__ import annotations

import inspect
import logging
import mimetypes
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import unquote

from fakekube.base.threads import WORKERS
from fakekube.net.pipes import Pipe
from fakekube.net.streaming.kubelet_api import Connection, Destination
from fakekube.net.wsgi import environ_key
from fakekube.nodes.runtime.behaviour import PortHandler
from fakekube.nodes.runtime.filesystem import FileSystem
from fakekube.nodes.runtime.images import WEB_ROOTS, base_name, page
from fakekube.nodes.runtime.listeners import Peer

_log = logging.getLogger(__name__)

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

_BAD_REQUEST: Final = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n400 Bad Request"
)
#: The maximum size of the header of a request.
_MAX_HEAD: Final = 64 * 1024


def is_application(served: Destination | PortHandler) -> bool:
    """Reports whether a callable is a WSGI application, and not a function of two pipes."""
    if isinstance(served, tuple):
        return False
    try:
        names = list(inspect.signature(served).parameters)
    except (TypeError, ValueError):
        return True
    return len(names) < 2 or names[1] in ("start_response", "start", "respond")


def serve(served: Destination | PortHandler, peer: Peer | None = None) -> Connection:
    """Returns a new connection to a server of a port. Raises OSError."""
    connection = Connection(Pipe(), Pipe())
    if isinstance(served, tuple):
        _connect_to_machine(connection, *served)
    elif is_application(served):
        _HTTPConnection(connection, served, peer or Peer()).begin()  # type: ignore[arg-type]
    else:
        _call(connection, served)  # type: ignore[arg-type]
    return connection


# ---------------------------------------------------------------- functions and ports of this machine


def _call(connection: Connection, handler: PortHandler) -> None:
    def work() -> None:
        try:
            handler(connection.from_client, connection.to_client)
        except BrokenPipeError:
            pass
        except Exception as error:
            _log.warning("a port handler failed: %s", error, exc_info=True)
            connection.error = str(error)
        connection.from_client.abandon()
        connection.to_client.close()

    WORKERS.run(work)


def _connect_to_machine(connection: Connection, host: str, port: int) -> None:
    """Connects to a port of this machine."""
    found = socket.create_connection((host, port), timeout=5.0)
    found.settimeout(None)

    def upstream() -> None:
        try:
            while data := connection.from_client.read_blocking():
                found.sendall(data)
            found.shutdown(socket.SHUT_WR)
        except OSError:
            connection.from_client.abandon()

    def downstream() -> None:
        try:
            while data := found.recv(65536):
                connection.to_client.write_all(data)
        except OSError:
            pass
        connection.to_client.close()
        connection.from_client.abandon()
        found.close()

    WORKERS.run(upstream)
    WORKERS.run(downstream)


# ---------------------------------------------------------------- WSGI applications


class _HTTPConnection:
    """Serves HTTP/1.1 on a connection with a WSGI application."""

    def __init__(self, connection: Connection, application: Application, peer: Peer) -> None:
        self._connection, self._application, self._peer = connection, application, peer
        self._lock = threading.Lock()
        self._busy = False
        self._buffer = bytearray()

    def begin(self) -> None:
        """Starts to serve requests as they arrive."""
        self._connection.from_client.subscribe(self._arrived)
        self._arrived()

    def _arrived(self) -> None:
        source = self._connection.from_client
        with self._lock:
            if self._busy or not (source.pending or source.closed):
                return
            self._busy = True
        WORKERS.run(self._work)

    def _work(self) -> None:
        try:
            keep = self._respond()
        except (BrokenPipeError, EOFError):
            keep = False
        except Exception as error:
            _log.warning("an application at a port failed: %s", error, exc_info=True)
            keep = False
        if not keep:
            self._connection.from_client.unsubscribe(self._arrived)
            self._connection.from_client.abandon()
            self._connection.to_client.close()
            return
        with self._lock:
            self._busy = False
        if self._buffer:
            with self._lock:
                again, self._busy = not self._busy, True
            if again:
                WORKERS.run(self._work)
            return
        self._arrived()

    def _fill(self) -> None:
        data = self._connection.from_client.read_blocking()
        if not data:
            raise EOFError
        self._buffer += data

    def _respond(self) -> bool:
        """Reads and serves a request; returns whether the connection is kept."""
        while b"\r\n\r\n" not in self._buffer:
            first, ended, _ = self._buffer.partition(b"\n")
            if ended and first.strip() and len(first.split(b" ")) != 3:
                self._connection.to_client.write_all(_BAD_REQUEST)
                return False
            if len(self._buffer) > _MAX_HEAD:
                return False
            self._fill()
        head, _, rest = bytes(self._buffer).partition(b"\r\n\r\n")
        self._buffer[:] = rest
        line, *fields = head.decode("latin-1").split("\r\n")
        parts = line.split(" ")
        if len(parts) != 3:
            self._connection.to_client.write_all(_BAD_REQUEST)
            return False
        headers = [(name.strip().lower(), value.strip()) for name, _, value in (one.partition(":") for one in fields)]
        body = self._body(dict(headers))
        return self._answer(parts[0], parts[1], parts[2], headers, body)

    def _body(self, headers: Mapping[str, str]) -> bytes:
        if headers.get("expect", "").lower() == "100-continue":
            self._connection.to_client.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
        if "chunked" in headers.get("transfer-encoding", "").lower():
            return self._chunks()
        return self._take(int(headers.get("content-length") or 0))

    def _take(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._fill()
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def _line(self) -> bytes:
        while b"\r\n" not in self._buffer:
            self._fill()
        return self._take(self._buffer.index(b"\r\n") + 2)[:-2]

    def _chunks(self) -> bytes:
        parts = []
        while size := int(self._line().partition(b";")[0], 16):
            parts.append(self._take(size))
            self._line()
        while self._line():
            pass
        return b"".join(parts)

    def _answer(self, method: str, target: str, version: str, headers: list[tuple[str, str]], body: bytes) -> bool:
        started: list[tuple[str, list[tuple[str, str]]]] = []
        environ = environ_of(method, target, version, headers, body)
        environ |= {"REMOTE_ADDR": self._peer.address, "REMOTE_PORT": str(self._peer.port)}
        result = self._application(environ, lambda line, found, error=None: started.append((line, found)))
        try:
            parts = iter(result)
            first = next(parts, b"")
            line, found = started[0]
            names = {name.lower() for name, _ in found}
            asked = dict(headers).get("connection", "").lower()
            keep = version == "HTTP/1.1" and "close" not in asked
            chunked = "content-length" not in names and keep and line[:3] not in ("204", "304")
            extra = [("Transfer-Encoding", "chunked")] if chunked else []
            extra += [] if keep or "connection" in names else [("Connection", "close")]
            head = "".join(f"{name}: {value}\r\n" for name, value in [*found, *extra])
            out = self._connection.to_client
            out.write_all(f"HTTP/1.1 {line}\r\n{head}\r\n".encode("latin-1"))
            if method == "HEAD" or line[:3] in ("204", "304"):
                return keep
            for part in (first, *parts) if not hasattr(result, "__next__") else _chained(first, parts):
                if part:
                    out.write_all(b"%x\r\n%b\r\n" % (len(part), part) if chunked else part)
            if chunked:
                out.write_all(b"0\r\n\r\n")
            return keep
        finally:
            close = getattr(result, "close", None)
            if close is not None:
                close()


def _chained(first: bytes, parts: Iterable[bytes]) -> Iterable[bytes]:
    yield first
    yield from parts


def environ_of(method: str, target: str, version: str, headers: Iterable[tuple[str, str]], body: bytes) -> dict[str, Any]:
    """Returns the WSGI environment of a request."""
    import io

    path, _, query = target.partition("?")
    environ: dict[str, Any] = {
        "REQUEST_METHOD": method,
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote(path, "latin-1"),
        "QUERY_STRING": query,
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": version,
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": io.StringIO(),
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        "CONTENT_LENGTH": str(len(body)),
    }
    for name, value in headers:
        environ[environ_key(name)] = value
    return environ


# ---------------------------------------------------------------- the default application


def default_application(
    pod: Mapping[str, Any], spec: Mapping[str, Any], port: int, files: Callable[[], FileSystem]
) -> Application:
    """Returns the default application of a container: serves the files of the images nginx and httpd, else a page with the
    name of the image."""
    image = spec.get("image", "")

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = environ["PATH_INFO"] or "/"
        if base_name(image) in WEB_ROOTS:
            body, kind = _file(files(), WEB_ROOTS[base_name(image)] + path)
        else:
            body, kind = page(image), "text/html"
        status = HTTPStatus.OK if body is not None else HTTPStatus.NOT_FOUND
        body = body if body is not None else b"<html><head><title>404 Not Found</title></head></html>\n"
        headers = [("Content-Type", kind), ("Content-Length", str(len(body))), ("Server", base_name(image) or "fakekube")]
        start_response(f"{status.value} {status.phrase}", headers)
        return [body]

    return application


def _file(files: FileSystem, path: str) -> tuple[bytes | None, str]:
    try:
        body = files.read(f"{path}index.html" if path.endswith("/") else path)
    except OSError:
        return None, "text/html"
    return body, "text/html" if path.endswith("/") else mimetypes.guess_type(path)[0] or "application/octet-stream"


def over_connection(connect: Callable[[], Connection]) -> Application:
    """Returns an application that forwards requests to a program at a port, with a connection for each request."""

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        try:
            connection = connect()
        except OSError as error:
            text = f"{error.strerror}\n".encode()
            start_response("502 Bad Gateway", [("Content-Type", "text/plain"), ("Content-Length", str(len(text)))])
            return [text]
        target = environ["PATH_INFO"] + (f"?{environ['QUERY_STRING']}" if environ.get("QUERY_STRING") else "")
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        head = f"{environ['REQUEST_METHOD']} {target} HTTP/1.0\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.from_client.write_all(head.encode("latin-1") + body)
        parts = []
        while data := connection.to_client.read_blocking():
            parts.append(data)
        connection.from_client.close()
        answer = b"".join(parts)
        if not answer.startswith(b"HTTP/"):
            start_response("502 Bad Gateway", [("Content-Type", "text/plain"), ("Content-Length", str(len(answer)))])
            return [answer]
        top, _, content = answer.partition(b"\r\n\r\n")
        line, *fields = top.decode("latin-1").split("\r\n")
        start_response(line.partition(" ")[2], [(n.strip(), v.strip()) for n, _, v in (one.partition(":") for one in fields)])
        return [content]

    return application
