"""Heads of answers are read as Go reads them, however they arrive."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.apiserver.aggregator.response_head import LARGEST, MalformedResponseError, ResponseHead, read_head


def head_of(data: bytes) -> ResponseHead:
    return read_head(io.BytesIO(data))


def test_status_and_headers() -> None:
    head = head_of(b"HTTP/1.1 404 Not Found\r\nA: 1\r\nB:2 \r\n  more\r\nA: 3\r\n\r\nbody")
    assert (head.status, head.headers) == (404, [("A", "1"), ("B", "2 more"), ("A", "3")])
    assert head.raw.endswith(b"\r\n\r\n")


@pytest.mark.parametrize(("headers", "length", "chunked"), [
    (b"", None, False), (b"Content-Length: 12\r\n", 12, False), (b"Transfer-Encoding: chunked\r\n", None, True),
    (b"Content-Length: 3\r\nTransfer-Encoding: Chunked\r\n", None, True),
])  # fmt: skip
def test_length_of_the_body(headers: bytes, length: int | None, chunked: bool) -> None:
    head = head_of(b"HTTP/1.1 200 OK\r\n" + headers + b"\r\n")
    assert (head.length(), head.chunked) == (length, chunked)


@pytest.mark.parametrize(("data", "said"), [
    (b"hello\r\n", 'malformed HTTP response "hello"'),
    (b"HTTP/1.1 20 OK\r\n\r\n", 'malformed HTTP status code "20"'),
    (b"HTTP/one 200 OK\r\n\r\n", 'malformed HTTP version "HTTP/one"'),
    (b"HTTP/1.1 200 OK\r\nwhat\r\n\r\n", 'malformed MIME header: missing colon: "what"'),
    (b"HTTP/1.1 200 OK\r\n x\r\n\r\n", 'malformed MIME header initial line: " x"'),
    (b"HTTP/1.1 200 OK\r\nA: 1\r\nConte", 'malformed MIME header: missing colon: "Conte"'),
])  # fmt: skip
def test_malformed_heads(data: bytes, said: str) -> None:
    with pytest.raises(MalformedResponseError) as caught:
        head_of(data)
    assert str(caught.value) == said


def test_an_invalid_content_length() -> None:
    with pytest.raises(MalformedResponseError, match='bad Content-Length "-1"'):
        head_of(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n").length()


@pytest.mark.parametrize(("data", "something"), [(b"", False), (b"HTTP/1.1 200 OK\r\n", True)])
def test_the_connection_ends_before_the_head(data: bytes, something: bool) -> None:
    with pytest.raises(EOFError) as caught:
        head_of(data)
    assert caught.value.args == (something,)


def test_the_size_of_the_head_is_limited() -> None:
    class Endless:
        def readline(self, size: int, /) -> bytes:
            return b"x: " + b"y" * (size - 4) + b"\n" if size < 1000 else b"X: " + b"y" * 996 + b"\n"

    class Started(Endless):
        begun = False

        def readline(self, size: int, /) -> bytes:
            if self.begun:
                return super().readline(size)
            self.begun = True
            return b"HTTP/1.1 200 OK\r\n"

    with pytest.raises(MalformedResponseError, match=f"exceeded {LARGEST} bytes"):
        read_head(Started())


_NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9-]{0,8}", fullmatch=True)
_VALUES = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=10)


@given(st.integers(100, 999), st.lists(st.tuples(_NAMES, _VALUES), max_size=5))
def test_generated_heads_are_read_back(status: int, headers: list[tuple[str, str]]) -> None:
    lines = [f"HTTP/1.1 {status} Why", *(f"{name}: {value}" for name, value in headers), "", ""]
    head = head_of("\r\n".join(lines).encode())
    assert (head.status, head.headers) == (status, headers)
