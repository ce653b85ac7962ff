"""One POST to a webhook, and what Go's net/http says when it fails.

Redirects are followed, answers may be compressed, connections are kept, and everything together has one deadline.

Specified by: net/http (Client, Transport) of Go, as far as its errors are seen.
"""

from __future__ import annotations

import http.client
import socket
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import SplitResult, urljoin, urlsplit

from fakekube.golang.quoting import go_quote
from fakekube.registry.webhook_calls import CallError, CallTimeoutError
from fakekube.webhooks.connections import (
    LARGEST_ANSWER,
    Connection,
    ConnectionFailedError,
    IdleConnections,
    Target,
    TooLargeError,
    broken,
    dial,
)

__all__ = ["Answer", "ConnectionFailedError", "Endpoint", "Transport", "connect"]

_MAXIMUM_REDIRECTS = 10
_REDIRECTS = (301, 302, 303, 307, 308)
_HEADERS = (
    "User-Agent: kube-apiserver-admission\r\nAccept: application/json, */*\r\nContent-Type: application/json\r\n"
    "Accept-Encoding: gzip\r\n"
)
_PORTS = {"https": 443, "http": 80}

_UNREADABLE = "unexpected error when reading response body. Please retry. Original error: "
_TOO_SLOW = "context deadline exceeded"
_TOO_SLOW_BODY = f"{_UNREADABLE}{_TOO_SLOW} (Client.Timeout or context cancellation while reading body)"
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


@dataclass(slots=True, frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes


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
        method, first, place = "POST", endpoint, ""
        for _ in range(_MAXIMUM_REDIRECTS):
            answer = self._exchange(method, endpoint, body, deadline)
            place = answer.headers.get("location", "")
            if answer.status not in _REDIRECTS or not place:
                return answer
            if answer.status < 307:
                method, body = "GET", b""
            url = urljoin(endpoint.url, place)
            same_host = urlsplit(url).netloc == urlsplit(first.url).netloc
            endpoint = replace(endpoint, url=url, address=first.address if same_host else None)
        raise _failed(method, place, f"stopped after {_MAXIMUM_REDIRECTS} redirects")

    def _exchange(self, method: str, endpoint: Endpoint, body: bytes, deadline: float) -> Answer:
        """One request. A connection that was kept may have been given up by the server: then there is another try."""
        message = _message(method, urlsplit(endpoint.url), body)
        while True:
            try:
                target = _target(endpoint)
                connection = self._idle.take(target) or Connection(dial(target, deadline))
            except TimeoutError:
                raise _failed(method, endpoint.url, _TOO_SLOW, CallTimeoutError) from None
            except ConnectionFailedError as error:
                raise _failed(method, endpoint.url, str(error)) from None
            try:
                answer, reusable = _answered(method, endpoint, connection, message, deadline)
            except _GivenUpError:
                connection.close()
                continue
            except BaseException:
                connection.close()
                raise
            if reusable:
                self._idle.keep(target, connection)
            else:
                connection.close()
            return answer


class _GivenUpError(Exception):
    """The server closed a connection that was kept before it answered anything."""


def _failed(method: str, url: str, problem: str, kind: type[CallError] = CallError) -> CallError:
    return kind(f"{method.capitalize()} {go_quote(url)}: {problem}")


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
    return Target(host, port, endpoint.server_name or name, authorities, secure, endpoint.verified)


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


def _message(method: str, parts: SplitResult, body: bytes) -> bytes:
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    length = f"Content-Length: {len(body)}\r\n" if body else ""
    return f"{method} {target} HTTP/1.1\r\nHost: {parts.netloc}\r\n{_HEADERS}{length}\r\n".encode() + body


def _answered(
    method: str, endpoint: Endpoint, connection: Connection, message: bytes, deadline: float
) -> tuple[Answer, bool]:
    """The answer, and whether the connection can be used again. Raises CallError, _GivenUpError."""
    answer = http.client.HTTPResponse(connection, method=method)  # type: ignore[arg-type]
    try:
        connection.send(message, deadline)
        answer.begin()
    except TimeoutError:
        raise _failed(method, endpoint.url, _TOO_SLOW, CallTimeoutError) from None
    except TooLargeError:
        said = f"net/http: server response headers exceeded {LARGEST_ANSWER} bytes; aborted"
        raise _failed(method, endpoint.url, said) from None
    except (http.client.RemoteDisconnected, ConnectionError) as error:
        if connection.used and not connection.answered:
            raise _GivenUpError from None
        ended = isinstance(error, http.client.RemoteDisconnected)
        raise _failed(method, endpoint.url, "EOF" if ended else broken(error)) from None
    except http.client.HTTPException as error:
        raise _failed(method, endpoint.url, f"{_BROKEN}malformed HTTP response {go_quote(str(error))}") from None
    except OSError as error:
        raise _failed(method, endpoint.url, broken(error)) from None
    except ValueError:  # a length that is no number
        raise _failed(method, endpoint.url, f"{_BROKEN}bad Content-Length") from None
    headers = {name.lower(): value for name, value in answer.getheaders()}
    body = _body(answer, headers)
    return Answer(answer.status, headers, body), not answer.will_close and answer.isclosed()


def _body(answer: http.client.HTTPResponse, headers: Mapping[str, str]) -> bytes:
    """Raises CallError."""
    try:
        found = answer.read()
        return _decompressed(found) if headers.get("content-encoding") == "gzip" and found else found
    except (TimeoutError, TooLargeError):  # who sends without end is too slow for any reader
        raise CallTimeoutError(_TOO_SLOW_BODY) from None
    except http.client.IncompleteRead:
        raise CallError(f"{_UNREADABLE}unexpected EOF") from None
    except zlib.error:
        raise CallError(f"{_UNREADABLE}gzip: invalid header") from None
    except OSError as error:
        raise CallError(_UNREADABLE + broken(error)) from None


def _decompressed(data: bytes) -> bytes:
    """Raises zlib.error, TooLargeError."""
    decompressor = zlib.decompressobj(wbits=31)
    found = decompressor.decompress(data, LARGEST_ANSWER)
    if decompressor.unconsumed_tail:
        raise TooLargeError
    if not decompressor.eof:
        raise zlib.error
    return found
