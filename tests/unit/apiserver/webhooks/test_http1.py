"""HTTP/1.1 responses of webhook servers, parsed as by net/http."""

from __future__ import annotations

import gzip
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.apiserver.webhooks.http1 import BodyError, ClosedError, HeadError, Source, read_answer

LARGEST = 1 << 20


def source(*parts: bytes) -> Source:
    waiting: Iterator[bytes] = iter(parts)
    return Source(lambda: next(waiting, b""))


def body(*parts: bytes) -> tuple[bytes, bool]:
    answer, reusable = read_answer(source(*parts), LARGEST)
    return answer.body, reusable


HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (HEAD + b"Content-Length: 3\r\n\r\nabc", (b"abc", True)),
        (HEAD + b"content-length: 3\r\nconnection: Close\r\n\r\nabc", (b"abc", False)),
        (HEAD + b"Content-Length: 3\r\n\r\nabcd", (b"abc", False)),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc", (b"abc", False)),
        (HEAD + b"\r\nabc", (b"abc", False)),
        (CHUNKED + b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: x\r\n\r\n", (b"abcde", True)),
        (b"HTTP/1.1 204 No Content\r\n\r\n", (b"", True)),
        (
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\n" + HEAD + b"Content-Length: 1\r\n\r\nx",
            (b"x", True),
        ),
        (b"HTTP/1.1 101 Switching\r\n\r\nwhatever", (b"", False)),
    ],
)
def test_response_bodies(sent: bytes, expected: tuple[bytes, bool]) -> None:
    assert body(sent) == expected
    assert body(*(sent[index : index + 1] for index in range(len(sent)))) == (expected[0], expected[1] or sent.endswith(b"abcd"))


def test_response_headers() -> None:
    answer, _ = read_answer(source(b"HTTP/1.1 404 Not Found\nA:  b \r\na: c\r\nContent-Length: 0\r\n\r\n"), LARGEST)
    assert (answer.status, answer.headers) == (404, {"a": "b, c", "content-length": "0"})


@pytest.mark.parametrize(
    ("sent", "problem"),
    [
        (b"\x00\x01garbage\r\n\r\n", r'malformed HTTP response "\x00\x01garbage"'),
        (b"HTTP/1.1 abc OK\r\n\r\n", 'malformed HTTP status code "abc"'),
        (b"HTTP/1.1 20 OK\r\n\r\n", 'malformed HTTP status code "20"'),
        (b"HTTP/1.12 200 OK\r\n\r\n", 'malformed HTTP version "HTTP/1.12"'),
        (b"HTTP/1.1 200", "unexpected EOF"),
        (HEAD + b"Content-", 'malformed MIME header: missing colon: "Content-"'),
        (HEAD + b"a b: c\r\n\r\n", "malformed MIME header line: a b: c"),
        (HEAD + b"a: c", "unexpected EOF"),
        (HEAD + b"Content-Length: x\r\n\r\n", 'bad Content-Length "x"'),
        (HEAD + b"Content-Length: -5\r\n\r\n", 'bad Content-Length "-5"'),
        (HEAD + b"Content-Length: 99999999999999999999\r\n\r\n", 'bad Content-Length "99999999999999999999"'),
        (HEAD + b"Transfer-Encoding: gzip\r\n\r\n", 'unsupported transfer encoding: "gzip"'),
    ],
)
def test_malformed_response_heads_are_rejected(sent: bytes, problem: str) -> None:
    with pytest.raises(HeadError) as caught:
        body(sent)
    assert str(caught.value) == problem


def test_response_head_size_is_bounded() -> None:
    line = b"X: " + b"y" * 60_000 + b"\r\n"
    with pytest.raises(HeadError, match="server response headers exceeded 10485760 bytes; aborted"):
        body(HEAD, *[line] * 200)
    with pytest.raises(HeadError, match="server response headers exceeded"):
        body(HEAD, *[b"y" * 60_000] * 200)


@pytest.mark.parametrize(
    ("sent", "problem"),
    [
        (HEAD + b"Content-Length: 100\r\n\r\n{", "unexpected EOF"),
        (CHUNKED + b"zz\r\n", "invalid byte in chunk length"),
        (CHUNKED + b"\r\n", "empty hex number for chunk length"),
        (CHUNKED + b"11111111111111111\r\n", "http chunk length too large"),
        (CHUNKED + b"5\r\nab", "unexpected EOF"),
        (CHUNKED + b"2\r\nabc\r\n", "malformed chunked encoding"),
        (CHUNKED + b"2\r\nab\r\n0\r\n", "unexpected EOF"),
        (CHUNKED + b"1" * 5000, "header line too long"),
        (HEAD + b"Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc", "gzip: invalid header"),
        (HEAD + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"x" * 100, mtime=0)[:-9], "unexpected EOF"),
        (HEAD + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"x", mtime=0)[:-8] + b"\0" * 8, "gzip: invalid checksum"),
    ],
)
def test_malformed_response_bodies_are_rejected(sent: bytes, problem: str) -> None:
    with pytest.raises(BodyError) as caught:
        body(sent)
    assert str(caught.value) == problem


def test_empty_response_raises_closed_error() -> None:
    with pytest.raises(ClosedError):
        body()


def test_decompressed_body_size_is_bounded() -> None:
    bomb = gzip.compress(b"\0" * (LARGEST + 1))
    with pytest.raises(OverflowError):
        body(HEAD + b"Content-Encoding: gzip\r\n\r\n" + bomb)


@given(st.binary(max_size=300), st.lists(st.integers(1, 40), max_size=20), st.booleans(), st.booleans())
def test_response_body_is_independent_of_chunk_boundaries(data: bytes, cuts: list[int], packed: bool, chunked: bool) -> None:
    payload = gzip.compress(data, mtime=0) if packed else data
    head = HEAD + (b"Content-Encoding: gzip\r\n" if packed else b"")
    if chunked:
        head += b"Transfer-Encoding: chunked\r\n\r\n"
        step = (cuts or [7])[0]
        pieces = [payload[index : index + step] for index in range(0, len(payload), step)]
        framed = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    else:
        head += b"Content-Length: %d\r\n\r\n" % len(payload)
        framed = payload
    sent, parts = head + framed, []
    for cut in cuts:
        parts.append(sent[:cut])
        sent = sent[cut:]
    parts = [part for part in (*parts, sent) if part]
    assert body(*parts) == (data, True)
