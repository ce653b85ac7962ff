from __future__ import annotations

from fakekube.net import websocket
from fakekube.net.http1 import RequestParser
from fakekube.net.pump import Bare, Chunked, WebSocketMessages
from fakekube.net.streams import Fragment


def test_chunked_framing() -> None:
    framing = Chunked(RequestParser(), reusable=True)
    assert framing.frame([b"a"]) == b"1\r\na\r\n"
    assert framing.frame([b"b" * 16, b"", b"c"]) == b"10\r\n" + b"b" * 16 + b"\r\n1\r\nc\r\n"
    assert framing.frame([b""]) == b""
    assert framing.last == b"0\r\n\r\n"


def test_bare_framing_ends_with_the_connection() -> None:
    framing = Bare(RequestParser())
    assert framing.frame([b"a", b"b"]) == b"ab"
    assert framing.last == b""
    assert not framing.reusable


def test_pipelined_input_is_buffered_up_to_a_limit() -> None:
    parser = RequestParser()
    framing = Chunked(parser, reusable=True)
    assert framing.receive(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n") == b""
    assert not framing.paused
    request = parser.request()
    assert request is not None
    framing.receive(b"x" * 100_000)
    assert framing.paused


def test_websocket_messages_are_text_or_binary() -> None:
    assert WebSocketMessages(False).frame([b"a", b"b"]) == websocket.text(b"a") + websocket.text(b"b")
    assert WebSocketMessages(True).frame([b"a"]) == websocket.binary(b"a")
    assert WebSocketMessages(True).key != WebSocketMessages(False).key


def test_fragments_become_websocket_continuation_frames() -> None:
    parts = [Fragment.part_of(b"a", begins=True, ends=False), Fragment.part_of(b"b", begins=False, ends=False)]
    end = Fragment.part_of(b"c", begins=False, ends=True)
    assert WebSocketMessages(False).frame(parts) == b"\x01\x01a\x00\x01b"
    assert WebSocketMessages(True).frame([*parts, end]) == b"\x02\x01a\x00\x01b\x80\x01c"
    assert WebSocketMessages(False).frame([Fragment.part_of(b"a", begins=True, ends=True)]) == websocket.text(b"a")


def test_websocket_answers_ping_and_close() -> None:
    framing = WebSocketMessages(False)
    assert framing.receive(b"\x89\x81\0\0\0\0x") == b"\x8a\x01x"
    assert not framing.client_closed
    framing.receive(b"\x88\x80\0\0\0\0")
    assert framing.client_closed
