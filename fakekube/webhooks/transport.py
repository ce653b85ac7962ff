"""Sends a POST to a webhook, with the error messages of Go's net/http.

Redirects are followed, answers may be compressed, connections are kept, and everything together has one deadline.

Specified by: net/http (Client, Transport) of Go, as far as its errors are seen.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from urllib.parse import SplitResult, urljoin, urlsplit

from fakekube.golang.quoting import go_quote
from fakekube.golang.urls import parse_url
from fakekube.registry.webhook_calls import CallError, CallTimeoutError
from fakekube.webhooks.connections import (
    LARGEST_ANSWER,
    BrokenError,
    Connection,
    ConnectionFailedError,
    IdleConnections,
    Target,
    TooLargeError,
    dial,
)
from fakekube.webhooks.http1 import Answer, BodyError, ClosedError, HeadError, Source, read_answer

__all__ = ["UNREADABLE", "Answer", "ConnectionFailedError", "Endpoint", "Transport", "connect"]

_MAXIMUM_REDIRECTS = 10
#: A request of fewer bytes never waits for its server: they have room on the way.
_SENT_AT_ONCE = 32 * 1024
_REDIRECTS = (301, 302, 303, 307, 308)
_HEADERS = (
    "User-Agent: kube-apiserver-admission\r\nAccept: application/json, */*\r\nContent-Type: application/json\r\n"
    "Accept-Encoding: gzip\r\n"
)
_PORTS = {"https": 443, "http": 80}

UNREADABLE = "unexpected error when reading response body. Please retry. Original error: "
_TOO_SLOW = "context deadline exceeded"
_BROKEN = "net/http: HTTP/1.x transport connection broken: "


@dataclass(slots=True, frozen=True)
class Endpoint:
    """Where a request goes."""

    url: str
    """As it is told in messages."""
    address: tuple[str, int] | None
    """Where to connect to, if not to the host of the URL."""
    authorities: bytes
    """Whom to trust, PEM; empty for the authorities of the system."""
    server_name: str = ""
    """The name that the certificate must have, if not the host of the URL."""
    verified: bool = True
    """False takes any certificate."""
    authorization: str = ""
    """The Authorization header, if there is one."""
    certificate: str = ""
    """The client's own certificate and key, PEM, if it has one."""


class Transport:
    """Sends requests; keeps the connections. May be used by several threads."""

    def __init__(self) -> None:
        self._idle = IdleConnections()

    def close(self) -> None:
        """Close the connections that are kept."""
        self._idle.close()

    def post(self, endpoint: Endpoint, body: bytes, timeout: float) -> Answer:
        """Send a request and read its answer, within `timeout` seconds. Raises CallError in the words of net/http."""
        deadline = time.monotonic() + timeout
        return self._followed(endpoint, body, self._exchange("POST", endpoint, body, deadline), deadline)

    def begin(self, endpoint: Endpoint, body: bytes, timeout: float) -> Callable[[], Answer] | None:
        """Send a request at once, if that takes no time: on a connection that was kept.

        Returns what reads the answer, as `post` does, and must be called; None if the request cannot be sent at once.
        """
        deadline = time.monotonic() + timeout
        message = _message("POST", urlsplit(endpoint.url), body, endpoint.authorization)
        connection = self._kept(endpoint) if len(message) < _SENT_AT_ONCE else None
        if connection is None:
            return None
        try:
            connection.send(message, deadline)
        except (TimeoutError, BrokenError):
            connection.close()
            return None

        def finish() -> Answer:
            try:
                answer = self._answer(endpoint, connection)
            except _GivenUpError:
                answer = self._exchange("POST", endpoint, body, deadline)
            return self._followed(endpoint, body, answer, deadline)

        return finish

    def _kept(self, endpoint: Endpoint) -> Connection | None:
        try:
            return self._idle.take(_target(endpoint))
        except ConnectionFailedError:
            return None

    def _followed(self, endpoint: Endpoint, body: bytes, answer: Answer, deadline: float) -> Answer:
        """The answer to which redirects lead."""
        method, first = "POST", endpoint
        for asked in range(1, _MAXIMUM_REDIRECTS + 1):
            place = answer.headers.get("location", "")
            if answer.status not in _REDIRECTS or not place:
                return answer
            if asked == _MAXIMUM_REDIRECTS:
                raise _failed(place, f"stopped after {_MAXIMUM_REDIRECTS} redirects")
            if answer.status < 307:
                method, body = "GET", b""
            endpoint = _redirected(first, endpoint, place)
            answer = self._exchange(method, endpoint, body, deadline)
        raise AssertionError

    def get(self, endpoint: Endpoint, timeout: float) -> Answer:
        """The answer of a GET, within `timeout` seconds. Raises CallError."""
        return self._exchange("GET", endpoint, b"", time.monotonic() + timeout)

    def _exchange(self, method: str, endpoint: Endpoint, body: bytes, deadline: float) -> Answer:
        """One request. A connection that was kept may have been given up by the server: then there is another try."""
        message = _message(method, urlsplit(endpoint.url), body, endpoint.authorization)
        while True:
            try:
                target = _target(endpoint)
                connection = self._idle.take(target) or Connection(dial(target, deadline))
            except TimeoutError:
                raise _failed(endpoint.url, _TOO_SLOW, CallTimeoutError) from None
            except ConnectionFailedError as error:
                raise _failed(endpoint.url, str(error)) from None
            try:
                return self._answer(endpoint, connection, message, deadline)
            except _GivenUpError:
                continue

    def _answer(self, endpoint: Endpoint, connection: Connection, message: bytes = b"", deadline: float = 0.0) -> Answer:
        """The answer on a connection, which is then kept or closed; `message` is sent first, if there is one.

        Raises CallError, _GivenUpError.
        """
        try:
            answer, reusable = _answered(endpoint, connection, message, deadline)
        except BaseException:
            connection.close()
            raise
        if reusable:
            self._idle.keep(_target(endpoint), connection)
        else:
            connection.close()
        return answer


class _GivenUpError(Exception):
    """The server closed a connection that was kept before it answered anything."""


def _redirected(first: Endpoint, endpoint: Endpoint, place: str) -> Endpoint:
    """Where an answer sends the client on. Raises CallError."""
    try:
        parse_url(place)
        url = urljoin(endpoint.url, place)
        same_host = urlsplit(url).netloc == urlsplit(first.url).netloc
    except ValueError as error:
        raise _failed(endpoint.url, f"failed to parse Location header {go_quote(place)}: {error}") from None
    return replace(endpoint, url=url, address=first.address if same_host else None)


def _failed(url: str, problem: str, kind: type[CallError] = CallError) -> CallError:
    """Whatever the method of a redirected request, the error tells that of the first one."""
    return kind(f"Post {go_quote(url)}: {problem}")


# ---------------------------------------------------------------- the connection


def connect(endpoint: Endpoint, deadline: float) -> socket.socket:
    """A connection to an endpoint. Raises ConnectionFailedError, TimeoutError as `connections.dial`."""
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
    """Of a host with a port, which may be too large. Raises ConnectionFailedError."""
    behind = parts.netloc.rpartition("]")[2].rpartition("@")[2]
    text = behind.rpartition(":")[2] if ":" in behind else ""
    if not text:
        return _PORTS[parts.scheme]
    if not text.isdecimal() or int(text) > 65535:
        raise ConnectionFailedError(f"dial tcp: address {text}: invalid port")
    return int(text)


# ---------------------------------------------------------------- the exchange


def _message(method: str, parts: SplitResult, body: bytes, authorization: str = "") -> bytes:
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    length = f"Content-Length: {len(body)}\r\n" if body else ""
    if authorization:
        length += f"Authorization: {authorization}\r\n"
    return f"{method} {target} HTTP/1.1\r\nHost: {parts.netloc}\r\n{_HEADERS}{length}\r\n".encode() + body


def _answered(endpoint: Endpoint, connection: Connection, message: bytes, deadline: float) -> tuple[Answer, bool]:
    """The answer, and whether the connection can be used again. Raises CallError, _GivenUpError."""
    source = Source(connection.receive)
    try:
        if message:
            connection.send(message, deadline)
        return read_answer(source, LARGEST_ANSWER)
    except (TimeoutError, TooLargeError, OverflowError):  # who sends without end is too slow for any reader
        if connection.answered and source.headed:
            raise CallTimeoutError(f"{UNREADABLE}{_TOO_SLOW}") from None
        raise _failed(endpoint.url, _TOO_SLOW, CallTimeoutError) from None
    except (ClosedError, BrokenError) as error:
        if connection.used and not connection.answered:
            raise _GivenUpError from None
        if source.headed:
            raise CallError(f"{UNREADABLE}{error}") from None
        raise _failed(endpoint.url, str(error) or "EOF") from None
    except HeadError as error:
        raise _failed(endpoint.url, f"{_BROKEN}{error}") from None
    except BodyError as error:
        raise CallError(f"{UNREADABLE}{error}") from None
