"""One POST over HTTPS, and what Go's net/http says when it fails.

A call opens a connection of its own. Redirects are followed, answers may be compressed, and everything together has one
deadline.

Specified by: net/http (Client, Transport) and net (Dialer) of Go, as far as their errors are seen.
"""

from __future__ import annotations

import gzip
import http.client
import os
import socket
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import urljoin, urlsplit

from fakekube.errors.field import go_quote
from fakekube.resources.webhook_calls import CallError, CallTimeoutError
from fakekube.webhooks.trust import UntrustedError, connected

__all__ = ["Answer", "ConnectionFailedError", "Endpoint", "connect", "post"]

_MAXIMUM_REDIRECTS = 10
_HEADERS = {
    "User-Agent": "kube-apiserver-admission", "Accept": "application/json, */*", "Content-Type": "application/json",
    "Accept-Encoding": "gzip",
}


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


def post(endpoint: Endpoint, body: bytes, timeout: float) -> Answer:
    """Send a request and read its answer, within `timeout` seconds. Raises CallError in the words of net/http."""
    deadline = time.monotonic() + timeout
    method, first, place = "POST", endpoint, ""
    for _ in range(_MAXIMUM_REDIRECTS):
        answer = _exchange(method, endpoint, body, deadline)
        place = answer.headers.get("location", "")
        if answer.status not in (301, 302, 303, 307, 308) or not place:
            return answer
        if answer.status < 307:
            method, body = "GET", b""
        url = urljoin(endpoint.url, place)
        same_host = urlsplit(url).netloc == urlsplit(first.url).netloc
        endpoint = replace(endpoint, url=url, address=first.address if same_host else None)
    raise _failed(method, place, f"stopped after {_MAXIMUM_REDIRECTS} redirects")


def _failed(method: str, url: str, problem: str, kind: type[CallError] = CallError) -> CallError:
    return kind(f"{method.capitalize()} {go_quote(url)}: {problem}")


def _exchange(method: str, endpoint: Endpoint, body: bytes, deadline: float) -> Answer:
    """One request on a connection of its own."""
    parts = urlsplit(endpoint.url)
    try:
        connection = connect(endpoint, deadline)
    except TimeoutError:
        raise _failed(method, endpoint.url, "context deadline exceeded", CallTimeoutError) from None
    except ConnectionFailedError as error:
        raise _failed(method, endpoint.url, str(error)) from None
    with connection:
        client = http.client.HTTPConnection(parts.hostname or "", parts.port)
        client.sock = connection
        try:
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            client.request(method, target, body or None, {"Host": parts.netloc, **_HEADERS})
            _acknowledge_at_once(connection)
            answer = client.getresponse()
        except TimeoutError:
            raise _failed(method, endpoint.url, "context deadline exceeded", CallTimeoutError) from None
        except http.client.RemoteDisconnected:
            raise _failed(method, endpoint.url, "EOF") from None
        except http.client.HTTPException as error:
            said = f"net/http: HTTP/1.x transport connection broken: malformed HTTP response {go_quote(str(error))}"
            raise _failed(method, endpoint.url, said) from None
        except OSError as error:
            raise _failed(method, endpoint.url, _broken(error)) from None
        headers = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, headers, _body(answer, headers))


def _body(answer: http.client.HTTPResponse, headers: Mapping[str, str]) -> bytes:
    try:
        found = answer.read()
        return gzip.decompress(found) if headers.get("content-encoding") == "gzip" and found else found
    except TimeoutError:
        problem = "context deadline exceeded (Client.Timeout or context cancellation while reading body)"
        raise CallTimeoutError(_UNREADABLE + problem) from None
    except http.client.IncompleteRead:
        raise CallError(f"{_UNREADABLE}unexpected EOF") from None
    except (gzip.BadGzipFile, zlib.error, EOFError):
        raise CallError(f"{_UNREADABLE}gzip: invalid header") from None
    except OSError as error:
        raise CallError(_UNREADABLE + _broken(error)) from None


_UNREADABLE = "unexpected error when reading response body. Please retry. Original error: "


def _broken(error: OSError) -> str:
    if isinstance(error, ConnectionAbortedError):
        return "EOF"
    return f"read: {os.strerror(error.errno).lower()}" if error.errno else "EOF"


def _acknowledge_at_once(connection: socket.socket) -> None:
    """Servers that write headers and body apart wait for an acknowledgement in between: 40 ms, unless it is hurried."""
    if hasattr(socket, "TCP_QUICKACK"):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


# ---------------------------------------------------------------- connecting


class ConnectionFailedError(Exception):
    """There is no connection to a server; the text says why in Go's words."""


def connect(endpoint: Endpoint, deadline: float) -> socket.socket:
    """A TLS connection to an endpoint, before `deadline` of `time.monotonic()`.

    Raises:
        ConnectionFailedError: nobody listens there, it does not speak TLS, or its certificate is not trusted.
        TimeoutError: the deadline has passed.
    """
    parts = urlsplit(endpoint.url)
    host = parts.hostname or ""
    plain = _dialled(endpoint.address or (host, _port(parts.netloc)), deadline)
    try:
        plain.settimeout(_left(deadline))
        return connected(plain, endpoint.server_name or host, endpoint.authorities, verified=endpoint.verified)
    except TimeoutError:
        plain.close()
        raise
    except UntrustedError as error:
        plain.close()
        raise ConnectionFailedError(str(error)) from None
    except OSError as error:
        plain.close()
        raise ConnectionFailedError(_broken(error)) from None
    except BaseException:
        plain.close()
        raise


def _port(netloc: str) -> int:
    """Of a host with a port, which may be too large. Raises ConnectionFailedError."""
    text = netloc.rpartition("]")[2].rpartition(":")[2] if ":" in netloc.rpartition("]")[2] else ""
    if text and int(text) > 65535:
        raise ConnectionFailedError(f"dial tcp: address {text}: invalid port")
    return int(text) if text else 443


def _dialled(address: tuple[str, int], deadline: float) -> socket.socket:
    """A connection to one of the addresses of a host; the first one's error counts."""
    host, port = address
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise ConnectionFailedError(f"dial tcp: lookup {host}: no such host") from None
    problem = ""
    for family, kind, protocol, _, (ip, *rest) in sorted(found, key=lambda entry: entry[0] != socket.AF_INET):
        plain = socket.socket(family, kind, protocol)
        try:
            plain.settimeout(_left(deadline))
            plain.connect((ip, *rest))
            return plain
        except TimeoutError:
            plain.close()
            raise
        except OSError as error:
            plain.close()
            where = f"[{ip}]:{port}" if family == socket.AF_INET6 else f"{ip}:{port}"
            problem = problem or f"dial tcp {where}: connect: {os.strerror(error.errno or 0).lower()}"
    raise ConnectionFailedError(problem)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
