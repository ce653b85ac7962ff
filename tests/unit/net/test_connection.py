from __future__ import annotations

import functools
import http.client
import io
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from wsgiref.validate import validator

import pytest

from fakekube.net import Server, connection
from fakekube.net.connection import IDLE_SECONDS, Connection, ServingLimits

TIMEOUT = 60.0
TYPE = ("Content-Type", "text/plain")

Serve = Callable[..., Server]
Connect = Callable[..., Any]


def echo(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    """What was asked: the method, the target, the body."""
    body = environ["wsgi.input"].read()
    start_response("200 OK", [TYPE])
    return [f"{environ['REQUEST_METHOD']} {environ['REQUEST_URI']} ".encode() + body]


def lazy(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    """An application that does not read the body."""
    start_response("200 OK", [TYPE])
    return [b"ok"]


def test_one_connection_serves_many_requests(serve: Serve, connect: Connect) -> None:
    client = connect(serve(echo))
    for number in range(3):
        client.get(f"/{number}", "Content-Length: 2")
        client.send(b"ab")
        status, fields, body = client.answer()
        assert status == "HTTP/1.1 200 OK"
        assert body == b"GET /%d ab" % number
        assert fields["Content-Length"] == str(len(body))
        assert "Connection" not in fields


@pytest.mark.parametrize(("size", "has_length"), [(2048, True), (2049, False), (70_000, False)])
def test_short_responses_have_content_length_and_long_ones_are_chunked(
    serve: Serve, connect: Connect, size: int, has_length: bool
) -> None:
    def sized(_: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        start_response("200 OK", [TYPE])
        return [b"x" * size]

    client = connect(serve(sized))
    for _ in range(2):
        client.get("/")
        _, fields, body = client.answer()
        assert body == b"x" * size
        assert (fields.get("Content-Length"), fields.get("Transfer-Encoding")) == (
            (str(size), None) if has_length else (None, "chunked")
        )


def test_http_client_of_the_standard_library_works(serve: Serve) -> None:
    client = http.client.HTTPConnection("127.0.0.1", serve(echo).port, timeout=TIMEOUT)
    for body in (b"x" * 10, iter([b"a" * 70000, b"b" * 70000]), b"y" * 3_000_000):
        client.request("POST", "/", body, encode_chunked=not isinstance(body, bytes))
        assert len(client.getresponse().read()) > 10
    client.close()


def test_pipelined_requests_are_answered_in_order(serve: Serve, connect: Connect) -> None:
    client = connect(serve(echo))
    one = b"POST /1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"
    two = b"POST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\ncd"
    client.send(one, two, one)
    assert [client.answer()[2] for _ in range(3)] == [b"POST /1 ab", b"POST /2 cd", b"POST /1 ab"]


def test_head_response_has_content_length_but_no_body(serve: Serve, connect: Connect) -> None:
    client = connect(serve(echo))
    client.get("/", method="HEAD")
    _, fields, _ = client.answer(has_body=False)
    assert fields["Content-Length"] == "7"
    client.get("/next")
    assert client.answer()[2] == b"GET /next "


@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified"])
def test_responses_without_body_keep_the_connection_open(serve: Serve, connect: Connect, status: str) -> None:
    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        start_response(status, [])
        return [b"ignored"]

    client = connect(serve(application))
    for _ in range(2):
        client.get()
        assert client.answer(has_body=False)[0] == f"HTTP/1.1 {status}"


@pytest.mark.parametrize(
    ("request_head", "closes"),
    [
        (b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", True),
        (b"GET / HTTP/1.0\r\n\r\n", True),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", False),
    ],
)
def test_keep_alive_follows_http_version_and_connection_header(
    serve: Serve, connect: Connect, request_head: bytes, closes: bool
) -> None:
    client = connect(serve(lazy))
    client.send(request_head)
    assert client.answer()[2] == b"ok"
    if closes:
        assert client.rest() == b""
    else:
        client.send(request_head)
        assert client.answer()[2] == b"ok"


def test_100_continue_is_sent_when_the_body_is_read(serve: Serve, connect: Connect) -> None:
    client = connect(serve(echo))
    client.get("/", "Expect: 100-continue", "Content-Length: 2")
    assert client.until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue"
    client.send(b"ab")
    assert client.answer()[2] == b"GET / ab"


def test_100_continue_is_not_sent_if_the_body_is_not_read(serve: Serve, connect: Connect) -> None:
    client = connect(serve(lazy))
    client.get("/", "Expect: 100-continue", "Content-Length: 2")
    status, fields, _ = client.answer()
    assert status == "HTTP/1.1 200 OK"
    assert fields["Connection"] == "close"
    assert client.rest() == b""


def test_unknown_expect_header_returns_417(serve: Serve, connect: Connect) -> None:
    client = connect(serve(echo))
    client.get("/", "Expect: wonders", "Content-Length: 2")
    status, fields, _ = client.answer()
    assert status == "HTTP/1.1 417 Expectation Failed"
    assert fields["Connection"] == "close"


def test_bad_request_closes_the_connection_and_pipelined_requests_are_dropped(serve: Serve, connect: Connect) -> None:
    client = connect(serve(echo))
    client.get("/first")
    client.send(b"GET / HTTP/1.1\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n")
    assert client.answer()[2] == b"GET /first "
    assert client.rest() == (
        b"HTTP/1.1 400 Bad Request: missing required Host header\r\n"
        b"Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
        b"400 Bad Request: missing required Host header"
    )


def test_options_asterisk_request(serve: Serve, connect: Connect) -> None:
    client = connect(serve(echo))
    client.get("*", method="OPTIONS")
    status, fields, body = client.answer()
    assert (status, fields["Content-Length"], body) == ("HTTP/1.1 200 OK", "0", b"")


def test_short_unread_body_keeps_the_connection_open(serve: Serve, connect: Connect) -> None:
    client = connect(serve(lazy))
    for _ in range(2):
        client.get("/", "Content-Length: 100000")
        client.send(b"a" * 100_000)
        _, fields, _ = client.answer()
        assert "Connection" not in fields


def test_long_unread_body_closes_the_connection_after_the_response(serve: Serve, connect: Connect) -> None:
    client = connect(serve(lazy))
    client.get("/", "Content-Length: 4000000")
    client.send(b"a" * 4_000_000)
    _, fields, body = client.answer()
    assert body == b"ok"
    assert fields["Connection"] == "close"
    assert client.rest() == b""


def test_malformed_chunked_body_raises_oserror_in_the_application(serve: Serve, connect: Connect) -> None:
    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        try:
            environ["wsgi.input"].read()
        except OSError as error:
            start_response("500 Internal Server Error", [TYPE])
            return [str(error).encode()]
        raise AssertionError("the body is broken")

    client = connect(serve(application))
    client.get("/", "Transfer-Encoding: chunked", method="POST")
    client.send(b"zz\r\n")
    _, fields, body = client.answer()
    assert body == b"invalid byte in chunk length"
    assert fields["Connection"] == "close"
    assert client.rest() == b""


def test_unhandled_body_error_returns_400_without_logging(
    serve: Serve, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    client = connect(serve(echo))
    client.get("/", "Transfer-Encoding: chunked", method="POST")
    client.send(b"zz\r\n")
    assert client.rest().startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert caplog.records == []


def test_application_exception_returns_500_and_is_logged(
    serve: Serve, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        if environ["PATH_INFO"] == "/":
            raise FileNotFoundError("of its own")
        return echo(environ, start_response)

    client = connect(serve(application))
    with caplog.at_level(logging.ERROR):
        client.get()
        assert client.answer()[0] == "HTTP/1.1 500 Internal Server Error"
    assert "FileNotFoundError: of its own" in caplog.text
    client.get("/next")
    assert client.answer()[2] == b"GET /next "


class Chunks:
    """An iterable body that notes when it is closed."""

    def __init__(self, *pieces: bytes | Exception) -> None:
        self.pieces = pieces
        self.closed = threading.Event()

    def __iter__(self) -> Iterator[bytes]:
        for piece in self.pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece

    def close(self) -> None:
        self.closed.set()


def giving(body: Iterable[bytes], *fields: tuple[str, str]) -> Callable[..., Iterable[bytes]]:
    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response("200 OK", [TYPE, *fields])
        return body

    return application


def test_an_iterable_body_is_chunked_and_closed(serve: Serve, connect: Connect) -> None:
    pieces = Chunks(b"a", b"", b"bc")
    client = connect(serve(giving(pieces)))
    client.get()
    assert client.head()[1]["Transfer-Encoding"] == "chunked"
    assert [client.chunk() for _ in range(3)] == [b"a", b"bc", b""]
    assert pieces.closed.wait(TIMEOUT)
    client.get("/", method="HEAD")
    client.answer(has_body=False)
    client.get()
    assert client.answer()[2] == b"abc"


def test_iterable_body_is_truncated_to_declared_content_length(serve: Serve, connect: Connect) -> None:
    client = connect(serve(giving(Chunks(b"ab", b"cd"), ("Content-Length", "3"))))
    for _ in range(2):
        client.get()
        assert client.answer()[2] == b"abc"


@pytest.mark.parametrize("body", [[b"ab"], Chunks(b"a", b"b")])
def test_body_shorter_than_content_length_closes_the_connection(serve: Serve, connect: Connect, body: Iterable[bytes]) -> None:
    client = connect(serve(giving(body, ("Content-Length", "3"))))
    client.get()
    client.head()
    assert client.rest() == b"ab"


def test_body_error_closes_the_connection_without_last_chunk(
    serve: Serve, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    pieces = Chunks(b"a", ValueError("half-way"))
    client = connect(serve(giving(pieces)))
    client.get()
    client.head()
    assert client.rest() == b"1\r\na\r\n"
    assert pieces.closed.wait(TIMEOUT)


def test_large_response_body_arrives_complete(serve: Serve, connect: Connect) -> None:
    body = bytes(range(256)) * 40_000
    client = connect(serve(giving([body])))
    for _ in range(2):
        client.get()
        assert client.answer()[2] == body


def test_wsgi_write_callable_and_exc_info(serve: Serve, connect: Connect) -> None:
    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        write = start_response("200 OK", [TYPE])
        with pytest.raises(RuntimeError):
            start_response("200 OK", [TYPE])
        try:
            raise ValueError
        except ValueError as error:
            info = (ValueError, error, error.__traceback__)
            start_response("201 Created", [TYPE], info)
            write(b"a")
            with pytest.raises(ValueError):
                start_response("202 Accepted", [TYPE], info)
        return [b"b"]

    client = connect(serve(application))
    client.get()
    status, _, body = client.answer()
    assert (status, body) == ("HTTP/1.1 201 Created", b"ab")


def test_wsgi_compliance_by_wsgiref_validator(serve: Serve, connect: Connect) -> None:
    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        environ["wsgi.input"].read(2)
        start_response("200 OK", [TYPE])
        return [f"{environ['REMOTE_ADDR']}:{environ['REMOTE_PORT']}".encode()]

    client = connect(serve(validator(application)))
    ours = client.socket.getsockname()
    for method in ("GET", "POST"):
        client.get("/a%2Fb?c", "Content-Length: 4", "Content-Type: text/plain", method=method)
        client.send(b"abcd")
        assert client.answer()[2] == f"{ours[0]}:{ours[1]}".encode()


def test_slow_request_head_closes_the_connection(serve: Serve, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fakekube.net.connection.HEAD_SECONDS", 0.01)
    monkeypatch.setattr("fakekube.net.server._ROUND_SECONDS", 0.01)
    client = connect(serve(echo))
    client.get()
    client.answer()
    client.send(b"GET / HT")
    assert client.rest() == b""


def has_come(connection: Connection, piece: bytes) -> bool:
    """What was sent is there, and it is known to be the beginning of a head."""
    is_head = connection.deadline < time.monotonic() + IDLE_SECONDS - 1
    return is_head and connection._parser.buffer.endswith(piece)


def test_partial_request_head_does_not_extend_the_deadline(serve: Serve, connect: Connect) -> None:
    server = serve(echo)
    client = connect(server)
    client.send(b"G")
    (connection,) = wait_for(lambda: server._connections)
    deadlines = set()
    for piece in (b"ET / HTTP/1.1\r\n", b"Host: ", b"a", b"\r\n"):
        client.send(piece)
        wait_for(functools.partial(has_come, connection, piece))
        deadlines.add(connection.deadline)
    assert len(deadlines) == 1
    client.send(b"\r\n")
    assert client.answer()[0] == "HTTP/1.1 200 OK"


def test_idle_connection_is_closed(serve: Serve, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fakekube.net.connection.IDLE_SECONDS", 0.01)
    monkeypatch.setattr("fakekube.net.server._ROUND_SECONDS", 0.01)
    client = connect(serve(echo))
    assert client.rest() == b""


def test_no_deadline_while_the_application_runs(serve: Serve, connect: Connect) -> None:
    deadlines: list[float] = []

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        deadlines.extend(connection.deadline for connection in server._connections)
        return lazy(environ, start_response)

    server = serve(application)
    client = connect(server)
    client.get()
    assert client.answer()[2] == b"ok"
    assert deadlines == [float("inf")]


def wait_for(condition: Callable[[], Any]) -> Any:
    """What `condition` gives, as soon as it is something."""
    pause = threading.Event()
    for _ in range(10_000):
        if found := condition():
            return found
        pause.wait(0.001)
    raise AssertionError("it does not come")


def test_client_disconnect_removes_the_connection(serve: Serve, connect: Connect) -> None:
    server = serve(echo)
    client = connect(server)
    client.get("/", "Content-Length: 10")
    client.send(b"abc")
    wait_for(lambda: server._connections)
    client.close()
    wait_for(lambda: not server._connections)


def test_wsgi_input_is_a_file(serve: Serve, connect: Connect) -> None:
    seen: list[io.IOBase] = []

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        seen.append(environ["wsgi.input"])
        return lazy(environ, start_response)

    client = connect(serve(application))
    client.get("/", "Transfer-Encoding: chunked")
    client.send(b"0\r\n\r\n")
    client.answer()
    assert isinstance(seen[0], io.BufferedReader)


def test_tcp_nodelay_is_set(serve: Serve, connect: Connect) -> None:
    server = serve(echo)
    client = connect(server)
    client.get()
    client.answer()
    (connection,) = server._connections
    accepted = connection._transport._socket
    assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_connections_that_wait_have_no_threads_beyond_the_bound(serve: Serve, connect: Connect) -> None:
    server = serve(echo)
    server.limits = ServingLimits(0)
    for pieces in (
        [b"GET /a HT", b"TP/1.1\r\nHost: a\r\n", b"\r\n"],
        [b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nab", b"cd", b"ef"],
        [b"POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab", b"c\r\n3\r\ndef\r\n", b"0\r\n\r\n"],
    ):
        client = connect(server)
        for _ in range(2):
            for piece in pieces:
                client.send(piece)
            status, _, body = client.answer()
            assert status == "HTTP/1.1 200 OK"
            assert body == (b"GET /a " if pieces[0].startswith(b"GET") else b"POST /a abcdef")


def test_client_of_a_parked_body_gets_100_continue_and_errors_of_the_framing(serve: Serve, connect: Connect) -> None:
    server = serve(echo)
    server.limits = ServingLimits(0)
    client = connect(server)
    client.send(b"POST /a HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
    assert client.until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue"
    client.send(b"ab")
    assert client.answer()[2] == b"POST /a ab"
    client.send(b"POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", b"xyz\r\n")
    assert client.head()[0] == "HTTP/1.1 400 Bad Request"
    client = connect(server)
    client.send(b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n")
    client.close()  # the fixture waits for the end of the connection


def test_bodies_of_parked_connections_are_bounded_together(
    serve: Serve, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "PARKED_BYTES", 2)
    server = serve(echo)
    server.limits = ServingLimits(0)
    head = b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\n"
    client = connect(server)
    client.send(head + b"abc")
    client.rest()  # closed by the server
    other = connect(server)
    other.send(head + b"ab")
    other.close()
    with server._none_left:
        assert server._none_left.wait_for(lambda: not server.is_connected, TIMEOUT)
    assert server.limits.parked_bytes == 0


def test_deadline_of_a_body(serve: Serve, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "BODY_SECONDS", -1.0)
    monkeypatch.setattr("fakekube.net.server._ROUND_SECONDS", 0.01)
    server = serve(echo)
    for limits in (ServingLimits(0), ServingLimits(1)):
        server.limits = limits
        client = connect(server)
        client.send(b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na")
        client.rest()
