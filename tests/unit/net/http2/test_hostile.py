"""Hostile clients over real sockets: their connection ends, or waits without costing anything, and others are served."""

from __future__ import annotations

import itertools
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

import hpack
import pytest

from fakekube.net import Server
from fakekube.net.http2 import frames
from fakekube.net.http2.frames import ErrorCode, frame

Serve = Callable[..., Server]
Connect = Callable[..., Any]
FIELDS = [(":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", "/")]
BLOCK = hpack.Encoder().encode(FIELDS[:2]) + b"\x01\x09localhost\x84"
WHOLE = frames.END_HEADERS | frames.END_STREAM


def served(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """A small answer, or one of a million bytes."""
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"x" * 1_000_000] if environ["PATH_INFO"] == "/large" else [b"ok"]


def rapid_resets() -> Iterator[bytes]:
    for number in itertools.count(1, 2):
        yield frame(frames.HEADERS, WHOLE, number, BLOCK) + frames.rst_stream(number, ErrorCode.CANCEL)


def endless_headers() -> Iterator[bytes]:
    yield frame(frames.HEADERS, frames.END_STREAM, 1, BLOCK)
    while True:
        yield frame(frames.CONTINUATION, 0, 1, b"\x00\x01x\x7e" + b"y" * 126)


def empty_headers() -> Iterator[bytes]:
    yield frame(frames.HEADERS, frames.END_STREAM, 1, BLOCK)
    while True:
        yield frame(frames.CONTINUATION, 0, 1)


def pings() -> Iterator[bytes]:
    while True:
        yield frame(frames.PING, 0, 0, bytes(8))


def settings() -> Iterator[bytes]:
    for size in itertools.cycle((0, 65_535)):
        yield frame(frames.SETTINGS, 0, 0, struct.pack(">HI", 4, size))


def empty_data() -> Iterator[bytes]:
    yield frame(frames.HEADERS, frames.END_HEADERS, 1, BLOCK)
    while True:
        yield frame(frames.DATA, 0, 1)


def too_much_window() -> Iterator[bytes]:
    while True:
        yield frames.window_update(0, 1 << 30)


def last_frame(client: Any) -> tuple[int, bytes]:
    """The type and payload of what the server sends last."""
    data = bytearray()
    with suppress(ConnectionError):
        while piece := client.socket.recv(65536):
            data += piece
    while len(data) > 9 + (length := int.from_bytes(data[:3], "big")):
        del data[: 9 + length]
    return data[3], bytes(data[9:])


@pytest.mark.parametrize(
    ("attack", "code"),
    [
        (rapid_resets, ErrorCode.ENHANCE_YOUR_CALM),
        (endless_headers, ErrorCode.PROTOCOL_ERROR),
        (empty_headers, ErrorCode.PROTOCOL_ERROR),
        (pings, ErrorCode.ENHANCE_YOUR_CALM),
        (settings, ErrorCode.ENHANCE_YOUR_CALM),
        (empty_data, ErrorCode.ENHANCE_YOUR_CALM),
        (too_much_window, ErrorCode.FLOW_CONTROL_ERROR),
    ],
)
def test_flooding_client_gets_goaway_and_others_are_served(
    serve_http2: Serve, connect_http2: Connect, attack: Callable[[], Iterator[bytes]], code: ErrorCode
) -> None:
    server = serve_http2(served)
    hostile, other = connect_http2(server), connect_http2(server)
    hostile.until(lambda: hostile.h2.remote_settings.max_concurrent_streams == 100)
    hostile.socket.sendall(b"".join(itertools.islice(attack(), 11_000)))
    assert other.get("/").data == b"ok"
    kind, payload = last_frame(hostile)
    assert (kind, ErrorCode(int.from_bytes(payload[4:8], "big"))) == (frames.GOAWAY, code)


def test_closed_windows_occupy_no_threads(serve_http2: Serve, connect_http2: Connect) -> None:
    server = serve_http2(served)
    hostile, other = connect_http2(server, acknowledges=False), connect_http2(server)
    hostile.h2.update_settings({4: 0})
    hostile.until(lambda: hostile.h2.local_settings.initial_window_size == 0)
    asked = [hostile.ask("/large") for _ in range(90)]
    hostile.until(lambda: all(hostile.answers[one].fields for one in asked))
    threads = threading.active_count()
    for one in asked:
        hostile.h2.increment_flow_control_window(1, one)
    hostile.until(lambda: all(len(hostile.answers[one].data) == 1 for one in asked))
    assert threading.active_count() <= threads + 1  # no thread waits for a window
    assert other.get("/").data == b"ok"


def test_client_that_does_not_read_does_not_block_other_connections(serve_http2: Serve, connect_http2: Connect) -> None:
    server = serve_http2(served)
    hostile, other = connect_http2(server), connect_http2(server)
    hostile.h2.update_settings({4: 1 << 30})
    hostile.h2.increment_flow_control_window(1 << 30)
    for _ in range(60):
        hostile.ask("/large")
    hostile.flush()
    for _ in range(20):
        assert other.get("/").data == b"ok"
    (connection,) = (one._multiplexed for one in server._connections if one._multiplexed._protocol.streams)
    assert len(connection._protocol.output) < 1_000_000
