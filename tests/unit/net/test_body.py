from __future__ import annotations

import io

import pytest

from fakekube.net.environ import MAX_DISCARDED_BYTES, Body
from fakekube.net.http1 import BodyError, RequestParser
from fakekube.net.transport import Transport

CHUNKED = "Transfer-Encoding: chunked"


class Wire(Transport):
    """A client that sends the given pieces, then nothing more."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = list(pieces)
        self.sent = b""

    def receive(self) -> bytes:
        return self.pieces.pop(0) if self.pieces else b""

    def send(self, data: bytes | memoryview) -> None:
        self.sent += data


def open_body(wire: Wire, *fields: str, ahead: bytes = b"") -> Body:
    parser = RequestParser()
    parser.feed("\r\n".join(["POST / HTTP/1.1", "Host: a", *fields, "\r\n"]).encode() + ahead)
    request = parser.request()
    assert request is not None
    return Body(request, parser, wire)


def test_already_received_body_is_read_from_memory() -> None:
    body = open_body(Wire(), "Content-Length: 3", ahead=b"abcGET")
    stream = body.open()
    assert isinstance(stream, io.BytesIO)
    assert stream.read() == b"abc"
    assert not body.unread


@pytest.mark.parametrize("fields", [("Content-Length: 10",), (CHUNKED,)])
def test_body_is_received_lazily_as_it_is_read(fields: tuple[str, ...]) -> None:
    whole = b"one\ntwo\nx\n" if "10" in fields[0] else b"5\r\none\nt\r\n5\r\nwo\nx\n\r\n0\r\n\r\n"
    wire = Wire(whole[:7], whole[7:], b"GET")
    stream = open_body(wire, *fields).open()
    assert stream.readline() == b"one\n"
    assert stream.readlines() == [b"two\n", b"x\n"]
    assert stream.read() == b""
    assert wire.pieces == [b"GET"]


def test_first_read_sends_100_continue() -> None:
    wire = Wire(b"abc")
    body = open_body(wire, "Expect: 100-continue", "Content-Length: 3")
    assert wire.sent == b""
    assert body.open().read() == b"abc"
    assert wire.sent == b"HTTP/1.1 100 Continue\r\n\r\n"


def test_discarding_an_unread_body_sends_no_100_continue() -> None:
    wire = Wire(b"abc")
    assert not open_body(wire, "Expect: 100-continue", "Content-Length: 3").discard()
    assert wire.sent == b""
    assert wire.pieces == [b"abc"]


def test_truncated_body_raises_on_every_read() -> None:
    body = open_body(Wire(b"ab"), "Content-Length: 3")
    stream = body.open()
    for _ in range(2):
        with pytest.raises(BodyError, match="unexpected EOF"):
            stream.read()
    assert not body.discard()


@pytest.mark.parametrize(
    ("length", "pieces", "kept"),
    [(MAX_DISCARDED_BYTES - 1, 4, True), (MAX_DISCARDED_BYTES, 4, False), (MAX_DISCARDED_BYTES - 1, 3, False)],
)
def test_discard_reads_the_rest_of_a_body_up_to_a_limit(length: int, pieces: int, kept: bool) -> None:
    data = b"a" * length
    step = MAX_DISCARDED_BYTES // 4
    wire = Wire(*[data[step * number : step * (number + 1)] for number in range(pieces)])
    assert open_body(wire, f"Content-Length: {length}").discard() is kept


def test_discard_gives_up_on_endless_chunked_body() -> None:
    chunk = b"10000\r\n%b\r\n" % (b"a" * 0x10000)
    wire = Wire(*[chunk] * 100)
    assert not open_body(wire, CHUNKED).discard()
    assert len(wire.pieces) > 90


def test_discard_reads_the_rest_of_a_short_chunked_body() -> None:
    body = open_body(Wire(b"def\r\n0\r\n\r\n"), CHUNKED, ahead=b"6\r\nabc")
    assert body.open().read(2) == b"ab"
    assert body.discard()
