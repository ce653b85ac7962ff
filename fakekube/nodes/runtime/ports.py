"""Serves the ports of pods: by WSGI applications, functions, ports of this machine, or a default page.

A connection is a pair of pipes. An application uses a thread while a request is read and served, not while the connection is
idle; a function uses one for the duration of its connection.

Messages are read by `net.http1`.
"""

from __future__ import annotations

import inspect
import logging
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from http.client import responses
from typing import Any, Final
from urllib.parse import quote, unquote

from fakekube.base.threads import WORKERS
from fakekube.net.http1 import BodyError, ProtocolError, Request, RequestParser
from fakekube.net.http1.responses import ConnectionEndedError, MalformedResponseError, ResponseReader
from fakekube.net.pipes import Pipe
from fakekube.net.streaming.kubelet_api import Connection, Destination
from fakekube.net.wsgi import Application, environ_key
from fakekube.nodes.runtime.behaviour import PortHandler
from fakekube.nodes.runtime.listeners import Peer

_log = logging.getLogger(__name__)

#: Keys of the environment of an application: the other side of the connection, and the connection.
PEER: Final = "fakekube.peer"
CONNECTION: Final = "fakekube.connection"
_PIECE: Final = 65536
#: The maximum size of the body of a request, in bytes.
_MAX_BODY: Final = 64 * 1024**2


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


# --- Functions and ports of this machine ------------------------------------------------------------------------------


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


# --- WSGI applications ------------------------------------------------------------------------------------------------


class _HTTPConnection:
    """Serves HTTP/1.1 on a connection with a WSGI application."""

    def __init__(self, connection: Connection, application: Application, peer: Peer) -> None:
        self._connection, self._application, self._peer = connection, application, peer
        self._lock = threading.Lock()
        self._busy = False
        self._parser = RequestParser()

    def begin(self) -> None:
        """Starts to serve requests as they arrive."""
        self._connection.from_client.subscribe(self._on_data)
        self._on_data()

    def _on_data(self) -> None:
        source = self._connection.from_client
        with self._lock:
            if self._busy or not (source.pending or source.closed):
                return
            self._busy = True
        WORKERS.run(self._work)

    def _work(self) -> None:
        try:
            keep = self._respond()
        except (BrokenPipeError, EOFError, BodyError):
            keep = False
        except Exception as error:
            _log.warning("an application at a port failed: %s", error, exc_info=True)
            keep = False
        if not keep:
            self._connection.from_client.unsubscribe(self._on_data)
            self._connection.from_client.abandon()
            self._connection.to_client.close()
            return
        with self._lock:
            self._busy = False
        if self._parser.buffer:
            with self._lock:
                again, self._busy = not self._busy, True
            if again:
                WORKERS.run(self._work)
            return
        self._on_data()

    def _respond(self) -> bool:
        """Reads and serves a request. Returns whether the connection is kept. Raises EOFError, BodyError."""
        try:
            while (request := self._parser.request()) is None:
                self._receive()
        except ProtocolError as error:
            self._connection.to_client.write_all(error.answer)
            return False
        if request.fields.expects_continue:
            self._connection.to_client.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = bytearray()
        while (piece := self._parser.body(_PIECE)) != b"":
            body += piece or b""
            if len(body) > _MAX_BODY:
                raise BodyError("http: request body too large")
            if piece is None:
                self._receive()
        return self._answer(request, bytes(body))

    def _receive(self) -> None:
        data = self._connection.from_client.read_blocking()
        if not data:
            raise EOFError
        self._parser.feed(data)

    def _answer(self, request: Request, body: bytes) -> bool:
        started: list[tuple[str, list[tuple[str, str]]]] = []
        is_1_1, keep = request.version >= (1, 1), request.fields.keep_alive
        environ = environ_of(request.method, request.target, f"HTTP/1.{request.version[1]}", request.fields.pairs, body)
        environ |= {"REMOTE_ADDR": self._peer.address, "REMOTE_PORT": str(self._peer.port)}
        environ |= {PEER: self._peer, CONNECTION: self._connection}
        result = self._application(environ, lambda line, found, error=None: started.append((line, found)))
        try:
            parts = iter(result)
            first = b"" if started else next(parts, b"")  # a generator may call start_response only now
            line, found = started[0]
            names = {name.lower() for name, _ in found}
            has_body = request.method != "HEAD" and line[:3] not in ("204", "304")
            chunked = "content-length" not in names and is_1_1 and has_body
            keep = keep and (chunked or "content-length" in names or not has_body)
            extra = [("Transfer-Encoding", "chunked")] if chunked else []
            extra += [] if keep or "connection" in names else [("Connection", "close")]
            head = "".join(f"{name}: {value}\r\n" for name, value in [*found, *extra])
            out = self._connection.to_client
            out.write_all(f"HTTP/1.1 {line}\r\n{head}\r\n".encode("latin-1"))
            if not has_body:
                return keep
            for part in (first, *parts) if not hasattr(result, "__next__") else _chain(first, parts):
                if part:
                    out.write_all(b"%x\r\n%b\r\n" % (len(part), part) if chunked else part)
            if chunked:
                out.write_all(b"0\r\n\r\n")
            return keep
        finally:
            close = getattr(result, "close", None)
            if close is not None:
                close()


def _chain(first: bytes, parts: Iterable[bytes]) -> Iterable[bytes]:
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
        key = environ_key(name)
        joint = "; " if key == "HTTP_COOKIE" else ","
        environ[key] = f"{environ[key]}{joint}{value}" if key in environ and key.startswith("HTTP_") else value
    return environ


def over_connection(connect: Callable[[], Connection]) -> Application:
    """Returns an application that forwards requests to a program at a port, with a connection for each request."""

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        try:
            connection = connect()
        except OSError as error:
            return _bad_gateway(error.strerror or str(error), start_response)
        reader = ResponseReader(connection.to_client.read_blocking)
        try:
            connection.from_client.write_all(_request_bytes(environ))
            response = reader.read_response(environ["REQUEST_METHOD"])
        except (BrokenPipeError, ConnectionEndedError, MalformedResponseError) as error:
            _leave(connection)
            return _bad_gateway(str(error) or "EOF", start_response)
        kept = [(name, value) for name, value in response.headers if name.lower() not in _OF_CONNECTION]
        start_response(f"{response.status} {responses.get(response.status, 'Unknown')}", kept)
        return _body_of(reader, connection)

    return application


#: Headers that concern one connection only.
_OF_CONNECTION: Final = frozenset({"connection", "keep-alive", "transfer-encoding", "upgrade"})


def _request_bytes(environ: Mapping[str, Any]) -> bytes:
    """Returns the request of a WSGI environment, as it is sent on a connection of its own."""
    target = quote(environ["PATH_INFO"], "/!$&'()*+,:;=@~", "latin-1")
    target += f"?{environ['QUERY_STRING']}" if environ.get("QUERY_STRING") else ""
    body: bytes = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    names = {key: key[5:].replace("_", "-").title() for key in environ if key.startswith("HTTP_")}
    fields = {name: environ[key] for key, name in names.items() if name.lower() not in (*_OF_CONNECTION, "host")}
    fields |= {"Content-Type": environ["CONTENT_TYPE"]} if environ.get("CONTENT_TYPE") else {}
    fields |= {"Host": environ.get("HTTP_HOST", "localhost"), "Content-Length": str(len(body)), "Connection": "close"}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"{environ['REQUEST_METHOD']} {target} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + body


def _bad_gateway(text: str, start_response: Callable[..., Any]) -> Iterable[bytes]:
    body = f"{text}\n".encode()
    start_response("502 Bad Gateway", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]


def _body_of(reader: ResponseReader, connection: Connection) -> Iterator[bytes]:
    try:
        yield from reader.iterate_body()
    except BodyError as error:
        _log.warning("a response of a program at a port is not complete: %s", error)
    finally:
        _leave(connection)


def _leave(connection: Connection) -> None:
    connection.from_client.close()
    connection.to_client.abandon()
