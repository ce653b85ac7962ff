"""Upgrade requests (SPDY, WebSocket): after the backend has switched protocols, bytes are forwarded unchanged in both directions.

The tunnel has a thread that reads from and writes to the backend; the server reads from the tunnel and writes the bytes of the
client to it. The buffers of both directions are limited: a slow side makes the other one wait.

Specified by: k8s.io/apimachinery/pkg/util/proxy/upgradeaware.go (tryUpgrade).
"""

from __future__ import annotations

import selectors
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from fakekube.apiserver.aggregator.backends import BackendError, BackendRequest, BackendResponse, ForwardedBody
from fakekube.apiserver.aggregator.proxy_rewriting import response_headers
from fakekube.apiserver.aggregator.remote import Connection, RemoteBackend
from fakekube.apiserver.endpoints.request import Response
from fakekube.base.threads import WORKERS
from fakekube.net.http1 import responses
from fakekube.net.streams import Notifier

_RESPONSE_SECONDS = 60.0
_ROUND_SECONDS = 60.0
_AHEAD = 256 * 1024
_PIECE = 65536


class UpgradeError(Exception):
    """The backend does not switch protocols; has the reason."""


def try_upgrade(backend: RemoteBackend, request: BackendRequest) -> Response:
    """Requests another protocol from a server.

    Returns a response 101 whose body is an `UpgradeTunnel`, or the error response of the server, after which the connection to
    the client is closed. Raises UpgradeError if there is no connection, or a response below 400 other than 101.
    """
    response = _request_upgrade(backend, request)
    if isinstance(response, UpgradeTunnel):
        return Response(101, response.headers, response)
    if response.status < 400:
        response.body.close()
        raise UpgradeError(f"invalid upgrade response: status code {response.status}")
    body: Any = ForwardedBody(response.body)
    return Response(response.status, [*response_headers(response.headers), ("Connection", "close")], body)


def _request_upgrade(backend: RemoteBackend, request: BackendRequest) -> BackendResponse | UpgradeTunnel:
    try:
        connection = backend.connect(time.monotonic() + _RESPONSE_SECONDS)
    except BackendError as error:
        raise UpgradeError(f"error dialing backend: {error}") from None
    try:
        connection.write(request)
        head = connection.read_head(request.method)
        if head.status == 101:
            return UpgradeTunnel(connection, head)
        return connection.response_with_head(head)
    except (BackendError, responses.MalformedResponseError) as error:
        connection.close()
        raise UpgradeError("unexpected EOF" if str(error) == "EOF" else str(error)) from None
    except BaseException:
        connection.close()
        raise


class UpgradeTunnel:
    """The body of the response: a `streams.Tunnel`."""

    deadline: float | None = None

    def __init__(self, connection: Connection, head: responses.Response) -> None:
        ahead = connection.reader.take_buffered()
        self.headers = head.headers
        """The headers of the response 101."""
        self.source = Notifier()
        self._connection = connection
        self._lock = threading.Condition()
        self._incoming = [ahead] if ahead else []
        self._incoming_size = len(ahead)
        self._outgoing = bytearray()
        self._finished = False
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._wake_reader, selectors.EVENT_READ)
        connection.socket.setblocking(False)
        WORKERS.run(self._run)

    # ---------------------------------------------------------------- called by the server

    @property
    def ended(self) -> bool:
        return self._finished and not self._incoming

    @property
    def full(self) -> bool:
        return len(self._outgoing) > _AHEAD

    def take(self) -> list[bytes]:
        with self._lock:
            was_full = self._incoming_size > _AHEAD
            frames, self._incoming, self._incoming_size = self._incoming, [], 0
        if was_full:
            self._wake()
        return frames

    def receive(self, data: bytes) -> None:
        with self._lock:
            self._outgoing += data
        self._wake()

    def close(self) -> None:
        self._finished = True
        self._wake()

    def __iter__(self) -> Iterator[bytes]:
        while not self.ended:
            yield from self.take()
            with self._lock:
                self._lock.wait_for(lambda: self._incoming or self._finished)

    def _wake(self) -> None:
        with suppress(OSError):
            self._wake_writer.send(b"x")

    # ---------------------------------------------------------------- runs in the thread of the tunnel

    def _run(self) -> None:
        try:
            while not self._finished:
                self._wait()
                if self._finished or not (self._read() and self._write()):
                    return
        except OSError:
            return
        finally:
            with self._lock:
                self._finished = True
                self._lock.notify_all()
            self._selector.close()
            self._connection.close()
            self._wake_reader.close()
            self._wake_writer.close()
            self.source.notify()

    def _wait(self) -> None:
        """Waits until the socket of the backend is readable or writable, or `_wake` is called."""
        plain = self._connection.socket
        reads = self._incoming_size <= _AHEAD
        events = (selectors.EVENT_READ if reads else 0) | (selectors.EVENT_WRITE if self._outgoing else 0)
        if plain in self._selector.get_map():
            self._selector.unregister(plain)
        if events:
            self._selector.register(plain, events)
        pending = reads and getattr(plain, "pending", lambda: 0)()  # bytes that TLS has decrypted already
        for key, _ in self._selector.select(0.0 if pending else _ROUND_SECONDS):
            if key.fileobj is self._wake_reader:
                self._wake_reader.recv(_PIECE)

    def _read(self) -> bool:
        """Reads from the backend. Returns False at the end of the stream."""
        while self._incoming_size <= _AHEAD:
            try:
                data = self._connection.socket.recv(_PIECE)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return True
            if not data:
                return False
            with self._lock:
                self._incoming.append(data)
                self._incoming_size += len(data)
                self._lock.notify_all()
            self.source.notify()
        return True

    def _write(self) -> bool:
        """Writes the bytes of the client to the backend."""
        was_full = self.full
        while self._outgoing:
            with self._lock:
                piece = bytes(self._outgoing[:_PIECE])
            try:
                sent = self._connection.socket.send(piece)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                break
            with self._lock:
                del self._outgoing[:sent]
        if was_full and not self.full:
            self.source.notify()
        return True
