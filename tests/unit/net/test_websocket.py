from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.net import websocket
from fakekube.net.websocket import FrameReader, Refused, handshake
from tests.unit.net.streaming.peers import CLOSE, PING, PONG, TEXT, masked

ASKED = {
    "REQUEST_METHOD": "GET",
    "HTTP_UPGRADE": "WebSocket",
    "HTTP_CONNECTION": "keep-alive, Upgrade",
    "HTTP_SEC_WEBSOCKET_KEY": "dGhlIHNhbXBsZSBub25jZQ==",
    "HTTP_SEC_WEBSOCKET_VERSION": "13",
    "HTTP_ORIGIN": "http://x",
}


def test_handshake_example_of_rfc_6455() -> None:
    assert handshake(ASKED) == (
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
    )


def test_single_offered_subprotocol_is_accepted() -> None:
    answer = handshake(ASKED | {"HTTP_SEC_WEBSOCKET_PROTOCOL": " base64.binary.k8s.io "})
    assert answer.endswith(b"\r\nSec-WebSocket-Protocol: base64.binary.k8s.io\r\n\r\n")


@pytest.mark.parametrize(
    ("change", "answer"),
    [
        ({"REQUEST_METHOD": "POST"}, b"HTTP/1.1 405 Method Not Allowed\r\n\r\nbad method"),
        ({"HTTP_UPGRADE": "spdy"}, b"HTTP/1.1 400 Bad Request\r\n\r\nnot websocket protocol"),
        ({"HTTP_CONNECTION": "close"}, b"HTTP/1.1 400 Bad Request\r\n\r\nnot websocket protocol"),
        ({"HTTP_SEC_WEBSOCKET_KEY": ""}, b"HTTP/1.1 400 Bad Request\r\n\r\nmismatch challenge/response"),
        (
            {"HTTP_SEC_WEBSOCKET_VERSION": "8"},
            b"HTTP/1.1 400 Bad Request\r\nSec-WebSocket-Version: 13\r\n\r\nmissing or bad WebSocket Version",
        ),
        ({"HTTP_ORIGIN": ""}, b"HTTP/1.1 403 Forbidden\r\n\r\n"),
        ({"HTTP_ORIGIN": "null"}, b"HTTP/1.1 403 Forbidden\r\n\r\n"),
        ({"HTTP_SEC_WEBSOCKET_PROTOCOL": "a, b"}, b"HTTP/1.1 400 Bad Request\r\n\r\n"),
    ],
)
def test_invalid_handshakes_are_rejected(change: dict[str, Any], answer: bytes) -> None:
    with pytest.raises(Refused) as refused:
        handshake(ASKED | change)
    assert refused.value.answer == answer


@pytest.mark.parametrize(
    ("length", "head"),
    [
        (0, b"\x81\x00"),
        (125, b"\x81\x7d"),
        (126, b"\x81\x7e\x00\x7e"),
        (65535, b"\x81\x7e\xff\xff"),
        (65536, b"\x81\x7f\x00\x00\x00\x00\x00\x01\x00\x00"),
    ],
)
def test_encoding_of_frame_lengths(length: int, head: bytes) -> None:
    message = b"a" * length
    assert websocket.text(message) == head + message
    assert websocket.binary(message) == bytes([0x82]) + head[1:] + message


def test_close_frame() -> None:
    assert websocket.close() == b"\x88\x02\x03\xe8"


frames = st.one_of(
    st.tuples(st.sampled_from([0x0, TEXT, 0x2, PONG]), st.sampled_from([0, 5, 125, 126, 70000])),
    st.tuples(st.just(PING), st.sampled_from([0, 5, 125])),
)


@given(st.lists(frames, max_size=6), st.lists(st.integers(0), max_size=8), st.booleans())
def test_pings_are_answered_and_other_frames_skipped(sent: list[tuple[int, int]], places: list[int], sends_close: bool) -> None:
    data = b"".join(masked(opcode, b"p" * length) for opcode, length in sent)
    if sends_close:
        data += masked(CLOSE, b"\x03\xe8")
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    reader = FrameReader()
    answers = b"".join(reader.feed(data[start:end]) for start, end in pairwise(edges))
    assert answers == b"".join(bytes([0x8A, n]) + b"p" * n for opcode, n in sent if opcode == PING)
    assert reader.closed is sends_close


def test_unmasked_client_frame_closes_with_1002() -> None:
    reader = FrameReader()
    assert reader.feed(b"\x81\x01a") == websocket.close(1002)
    assert reader.closed
    assert reader.feed(masked(PING, b"x")) == b""


def test_long_message_is_not_buffered() -> None:
    reader = FrameReader()
    reader.feed(masked(TEXT, b"a" * 100_000)[:-1])
    assert reader._left == 1
    assert not reader._buffer
