"""Responses are read as Go's HTTP client reads them, whatever the sizes of the pieces in which they arrive."""

from __future__ import annotations

import gzip
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.net.http1 import BodyError
from fakekube.net.http1.responses import (
    MAX_RESPONSE_HEADER_BYTES,
    ConnectionEndedError,
    MalformedResponseError,
    Response,
    ResponseReader,
    decompress_gzip,
)

HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


def reader(*parts: bytes) -> ResponseReader:
    waiting: Iterator[bytes] = iter(parts)
    return ResponseReader(lambda: next(waiting, b""))


def bytewise(data: bytes) -> list[bytes]:
    return [data[index : index + 1] for index in range(len(data))]


def head_of(data: bytes, method: str = "GET") -> Response:
    return reader(data).read_response(method)


def body_of(*parts: bytes, method: str = "GET") -> tuple[bytes, bool]:
    source = reader(*parts)
    response = source.read_response(method)
    return b"".join(source.iterate_body()), response.keep_alive and not source.has_buffered


def test_status_and_headers() -> None:
    head = head_of(b"HTTP/1.1 404 Not Found\r\nA:  1\r\nB:2 \r\n  more\r\na: 3\r\n\r\nbody")
    assert (head.version, head.status) == ((1, 1), 404)
    assert head.headers == [("A", "1"), ("B", "2 more"), ("a", "3")]
    assert head.values("a") == ["1", "3"]


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (HEAD + b"Content-Length: 3\r\n\r\nabc", (b"abc", True)),
        (HEAD + b"content-length: 3\r\nconnection: Close\r\n\r\nabc", (b"abc", False)),
        (HEAD + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", (b"abc", True)),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc", (b"abc", False)),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\nabc", (b"abc", True)),
        (b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nabc", (b"abc", False)),
        (HEAD + b"\r\nabc", (b"abc", False)),
        (CHUNKED + b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: x\r\n\r\n", (b"abcde", True)),
        (HEAD + b"Content-Length: 9\r\nTransfer-Encoding: Chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", (b"x", True)),
        (b"HTTP/1.1 204 No Content\r\n\r\n", (b"", True)),
        (
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\n" + HEAD + b"Content-Length: 1\r\n\r\nx",
            (b"x", True),
        ),
        (b"HTTP/1.1 101 Switching\r\n\r\n", (b"", False)),
    ],
)
def test_bodies(sent: bytes, expected: tuple[bytes, bool]) -> None:
    assert body_of(sent) == expected
    assert body_of(*bytewise(sent)) == expected


def test_bytes_after_a_response_are_kept() -> None:
    source = reader(HEAD + b"Content-Length: 3\r\n\r\nabcd")
    source.read_response("GET")
    assert b"".join(source.iterate_body()) == b"abc"
    assert source.has_buffered
    assert source.take_buffered() == b"d"


def test_a_response_to_head_has_no_body() -> None:
    assert body_of(HEAD + b"Content-Length: 12\r\n\r\n", method="HEAD") == (b"", True)


@pytest.mark.parametrize(
    ("sent", "problem"),
    [
        (b"hello\r\n", 'malformed HTTP response "hello"'),
        (b"\x00\x01garbage\r\n\r\n", r'malformed HTTP response "\x00\x01garbage"'),
        (b"HTTP/1.1 abc OK\r\n\r\n", 'malformed HTTP status code "abc"'),
        (b"HTTP/1.1 20 OK\r\n\r\n", 'malformed HTTP status code "20"'),
        (b"HTTP/1.12 200 OK\r\n\r\n", 'malformed HTTP version "HTTP/1.12"'),
        (b"HTTP/one 200 OK\r\n\r\n", 'malformed HTTP version "HTTP/one"'),
        (b"HTTP/1.1 200", "unexpected EOF"),
        (HEAD, "unexpected EOF"),
        (HEAD + b"a: c", "unexpected EOF"),
        (b"HTTP/1.1 100 Continue\r\n\r\n", "unexpected EOF"),
        (HEAD + b"A: 1\r\nConte", 'malformed MIME header: missing colon: "Conte"'),
        (HEAD + b"what\r\n\r\n", 'malformed MIME header: missing colon: "what"'),
        (HEAD + b" x\r\n\r\n", 'malformed MIME header initial line: " x"'),
        (HEAD + b"a(b: c\r\n\r\n", 'malformed MIME header line: "a(b: c"'),
        (HEAD + b"Content-Length: x\r\n\r\n", 'bad Content-Length "x"'),
        (HEAD + b"Content-Length: -5\r\n\r\n", 'bad Content-Length "-5"'),
        (HEAD + b"Content-Length: \r\n\r\n", 'invalid empty Content-Length ""'),
        (HEAD + b"Content-Length: 99999999999999999999\r\n\r\n", 'bad Content-Length "99999999999999999999"'),
        (
            HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
            'http: message cannot contain multiple Content-Length headers; got ["1" "2"]',
        ),
        (HEAD + b"Transfer-Encoding: gzip\r\n\r\n", 'unsupported transfer encoding: "gzip"'),
        (
            HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            'too many transfer encodings: ["chunked" "chunked"]',
        ),
    ],
)
def test_malformed_heads(sent: bytes, problem: str) -> None:
    for parts in ([sent], bytewise(sent)):
        with pytest.raises(MalformedResponseError) as caught:
            body_of(*parts)
        assert str(caught.value) == problem


def test_the_connection_ends_before_a_response() -> None:
    with pytest.raises(ConnectionEndedError):
        body_of()


def test_the_size_of_the_head_is_limited() -> None:
    line = b"X: " + b"y" * 60_000 + b"\r\n"
    informational = b"HTTP/1.1 103 Early Hints\r\n" + line + b"\r\n"
    for parts in ([HEAD, *[line] * 200], [HEAD, *[b"y" * 60_000] * 200], [informational] * 200):
        with pytest.raises(MalformedResponseError, match=f"server response headers exceeded {MAX_RESPONSE_HEADER_BYTES} bytes"):
            body_of(*parts)


@pytest.mark.parametrize(
    ("sent", "problem"),
    [
        (HEAD + b"Content-Length: 100\r\n\r\n{", "unexpected EOF"),
        (CHUNKED + b"zz\r\n", "invalid byte in chunk length"),
        (CHUNKED + b"\r\n", "empty hex number for chunk length"),
        (CHUNKED + b"11111111111111111\r\n", "http chunk length too large"),
        (CHUNKED + b"5\r\nab", "unexpected EOF"),
        (CHUNKED + b"5", "unexpected EOF"),
        (CHUNKED + b"2\r\nabc\r\n", "malformed chunked encoding"),
        (CHUNKED + b"2\nab\r\n", "chunked line ends with bare LF"),
        (CHUNKED + b"2\r\nab\r\n0\r\n", "http: unexpected EOF reading trailer"),
        (CHUNKED + b"1" * 5000, "header line too long"),
    ],
)
def test_malformed_bodies(sent: bytes, problem: str) -> None:
    for parts in ([sent], bytewise(sent)):
        with pytest.raises(BodyError) as caught:
            body_of(*parts)
        assert str(caught.value) == problem


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"abc", "gzip: invalid header"),
        (gzip.compress(b"x" * 100, mtime=0)[:-9], "unexpected EOF"),
        (gzip.compress(b"x", mtime=0)[:-8] + b"\0" * 8, "gzip: invalid checksum"),
    ],
)
def test_malformed_gzip(data: bytes, problem: str) -> None:
    with pytest.raises(BodyError) as caught:
        list(decompress_gzip([data]))
    assert str(caught.value) == problem


def test_pieces_of_gzip_have_a_limited_size() -> None:
    pieces = list(decompress_gzip([gzip.compress(b"\0" * (1 << 20))]))
    assert sum(map(len, pieces)) == 1 << 20
    assert max(map(len, pieces)) <= 65536


_NAMES = st.from_regex(r"\AX[A-Za-z0-9-]{0,8}\Z")
_VALUES = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=10)


@given(st.integers(200, 999), st.lists(st.tuples(_NAMES, _VALUES), max_size=5))
def test_generated_heads_are_read_back(status: int, headers: list[tuple[str, str]]) -> None:
    lines = [f"HTTP/1.1 {status} Why", *(f"{name}: {value}" for name, value in headers), "", ""]
    head = head_of("\r\n".join(lines).encode())
    assert (head.status, head.headers) == (status, headers)


@given(st.binary(max_size=300), st.lists(st.integers(1, 40), max_size=20), st.booleans())
def test_a_body_is_independent_of_pieces_and_chunks(data: bytes, cuts: list[int], chunked: bool) -> None:
    if chunked:
        step = (cuts or [7])[0]
        pieces = [data[index : index + step] for index in range(0, len(data), step)]
        sent = CHUNKED + b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    else:
        sent = HEAD + b"Content-Length: %d\r\n\r\n" % len(data) + data
    parts = []
    for cut in cuts:
        parts.append(sent[:cut])
        sent = sent[cut:]
    parts = [part for part in (*parts, sent) if part]
    assert body_of(*parts) == (data, True)


def test_chunks_that_have_arrived_are_read_together() -> None:
    source = reader(CHUNKED + b"1\r\na\r\n" * 1000, b"1\r\nb\r\n0\r\n\r\n")
    source.read_response("GET")
    assert list(source.iterate_body()) == [b"a" * 1000, b"b"]


def test_data_before_an_invalid_chunk_is_read() -> None:
    source = reader(CHUNKED + b"1\r\na\r\nzz\r\n")
    source.read_response("GET")
    pieces = source.iterate_body()
    assert next(pieces) == b"a"
    with pytest.raises(BodyError, match="invalid byte in chunk length"):
        next(pieces)
