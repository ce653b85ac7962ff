from __future__ import annotations

import email.utils
import errno
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import pytest

from fakekube.base.clock import Clock
from fakekube.net import Server, websocket

TIMEOUT = 60.0

Serve = Callable[..., Server]
Connect = Callable[..., Any]


class Watch:
    """An application whose answers are streams of one topic, made by a test."""

    def __init__(self, make: Callable[[], Any], status: str = "200 OK") -> None:
        self.make = make
        self.status = status
        self.streams: list[Any] = []

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] == "/plain":
            start_response("200 OK", [])
            return [b"plain"]
        start_response(self.status, [("Content-Type", "application/json")])
        self.streams.append(self.make())
        return self.streams[-1]


def test_a_stream_arrives_frame_by_frame(serve: Serve, connect: Connect, topic: Any, make_cursor: Any) -> None:
    topic.publish(b"early")
    client = connect(serve(Watch(lambda: make_cursor(topic))))
    client.get()
    status, fields = client.head()
    assert status == "HTTP/1.1 200 OK"
    assert list(fields) == ["Content-Type", "Date", "Transfer-Encoding"]
    assert client.chunk() == b"early"
    for number in range(100):
        topic.publish(b"%d" % number)
        assert client.chunk() == b"%d" % number


def test_connection_is_reused_after_a_stream_ends(serve: Serve, connect: Connect, topic: Any, make_cursor: Any) -> None:
    watch = Watch(lambda: make_cursor(topic))
    client = connect(serve(watch))
    for _ in range(3):
        client.get()
        client.head()
        topic.publish(b"a")
        assert client.chunk() == b"a"
        topic.publish(make_cursor.END)
        assert client.chunk() == b""
        topic.frames.clear()
        client.get("/plain")
        assert client.answer()[2] == b"plain"
    assert [stream.closings for stream in watch.streams] == [1, 1, 1]
    assert topic.wakes == []


def test_finished_stream_is_delivered_without_the_pump(serve: Serve, connect: Connect, topic: Any, make_cursor: Any) -> None:
    topic.publish(b"a", make_cursor.END)
    watch = Watch(lambda: make_cursor(topic))
    client = connect(serve(watch))
    for _ in range(2):
        client.get()
        assert client.answer()[2] == b"a"
    assert topic.subscriptions == 0
    for stream in watch.streams:
        assert stream.closed.wait(TIMEOUT)
        assert stream.closings == 1


def test_pipelined_requests_wait_for_the_end_of_the_stream(serve: Serve, connect: Connect, topic: Any, make_cursor: Any) -> None:
    client = connect(serve(Watch(lambda: make_cursor(topic))))
    client.get()
    client.head()
    client.get("/plain")
    topic.publish(b"a")
    assert client.chunk() == b"a"
    topic.publish(make_cursor.END)
    assert client.chunk() == b""
    assert client.answer()[2] == b"plain"


def test_http_1_0_stream_is_not_chunked(serve: Serve, connect: Connect, topic: Any, make_cursor: Any) -> None:
    client = connect(serve(Watch(lambda: make_cursor(topic))))
    client.send(b"GET / HTTP/1.0\r\n\r\n")
    client.head()
    topic.publish(b"a", b"b", make_cursor.END)
    assert client.rest() == b"ab"


def test_head_request_for_a_stream_closes_it(serve: Serve, connect: Connect, topic: Any, make_cursor: Any) -> None:
    watch = Watch(lambda: make_cursor(topic))
    client = connect(serve(watch))
    client.get("/", method="HEAD")
    client.head()
    client.get("/plain")
    assert client.answer()[2] == b"plain"
    assert watch.streams[0].closings == 1


def test_client_disconnect_closes_the_stream(serve: Serve, connect: Connect, topic: Any, make_cursor: Any) -> None:
    watch = Watch(lambda: make_cursor(topic))
    client = connect(serve(watch))
    client.get()
    client.head()
    client.close()
    assert watch.streams[0].closed.wait(TIMEOUT)


def test_slow_client_gets_all_frames_without_delaying_others(
    serve: Serve, connect: Connect, topic: Any, make_cursor: Any
) -> None:
    watch = Watch(lambda: make_cursor(topic, limit=3))
    server = serve(watch)
    slow, fast = connect(server), connect(server)
    for client in (slow, fast):
        client.get()
        client.head()
    frames = [b"%06d" % number * 10_000 for number in range(300)]
    for frame in frames:
        topic.publish(frame)
        assert fast.chunk() == frame
    assert watch.streams[0].position < len(frames)
    for frame in frames:
        assert slow.chunk() == frame


def count_threads() -> int:
    return sum(thread.name.startswith("fakekube-") for thread in threading.enumerate())


@pytest.mark.skipif(resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 1200, reason="a process may not have 1,000 sockets here")
def test_500_streams_share_one_thread(serve: Serve, connect: Connect, topic: Any, make_cursor: Any) -> None:
    before = count_threads()
    server = serve(Watch(lambda: make_cursor(topic)))
    clients = [connect(server) for _ in range(500)]
    for client in clients:
        client.get()
    for client in clients:
        client.head()
    for frame in (b"a", b"b"):
        topic.publish(frame)
        for client in clients:
            assert client.chunk() == frame
    assert topic.subscriptions == 1
    assert count_threads() - before < 40


def test_stream_deadline_follows_the_advanced_clock(
    serve: Serve, connect: Connect, clock: Clock, topic: Any, make_cursor: Any
) -> None:
    clock.hold()
    cursor = make_cursor(topic, deadline=clock.monotonic() + 1000)

    def at_deadline() -> None:
        cursor.ended = clock.monotonic() >= cursor.deadline

    cursor.on_take = at_deadline
    client = connect(serve(Watch(lambda: cursor)))
    client.get()
    client.head()
    clock.advance(seconds=1000)
    assert client.chunk() == b""


def test_stop_closes_streams_and_idle_connections(serve: Serve, connect: Connect, topic: Any, make_cursor: Any) -> None:
    watch = Watch(lambda: make_cursor(topic))
    server = serve(watch)
    streaming, idle, silent = connect(server), connect(server), connect(server)
    streaming.get()
    streaming.head()
    assert topic.subscribed.wait(TIMEOUT)
    idle.get("/plain")
    idle.answer()
    begin = time.monotonic()
    server.stop()
    assert time.monotonic() - begin < TIMEOUT
    assert streaming.rest() == b"0\r\n\r\n"
    assert idle.rest() == silent.rest() == b""
    assert watch.streams[0].closings == 1
    assert not server._connections
    with pytest.raises(ConnectionRefusedError):
        connect(server)
    server.stop()


def test_stop_ends_streams_although_the_loop_becomes_idle(
    serve: Serve, connect: Connect, topic: Any, make_cursor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Watch(lambda: make_cursor(topic))
    server = serve(watch)
    if not server._loop.is_concurrent:
        pytest.skip("the listener is closed in the loop's thread")
    streaming = connect(server)
    streaming.get()
    streaming.head()
    assert topic.subscribed.wait(TIMEOUT)
    close_listener = server._close_listener

    def close_listener_while_the_loop_becomes_idle() -> None:
        close_listener()
        asked = threading.Event()

        def become_idle() -> None:
            server._loop._end_if_unused()  # as after a wait that has found nothing
            asked.set()

        assert server._loop.call(become_idle)
        assert asked.wait(TIMEOUT)

    monkeypatch.setattr(server, "_close_listener", close_listener_while_the_loop_becomes_idle)
    server.stop()
    assert streaming.rest() == b"0\r\n\r\n"
    assert watch.streams[0].closings == 1


def test_stop_closes_accepted_connections_that_were_not_served(
    serve: Serve, connect: Connect, topic: Any, make_cursor: Any
) -> None:
    server = serve(Watch(lambda: make_cursor(topic)))
    if not server._loop.is_concurrent:
        pytest.skip("the end of a server needs the loop's thread")
    reached, release = threading.Event(), threading.Event()

    def hold_up() -> None:
        reached.set()
        release.wait(TIMEOUT)

    server._loop.call(hold_up)
    assert reached.wait(TIMEOUT)
    try:
        client = connect(server)
        server.stop()
        assert client.rest() == b""
    finally:
        release.set()


def test_stop_waits_for_a_running_application_only_for_a_limited_time(
    serve: Serve, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fakekube.net.server._STOP_PATIENCE", 0.01)
    entered, release, left = threading.Event(), threading.Event(), threading.Event()

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        entered.set()
        release.wait(TIMEOUT)
        start_response("200 OK", [])
        left.set()
        return [b"x" * 100_000]

    server = serve(application)
    client = connect(server)
    client.get()
    assert entered.wait(TIMEOUT)
    server.stop()
    assert client.rest() == b""
    release.set()
    assert left.wait(TIMEOUT)
    with server._none_left:
        assert server._none_left.wait_for(lambda: not server._connections, TIMEOUT)


def test_servers_share_the_threads_of_loop_and_connections(serve: Serve, connect: Connect) -> None:
    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response("200 OK", [("Content-Length", "0")])
        return []

    before = set(threading.enumerate())
    threads: set[threading.Thread] = set()
    for _ in range(20):
        server = serve(application)
        client = connect(server)
        client.get()
        client.head()
        client.close()
        server.stop()
        threads |= {thread for thread in threading.enumerate() if thread.name.startswith("fakekube-")}
    assert len([thread for thread in threading.enumerate() if thread.name == "fakekube-server"]) == 1
    assert len(threads - before) < 10


def test_application_can_stop_its_server(serve: Serve, connect: Connect) -> None:
    stopped = threading.Event()

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        server.stop()
        stopped.set()
        start_response("200 OK", [])
        return [b""]

    server = serve(application)
    client = connect(server)
    client.get()
    assert stopped.wait(TIMEOUT)
    assert client.rest() == b""


def test_server_url_and_port_in_use(serve: Serve, clock: Clock) -> None:
    server = serve(lambda environ, start_response: [])
    assert server.url == f"http://127.0.0.1:{server.port}"
    assert Server(server.application, "::1", 80, clock=clock).url == "http://[::1]:80"
    assert Server(server.application, "0.0.0.0", 80, clock=clock).url == "http://127.0.0.1:80"
    with pytest.raises(OSError) as busy:
        Server(server.application, port=server.port, clock=clock).start()
    assert busy.value.errno == errno.EADDRINUSE


def test_stop_of_a_server_that_was_not_started(clock: Clock) -> None:
    Server(lambda environ, start_response: [], clock=clock).stop()


def test_date_header_follows_the_clock(serve: Serve, connect: Connect, clock: Clock) -> None:
    client = connect(serve(Watch(lambda: None)))
    client.get("/plain")
    sent = email.utils.parsedate_to_datetime(client.answer()[1]["Date"])
    assert abs((sent - datetime.now(UTC)).total_seconds()) < TIMEOUT
    clock.hold()
    clock.advance(days=40)
    client.get("/plain")
    assert client.answer()[1]["Date"] == clock.now().strftime("%a, %d %b %Y %H:%M:%S GMT")


def test_date_follows_a_clock_that_runs_faster(clock: Clock) -> None:
    server = Server(lambda environ, start_response: [], clock=clock)
    clock.scale(10_000.0)
    before = server.date()
    time.sleep(0.001)
    assert server.date() != before


def test_watch_over_websocket(serve: Serve, connect: Connect, topic: Any, make_cursor: Any) -> None:
    watch = Watch(lambda: make_cursor(topic), "101 Switching Protocols")
    client = connect(serve(watch))
    client.get(
        "/",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version: 13",
        "Origin: http://x",
    )
    status, fields = client.head()
    assert status == "HTTP/1.1 101 Switching Protocols"
    assert list(fields) == ["Upgrade", "Connection", "Sec-WebSocket-Accept"]
    topic.publish(b"one", b"two")
    assert client.exactly(10) == websocket.text(b"one") + websocket.text(b"two")
    client.send(b"\x89\x81\0\0\0\0x")
    assert client.exactly(3) == b"\x8a\x01x"
    client.send(b"\x88\x80\0\0\0\0")
    assert client.rest() == websocket.close()
    assert watch.streams[0].closed.wait(TIMEOUT)


def test_websocket_is_closed_when_its_stream_ends(serve: Serve, connect: Connect, topic: Any, make_cursor: Any) -> None:
    def make() -> Any:
        cursor = make_cursor(topic)
        cursor.binary = True
        return cursor

    client = connect(serve(Watch(make, "101 Switching Protocols")))
    client.get(
        "/", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Key: x", "Sec-WebSocket-Version: 13", "Origin: http://x"
    )
    client.head()
    topic.publish(b"a", make_cursor.END)
    assert client.rest() == websocket.binary(b"a") + websocket.close()


def test_invalid_websocket_handshake_returns_400(serve: Serve, connect: Connect, topic: Any, make_cursor: Any) -> None:
    watch = Watch(lambda: make_cursor(topic), "101 Switching Protocols")
    client = connect(serve(watch))
    client.get("/", "Upgrade: websocket", "Connection: Upgrade")
    assert client.rest() == b"HTTP/1.1 400 Bad Request\r\n\r\nmismatch challenge/response"
    assert watch.streams[0].closings == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_stop_in_a_forked_child_does_not_affect_the_parent(serve: Serve, connect: Connect, topic: Any, make_cursor: Any) -> None:
    server = serve(Watch(lambda: make_cursor(topic)))
    client = connect(server)
    client.get()
    client.head()
    child = os.fork()
    if child == 0:
        server.stop()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    topic.publish(b"a")
    assert client.chunk() == b"a"
    other = connect(server)
    other.get("/plain")
    assert other.answer()[2] == b"plain"


def test_plain_http_needs_neither_ssl_nor_cryptography() -> None:
    code = "import sys, fakekube.net; print({'ssl', 'cryptography', 'asyncio'} & set(sys.modules))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output == "set()\n"
