"""Webhook calls to hostile servers, and connection reuse."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from fakekube.apis.rest.cluster_access import CallError, CallTimeoutError
from fakekube.apiserver.webhooks import connections
from fakekube.apiserver.webhooks.transport import Endpoint, Transport

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
Behave = Callable[[socket.socket], object]


@pytest.fixture
def transport() -> Iterator[Transport]:
    made = Transport()
    yield made
    made.close()


@contextlib.contextmanager
def serving(behave: Behave) -> Iterator[Endpoint]:
    """A server without TLS, to which one gets by a redirect only; every connection has a thread."""
    server = socket.create_server(("127.0.0.1", 0))
    threads: list[threading.Thread] = []

    def serve(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            behave(connection)

    def accept() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            threads.append(threading.Thread(target=serve, args=(connection,), daemon=True))
            threads[-1].start()

    acceptor = threading.Thread(target=accept, daemon=True)
    acceptor.start()
    try:
        yield Endpoint(f"http://127.0.0.1:{server.getsockname()[1]}/x", None, b"")
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        for thread in (acceptor, *threads):
            thread.join(60)


def request(connection: socket.socket) -> bytes:
    data = b""
    while not data.endswith(b"{}"):
        received = connection.recv(65536)
        if not received:
            raise OSError
        data += received
    return data


def problem(transport: Transport, behave: Behave, timeout: float = 0.3) -> str:
    with serving(behave) as endpoint, pytest.raises(CallError) as caught:
        try:
            transport.post(endpoint, b"{}", timeout)
        finally:
            transport.close()
    return str(caught.value).replace(endpoint.url, "URL")


def test_connections_are_reused(transport: Transport) -> None:
    accepted = []

    def answer(connection: socket.socket) -> None:
        accepted.append(connection)
        while True:
            request(connection)
            connection.sendall(OK)

    with serving(answer) as endpoint:
        for _ in range(3):
            assert transport.post(endpoint, b"{}", 5).body == b"{}"
        assert len(accepted) == 1
        transport.close()


def test_stale_connection_is_reopened(transport: Transport) -> None:
    accepted = []

    def answer(connection: socket.socket) -> None:
        accepted.append(connection)
        request(connection)
        connection.sendall(OK)
        connection.recv(1)  # the next request comes, and gets no answer

    with serving(answer) as endpoint:
        for _ in range(3):
            assert transport.post(endpoint, b"{}", 5).body == b"{}"
        assert len(accepted) == 3
        transport.close()


def test_silent_server_times_out(transport: Transport) -> None:
    def silent(connection: socket.socket) -> None:
        request(connection)
        connection.recv(1)

    begin = time.monotonic()
    assert problem(transport, silent) == 'Post "URL": context deadline exceeded'
    assert time.monotonic() - begin < 20  # not for ever


@pytest.mark.parametrize(
    ("head", "piece", "message"),
    [
        (b"HTTP/1.1 200 OK\r\n", b"A: b\r\n", 'Post "URL": context deadline exceeded'),
        (
            b"HTTP/1.1 200 OK\r\n\r\n",
            b" ",
            "unexpected error when reading response body. Please retry. Original error: context deadline exceeded",
        ),
    ],
)
def test_slow_response_times_out(transport: Transport, head: bytes, piece: bytes, message: str) -> None:
    ended = threading.Event()

    def trickle(connection: socket.socket) -> None:
        request(connection)
        connection.sendall(head)
        while not ended.wait(0.01):
            connection.sendall(piece)

    begin = time.monotonic()
    try:
        assert problem(transport, trickle) == message
    finally:
        ended.set()
    assert time.monotonic() - begin < 20


def test_endless_response_body_is_bounded(transport: Transport, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_RESPONSE_BYTES", 1 << 20)
    sent = 0

    def endless(connection: socket.socket) -> None:
        nonlocal sent
        request(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            sent += connection.send(b" " * 65536)

    with serving(endless) as endpoint, pytest.raises(CallTimeoutError, match="Original error: context deadline exceeded"):
        transport.post(endpoint, b"{}", 30)
    assert sent < 20 << 20


def test_response_that_never_pauses_times_out(transport: Transport, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_RESPONSE_BYTES", 1 << 40)
    begin = time.monotonic()

    def stream(connection: socket.socket) -> None:
        request(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while time.monotonic() - begin < 20:
            connection.sendall(b"1\r\n \r\n" * 1000)

    with serving(stream) as endpoint, pytest.raises(CallTimeoutError, match="Original error: context deadline exceeded"):
        transport.post(endpoint, b"{}", 0.3)


def test_server_that_does_not_read_times_out(transport: Transport) -> None:
    ended = threading.Event()
    with serving(lambda _: ended.wait(60)) as endpoint:
        with pytest.raises(CallTimeoutError, match="context deadline exceeded"):
            transport.post(endpoint, b"x" * (16 << 20), 0.3)
        ended.set()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"HTTP/1.1 307 T\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n", 'Post "/again": stopped after 10 redirects'),
        (b"HTTP/1.1 302 T\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n", 'Post "/again": stopped after 10 redirects'),
        (
            b"HTTP/1.1 307 T\r\nLocation: ftp://127.0.0.1/x\r\nContent-Length: 0\r\n\r\n",
            'Post "ftp://127.0.0.1/x": unsupported protocol scheme "ftp"',
        ),
        (
            b"HTTP/1.1 307 T\r\nLocation: http://[bad\r\nContent-Length: 0\r\n\r\n",
            'Post "URL": failed to parse Location header "http://[bad": parse "http://[bad": missing \']\' in host',
        ),
        (
            b"HTTP/1.1 307 T\r\nLocation: http://127.0.0.1:9/x\r\nContent-Length: 0\r\n\r\n",
            'Post "http://127.0.0.1:9/x": dial tcp 127.0.0.1:9: connect: connection refused',
        ),
    ],
)
def test_redirects_are_errors(transport: Transport, answer: bytes, message: str) -> None:
    def redirect(connection: socket.socket) -> None:
        while connection.recv(65536):
            connection.sendall(answer)

    assert problem(transport, redirect, 5) == message


def test_closed_connection_is_an_eof_error(transport: Transport) -> None:
    assert problem(transport, request, 5) == 'Post "URL": EOF'
