"""What the server's tests share: servers that get stopped, raw clients that get closed, streams under control."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from fakekube.base.clock import Clock
from fakekube.net import Server

TIMEOUT = 60.0
"""For what must happen at once: long enough to mean "never" where it is not reached."""


class Topic:
    """A source with the frames that were published to it."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.wakes: list[Callable[[], None]] = []
        self.subscriptions = 0
        self.subscribed = threading.Event()

    def subscribe(self, wake: Callable[[], None]) -> None:
        self.subscriptions += 1
        self.subscribed.set()
        self.wakes.append(wake)

    def unsubscribe(self, wake: Callable[[], None]) -> None:
        if wake in self.wakes:
            self.wakes.remove(wake)

    def publish(self, *frames: bytes) -> None:
        self.frames.extend(frames)
        for wake in list(self.wakes):
            wake()


class Cursor:
    """A stream over a topic's frames; a frame `END` ends it."""

    END = b"<end>"

    def __init__(self, topic: Topic, *, limit: int = 1000, deadline: float | None = None) -> None:
        self.source = topic
        self.ended = False
        self.deadline = deadline
        self.position = 0
        self.limit = limit
        self.takes = 0
        self.on_take: Callable[[], None] = lambda: None
        self.closed = threading.Event()
        self.closings = 0

    def take(self) -> list[bytes]:
        self.takes += 1
        self.on_take()
        frames = self.source.frames[self.position : self.position + self.limit]
        self.position += len(frames)
        if self.END in frames:
            self.ended = True
            frames = frames[: frames.index(self.END)]
        return frames

    def close(self) -> None:
        self.closings += 1
        self.closed.set()

    def __iter__(self) -> Iterator[bytes]:
        raise AssertionError("the bundled server does not iterate")


class Client:
    """A connection that speaks bytes, with just enough HTTP to know where answers end."""

    def __init__(self, port: int, context: ssl.SSLContext | None = None) -> None:
        connected = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT)
        self.socket = context.wrap_socket(connected, server_hostname="localhost") if context else connected
        self.buffer = bytearray()

    def send(self, *pieces: bytes) -> None:
        self.socket.sendall(b"".join(pieces))

    def get(self, target: str = "/", *fields: str, method: str = "GET") -> None:
        lines = [f"{method} {target} HTTP/1.1", "Host: localhost", *fields, "\r\n"]
        self.send("\r\n".join(lines).encode())

    def fill(self) -> bool:
        data = self.socket.recv(65536)
        self.buffer += data
        return bool(data)

    def until(self, mark: bytes) -> bytes:
        while mark not in self.buffer:
            assert self.fill(), f"the server closed after {self.buffer!r}"
        return self.cut(self.buffer.index(mark), len(mark))

    def exactly(self, count: int) -> bytes:
        while len(self.buffer) < count:
            assert self.fill(), f"the server closed after {self.buffer!r}"
        return self.cut(count)

    def cut(self, count: int, skipped: int = 0) -> bytes:
        found = bytes(self.buffer[:count])
        del self.buffer[: count + skipped]
        return found

    def head(self) -> tuple[str, dict[str, str]]:
        lines = self.until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        return lines[0], dict(line.split(": ", 1) for line in lines[1:])

    def chunk(self) -> bytes:
        size = int(self.until(b"\r\n"), 16)
        data = self.exactly(size)
        assert self.exactly(2) == b"\r\n"
        return data

    def answer(self, *, has_body: bool = True) -> tuple[str, dict[str, str], bytes]:
        status, fields = self.head()
        if not has_body:
            return status, fields, b""
        if "Content-Length" in fields:
            return status, fields, self.exactly(int(fields["Content-Length"]))
        if fields.get("Transfer-Encoding") == "chunked":
            chunks = []
            while chunk := self.chunk():
                chunks.append(chunk)
            return status, fields, b"".join(chunks)
        return status, fields, self.rest()

    def rest(self) -> bytes:
        """All until the server closes."""
        while self.fill():
            pass
        return self.cut(len(self.buffer))

    def close(self) -> None:
        self.socket.close()


@pytest.fixture
def clock() -> Iterator[Clock]:
    clock = Clock()
    yield clock
    clock.close()


@pytest.fixture
def serve(clock: Clock) -> Iterator[Callable[..., Server]]:
    """Start a server for an application; it is stopped at the end, and must leave nothing behind."""
    servers: list[Server] = []

    def start(application: Callable[..., Iterable[bytes]], **options: Any) -> Server:
        server = Server(application, clock=clock, **options)
        server.start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.stop()
        with server._none_left:  # an answer under way may still be ending
            assert server._none_left.wait_for(lambda server=server: not server._connections, 10)


@pytest.fixture
def connect() -> Iterator[Callable[..., Client]]:
    """Connect to a server; closed at the end."""
    clients: list[Client] = []

    def open_one(server: Server, context: ssl.SSLContext | None = None) -> Client:
        clients.append(Client(server.port, context))
        return clients[-1]

    yield open_one
    for client in clients:
        client.close()


@pytest.fixture
def topic() -> Topic:
    return Topic()


@pytest.fixture
def make_cursor() -> type[Cursor]:
    return Cursor
