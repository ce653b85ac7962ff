"""Connections to extension servers: they may be closed from any thread."""

from __future__ import annotations

import socket
import threading

import pytest

from fakekube.apiserver.aggregator import remote
from fakekube.apiserver.webhooks.transport import Endpoint


class Watched(socket.socket):
    """A socket that notes whether it was closed while a thread was receiving from it."""

    def __init__(self, fileno: int) -> None:
        super().__init__(fileno=fileno)
        self.receives, self.closes = threading.Event(), threading.Event()
        self.was_closed: bool | None = None

    def recv(self, *arguments: int) -> bytes:
        self.receives.set()
        data = super().recv(*arguments)
        self.was_closed = self.closes.wait(0.05)
        return data

    def close(self) -> None:
        self.closes.set()
        super().close()


def test_a_connection_is_closed_when_no_thread_receives(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenSSL would send an alert to the connection that has the descriptor by then."""
    near, far = socket.socketpair()
    watched = Watched(near.detach())
    monkeypatch.setattr(remote, "connect", lambda *_: watched)
    connection = remote.Connection(Endpoint("https://extension", None, b""), None)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(connection._receive()))
    reader.start()
    watched.receives.wait()
    connection.close()
    reader.join()
    far.close()
    assert (received, watched.was_closed, watched.fileno()) == ([b""], False, -1)
