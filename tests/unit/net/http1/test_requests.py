from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.net.http1 import MAX_HEAD_BYTES, BodyError, ProtocolError, Request, RequestParser, requests

CHUNKED = "Transfer-Encoding: chunked"


@dataclass
class Outcome:
    """All that came out of a parser."""

    requests: list[tuple[str, str, tuple[int, int], tuple[tuple[str, str], ...], bytes]]
    error: str


def head(*fields: str, line: str = "GET / HTTP/1.1") -> bytes:
    return "\r\n".join([line, *fields, "\r\n"]).encode("latin-1")


def parse(pieces: list[bytes], limit: int = 1 << 20) -> Outcome:
    """Feed the pieces one by one, reading whatever is there after each."""
    parser = RequestParser()
    outcome = Outcome([], "")
    request: Request | None = None
    body = b""
    try:
        for piece in pieces:
            parser.feed(piece)
            while request is not None or (request := parser.request()) is not None:
                while data := parser.body(limit):
                    body += data
                if data is None:
                    break
                fields = request.fields.pairs
                outcome.requests.append((request.method, request.target, request.version, fields, body))
                request, body = None, b""
    except (ProtocolError, BodyError) as error:
        outcome.error = str(error)
    return outcome


def refusal(data: bytes) -> str:
    outcome = parse([data])
    assert not outcome.requests
    return outcome.error


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in pairwise(edges)]


names = st.text("abcXYZ-_!9", min_size=1, max_size=8).map(lambda name: "x" + name)
values = st.text('abc ,;=\t\xe9:"', max_size=12).map(lambda value: value.strip(" \t"))
bodies = st.binary(max_size=40)


@st.composite
def encoded_requests(draw: st.DrawFn) -> tuple[bytes, tuple[object, ...]]:
    method = draw(st.sampled_from(["GET", "POST", "PATCH", "FOO"]))
    target = draw(st.sampled_from(["/", "/a%2Fb?c=%zz", "http://h:1/x", "*"]))
    pairs = draw(st.lists(st.tuples(names, values), max_size=4))
    body = draw(bodies)
    fields = [("host", "h"), *((name.lower(), value) for name, value in pairs)]
    if draw(st.booleans()):
        sizes = draw(st.lists(st.integers(1, 9), max_size=9))
        payload, rest = b"", body
        for size in sizes:
            chunk, rest = rest[:size], rest[size:]
            if chunk:
                payload += b"%X;ext=1\r\n%b\r\n" % (len(chunk), chunk)
        if rest:
            payload += b"%x\r\n%b\r\n" % (len(rest), rest)
        payload += draw(st.sampled_from([b"0\r\n\r\n", b"00\r\nTrailer: x\r\nOther: y\r\n\r\n"]))
        fields.append(("transfer-encoding", "chunked"))
    else:
        payload = body
        fields.append(("content-length", str(len(body))))
    colon = draw(st.sampled_from([":", ": ", ":\t "]))
    end = draw(st.sampled_from(["\r\n", "\n"]))
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}{colon}{value}" for name, value in fields)]
    data = (end.join(lines) + end + end).encode("latin-1") + payload
    return data, (method, target, (1, 1), tuple(fields), body)


@given(st.lists(encoded_requests(), max_size=4), st.lists(st.integers(0), max_size=12), st.integers(1, 50))
def test_parsing_pipelined_requests_is_independent_of_chunk_boundaries(
    encoded: list[tuple[bytes, tuple[object, ...]]], places: list[int], limit: int
) -> None:
    data = b"".join(request for request, _ in encoded)
    outcome = parse(cut(data, places), limit)
    assert outcome.error == ""
    assert outcome.requests == [request for _, request in encoded]


fragments = st.sampled_from(
    [
        b"GET / HTTP/1.1\r\n",
        b"POST /x HTTP/1.0\r\n",
        b"Host: a\r\n",
        b"Host: b c\r\n",
        b"Content-Length: 3\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"\r\n",
        b"\n",
        b"\r",
        b"abc",
        b"3\r\n",
        b"0\r\n\r\n",
        b" ",
        b":",
        b"\x00",
        b"Expect: x\r\n",
        b"Content-Length: 4\n",
        b"A B: c\r\n",
    ]
)


@given(st.lists(fragments, max_size=12), st.lists(st.integers(0), max_size=6))
def test_parsing_invalid_input_is_independent_of_chunk_boundaries(parts: list[bytes], places: list[int]) -> None:
    data = b"".join(parts)
    assert parse(cut(data, places)) == parse([data] if data else [])


PLAIN = "400 Bad Request"


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (head(), "400 Bad Request: missing required Host header"),
        (head(line="GET http://h/ HTTP/1.1"), "400 Bad Request: missing required Host header"),
        (head("Host: a", "Host: a"), PLAIN),
        (head("Host: a b"), "400 Bad Request: malformed Host header"),
        (head("Host: a/b"), "400 Bad Request: malformed Host header"),
        (head("Host: a", "Content-Length: 1", "Content-Length: 2"), PLAIN),
        (head("Host: a", "Content-Length: 2, 2"), PLAIN),
        (head("Host: a", "Content-Length: x"), PLAIN),
        (head("Host: a", "Content-Length: -1"), PLAIN),
        (head("Host: a", "Content-Length: +1"), PLAIN),
        (head("Host: a", "Content-Length:"), PLAIN),
        (head("Host: a", "Content-Length: 9223372036854775808"), PLAIN),
        (head("Host: a", CHUNKED, CHUNKED), "501 Not Implemented"),
        (head("Host: a", "Transfer-Encoding: gzip, chunked"), "501 Not Implemented"),
        (head("Host: a", "Transfer-Encoding: identity"), "501 Not Implemented"),
        (head("Host: a", CHUNKED, "Trailer: content-length"), PLAIN),
        (head("Host: a", line="GET / HTTP/2.0"), "505 HTTP Version Not Supported: unsupported protocol version"),
        (head(line="GET / HTTP/0.9"), "505 HTTP Version Not Supported: unsupported protocol version"),
        (head("Host: a", line="GET / HTTP/1.10"), PLAIN),
        (head("Host: a", line="GET / http/1.1"), PLAIN),
        (head("Host: a", line="GET /"), PLAIN),
        (head("Host: a", line="GET /a b HTTP/1.1"), PLAIN),
        (head("Host: a", line="G@T / HTTP/1.1"), PLAIN),
        (head("Host: a", line=" / HTTP/1.1"), PLAIN),
        (head("Host: a", line="GET path HTTP/1.1"), PLAIN),
        (head("Host: a", line="GET /%zz HTTP/1.1"), PLAIN),
        (head("Host: a", line="GET /\x01 HTTP/1.1"), PLAIN),
        (head("Host: a", line="GET http://h:x/ HTTP/1.1"), PLAIN),
        (head("Host: a", "A B: c"), "400 Bad Request: invalid header name"),
        (head("Host: a", "A : c"), "400 Bad Request: invalid header name"),
        (head("Host : a"), "400 Bad Request: missing required Host header"),
        (head(" Host: a"), PLAIN),
        (head("Host: a", "no colon"), PLAIN),
        (head("Host: a", ": c"), PLAIN),
        (head("Host: a", "A(b): c"), PLAIN),
        (head("Host: a", "A: b\x00"), PLAIN),
        (head("Host: a", "A: b\rc"), PLAIN),
        (b"\r\n" + head("Host: a"), PLAIN),
        (b"rubbish\r\n", PLAIN),
        (head("Host: a", "A: " + "b" * MAX_HEAD_BYTES), "431 Request Header Fields Too Large"),
        (b"GET /" + b"a" * MAX_HEAD_BYTES, "431 Request Header Fields Too Large"),
    ],
)
def test_malformed_requests_are_rejected(data: bytes, status: str) -> None:
    assert refusal(data) == status


def test_error_responses_equal_those_of_net_http() -> None:
    assert ProtocolError().answer == (
        b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n400 Bad Request"
    )
    with pytest.raises(ProtocolError) as unsupported:
        parser = RequestParser()
        parser.feed(head("Host: a", "Transfer-Encoding: x"))
        parser.request()
    assert unsupported.value.answer.endswith(b"\r\n\r\nUnsupported transfer encoding")


@pytest.mark.parametrize(
    "data",
    [
        head(line="GET / HTTP/1.0"),
        head(line="CONNECT h:443 HTTP/1.1"),
        head("Host:"),
        head("Host: [::1]:80"),
        head("Host: a", "Content-Length: 0", "Content-Length: 0"),
        head("Host: a", "A: b", "  c"),
        head("Host: a", "A: b\xe9\tc"),
        head("Host: a", line="GET /\xc3\xa9?%zz HTTP/1.2"),
        head("Host: a", line="GET http://u:p@[::1]:80/x?y HTTP/1.1"),
        head("Host: a", line="GET opaque:x HTTP/1.1"),
    ],
)
def test_unusual_but_valid_requests_are_accepted(data: bytes) -> None:
    outcome = parse([data])
    assert outcome.error == ""
    assert len(outcome.requests) == 1


def test_obsolete_line_folding_is_joined() -> None:
    fields = parse([head("Host: a", "A: b ", "\t c", "  d")]).requests[0][3]
    assert fields == (("host", "a"), ("a", "b c d"))


def test_transfer_encoding_takes_precedence_over_content_length() -> None:
    inner = head("Host: evil", line="GET /evil HTTP/1.1")
    data = head("Host: a", CHUNKED, f"Content-Length: {5 + len(inner)}", line="POST / HTTP/1.1")
    outcome = parse([data + b"0\r\n\r\n" + head("Host: b", line="GET /next HTTP/1.1")])
    assert [request[1] for request in outcome.requests] == ["/", "/next"]


@pytest.mark.parametrize(
    "fields",
    [
        ("Content-Length: {}",),
        ("content-length: {}", "Content-Type: a"),
        ("Content-Length: {}", "Expect: 100-continue", "Connection: close"),
        ("Content-Length: {}", "Content-Length: 5"),
        ("Content-Length: 5", "Content-Length: {}"),
        ("Content-Length: {}", "CONTENT-LENGTH: 7"),
        ("Content-Length: {}", "  8"),
        ("A: b", " Content-Length: {}", "Content-Length: 5"),
        ("Content-Length: {}", CHUNKED),
        ("X-Content-Length: {}", "Content-Length: 7"),
        ("Content-Length: {}", "Host: b"),
    ],
)
@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_blocks_that_differ_in_their_content_length_are_parsed_as_if_each_were_the_first(
    fields: tuple[str, ...], version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def outcome_of(length: str) -> object:
        parser = RequestParser()
        parser.feed(head("Host: a", *fields, line=f"POST / HTTP/{version}").replace(b"{}", length.encode()))
        try:
            request = parser.request()
        except ProtocolError as error:
            return error.answer
        assert request is not None
        found = request.fields
        return {**asdict(found), "variables": None, "model": None}

    lengths = ["5", "7", "0", "12345", "05", "x", "", "9" * 30, "5"]
    together = [outcome_of(length) for length in lengths]
    monkeypatch.setattr(requests, "_fields", requests._parse_fields)
    requests._known_requests.clear()
    assert together == [outcome_of(length) for length in lengths]


def test_http_1_0_ignores_transfer_encoding() -> None:
    outcome = parse([head(CHUNKED, "Content-Length: 3", line="POST / HTTP/1.0") + b"abc"])
    assert outcome.requests[0][4] == b"abc"


def test_one_blank_line_after_a_post_is_tolerated() -> None:
    post, get = head("Host: a", line="POST / HTTP/1.1"), head("Host: a")
    assert len(parse([post + b"\r\n\r\n" + get]).requests) == 2
    assert parse([post + b"\r\n\r\n\r\n" + get]).error == PLAIN
    assert parse([get + b"\r\n" + get]).error == PLAIN


@pytest.mark.parametrize(
    ("fields", "line", "keep_alive"),
    [
        ((), "GET / HTTP/1.1", True),
        (("Connection: close",), "GET / HTTP/1.1", False),
        (("Connection: x, CLOSE",), "GET / HTTP/1.1", False),
        (("Connection: x", "Connection: close"), "GET / HTTP/1.1", False),
        ((), "GET / HTTP/1.0", False),
        (("Connection: keep-alive",), "GET / HTTP/1.0", True),
        (("Connection: keep-alive, close",), "GET / HTTP/1.0", False),
    ],
)
def test_keep_alive(fields: tuple[str, ...], line: str, keep_alive: bool) -> None:
    parser = RequestParser()
    parser.feed(head("Host: a", *fields, line=line))
    request = parser.request()
    assert request is not None
    assert request.fields.keep_alive is keep_alive


@pytest.mark.parametrize(
    ("fields", "line", "expects", "failed"),
    [
        (("Expect: 100-Continue", "Content-Length: 1"), "POST / HTTP/1.1", True, False),
        (("Expect: 100-continue", CHUNKED), "POST / HTTP/1.1", True, False),
        (("Expect: 100-continue",), "POST / HTTP/1.1", False, False),
        (("Expect: 100-continue", "Content-Length: 1"), "POST / HTTP/1.0", False, False),
        (("Expect: other", "Content-Length: 1"), "POST / HTTP/1.1", False, True),
    ],
)
def test_expect_header(fields: tuple[str, ...], line: str, expects: bool, failed: bool) -> None:
    parser = RequestParser()
    parser.feed(head("Host: a", *fields, line=line))
    request = parser.request()
    assert request is not None
    assert (request.fields.expects_continue, request.fields.expectation_failed) == (expects, failed)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"3\nabc\r\n", "chunked line ends with bare LF"),
        (b"3\r\r\n", "invalid CR in chunked line"),
        (b"\r\nabc", "empty hex number for chunk length"),
        (b";x\r\n", "empty hex number for chunk length"),
        (b"zz\r\n", "invalid byte in chunk length"),
        (b"-3\r\n", "invalid byte in chunk length"),
        (b"0x3\r\n", "invalid byte in chunk length"),
        (b"3 ;x\r\n", "invalid byte in chunk length"),
        (b"11111111111111111\r\n", "http chunk length too large"),
        (b"3\r\nabcX0\r\n\r\n", "malformed chunked encoding"),
        (b"3" * 4096, "header line too long"),
        (b"0\r\nno colon\r\n\r\n", 'malformed MIME header: missing colon: "no colon"'),
        (b"0\r\nA: " + b"b" * 4096, "http: suspiciously long trailer after chunked body"),
        ((b"1;" + b"x" * 4000 + b"\r\na\r\n") * 5, "chunked encoding contains too much non-data"),
    ],
)
def test_malformed_chunks_are_rejected(body: bytes, message: str) -> None:
    assert refusal(head("Host: a", CHUNKED) + body) == message


def test_body_returns_at_most_the_requested_size() -> None:
    parser = RequestParser()
    parser.feed(head("Host: a", "Content-Length: 5"))
    assert parser.request() is not None
    assert parser.body(3) is None
    parser.feed(b"abcdeGET")
    assert [parser.body(3), parser.unread, parser.body(3), parser.body(3)] == [b"abc", 2, b"de", b""]
    assert parser.buffer == b"GET"


def test_a_line_that_is_continued_often_is_joined() -> None:
    count = 200_000
    parser = RequestParser()
    parser.feed(head("Host: a", "A: b" + "\r\n c" * count))
    parsed = parser.request()
    assert parsed is not None
    assert dict(parsed.fields.pairs)["a"] == "b" + " c" * count
