"""Connections to webhooks: dialing, TLS, and a pool of idle connections.

Reads and writes have a deadline and the size of a response is limited, so that a webhook that sends slowly or endlessly takes
no more time and memory than one that sends nothing. As in net/http, a connection is kept for reuse after a complete response.

Invariant: a connection is used by one call at a time, and is in the pool only between calls.

Specified by: net/http (Transport: idle connections) and net (Dialer) of Go, for the errors that clients see.
"""

from __future__ import annotations

import os
import socket
import ssl
import threading
import time
from collections import defaultdict
from typing import NamedTuple

from fakekube.apiserver.webhooks.trust import UntrustedError, connected
from fakekube.net.leader_followers import REQUEST_THREADS

#: The maximum size of a response in bytes, including headers and chunk framing.
MAX_RESPONSE_BYTES = 32 * 1024 * 1024

#: The time in seconds after which an idle connection is dropped, and the maximum number of them for a server
#: (IdleConnTimeout, MaxIdleConnsPerHost).
_IDLE_TIMEOUT, _IDLE_CONNECTIONS = 90.0, 25


class ConnectionFailedError(Exception):
    """A connection could not be established; has Go's error message."""


class TooLargeError(Exception):
    """A response exceeds the size limit."""


class BrokenError(Exception):
    """A connection broke; has Go's error message."""


class Target(NamedTuple):
    """The target of a connection. Connections to equal targets are interchangeable."""

    host: str
    port: int
    name: str
    """The server name that the certificate must be valid for."""
    authorities: bytes
    """The CA bundle in PEM; empty for the CAs of the system."""
    secure: bool = True
    verified: bool = True
    """False accepts any certificate (insecureSkipTLSVerify)."""
    certificate: str = ""
    """The client certificate and its key in PEM, or ""."""


class Connection:
    """A connection to a server; it sends one request after the other."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._deadline = 0.0
        self._left = 0
        self.used = False
        """Whether a request has been sent on the connection before."""
        self.answered = False
        """Whether the server has sent any bytes for the current request."""

    def send(self, data: bytes, deadline: float) -> None:
        """Sends a request; its response must be read before `deadline`. Raises TimeoutError, BrokenError."""
        REQUEST_THREADS.yield_lead()  # the webhook may use the API
        self._deadline, self._left, self.answered = deadline, MAX_RESPONSE_BYTES, False
        self._socket.settimeout(_left(deadline))
        try:
            self._socket.sendall(data)
        except TimeoutError:
            raise
        except OSError as error:
            raise BrokenError(_error_message(self._socket, error, "write")) from None
        self._acknowledge_at_once()

    def receive(self) -> bytes:
        """Returns the next bytes of the response, b"" at the end. Raises TimeoutError, TooLargeError, BrokenError."""
        # Bytes that arrived before the deadline can be read after it, since the caller may have waited for other webhooks.
        self._socket.settimeout(max(self._deadline - time.monotonic(), 0))
        try:
            data = self._socket.recv(65536)
        except (TimeoutError, BlockingIOError, ssl.SSLWantReadError):
            raise TimeoutError from None
        except OSError as error:
            raise BrokenError(_error_message(self._socket, error, "read")) from None
        self._left -= len(data)
        self.answered = self.answered or bool(data)
        if self._left < 0:
            raise TooLargeError
        return data

    def _acknowledge_at_once(self) -> None:
        """Disables delayed acknowledgements, which cost 40 ms with servers that write headers and body separately."""
        if hasattr(socket, "TCP_QUICKACK"):
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)

    @property
    def alive(self) -> bool:
        """Whether an idle connection is still open at the server."""
        try:
            self._socket.settimeout(0)
            self._socket.recv(1)
        except (BlockingIOError, ssl.SSLWantReadError):
            return True
        except OSError:
            return False
        return False

    def close(self) -> None:
        """Closes the connection without reading the rest."""
        self._socket.close()


def _error_message(connection: socket.socket, error: OSError, what: str) -> str:
    """Returns Go's error message for a connection that broke during `what`, "read" or "write"."""
    if isinstance(error, ConnectionAbortedError) or not error.errno:
        return "EOF"
    try:
        places = f" tcp {_place(connection.getsockname())}->{_place(connection.getpeername())}"
    except OSError:
        places = " tcp"
    return f"{what}{places}: {what}: {os.strerror(error.errno).lower()}"


def _place(address: tuple[str, int]) -> str:
    host, port = address[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class IdleConnections:
    """A pool of idle connections. May be used by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: defaultdict[Target, list[tuple[float, Connection]]] = defaultdict(list)

    def take(self, target: Target) -> Connection | None:
        """Removes and returns the most recently used connection that is still open; None if there is none."""
        while True:
            with self._lock:
                waiting = self._idle.get(target)
                if not waiting:
                    return None
                since, connection = waiting.pop()
            if time.monotonic() - since < _IDLE_TIMEOUT and connection.alive:
                connection.used = True
                return connection
            connection.close()

    def keep(self, target: Target, connection: Connection) -> None:
        """Adds a connection whose response has been read completely."""
        with self._lock:
            waiting = self._idle[target]
            waiting.append((time.monotonic(), connection))
            surplus = waiting.pop(0)[1] if len(waiting) > _IDLE_CONNECTIONS else None
        if surplus is not None:
            surplus.close()

    def close(self) -> None:
        """Closes all connections of the pool."""
        with self._lock:
            idle = [connection for waiting in self._idle.values() for _, connection in waiting]
            self._idle.clear()
        for connection in idle:
            connection.close()

    def __del__(self) -> None:
        self.close()  # must not need names of modules, which are None when the interpreter ends


# ---------------------------------------------------------------- dialing


def dial(target: Target, deadline: float) -> socket.socket:
    """Establishes a connection, with TLS if the target has it, before `deadline` of `time.monotonic()`.

    Raises:
        ConnectionFailedError: the connection was refused, the TLS handshake failed, or the certificate is not trusted.
        TimeoutError: the deadline has passed.
    """
    plain = _dial_host(target.host, target.port, deadline)
    if not target.secure:
        return plain
    try:
        plain.settimeout(_left(deadline))
        return connected(plain, target.name, target.authorities, verified=target.verified, own=target.certificate)
    except TimeoutError:
        plain.close()
        raise
    except UntrustedError as error:
        plain.close()
        raise ConnectionFailedError(str(error)) from None
    except OSError as error:
        problem = _error_message(plain, error, "read")
        plain.close()
        raise ConnectionFailedError(problem) from None
    except BaseException:
        plain.close()
        raise


def _dial_host(host: str, port: int, deadline: float) -> socket.socket:
    """Connects to the first address of a host that accepts. Raises the error of the first address if none does."""
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
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except TimeoutError:
            plain.close()
            raise
        except OSError as error:
            plain.close()
            problem = problem or f"dial tcp {_place((str(ip), port))}: connect: {os.strerror(error.errno or 0).lower()}"
        else:
            return plain
    raise ConnectionFailedError(problem)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
