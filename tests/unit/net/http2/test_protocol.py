"""The protocol without sockets: streams, windows, and what wrong or hostile frames bring about."""

from __future__ import annotations

import struct
from typing import Any

import hpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakekube.net.http2 import frames
from fakekube.net.http2.frames import ErrorCode, frame
from fakekube.net.http2.header_blocks import MAX_LIST_BYTES, encode_block
from fakekube.net.http2.protocol import Protocol
from fakekube.net.http2.stream import RequestStream

GREETING = frames.PREFACE + frame(frames.SETTINGS, 0, 0) + frame(frames.SETTINGS, frames.ACK, 0)
WHOLE = frames.END_HEADERS | frames.END_STREAM
OPEN = frames.END_HEADERS
USUAL = ((":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", "/"))


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def block(*extra: tuple[str, str], base: tuple[tuple[str, str], ...] = USUAL) -> bytes:
    encoder = hpack.Encoder()
    encoder.header_table_size = 0
    return encoder.encode([*base, *extra])


def headers(stream_id: int = 1, flags: int = WHOLE, *extra: tuple[str, str]) -> bytes:
    return frame(frames.HEADERS, flags, stream_id, block(*extra))


def settings_received(**options: Any) -> Protocol:
    protocol = Protocol(**options)
    protocol.receive(GREETING)
    protocol.output.clear()
    return protocol


def sent(protocol: Protocol) -> list[tuple[int, int, int, bytes]]:
    """The frames of the output: type, flags, stream, payload."""
    data, found = bytes(protocol.output), []
    while data:
        length = int.from_bytes(data[:3], "big")
        found.append((data[3], data[4], int.from_bytes(data[5:9], "big"), data[9 : 9 + length]))
        data = data[9 + length :]
    protocol.output.clear()
    return found


def ending(protocol: Protocol) -> ErrorCode | None:
    """The code of the last frame, if that is a GOAWAY."""
    last = sent(protocol)[-1:]
    return ErrorCode(struct.unpack(">II", last[0][3])[1]) if last and last[0][0] == frames.GOAWAY else None


def resets(protocol: Protocol) -> list[tuple[int, ErrorCode]]:
    return [
        (stream_id, ErrorCode(int.from_bytes(payload, "big")))
        for kind, _, stream_id, payload in sent(protocol)
        if kind == frames.RST_STREAM
    ]


def answer(protocol: Protocol, stream: RequestStream, body: bytes = b"ok") -> None:
    protocol.send_head(stream, encode_block("200", ()), ends=not body)
    if body:
        protocol.send_rest(stream, body)
    protocol.end_request()


# ---------------------------------------------------------------- as it should be


def test_initial_settings_equal_those_of_kube_apiserver() -> None:
    greeting = sent(Protocol())
    assert greeting[0][3] == struct.pack(">" + "HI" * 5, 5, 262_144, 3, 100, 6, 1_048_896, 1, 4096, 4, 262_144)
    assert greeting[1] == (frames.WINDOW_UPDATE, 0, 0, struct.pack(">I", 100 * 262_144 - 65_535))
    assert len(greeting) == 2


def test_settings_and_pings_are_acknowledged() -> None:
    protocol = settings_received()
    protocol.receive(frame(frames.SETTINGS, 0, 0, struct.pack(">HI", 99, 1)) + frame(frames.PING, 0, 0, b"12345678"))
    assert sent(protocol) == [(frames.SETTINGS, frames.ACK, 0, b""), (frames.PING, frames.ACK, 0, b"12345678")]


def test_max_concurrent_streams_queues_then_rejects_requests() -> None:
    protocol = settings_received(max_streams=2)
    protocol.receive(headers(1) + headers(3))
    first, second = protocol.next_request(), protocol.next_request()
    assert first is not None and second is not None
    protocol.receive(frames.rst_stream(1, ErrorCode.CANCEL) + headers(5))
    assert first.closed
    assert protocol.next_request() is None
    protocol.end_request()
    third = protocol.next_request()
    assert third is not None and third.stream_id == 5
    protocol.receive(headers(7))
    assert resets(protocol) == [(7, ErrorCode.PROTOCOL_ERROR)]


def test_response_body_respects_flow_control_windows() -> None:
    protocol = settings_received()
    protocol.receive(frame(frames.SETTINGS, 0, 0, struct.pack(">HIHI", 4, 10, 5, 16_384)) + headers())
    stream = protocol.next_request()
    assert stream is not None
    protocol.output.clear()
    answer(protocol, stream, b"x" * 25)
    assert [len(payload) for kind, _, _, payload in sent(protocol) if kind == frames.DATA] == [10]
    protocol.receive(frame(frames.SETTINGS, 0, 0, struct.pack(">HI", 4, 3)))
    assert stream.window == -7
    protocol.receive(frames.window_update(1, 17))
    protocol.output.clear()
    protocol.receive(frames.window_update(1, 100))
    assert sent(protocol) == [(frames.DATA, frames.END_STREAM, 1, b"x" * 5)]
    assert stream.closed


def test_output_buffer_is_bounded_for_concurrent_large_bodies() -> None:
    protocol = settings_received()
    protocol.receive(frame(frames.SETTINGS, 0, 0, struct.pack(">HI", 4, 1 << 24)) + frames.window_update(0, 1 << 24))
    protocol.receive(headers(1) + headers(3))
    for _ in range(2):
        stream = protocol.next_request()
        assert stream is not None
        answer(protocol, stream, b"x" * 1_000_000)
    assert len(protocol.output) < 300_000
    total = 0
    while protocol.streams:
        total += sum(len(payload) for kind, _, _, payload in sent(protocol) if kind == frames.DATA)
        protocol.on_sent()
    total += sum(len(payload) for kind, _, _, payload in sent(protocol) if kind == frames.DATA)
    assert total == 2_000_000


def test_reading_a_body_restores_the_receive_window() -> None:
    protocol = settings_received()
    protocol.receive(headers(1, OPEN))
    assert protocol.next_request() is None
    for _ in range(2):
        protocol.receive(frame(frames.DATA, 0, 1, b"x" * 131_072))
    stream = protocol.next_request()
    assert stream is not None
    assert stream.inflow.available == 0
    assert protocol.read_body(stream, 1000) == b"x" * 1000
    assert sent(protocol)[-1] == (frames.WINDOW_UPDATE, 0, 1, struct.pack(">I", 1000))
    protocol.receive(frame(frames.DATA, 0, 1, b"x" * 1001))
    assert resets(protocol) == [(1, ErrorCode.FLOW_CONTROL_ERROR)]


def test_data_frames_after_the_response_are_dropped() -> None:
    protocol = settings_received()
    protocol.receive(headers(1, OPEN, ("expect", "100-continue")))
    stream = protocol.next_request()
    assert stream is not None
    answer(protocol, stream)
    assert [kind for kind, *_ in sent(protocol)] == [frames.HEADERS, frames.DATA]
    protocol.on_sent()
    assert resets(protocol) == [(1, ErrorCode.NO_ERROR)]
    protocol.receive(frame(frames.DATA, 0, 1, b"x" * 5000) + frame(frames.DATA, frames.END_STREAM, 1, b"x"))
    assert sent(protocol) == [(frames.WINDOW_UPDATE, 0, 0, struct.pack(">I", 5000))]


def test_header_block_is_split_into_continuation_frames() -> None:
    protocol = settings_received()
    whole = block(("x-long", "y" * 40_000))
    protocol.receive(frame(frames.HEADERS, frames.END_STREAM, 1, whole[:100]) + frame(frames.CONTINUATION, 0, 1, whole[100:200]))
    assert protocol.next_request() is None
    protocol.receive(frame(frames.CONTINUATION, frames.END_HEADERS, 1, whole[200:]))
    stream = protocol.next_request()
    assert stream is not None and ("x-long", "y" * 40_000) in stream.request.fields.pairs
    protocol.send_head(stream, encode_block("200", [("x-long", "z" * 40_000)]), ends=True)
    assert [(kind, flags) for kind, flags, _, _ in sent(protocol)] == [
        (frames.HEADERS, frames.END_STREAM),
        (frames.CONTINUATION, 0),
        (frames.CONTINUATION, frames.END_HEADERS),
    ]


def test_oversized_request_headers_are_rejected_with_431() -> None:
    protocol = settings_received()
    whole = block() + encode_block("200", [("x-long", "y" * MAX_LIST_BYTES)])[1:]
    size = 200_000
    parts = [whole[start : start + size] for start in range(0, len(whole), size)]
    for number, part in enumerate(parts):
        flags = frames.END_HEADERS if number == len(parts) - 1 else 0
        kind, flags = (frames.CONTINUATION, flags) if number else (frames.HEADERS, flags | frames.END_STREAM)
        protocol.receive(frame(kind, flags, 1, part))
    stream = protocol.next_request()
    assert stream is not None and stream.request.fields.fault == "431"


def test_goaway_from_client_finishes_open_streams_only() -> None:
    protocol = settings_received()
    protocol.receive(headers(1) + frames.goaway(0, ErrorCode.NO_ERROR) + headers(3))
    stream = protocol.next_request()
    assert stream is not None and protocol.next_request() is None
    assert not protocol.is_finished
    answer(protocol, stream)
    assert protocol.is_finished
    assert [kind for kind, *_ in sent(protocol)] == [frames.GOAWAY, frames.HEADERS, frames.DATA]


# ---------------------------------------------------------------- wrong frames


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (b"\xff\xff\xff" + bytes(6), ErrorCode.FRAME_SIZE_ERROR),
        (frame(frames.DATA, 0, 0, b"x"), ErrorCode.PROTOCOL_ERROR),
        (frame(frames.DATA, 0, 9, b"x"), ErrorCode.PROTOCOL_ERROR),
        (headers(1, OPEN) + frame(frames.DATA, frames.PADDED, 1, b"\x05abc"), ErrorCode.PROTOCOL_ERROR),
        (headers(0), ErrorCode.PROTOCOL_ERROR),
        (headers(2), ErrorCode.PROTOCOL_ERROR),
        (headers(3) + headers(1), ErrorCode.PROTOCOL_ERROR),
        (frame(frames.HEADERS, WHOLE, 1, b"\xff\xff\xff\xff\xff"), ErrorCode.COMPRESSION_ERROR),
        (frame(frames.HEADERS, 0, 1, block()) + frame(frames.PING, 0, 0, bytes(8)), ErrorCode.PROTOCOL_ERROR),
        (frame(frames.HEADERS, 0, 1, block()) + frame(frames.CONTINUATION, 4, 3), ErrorCode.PROTOCOL_ERROR),
        (frame(frames.CONTINUATION, frames.END_HEADERS, 1), ErrorCode.PROTOCOL_ERROR),
        (headers(1, OPEN) + headers(1, OPEN) + headers(1, OPEN), ErrorCode.PROTOCOL_ERROR),
        (frame(frames.PRIORITY, 0, 1, b"x"), ErrorCode.FRAME_SIZE_ERROR),
        (frame(frames.RST_STREAM, 0, 1, bytes(4)), ErrorCode.PROTOCOL_ERROR),
        (frame(frames.RST_STREAM, 0, 1, b""), ErrorCode.FRAME_SIZE_ERROR),
        (frame(frames.SETTINGS, 0, 1), ErrorCode.PROTOCOL_ERROR),
        (frame(frames.SETTINGS, 0, 0, b"x"), ErrorCode.FRAME_SIZE_ERROR),
        (frame(frames.SETTINGS, frames.ACK, 0), ErrorCode.PROTOCOL_ERROR),
        (frame(frames.SETTINGS, 0, 0, struct.pack(">HI", 2, 2)), ErrorCode.PROTOCOL_ERROR),
        (frame(frames.SETTINGS, 0, 0, struct.pack(">HI", 4, 1 << 31)), ErrorCode.FLOW_CONTROL_ERROR),
        (frame(frames.SETTINGS, 0, 0, struct.pack(">HI", 5, 1)), ErrorCode.PROTOCOL_ERROR),
        (frame(frames.SETTINGS, 0, 0, struct.pack(">HIHI", 4, 1, 4, 2)), ErrorCode.PROTOCOL_ERROR),
        (frame(frames.PUSH_PROMISE, 0, 1, bytes(8)), ErrorCode.PROTOCOL_ERROR),
        (frame(frames.PING, 0, 0, b"short"), ErrorCode.FRAME_SIZE_ERROR),
        (frame(frames.PING, 0, 1, bytes(8)), ErrorCode.PROTOCOL_ERROR),
        (frame(frames.GOAWAY, 0, 1, bytes(8)), ErrorCode.PROTOCOL_ERROR),
        (frame(frames.GOAWAY, 0, 0, bytes(7)), ErrorCode.FRAME_SIZE_ERROR),
        (frame(frames.WINDOW_UPDATE, 0, 0, bytes(4)), ErrorCode.PROTOCOL_ERROR),
        (frame(frames.WINDOW_UPDATE, 0, 0, bytes(3)), ErrorCode.FRAME_SIZE_ERROR),
        (frames.window_update(5, 1), ErrorCode.PROTOCOL_ERROR),
        (frames.window_update(0, frames.LARGEST_WINDOW), ErrorCode.FLOW_CONTROL_ERROR),
        (frame(frames.PRIORITY_UPDATE, 0, 0, bytes(4)), ErrorCode.PROTOCOL_ERROR),
    ],
)
def test_invalid_frames_are_connection_errors(wrong: bytes, code: ErrorCode) -> None:
    protocol = settings_received()
    protocol.receive(wrong)
    assert ending(protocol) is code
    assert protocol.is_finished and not protocol.streams
    protocol.receive(headers(11))
    assert protocol.next_request() is None and not protocol.output


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (headers(1, WHOLE | frames.PRIORITY_FLAG)[:9] + b"\0\0\0\1\0" + block(), ErrorCode.PROTOCOL_ERROR),
        (frame(frames.PRIORITY, 0, 1, b"\0\0\0\1\0"), ErrorCode.PROTOCOL_ERROR),
        (headers(1) + frame(frames.DATA, 0, 1, b"x"), ErrorCode.STREAM_CLOSED),
        (headers(1) + headers(1), ErrorCode.STREAM_CLOSED),
        (headers(1, OPEN) + headers(1, OPEN), ErrorCode.PROTOCOL_ERROR),
        (headers(1, OPEN) + headers(1), ErrorCode.PROTOCOL_ERROR),
        (headers(1, OPEN, ("content-length", "2")) + frame(frames.DATA, 0, 1, b"xyz"), ErrorCode.PROTOCOL_ERROR),
        (headers(1) + frame(frames.WINDOW_UPDATE, 0, 1, bytes(4)), ErrorCode.PROTOCOL_ERROR),
        (headers(1) + frames.window_update(1, frames.LARGEST_WINDOW), ErrorCode.FLOW_CONTROL_ERROR),
        (headers(1, WHOLE, ("Upper", "x")), ErrorCode.PROTOCOL_ERROR),
        (headers(1, WHOLE, (":path", "/again")), ErrorCode.PROTOCOL_ERROR),
        (headers(1, WHOLE, ("x-a", "a\nb")), ErrorCode.PROTOCOL_ERROR),
        (frame(frames.HEADERS, WHOLE, 1, block(base=USUAL[:3])), ErrorCode.PROTOCOL_ERROR),
        (frame(frames.HEADERS, WHOLE, 1, block(base=((":path", "*a"), *USUAL[:3]))), ErrorCode.PROTOCOL_ERROR),
        (frame(frames.HEADERS, WHOLE, 1, block(base=((":protocol", "websocket"), *USUAL))), ErrorCode.PROTOCOL_ERROR),
        (frame(frames.HEADERS, WHOLE, 1, block(base=((":method", "CONNECT"), *USUAL[1:]))), ErrorCode.PROTOCOL_ERROR),
        (frame(frames.HEADERS, WHOLE, 1, block(base=(*USUAL[:2], (":authority", "a@b"), USUAL[3]))), ErrorCode.PROTOCOL_ERROR),
    ],
)
def test_invalid_frames_are_stream_errors(wrong: bytes, code: ErrorCode) -> None:
    wrong = wrong if wrong[3] != frames.HEADERS or not wrong[4] & 0x20 else frame(frames.HEADERS, wrong[4], 1, wrong[9:])
    protocol = settings_received()
    protocol.receive(wrong)
    assert resets(protocol) == [(1, code)]
    protocol.receive(headers(3))
    stream = protocol.next_request()
    assert stream is not None and stream.stream_id == 3


@pytest.mark.parametrize("greeting", [b"GET / HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\r"])
def test_invalid_connection_preface_ends_the_connection(greeting: bytes) -> None:
    protocol = Protocol()
    protocol.receive(greeting)
    assert protocol.is_finished
    protocol = Protocol()
    protocol.receive(frames.PREFACE + frame(frames.PING, 0, 0, bytes(8)))
    assert ending(protocol) is ErrorCode.PROTOCOL_ERROR


def test_body_shorter_than_content_length_is_an_error() -> None:
    protocol = settings_received()
    protocol.receive(headers(1, OPEN, ("content-length", "9")) + frame(frames.DATA, frames.END_STREAM, 1, b"xyz"))
    stream = protocol.next_request()
    assert stream is not None
    assert stream.body_error == "request declared a Content-Length of 9 but only wrote 3 bytes"


# ---------------------------------------------------------------- hostile frames


@pytest.mark.parametrize("starts", [True, False])
def test_rapid_resets_end_the_connection(starts: bool) -> None:
    time = Time()
    protocol = settings_received(monotonic=time)
    for number in range(1, 4_000, 2):
        protocol.receive(headers(number))
        if starts:
            protocol.next_request()  # and it takes its time
        protocol.receive(frames.rst_stream(number, ErrorCode.CANCEL))
        if protocol.is_finished:
            break
        while not starts and protocol.next_request() is not None:
            pass
    assert ending(protocol) is ErrorCode.ENHANCE_YOUR_CALM
    assert number == (1003 if starts else 2001)


def test_occasional_stream_resets_are_allowed() -> None:
    time = Time()
    protocol = settings_received(monotonic=time)
    for number in range(1, 8_000, 2):
        protocol.receive(headers(number))
        stream = protocol.next_request()
        assert stream is not None
        if number % 4 == 1:
            protocol.send_head(stream, encode_block("200", ()), ends=False)
        protocol.receive(frames.rst_stream(number, ErrorCode.CANCEL))
        protocol.end_request()
        time.now += 0.02
    assert not protocol.is_finished


@pytest.mark.parametrize("piece", [b"", b"x" * 4096])
def test_endless_header_blocks_end_the_connection(piece: bytes) -> None:
    protocol = settings_received()
    protocol.receive(frame(frames.HEADERS, frames.END_STREAM, 1, b""))
    for _ in range(20_000):
        protocol.receive(frame(frames.CONTINUATION, 0, 1, piece))
        if protocol.is_finished:
            break
    assert ending(protocol) is ErrorCode.PROTOCOL_ERROR


def test_hpack_bomb_ends_the_connection() -> None:
    protocol = settings_received()
    entry = b"\x40" + b"\x01a" + b"\x7f\x81\x1e" + b"y" * 3968  # literal, indexed: 62 afterwards
    protocol.receive(frame(frames.HEADERS, WHOLE, 1, entry + b"\xbe" * 20_000))
    assert ending(protocol) is ErrorCode.ENHANCE_YOUR_CALM


@pytest.mark.parametrize(
    "useless",
    [
        frame(frames.PING, frames.ACK, 0, bytes(8)),
        frame(frames.DATA, 0, 1),
        frame(frames.SETTINGS, 0, 0),
        frame(frames.PRIORITY, 0, 1, b"\0\0\0\7\0"),
        frame(0xBB, 0, 0, b"unknown"),
        frame(frames.DATA, 0, 3, b"x"),
    ],
)
def test_flood_of_control_frames_ends_the_connection(useless: bytes) -> None:
    time = Time()
    protocol = settings_received(monotonic=time)
    protocol.receive(headers(1, OPEN) + headers(3) + frames.rst_stream(3, ErrorCode.CANCEL))
    for _ in range(100):
        protocol.receive(useless * 50)
        protocol.output.clear()
        protocol.on_sent()
        time.now += 1
    assert not protocol.is_finished
    for _ in range(600):
        protocol.receive(useless * 50)
        if protocol.is_finished:
            break
        protocol.output.clear()
        protocol.on_sent()
    assert ending(protocol) is ErrorCode.ENHANCE_YOUR_CALM


def test_too_many_queued_control_frames_end_the_connection() -> None:
    protocol = settings_received()
    for _ in range(9_990):
        protocol.receive(frame(frames.PING, 0, 0, bytes(8)))
    assert not protocol.is_finished
    time = 0
    while not protocol.is_finished and time < 20:
        protocol.receive(frame(frames.PING, 0, 0, bytes(8)))
        time += 1
    assert protocol.is_finished
    assert len(protocol.output) < 500_000


def test_unread_responses_make_the_connection_congested() -> None:
    protocol = settings_received()
    stream_id = 1
    while not protocol.is_congested:
        protocol.receive(headers(stream_id))
        stream = protocol.next_request()
        assert stream is not None
        protocol.send_head(stream, encode_block("200", [("x-long", "y" * 5000)]), ends=True)
        protocol.end_request()
        stream_id += 2
    assert len(protocol.output) < 600_000


# ---------------------------------------------------------------- anywhere cut


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_parsing_is_independent_of_chunk_boundaries(data: st.DataObject) -> None:
    pieces = data.draw(
        st.lists(
            st.sampled_from(
                [
                    headers(1),
                    headers(3, OPEN),
                    frame(frames.DATA, 0, 3, b"abc"),
                    frame(frames.DATA, frames.PADDED, 3, b"\x02abc\0\0"),
                    frame(frames.DATA, frames.END_STREAM, 3, b"def"),
                    frame(frames.HEADERS, frames.END_STREAM, 5, block()[:3]) + frame(frames.CONTINUATION, 4, 5, block()[3:]),
                    frame(frames.PING, 0, 0, b"12345678"),
                    frames.window_update(0, 5),
                    frames.rst_stream(3, 8),
                    frame(0xBB, 0, 0, b"unknown"),
                    frame(frames.SETTINGS, 0, 0, struct.pack(">HI", 4, 70_000)),
                ]
            ),
            max_size=12,
        )
    )
    whole = GREETING + b"".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    at_once, in_parts = Protocol(), Protocol()
    at_once.receive(whole)
    for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        in_parts.receive(whole[start:end])
    assert in_parts.output == at_once.output
    for protocol in (at_once, in_parts):
        protocol.output.clear()
    while (one := at_once.next_request()) is not None:
        other = in_parts.next_request()
        assert other is not None
        assert (one.stream_id, one.request, one.body, one.remote_ended) == (
            other.stream_id,
            other.request,
            other.body,
            other.remote_ended,
        )
    assert in_parts.next_request() is None


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 17), st.integers(0, 255), st.integers(0, 9), st.binary(max_size=40)), max_size=20))
def test_arbitrary_frames_do_not_crash_the_protocol(wild: list[tuple[int, int, int, bytes]]) -> None:
    protocol = settings_received()
    for kind, flags, stream_id, payload in wild:
        protocol.receive(frame(kind, flags, stream_id, payload))
        while (stream := protocol.next_request()) is not None:
            answer(protocol, stream)
    sent(protocol)
    assert len(protocol.streams) <= 100
