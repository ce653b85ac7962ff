from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from fakekube.net import Server
from fakekube.net.http2 import connection, connection_socket
from fakekube.net.leader_followers import LeaderFollowers
from fakekube.net.streams import BrokenStreamError

TIMEOUT = 60.0
TYPE = ("Content-Type", "text/plain")
NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR = 0, 1, 2

Serve = Callable[..., Server]
Connect = Callable[..., Any]
Environ = dict[str, Any]


def echo(environ: Environ, start_response: Callable[..., Any]) -> list[bytes]:
    """What was asked: the method, the target, the body."""
    body = environ["wsgi.input"].read()
    start_response("200 OK", [TYPE])
    return [f"{environ['REQUEST_METHOD']} {environ['REQUEST_URI']} {environ['SERVER_PROTOCOL']} ".encode() + body]


def lazy(environ: Environ, start_response: Callable[..., Any]) -> list[bytes]:
    """An application that does not read the body."""
    start_response("200 OK", [TYPE])
    return [b"ok"]


def test_many_requests_on_one_connection(serve_http2: Serve, connect_http2: Connect) -> None:
    client = connect_http2(serve_http2(echo))
    asked = [client.ask(f"/{number}?q=%2F") for number in range(50)]
    for number, stream_id in enumerate(asked):
        answer = client.answer(stream_id)
        assert (answer.status, answer.data) == ("200", b"GET /%d?q=%%2F HTTP/2.0 " % number)
        assert list(answer.fields) == [":status", "content-type", "content-length", "date"]


def test_slow_request_does_not_block_other_streams(serve_http2: Serve, connect_http2: Connect) -> None:
    may_go_on = threading.Event()

    def slow(environ: Environ, start_response: Callable[..., Any]) -> list[bytes]:
        if environ["PATH_INFO"] == "/slow":
            assert may_go_on.wait(TIMEOUT)
        return echo(environ, start_response)

    client = connect_http2(serve_http2(slow))
    first = client.ask("/slow")
    assert client.get("/quick").status == "200"
    assert not client.answers[first].fields
    may_go_on.set()
    assert client.answer(first).status == "200"


@pytest.fixture
def leader(monkeypatch: pytest.MonkeyPatch) -> LeaderFollowers:
    """Request threads of which no follower takes the lead, however slow this machine is."""
    threads = LeaderFollowers()
    for module in (connection, connection_socket):
        monkeypatch.setattr(module, "REQUEST_THREADS", threads)
    monkeypatch.setattr(threads, "_call_follower", lambda: None)
    return threads


@pytest.mark.usefixtures("leader")
def test_requests_at_once_and_one_after_the_other_are_served_by_one_thread(serve_http2: Serve, connect_http2: Connect) -> None:
    used: list[int] = []

    def remember(environ: Environ, start_response: Callable[..., Any]) -> list[bytes]:
        used.append(threading.get_ident())
        return echo(environ, start_response)

    clients = [connect_http2(server) for server in [serve_http2(remember)] * 2]
    assert [client.get("/").status for client in clients] == ["200"] * 2  # the first ones are received by the loop
    used.clear()
    asked = [(client, client.ask(f"/{number}")) for number in range(5) for client in clients]
    assert [client.answer(stream_id).status for client, stream_id in asked] == ["200"] * 10
    assert [client.get("/").status for client in clients] == ["200"] * 2
    assert len(set(used)) == 1


def test_slow_requests_at_once_are_served_by_several_threads(serve_http2: Serve, connect_http2: Connect) -> None:
    together = threading.Barrier(4)

    def wait_for_the_others(environ: Environ, start_response: Callable[..., Any]) -> list[bytes]:
        if environ["PATH_INFO"] != "/":
            together.wait(TIMEOUT)
        return echo(environ, start_response)

    client = connect_http2(serve_http2(wait_for_the_others))
    for _ in range(2):
        assert client.get("/").status == "200"
        asked = [client.ask(f"/{number}") for number in range(4)]
        assert [client.answer(stream_id).status for stream_id in asked] == ["200"] * 4


@pytest.mark.usefixtures("leader")
def test_a_request_that_waits_for_its_body_leaves_the_lead_to_others(serve_http2: Serve, connect_http2: Connect) -> None:
    client, other = (connect_http2(server) for server in [serve_http2(echo)] * 2)
    assert [one.get("/").status for one in (client, other)] == ["200"] * 2
    waiting = client.ask("/", "POST", ("expect", "100-continue"), ends=False)
    client.until(lambda: bool(client.answers[waiting].informational))
    assert [one.get("/").status for one in (client, other)] == ["200"] * 2
    client.h2.send_data(waiting, b"body", end_stream=True)
    assert client.answer(waiting).data == b"POST / HTTP/2.0 body"


@pytest.mark.usefixtures("leader")
def test_what_was_received_with_a_request_that_waits_is_served_by_others(serve_http2: Serve, connect_http2: Connect) -> None:
    client = connect_http2(serve_http2(echo))
    assert client.get("/").status == "200"
    waiting = client.ask("/", "POST", ("expect", "100-continue"), ends=False)
    asked = [client.ask("/") for _ in range(3)]
    assert [client.answer(stream_id).status for stream_id in asked] == ["200"] * 3
    client.h2.send_data(waiting, b"body", end_stream=True)
    assert client.answer(waiting).data == b"POST / HTTP/2.0 body"


def test_nothing_is_lost_while_the_lead_changes(serve_http2: Serve, connect_http2: Connect) -> None:
    """Requests that take about as long as a turn."""
    pause = threading.Event()

    def slow(environ: Environ, start_response: Callable[..., Any]) -> list[bytes]:
        pause.wait(int(environ["PATH_INFO"][1:]) / 1000)
        return echo(environ, start_response)

    clients = [connect_http2(server) for server in [serve_http2(slow)] * 3]
    for turn in range(8):
        asked = [(client, client.ask(f"/{(number * 3 + turn) % 8}")) for number in range(4) for client in clients]
        assert [client.answer(stream_id).status for client, stream_id in asked] == ["200"] * 12


@pytest.mark.parametrize(("size", "has_length"), [(1, True), (4096, True), (4097, False), (3_000_000, False)])
def test_content_length_of_response_bodies(serve_http2: Serve, connect_http2: Connect, size: int, has_length: bool) -> None:
    def sized(_: Environ, start_response: Callable[..., Any]) -> list[bytes]:
        start_response("200 OK", [TYPE])
        return [b"x" * size]

    client = connect_http2(serve_http2(sized))
    answer = client.get()
    assert len(answer.data) == size
    assert ("content-length" in answer.fields) is has_length
    head = client.get("/", "HEAD")
    assert (head.data, head.ended, "content-length" in head.fields) == (b"", True, has_length)


def test_closed_flow_control_window_blocks_only_its_own_streams(serve_http2: Serve, connect_http2: Connect) -> None:
    def large(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response("200 OK", [TYPE])
        size = int(environ["PATH_INFO"][1:])
        return [b"x" * size] if environ["QUERY_STRING"] else (b"x" * 50_000 for _ in range(size // 50_000))

    client = connect_http2(serve_http2(large), acknowledges=False)
    whole, pieces = client.ask("/1000000?whole"), client.ask("/1000000")
    client.until(lambda: sum(len(client.answers[one].data) for one in (whole, pieces)) == 65_535)
    client.h2.increment_flow_control_window(1_000_000)
    small = client.ask("/10?whole")
    assert client.answer(small).data == b"x" * 10
    client.h2.increment_flow_control_window(2_000_000)
    for stream_id in (whole, pieces):
        client.h2.increment_flow_control_window(1_000_000, stream_id)
    assert len(client.answer(whole).data) == len(client.answer(pieces).data) == 1_000_000


def test_large_request_body_with_padding_and_trailers(serve_http2: Serve, connect_http2: Connect) -> None:
    client = connect_http2(serve_http2(echo))
    stream_id = client.ask("/", "POST", ends=False)
    body = b"0123456789" * 100_000
    sent = 0
    while sent < len(body):
        room = min(client.h2.local_flow_control_window(stream_id), client.h2.max_outbound_frame_size, len(body) - sent)
        if not room:
            assert client.receive()
            continue
        client.h2.send_data(
            stream_id, body[sent : sent + room], pad_length=7 if room > 100 and sent == 0 and room < 1000 else None
        )
        sent += room
        client.flush()
    client.h2.send_headers(stream_id, [("x-trailer", "1")], end_stream=True)
    assert client.answer(stream_id).data == b"POST / HTTP/2.0 " + body


def test_unread_request_body_resets_the_stream_with_no_error(serve_http2: Serve, connect_http2: Connect) -> None:
    client = connect_http2(serve_http2(lazy))
    stream_id = client.ask("/", "POST", ("expect", "100-continue"), ends=False)
    client.h2.send_data(stream_id, b"x" * 1000)
    answer = client.answer(stream_id)
    assert (answer.data, answer.ended) == (b"ok", True)
    client.until(lambda: answer.reset is not None)
    assert answer.reset == NO_ERROR
    assert client.get().data == b"ok"


def test_request_is_served_when_its_body_has_arrived(serve_http2: Serve, connect_http2: Connect) -> None:
    called: list[str] = []

    def noting(environ: Environ, start_response: Callable[..., Any]) -> list[bytes]:
        called.append(environ["PATH_INFO"])
        return echo(environ, start_response)

    client = connect_http2(serve_http2(noting))
    slow = client.ask("/slow", "PUT", ends=False)
    client.h2.send_data(slow, b"ab")
    assert client.get().data
    assert called == ["/"]
    client.h2.send_data(slow, b"c", end_stream=True)
    assert client.answer(slow).data.endswith(b" abc")


def test_expect_100_continue_gets_a_100_response(serve_http2: Serve, connect_http2: Connect) -> None:
    client = connect_http2(serve_http2(echo))
    stream_id = client.ask("/", "PUT", ("expect", "100-continue"), ("content-length", "3"), ends=False)
    client.until(lambda: bool(client.answers[stream_id].informational))
    assert client.answers[stream_id].informational == [{":status": "100"}]
    client.h2.send_data(stream_id, b"abc", end_stream=True)
    assert client.answer(stream_id).data.endswith(b" abc")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ([("connection", "close")], 'request header "Connection" is not valid in HTTP/2\n'),
        ([("upgrade", "websocket"), ("keep-alive", "1")], 'request header "Keep-Alive" is not valid in HTTP/2\n'),
        ([("te", "gzip")], 'request header "TE" may only be "trailers" in HTTP/2\n'),
    ],
)
def test_connection_specific_headers_are_rejected_with_400(
    serve_http2: Serve, connect_http2: Connect, fields: list[tuple[str, str]], words: str
) -> None:
    client = connect_http2(serve_http2(echo), checks=False)
    answer = client.get("/", "GET", *fields)
    assert (answer.status, answer.data.decode()) == ("400", words)
    assert client.get("/", "GET", ("te", "trailers")).status == "200"


def test_wsgi_environ_of_a_request(serve_http2: Serve, connect_http2: Connect) -> None:
    seen: list[Environ] = []

    def note(environ: Environ, start_response: Callable[..., Any]) -> list[bytes]:
        seen.append(environ)
        return lazy(environ, start_response)

    client = connect_http2(serve_http2(note))
    client.get("/a%2Fb?c=d", "GET", ("cookie", "a=1"), ("cookie", "b=2"), ("x-a", "1"), ("x-a", "2"))
    environ = seen[0]
    names = ("HTTP_HOST", "PATH_INFO", "REQUEST_URI", "QUERY_STRING", "HTTP_COOKIE", "HTTP_X_A", "wsgi.url_scheme", "HTTPS")
    assert [environ[name] for name in names] == ["localhost", "/a/b", "/a%2Fb?c=d", "c=d", "a=1; b=2", "1,2", "https", "on"]
    assert environ["wsgi.input"].read() == b""


def test_application_error_resets_the_stream_with_internal_error(
    serve_http2: Serve, connect_http2: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        match environ["PATH_INFO"]:
            case "/raises":
                raise RuntimeError("a fault")
            case "/cut":
                start_response("200 OK", [TYPE])
                return broken()
        return lazy(environ, start_response)

    def broken() -> Iterator[bytes]:
        yield b"half"
        raise BrokenStreamError

    client = connect_http2(serve_http2(failing))
    assert client.get("/raises").reset == INTERNAL_ERROR
    cut = client.get("/cut")
    assert (cut.data, cut.reset) == (b"half", INTERNAL_ERROR)
    assert client.get("/").data == b"ok"
    assert "a fault" in caplog.text


def test_connection_close_response_sends_goaway(serve_http2: Serve, connect_http2: Connect) -> None:
    def closing(_: Environ, start_response: Callable[..., Any]) -> list[bytes]:
        start_response("200 OK", [TYPE, ("Connection", "close")])
        return [b"bye"]

    client = connect_http2(serve_http2(closing))
    answer = client.get()
    assert (answer.data, "connection" in answer.fields) == (b"bye", False)
    client.rest()
    assert client.goaway == NO_ERROR


def test_concurrent_watches_on_one_connection(serve_http2: Serve, connect_http2: Connect, topic: Any, make_cursor: Any) -> None:
    cursors: list[Any] = []

    def watch(environ: Environ, start_response: Callable[..., Any]) -> Any:
        if environ["PATH_INFO"] == "/":
            return lazy(environ, start_response)
        start_response("200 OK", [TYPE])
        cursor = make_cursor(topic)
        cursors.append(cursor)
        cursor.closed = cancelled if environ["PATH_INFO"] == "/first" else threading.Event()
        return cursor

    client = connect_http2(serve_http2(watch))
    cancelled = threading.Event()
    asked = [client.ask("/first"), *(client.ask("/watch") for _ in range(19))]
    client.until(lambda: all(client.answers[one].fields for one in asked))
    threads = threading.active_count()
    for number in range(10):
        topic.publish(b"event %d\n" % number)
        client.until(lambda: all(client.answers[one].data.count(b"\n") == number + 1 for one in asked))  # noqa: B023
    assert client.get("/").data == b"ok"
    assert threading.active_count() <= threads + 1
    client.h2.reset_stream(asked[0])
    client.flush()
    assert cancelled.wait(TIMEOUT)
    topic.publish(make_cursor.END)
    assert all(client.answer(one).ended for one in asked[1:])
    assert all(cursor.closed.wait(TIMEOUT) and cursor.closings == 1 for cursor in cursors)


def test_finished_streams_are_removed_from_the_connection(
    serve_http2: Serve, connect_http2: Connect, topic: Any, make_cursor: Any
) -> None:
    def watch(environ: Environ, start_response: Callable[..., Any]) -> Any:
        if environ["PATH_INFO"] == "/":
            return lazy(environ, start_response)
        start_response("200 OK", [TYPE])
        return make_cursor(topic)

    server = serve_http2(watch)
    client = connect_http2(server)
    stream_id = client.ask("/watch")
    client.until(lambda: bool(client.answers[stream_id].fields))
    for _ in range(50):
        client.get("/")
    (connection,) = (one._multiplexed for one in server._connections)
    assert len(connection._protocol.ended) <= 2
    assert list(connection._protocol.streams) == [stream_id]


def test_watch_stops_reading_events_while_the_client_window_is_closed(
    serve_http2: Serve, connect_http2: Connect, topic: Any, make_cursor: Any
) -> None:
    cursors: list[Any] = []

    def watch(_: Environ, start_response: Callable[..., Any]) -> Any:
        start_response("200 OK", [TYPE])
        cursors.append(make_cursor(topic, limit=1))
        return cursors[-1]

    client = connect_http2(serve_http2(watch), acknowledges=False)
    slow = client.ask("/")
    client.until(lambda: bool(client.answers[slow].fields))
    for _ in range(10):
        topic.publish(b"x" * 10_000)
    client.until(lambda: len(client.answers[slow].data) == 65_535)
    assert cursors[0].position <= 7
    client.h2.increment_flow_control_window(1_000_000)
    client.h2.increment_flow_control_window(1_000_000, slow)
    client.until(lambda: len(client.answers[slow].data) == 100_000)


def test_broken_watch_stream_is_reset_with_internal_error(
    serve_http2: Serve, connect_http2: Connect, topic: Any, make_cursor: Any
) -> None:
    def watch(_: Environ, start_response: Callable[..., Any]) -> Any:
        start_response("200 OK", [TYPE])
        cursor = make_cursor(topic)

        def fail() -> None:
            if topic.frames:
                raise BrokenStreamError

        cursor.on_take = fail
        return cursor

    client = connect_http2(serve_http2(watch))
    stream_id = client.ask("/")
    client.until(lambda: bool(client.answers[stream_id].fields))
    topic.publish(b"x")
    assert client.answer(stream_id).reset == INTERNAL_ERROR


def test_dropping_connections_sends_goaway(serve_http2: Serve, connect_http2: Connect, topic: Any, make_cursor: Any) -> None:
    def watch(_: Environ, start_response: Callable[..., Any]) -> Any:
        start_response("200 OK", [TYPE])
        return make_cursor(topic)

    server = serve_http2(watch)
    client = connect_http2(server)
    stream_id = client.ask("/")
    client.until(lambda: bool(client.answers[stream_id].fields))
    server.drop()
    client.rest()
    assert client.goaway == NO_ERROR
    other = connect_http2(server)
    again = other.ask("/")
    other.until(lambda: bool(other.answers[again].fields))


def test_server_stop_with_requests_in_flight_sends_goaway(serve_http2: Serve, connect_http2: Connect) -> None:
    began, may_go_on = threading.Event(), threading.Event()

    def slow(environ: Environ, start_response: Callable[..., Any]) -> list[bytes]:
        began.set()
        assert may_go_on.wait(TIMEOUT)
        return lazy(environ, start_response)

    server = serve_http2(slow)
    client = connect_http2(server)
    client.ask("/")
    client.flush()
    assert began.wait(TIMEOUT)
    server.stop()
    may_go_on.set()
    client.rest()
    assert client.goaway == NO_ERROR


def test_http1_clients_are_served_by_alpn(serve_http2: Serve, connect: Connect, given: Any, serve: Serve) -> None:
    from fakekube.net.certificates import credentials

    context = ssl.create_default_context(cadata=given.ca_certificate)
    client = connect(serve_http2(echo), context)
    client.get("/")
    assert client.answer()[0] == "HTTP/1.1 200 OK"
    context.set_alpn_protocols(["h2", "http/1.1"])
    client = connect(serve(echo, tls=credentials(http2=False).context), context)
    assert client.socket.selected_alpn_protocol() == "http/1.1"


def test_client_disconnect_during_request_body_raises_oserror(serve_http2: Serve, connect_http2: Connect) -> None:
    began, ended = threading.Event(), threading.Event()

    def reading(environ: Environ, start_response: Callable[..., Any]) -> list[bytes]:
        began.set()
        with pytest.raises(OSError, match="client disconnected"):
            environ["wsgi.input"].read()
        ended.set()
        return lazy(environ, start_response)

    client = connect_http2(serve_http2(reading))
    client.ask("/", "POST", ("expect", "100-continue"), ends=False)
    client.flush()
    assert began.wait(TIMEOUT)
    client.socket.shutdown(socket.SHUT_RDWR)
    assert ended.wait(TIMEOUT)


def test_goaway_chance_sends_goaway_after_a_request(
    serve_http2: Serve, connect_http2: Connect, topic: Any, make_cursor: Any
) -> None:
    def watch(environ: Environ, start_response: Callable[..., Any]) -> Any:
        if environ["PATH_INFO"] == "/":
            return lazy(environ, start_response)
        start_response("200 OK", [TYPE])
        return make_cursor(topic)

    server = serve_http2(watch, goaway_chance=1.0)
    client = connect_http2(server)
    assert client.get("/").data == b"ok"
    client.rest()
    assert client.goaway == NO_ERROR
    client = connect_http2(server)
    client.ask("/watch")
    client.until(lambda: client.goaway is not None)
    assert client.goaway == NO_ERROR  # while the watch goes on


def test_alpn_omits_h2_if_the_hpack_package_is_missing(
    serve: Serve, connect: Connect, given: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fakekube.net import tls

    monkeypatch.setattr(tls, "find_spec", lambda name: None)
    context = tls.server_context(given.server_certificate, given.server_key, given.ca_certificate, http2=True)
    asking = ssl.create_default_context(cadata=given.ca_certificate)
    asking.set_alpn_protocols(["h2", "http/1.1"])
    assert connect(serve(echo, tls=context), asking).socket.selected_alpn_protocol() == "http/1.1"


def test_idle_connection_is_closed_with_goaway(
    serve_http2: Serve, connect_http2: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fakekube.net import server as server_module
    from fakekube.net.http2 import connection_socket

    monkeypatch.setattr(connection_socket, "_IDLE_SECONDS", 0.01)
    monkeypatch.setattr(server_module, "_ROUND_SECONDS", 0.05)
    client = connect_http2(serve_http2(lazy))
    assert client.get("/").data == b"ok"
    client.rest()
    assert client.goaway == NO_ERROR
