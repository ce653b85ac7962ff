"""Sends a POST to a webhook, with the error messages of Go's net/http.

It follows redirects, decompresses responses and reuses connections; one deadline covers the whole exchange.

Specified by: net/http (Client, Transport) of Go, for the errors that clients see.
"""

from __future__ import annotations

import base64
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urljoin, urlsplit

import yaml

from fakekube.apis.rest.cluster_access import CallError, CallTimeoutError
from fakekube.apiserver.webhooks.connections import (
    MAX_RESPONSE_BYTES,
    BrokenError,
    Connection,
    ConnectionFailedError,
    IdleConnections,
    Target,
    TooLargeError,
    dial,
)
from fakekube.base.golang.strconv import go_quote, parse_uint16
from fakekube.base.golang.urls import parse_url
from fakekube.net.http1 import BodyError
from fakekube.net.http1.responses import ConnectionEndedError, MalformedResponseError, ResponseReader, decompress_gzip

_MAXIMUM_REDIRECTS = 10
#: Requests below this size in bytes fit into the socket buffers: sending them never blocks.
_SENT_AT_ONCE = 32 * 1024
_REDIRECTS = (301, 302, 303, 307, 308)
_HEADERS = (
    "User-Agent: kube-apiserver-admission\r\nAccept: application/json, */*\r\nContent-Type: application/json\r\n"
    "Accept-Encoding: gzip\r\n"
)
_PORTS = {"https": 443, "http": 80}
_SWITCHING_PROTOCOLS = 101

UNREADABLE = "unexpected error when reading response body. Please retry. Original error: "
DEADLINE_EXCEEDED = "context deadline exceeded"
CONNECTION_BROKEN = "net/http: HTTP/1.x transport connection broken: "


@dataclass(slots=True, frozen=True)
class Answer:
    """A response with its body."""

    status: int
    headers: dict[str, str]
    """By lower-case name; the values of repeated headers are joined with commas."""
    body: bytes


@dataclass(slots=True, frozen=True)
class Endpoint:
    """The URL of a webhook and how to connect to it."""

    url: str
    """The URL, also for error messages."""
    address: tuple[str, int] | None
    """The address to connect to, if it is not the host of the URL."""
    authorities: bytes
    """The CA bundle in PEM; empty for the CAs of the system."""
    server_name: str = ""
    """The server name that the certificate must be valid for, if it is not the host of the URL."""
    verified: bool = True
    """False accepts any certificate (insecureSkipTLSVerify)."""
    authorization: str = ""
    """The value of the Authorization header, or ""."""
    certificate: str = ""
    """The client certificate and its key in PEM, or ""."""


class Transport:
    """Sends requests over pooled connections. May be used by several threads."""

    def __init__(self) -> None:
        self._idle = IdleConnections()

    def close(self) -> None:
        """Closes the idle connections."""
        self._idle.close()

    def post(self, endpoint: Endpoint, body: bytes, timeout: float) -> Answer:
        """Sends a POST and reads its response within `timeout` seconds. Raises CallError with the message of net/http."""
        deadline = time.monotonic() + timeout
        return self._follow_redirects(endpoint, body, self._exchange("POST", endpoint, body, deadline), deadline)

    def begin(self, endpoint: Endpoint, body: bytes, timeout: float) -> Callable[[], Answer] | None:
        """Sends a POST on an idle connection, if that does not block.

        Returns a function that reads the response like `post` and must be called; None if there is no idle connection.
        """
        deadline = time.monotonic() + timeout
        message = _message("POST", urlsplit(endpoint.url), body, endpoint.authorization)
        connection = self._take_idle(endpoint) if len(message) < _SENT_AT_ONCE else None
        if connection is None:
            return None
        try:
            connection.send(message, deadline)
        except (TimeoutError, BrokenError):
            connection.close()
            return None

        def finish() -> Answer:
            try:
                answer = self._answer(endpoint, connection, "POST")
            except _ConnectionClosedError:
                answer = self._exchange("POST", endpoint, body, deadline)
            return self._follow_redirects(endpoint, body, answer, deadline)

        return finish

    def _take_idle(self, endpoint: Endpoint) -> Connection | None:
        try:
            return self._idle.take(_target(endpoint))
        except ConnectionFailedError:
            return None

    def _follow_redirects(self, endpoint: Endpoint, body: bytes, answer: Answer, deadline: float) -> Answer:
        """Follows the redirects of a response. Raises CallError."""
        method, first = "POST", endpoint
        for redirect in range(1, _MAXIMUM_REDIRECTS + 1):
            place = answer.headers.get("location", "")
            if answer.status not in _REDIRECTS or not place:
                return answer
            if redirect == _MAXIMUM_REDIRECTS:
                raise _make_url_error(place, f"stopped after {_MAXIMUM_REDIRECTS} redirects")
            if answer.status < 307:
                method, body = "GET", b""
            endpoint = _resolve_redirect(first, endpoint, place)
            answer = self._exchange(method, endpoint, body, deadline)
        raise AssertionError

    def get(self, endpoint: Endpoint, timeout: float) -> Answer:
        """Sends a GET and reads its response within `timeout` seconds. Raises CallError."""
        return self._exchange("GET", endpoint, b"", time.monotonic() + timeout)

    def _exchange(self, method: str, endpoint: Endpoint, body: bytes, deadline: float) -> Answer:
        """Sends a request and reads its response. Retries if the server has closed an idle connection. Raises CallError."""
        message = _message(method, urlsplit(endpoint.url), body, endpoint.authorization)
        while True:
            try:
                target = _target(endpoint)
                connection = self._idle.take(target) or Connection(dial(target, deadline))
            except TimeoutError:
                raise _make_url_error(endpoint.url, DEADLINE_EXCEEDED, CallTimeoutError) from None
            except ConnectionFailedError as error:
                raise _make_url_error(endpoint.url, str(error)) from None
            try:
                return self._answer(endpoint, connection, method, message, deadline)
            except _ConnectionClosedError:
                continue

    def _answer(
        self, endpoint: Endpoint, connection: Connection, method: str, message: bytes = b"", deadline: float = 0.0
    ) -> Answer:
        """Reads the response on a connection, then returns the connection to the pool or closes it.

        `message` is the request if it has not been sent yet. Raises CallError, _ConnectionClosedError.
        """
        try:
            answer, reusable = _read_answer(endpoint, connection, method, message, deadline)
        except BaseException:
            connection.close()
            raise
        if reusable:
            self._idle.keep(_target(endpoint), connection)
        else:
            connection.close()
        return answer


class _ConnectionClosedError(Exception):
    """The server closed a reused connection before it sent any bytes of the response."""


def _resolve_redirect(first: Endpoint, endpoint: Endpoint, place: str) -> Endpoint:
    """Returns the endpoint of a Location header. Raises CallError."""
    try:
        parse_url(place)
        url = urljoin(endpoint.url, place)
        same_host = urlsplit(url).netloc == urlsplit(first.url).netloc
    except ValueError as error:
        raise _make_url_error(endpoint.url, f"failed to parse Location header {go_quote(place)}: {error}") from None
    return replace(endpoint, url=url, address=first.address if same_host else None)


def _make_url_error(url: str, problem: str, kind: type[CallError] = CallError) -> CallError:
    """Returns an error like *url.Error; as in Go, it names the method of the first request, also after redirects."""
    return kind(f"Post {go_quote(url)}: {problem}")


# --- The connection ---------------------------------------------------------------------------------------------------


def connect(endpoint: Endpoint, deadline: float) -> socket.socket:
    """Connects to an endpoint. Raises ConnectionFailedError, TimeoutError."""
    return dial(_target(endpoint), deadline)


def _target(endpoint: Endpoint) -> Target:
    """Raises ConnectionFailedError."""
    parts = urlsplit(endpoint.url)
    if parts.scheme not in _PORTS:
        raise ConnectionFailedError(f"unsupported protocol scheme {go_quote(parts.scheme)}")
    name, secure = parts.hostname or "", parts.scheme == "https"
    host, port = endpoint.address or (name, _port(parts))
    authorities = endpoint.authorities if secure else b""
    certificate = endpoint.certificate if secure else ""
    return Target(host, port, endpoint.server_name or name, authorities, secure, endpoint.verified, certificate)


def _port(parts: SplitResult) -> int:
    """Returns the port of a URL, or the default of its scheme. Raises ConnectionFailedError if it is invalid."""
    behind = parts.netloc.rpartition("]")[2].rpartition("@")[2]
    text = behind.rpartition(":")[2] if ":" in behind else ""
    if not text:
        return _PORTS[parts.scheme]
    try:
        return parse_uint16(text)
    except ValueError:
        raise ConnectionFailedError(f"dial tcp: address {text}: invalid port") from None


# --- The exchange -----------------------------------------------------------------------------------------------------


def _message(method: str, parts: SplitResult, body: bytes, authorization: str = "") -> bytes:
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    length = f"Content-Length: {len(body)}\r\n" if body else ""
    if authorization:
        length += f"Authorization: {authorization}\r\n"
    return f"{method} {target} HTTP/1.1\r\nHost: {parts.netloc}\r\n{_HEADERS}{length}\r\n".encode() + body


def _read_answer(endpoint: Endpoint, connection: Connection, method: str, message: bytes, deadline: float) -> tuple[Answer, bool]:
    """Sends a message, unless it is empty, and reads the response to it.

    Returns it, and whether the connection can be reused. Raises CallError, _ConnectionClosedError.
    """
    reader = ResponseReader(connection.receive)
    try:
        if message:
            connection.send(message, deadline)
        return _read_whole(reader, method)
    except (TimeoutError, TooLargeError):  # a response without end times out in Go
        if reader.has_head:
            raise CallTimeoutError(f"{UNREADABLE}{DEADLINE_EXCEEDED}") from None
        raise _make_url_error(endpoint.url, DEADLINE_EXCEEDED, CallTimeoutError) from None
    except (ConnectionEndedError, BrokenError) as error:
        if connection.used and not connection.answered:
            raise _ConnectionClosedError from None
        if reader.has_head:
            raise CallError(f"{UNREADABLE}{error}") from None
        raise _make_url_error(endpoint.url, str(error) or "EOF") from None
    except MalformedResponseError as error:
        raise _make_url_error(endpoint.url, f"{CONNECTION_BROKEN}{error}") from None
    except BodyError as error:
        raise CallError(f"{UNREADABLE}{error}") from None


def _read_whole(reader: ResponseReader, method: str) -> tuple[Answer, bool]:
    """Reads a response with its body. Returns it, and whether the connection can be reused. Raises TooLargeError."""
    response = reader.read_response(method)
    headers: dict[str, str] = {}
    for name, value in response.headers:
        key = name.lower()
        headers[key] = f"{headers[key]}, {value}" if key in headers else value
    pieces: Iterable[bytes] = () if response.status == _SWITCHING_PROTOCOLS else reader.iterate_body()
    if headers.get("content-encoding", "").lower() == "gzip":
        pieces = decompress_gzip(pieces)
    parts, size = [], 0
    for piece in pieces:
        parts.append(piece)
        size += len(piece)
        if size > MAX_RESPONSE_BYTES:
            raise TooLargeError
    return Answer(response.status, headers, b"".join(parts)), response.keep_alive and not reader.has_buffered


class KubeconfigError(ValueError):
    """A kubeconfig file is invalid."""


def endpoint_of(path: str) -> Endpoint:
    """Returns the server and the credentials of the current context of a kubeconfig file. Raises KubeconfigError."""
    file = Path(path)
    try:
        config = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise KubeconfigError(f"open {path}: {(error.strerror or 'unreadable').lower()}") from None
    except (UnicodeDecodeError, yaml.YAMLError):
        raise KubeconfigError(f"error loading config file {path!r}: not YAML") from None
    if not isinstance(config, dict):
        raise KubeconfigError("invalid configuration: no configuration has been provided")
    name = config.get("current-context") or ""
    context = _find_entry(config, "contexts", name).get("context") or {}
    cluster = _find_entry(config, "clusters", context.get("cluster", "")).get("cluster") or {}
    user = _find_entry(config, "users", context.get("user", "")).get("user") or {}
    server = cluster.get("server") or ""
    if not server:
        raise KubeconfigError("invalid configuration: no server found for cluster " + repr(context.get("cluster", "")))
    url = server if "://" in server else f"http://{server}"
    if not url.startswith("https:"):  # as client-go: no credentials without TLS
        return Endpoint(url, None, b"")
    return Endpoint(
        url,
        None,
        _material(cluster, "certificate-authority", file).encode(),
        cluster.get("tls-server-name") or "",
        not cluster.get("insecure-skip-tls-verify"),
        _authorization(user, file),
        "\n".join(filter(None, (_material(user, "client-key", file), _material(user, "client-certificate", file)))),
    )


def _find_entry(config: Mapping[str, Any], kind: str, name: str) -> Mapping[str, Any]:
    for entry in config.get(kind) or ():
        if entry.get("name") == name:
            found: Mapping[str, Any] = entry
            return found
    return {}


def _material(holder: Mapping[str, Any], field: str, file: Path) -> str:
    """Reads a PEM text from the -data field (base64) or from a file beside the kubeconfig; "" without either."""
    inline = holder.get(f"{field}-data")
    try:
        if inline:
            return base64.b64decode(inline).decode("ascii")
        return (file.parent / holder[field]).read_text(encoding="ascii") if holder.get(field) else ""
    except (OSError, ValueError) as error:
        raise KubeconfigError(f"invalid configuration: unable to read {field}: {error}") from None


def _authorization(user: Mapping[str, Any], file: Path) -> str:
    token = user.get("token") or ""
    if user.get("tokenFile"):
        try:
            token = (file.parent / user["tokenFile"]).read_text(encoding="ascii").strip()
        except (OSError, ValueError) as error:
            raise KubeconfigError(f"invalid configuration: unable to read tokenFile: {error}") from None
    if token:
        return f"Bearer {token}"
    if user.get("username"):
        pair = f"{user['username']}:{user.get('password') or ''}"
        return f"Basic {base64.b64encode(pair.encode()).decode()}"
    return ""
