"""Connections to webhooks: dialled, secured, and kept for the next call.

Everything that is read or written has a deadline, and what a server sends is bounded: a webhook that sends byte after
byte, or without end, costs neither more time nor more memory than one that is silent. A connection that a whole answer
has been read from is kept for some time, as net/http does.

Invariant: a connection is used by one call at a time, and kept only between calls.

Specified by: net/http (Transport: idle connections) and net (Dialer) of Go, as far as their errors are seen.
"""

from __future__ import annotations

import os
import socket
import ssl
import threading
import time
from collections import defaultdict
from typing import NamedTuple

from fakekube.webhooks.trust import UntrustedError, connected

__all__ = [
    "LARGEST_ANSWER",
    "BrokenError",
    "Connection",
    "ConnectionFailedError",
    "IdleConnections",
    "Target",
    "TooLargeError",
    "dial",
]

#: How many bytes a server may send for one request, headers and framing included.
LARGEST_ANSWER = 32 * 1024 * 1024

#: How long a connection that is not used is kept (seconds), and how many to one server (IdleConnTimeout,
#: MaxIdleConnsPerHost).
_IDLE_TIMEOUT, _IDLE_CONNECTIONS = 90.0, 25


class ConnectionFailedError(Exception):
    """There is no connection to a server; the text says why in Go's words."""


class TooLargeError(Exception):
    """A response exceeds the size limit."""


class BrokenError(Exception):
    """A connection broke; the text is Go's."""


class Target(NamedTuple):
    """The target of a connection. Connections to equal targets are interchangeable."""

    host: str
    port: int
    name: str
    """That the server's certificate must have."""
    authorities: bytes
    """Whom to trust, PEM; empty for the authorities of the system."""
    secure: bool = True
    verified: bool = True
    """False takes any certificate."""
    certificate: str = ""
    """The client's own certificate and key, PEM."""


class Connection:
    """A connection to a server, for one request after the other."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._deadline = 0.0
        self._left = 0
        self.used = False
        """Has there been a request on it before?"""
        self.answered = False
        """Has the server sent anything for this request?"""

    def send(self, data: bytes, deadline: float) -> None:
        """Send a request whose answer must be read by `deadline`. Raises TimeoutError, OSError."""
        self._deadline, self._left, self.answered = deadline, LARGEST_ANSWER, False
        self._socket.settimeout(_left(deadline))
        try:
            self._socket.sendall(data)
        except TimeoutError:
            raise
        except OSError as error:
            raise BrokenError(_told(self._socket, error, "write")) from None
        self._acknowledge_at_once()

    def receive(self) -> bytes:
        """Some of what the server sends, b"" at the end. Raises TimeoutError, TooLargeError, BrokenError."""
        # What has come before the deadline can be read after it: others may have been waited for meanwhile.
        self._socket.settimeout(max(self._deadline - time.monotonic(), 0))
        try:
            data = self._socket.recv(65536)
        except (TimeoutError, BlockingIOError, ssl.SSLWantReadError):
            raise TimeoutError from None
        except OSError as error:
            raise BrokenError(_told(self._socket, error, "read")) from None
        self._left -= len(data)
        self.answered = self.answered or bool(data)
        if self._left < 0:
            raise TooLargeError
        return data

    def _acknowledge_at_once(self) -> None:
        """Servers that write headers and body apart wait for an acknowledgement in between: 40 ms, unless it is hurried."""
        if hasattr(socket, "TCP_QUICKACK"):
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)

    @property
    def alive(self) -> bool:
        """Does the server, which owes nothing, still hold the connection?"""
        try:
            self._socket.settimeout(0)
            self._socket.recv(1)
        except (BlockingIOError, ssl.SSLWantReadError):
            return True
        except OSError:
            return False
        return False

    def close(self) -> None:
        """Close it; what is still to come is not read."""
        self._socket.close()


def _told(connection: socket.socket, error: OSError, what: str) -> str:
    """What Go says of a connection that breaks while it reads or writes."""
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
    """Connections that wait for the next call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: defaultdict[Target, list[tuple[float, Connection]]] = defaultdict(list)

    def take(self, target: Target) -> Connection | None:
        """One that still stands, the last that was used first."""
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
        """Keep a connection that nothing is to be read from any more."""
        with self._lock:
            waiting = self._idle[target]
            waiting.append((time.monotonic(), connection))
            surplus = waiting.pop(0)[1] if len(waiting) > _IDLE_CONNECTIONS else None
        if surplus is not None:
            surplus.close()

    def close(self) -> None:
        """Close all that wait."""
        with self._lock:
            idle, self._idle = self._idle, defaultdict(list)
        for waiting in idle.values():
            for _, connection in waiting:
                connection.close()

    def __del__(self) -> None:
        self.close()


# ---------------------------------------------------------------- dialling


def dial(target: Target, deadline: float) -> socket.socket:
    """A new connection, secured if it is to be, before `deadline` of `time.monotonic()`.

    Raises:
        ConnectionFailedError: nobody listens there, it does not speak TLS, or its certificate is not trusted.
        TimeoutError: the deadline has passed.
    """
    plain = _dialled(target.host, target.port, deadline)
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
        problem = _told(plain, error, "read")
        plain.close()
        raise ConnectionFailedError(problem) from None
    except BaseException:
        plain.close()
        raise


def _dialled(host: str, port: int, deadline: float) -> socket.socket:
    """A connection to one of the addresses of a host; the first one's error counts."""
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
