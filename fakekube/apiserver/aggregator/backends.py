"""The interface of extension API servers: a backend takes a request and returns the response head with its body as a stream.

Invariant: the caller closes every response. A backend never waits beyond its deadline.

Specified by: net/http (RoundTripper).
"""

from __future__ import annotations

import io
import logging
import os
import socket
import ssl
import sys
import time
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import unquote_to_bytes

from fakekube.apis.rest.cluster_access import ClusterAccess
from fakekube.apis.rest.strategy import Object
from fakekube.apis.rest.webhook_calls import CallError
from fakekube.apis.validation.ca_bundles import ca_bundle_errors
from fakekube.apiserver.webhooks.connections import ConnectionFailedError, ServiceResolver
from fakekube.apiserver.webhooks.transport import Endpoint, connect
from fakekube.base.golang.quoting import go_quote
from fakekube.base.golang.strings import bytes_of
from fakekube.net.http1 import BodyError
from fakekube.net.http1.responses import ConnectionEndedError, MalformedResponseError, Response, ResponseReader, decompress_gzip
from fakekube.net.streams import BrokenStreamError
from fakekube.net.wsgi import environ_key

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


# ---------------------------------------------------------------------------------------------------------------------
# Resolves the server of an APIService: a mounted application, a forwarded Service, or the address of the Service.
#
# Specified by: k8s.io/apiserver/pkg/util/proxy/proxy.go (ResolveCluster); k8s.io/kube-aggregator/pkg/controllers/status/remote
# (BuildTransportConfig).


_ROUTED = ("ClusterIP", "LoadBalancer", "NodePort")


class UnresolvedError(Exception):
    """A Service cannot be resolved; has the message of the resolver."""


@dataclass(slots=True, frozen=True)
class Location:
    """A server and its host in URLs."""

    host: str
    """With the port."""
    backend: RemoteBackend | MountedBackend | Unreachable
    problem: str = ""
    """The error if the CA bundle of the APIService is invalid, else ""."""


class Unreachable:
    """A `Backend` that refuses connections."""

    def __init__(self, problem: str) -> None:
        self.problem = problem

    def send(self, request: BackendRequest, deadline: float | None) -> BackendResponse:
        raise BackendError(self.problem)


class Locations:
    """Resolves the servers of the APIServices of one cluster."""

    def __init__(self, services: ClusterAccess, resolver: ServiceResolver, certificate: str = "") -> None:
        """Args:
        services: the access to Services.
        resolver: resolves Services to addresses.
        certificate: the proxy client certificate and its key, PEM; "" for none.
        """
        self._services = services
        self._resolver = resolver
        self._certificate = certificate
        self.mounted: dict[str, MountedBackend] = {}
        """Applications of this process, by the name of the APIService."""
        self.installed: dict[str, MountedBackend] = {}
        """Applications of the base state; a forwarded Service takes precedence over them."""

    def is_given(self, name: str, reference: Object) -> bool:
        """Reports whether the server is mounted or forwarded, so that Services and endpoints need not be checked."""
        return name in self.mounted or (reference["namespace"], reference["name"]) in self._resolver.forwards

    def locate(self, name: str, spec: Object) -> Location:
        """Returns the server of an APIService with a Service. Raises UnresolvedError."""
        reference = spec["service"]
        service_name = f"{reference['name']}.{reference['namespace']}.svc"
        mounted = self.mounted.get(name)
        forwarded = (reference["namespace"], reference["name"]) in self._resolver.forwards
        if mounted is not None and not (forwarded and mounted is self.installed.get(name)):
            return Location(f"{service_name}:{reference['port']}", mounted)
        host = self._host(name, reference)
        problem = next(ca_bundle_errors(spec.get("caBundle", ""), ""), None)
        try:
            address = self._resolver.resolve(reference["namespace"], reference["name"], reference["port"])
        except CallError as error:
            return Location(host, Unreachable(str(error)))
        from fakekube.apiserver.webhooks.transport import Endpoint

        endpoint = Endpoint(
            f"https://{host}",
            address,
            b64decode(spec.get("caBundle", "")),
            server_name=service_name,
            verified=not spec.get("insecureSkipTLSVerify", False),
            certificate=self._certificate,
        )
        return Location(host, RemoteBackend(endpoint), problem.detail if problem else "")

    def _host(self, name: str, reference: Object) -> str:
        """Returns host and port of a Service (ResolveCluster). Raises UnresolvedError."""
        port = reference["port"]
        service: Any = self._services.get("", "services", reference["namespace"], reference["name"])
        if service is None:
            if self.is_given(name, reference):
                return f"{reference['name']}.{reference['namespace']}.svc:{port}"
            raise UnresolvedError(f"service {go_quote(reference['name'])} not found")
        spec = service["spec"]
        kind = spec.get("type", "ClusterIP")
        if kind == "ExternalName":
            return _joined(spec["externalName"], port)
        if kind not in _ROUTED:
            raise UnresolvedError(f"unsupported service type {go_quote(kind)}")
        if spec.get("clusterIP") == "None" and kind == "ClusterIP":
            raise UnresolvedError('cannot route to service with ClusterIP "None"')
        if not any(entry.get("port") == port for entry in spec.get("ports") or ()):
            raise UnresolvedError(f"no service port {port} found for service {go_quote(reference['name'])}")
        return _joined(spec["clusterIP"], port)


def _joined(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


# ---------------------------------------------------------------------------------------------------------------------
# A backend behind a TLS connection, with the error messages of Go's net/http.
#
# Every exchange has a connection of its own. The deadline applies to all reads and writes, and the size of the response head is
# limited; the body is forwarded as it is received, with any size.
#
# Specified by: net/http (Transport.RoundTrip) as far as its errors are seen; k8s.io/client-go/transport.


_PIECE = 65536
_DIAL_SECONDS = 30.0
"""The timeout of dialing (net.Dialer of the default transport)."""
_EXCEEDED = "context deadline exceeded"
_BROKEN = "net/http: HTTP/1.x transport connection broken: "


class RemoteBackend:
    """A server at a network address as a `backends.Backend`."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def connect(self, deadline: float | None) -> Connection:
        """Opens a new connection. Raises BackendError."""
        return Connection(self._endpoint, deadline)

    def send(self, request: BackendRequest, deadline: float | None) -> BackendResponse:
        connection = self.connect(deadline)
        try:
            decompress = _accept_gzip(request)
            connection.write(request)
            return connection.read_response(request.method, decompress=decompress)
        except BaseException:
            connection.close()
            raise


def serialize_head(request: BackendRequest) -> bytes:
    """Returns the request line and headers of a request in wire format."""
    lines = [f"{request.method} {request.target} HTTP/1.1", *(f"{name}: {value}" for name, value in request.headers)]
    if request.length is None:
        lines.append("Transfer-Encoding: chunked")
    elif request.length or request.method in ("POST", "PUT", "PATCH"):
        lines.append(f"Content-Length: {request.length}")
    return bytes_of("\r\n".join([line.replace("\r", " ").replace("\n", " ") for line in lines] + ["", ""]))


def _accept_gzip(request: BackendRequest) -> bool:
    """Adds Accept-Encoding: gzip if the client sent none. Returns whether the response must be decompressed here."""
    names = {name.lower() for name, _ in request.headers}
    if request.method == "HEAD" or "accept-encoding" in names or "range" in names:
        return False
    request.headers.append(("Accept-Encoding", "gzip"))
    return True


class Connection:
    """A connection to a server, for one exchange. Raises BackendError when it cannot be made."""

    def __init__(self, endpoint: Endpoint, deadline: float | None) -> None:
        self._deadline = deadline
        limit = time.monotonic() + _DIAL_SECONDS
        try:
            self.socket = connect(endpoint, limit if deadline is None else min(limit, deadline))
        except TimeoutError:
            raise BackendTimeoutError(_EXCEEDED) from None
        except ConnectionFailedError as error:
            raise BackendError(str(error)) from None
        self.reader = ResponseReader(self._receive)

    def write(self, request: BackendRequest) -> None:
        """Sends the request. A write error is ignored: the server may have responded before it has read the whole body."""
        head = serialize_head(request)
        try:
            for piece in request.body:
                self._send(head + (b"%x\r\n%b\r\n" % (len(piece), piece) if request.length is None else piece))
                head = b""
            if head or request.length is None:
                self._send(head + (b"0\r\n\r\n" if request.length is None else b""))
        except TimeoutError:
            raise BackendTimeoutError(_EXCEEDED) from None
        except OSError:
            return

    def _send(self, data: bytes) -> None:
        self._apply_deadline()
        self.socket.sendall(data)
        if hasattr(socket, "TCP_QUICKACK"):  # a server that writes head and body apart waits for an ACK in between
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)

    def _apply_deadline(self) -> None:
        """Sets the timeout of the socket to the time left. Raises TimeoutError if the deadline has passed."""
        if self._deadline is None:
            self.socket.settimeout(None)
            return
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.socket.settimeout(left)

    def _receive(self) -> bytes:
        """Receives bytes; none at the end of the stream. Raises OSError."""
        self._apply_deadline()
        return self.socket.recv(_PIECE)

    def read_head(self, method: str) -> Response:
        """Reads the head of the response, after informational (1xx) ones. Raises BackendError, MalformedResponseError."""
        try:
            return self.reader.read_response(method)
        except TimeoutError:
            raise BackendTimeoutError(_EXCEEDED) from None
        except ConnectionEndedError:
            raise BackendError("EOF") from None
        except OSError as error:
            raise BackendError(self._error_message(error)) from None

    def read_response(self, method: str, *, decompress: bool = False) -> BackendResponse:
        """Reads the head of the response and returns it with its body as a stream. Raises BackendError."""
        try:
            return self.response_with_head(self.read_head(method), decompress=decompress)
        except MalformedResponseError as error:
            raise BackendError(f"{_BROKEN}{error}") from None

    def response_with_head(self, head: Response, *, decompress: bool = False) -> BackendResponse:
        """Returns the response with this head."""
        headers, length = head.headers, head.length
        body = _Body(self)
        if decompress and header(headers, "content-encoding").lower() == "gzip" and length != 0:
            headers = [entry for entry in headers if entry[0].lower() not in ("content-encoding", "content-length")]
            body.compressed, length = True, None
        return BackendResponse(head.status, headers, body, length)

    def _error_message(self, error: OSError) -> str:
        """Returns Go's error message for a broken connection."""
        if isinstance(error, ssl.SSLError) or not error.errno:
            return "EOF"
        try:
            local, peer = self.socket.getsockname()[:2], self.socket.getpeername()[:2]
        except OSError:
            return "EOF"
        return f"read tcp {local[0]}:{local[1]}->{peer[0]}:{peer[1]}: read: {os.strerror(error.errno).lower()}"

    def close(self) -> None:
        """Closes the connection. May be called from any thread."""
        with suppress(OSError):  # not SSLSocket.shutdown: it drops the TLS object that another thread may be reading from
            socket.socket.shutdown(self.socket, socket.SHUT_RDWR)
        with suppress(OSError):
            self.socket.close()


class _Body:
    """The body of a response."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.compressed = False
        """Whether the body is gzip, and decompressed here."""

    def __iter__(self) -> Iterator[bytes]:
        pieces = self._connection.reader.iterate_body()
        try:
            yield from decompress_gzip(pieces) if self.compressed else pieces
        except TimeoutError:
            raise BackendTimeoutError(_EXCEEDED) from None
        except (BodyError, OSError, ValueError) as error:  # ValueError: closed from another thread
            raise BackendError(str(error)) from None

    def close(self) -> None:
        self._connection.close()


# ---------------------------------------------------------------------------------------------------------------------
# A WSGI application of this process as an extension API server, called without a socket.
#
# It runs in the thread of the request. An exception becomes a response 500, as with any WSGI server.
#
# Specified by: PEP 3333.


_log = logging.getLogger(__name__)

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


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
            result = self._application(_environ(request), start_response)
            body = MountedBody(result, written, call_ahead=not started)
            status, headers = started[-1]
        except Exception:
            _log.exception("The mounted application failed: %s %s", request.method, request.target)
            text = b"Internal Server Error"
            return BackendResponse(500, [("Content-Type", "text/plain; charset=utf-8")], MountedBody([text], []), len(text))
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
