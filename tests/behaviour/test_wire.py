"""Malformed HTTP: invalid framing, invalid encodings, and oversized requests."""

from __future__ import annotations

import gzip
import http.client
import json
from typing import Any

import pytest

CONFIG = b'{"metadata":{"name":"m"}}'
LIMIT = 3 * 1024 * 1024


class Exchange:
    """A connection of its own for raw requests."""

    def __init__(self, api: Any) -> None:
        self._connection = api.connect(timeout=60)
        self._connection.connect()
        self._socket = self._connection.sock
        self._reader = self._socket.makefile("rb")
        self._headers = (
            f"Host: localhost\r\nAuthorization: Bearer {api.token}\r\n".encode() if api.token else b"Host: localhost\r\n"
        )

    def send(self, method: bytes, target: bytes, headers: bytes = b"", body: bytes = b"") -> None:
        self._socket.sendall(method + b" " + target + b" HTTP/1.1\r\n" + self._headers + headers + b"\r\n" + body)

    def answer(self) -> tuple[int, bytes]:
        """Status and body of the next answer."""
        response = http.client.HTTPResponse(_Kept(self._reader))  # type: ignore[arg-type]
        response.begin()
        return response.status, response.read()

    def close(self) -> None:
        self._reader.close()
        self._connection.close()


class _Kept:
    """A stream from which several responses are read."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def makefile(self, _mode: str) -> Any:
        return self

    def close(self) -> None:
        """Ignored: the stream is used for several responses."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@pytest.fixture
def raw(api):
    """A connection."""
    exchange = Exchange(api)
    yield exchange
    exchange.close()


@pytest.fixture
def target(api) -> bytes:
    return api.path("configmaps").encode()


def message(body: bytes) -> str:
    return json.loads(body)["message"]


def chunked(*chunks: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in (*chunks, b""))


JSON = b"Content-Type: application/json\r\n"
CHUNKED = JSON + b"Transfer-Encoding: chunked\r\n"


# ---------------------------------------------------------------- bodies


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"zz\r\n{}\r\n0\r\n\r\n", "invalid byte in chunk length"),
        (b"-2\r\n{}\r\n0\r\n\r\n", "invalid byte in chunk length"),
        (b"00000000000000002\r\n{}\r\n0\r\n\r\n", "http chunk length too large"),
        (b"2\r\n{}..0\r\n\r\n", "malformed chunked encoding"),
        (b"2\n{}\n0\n\n", "chunked line ends with bare LF"),
        (b"2;" + b"a" * 5000 + b"\r\n{}\r\n0\r\n\r\n", "header line too long"),
    ],
)
def test_invalid_chunked_encoding_is_reported(raw: Exchange, target: bytes, body: bytes, problem: str) -> None:
    raw.send(b"POST", target, CHUNKED, body)
    code, answer = raw.answer()
    assert (code, json.loads(answer)) == (
        500,
        {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": problem, "code": 500},
    )


def test_chunks_of_any_size_are_accepted(raw: Exchange, target: bytes) -> None:
    raw.send(b"POST", target + b"?dryRun=All", CHUNKED, chunked(*(CONFIG[at : at + 3] for at in range(0, len(CONFIG), 3))))
    assert raw.answer()[0] == 201


@pytest.mark.parametrize("method", [b"POST", b"PUT", b"PATCH", b"DELETE"])
def test_too_large_bodies_return_413(raw: Exchange, target: bytes, method: bytes) -> None:
    kind = b"Content-Type: application/merge-patch+json\r\n" if method == b"PATCH" else JSON
    path = target if method == b"POST" else target + b"/m"
    raw.send(method, path, kind + b"Content-Length: %d\r\n" % (LIMIT + 1), b" " * (LIMIT + 1))
    code, answer = raw.answer()
    assert (code, message(answer)) == (413, f"Request entity too large: limit is {LIMIT}")


def test_too_large_chunked_body_returns_413(raw: Exchange, target: bytes) -> None:
    raw.send(b"POST", target, CHUNKED, chunked(*[b" " * 65_536] * 49))
    assert raw.answer()[0] == 413


def test_gzip_request_bodies_are_not_decompressed(raw: Exchange, target: bytes) -> None:
    packed = gzip.compress(CONFIG)
    raw.send(b"POST", target, JSON + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n" % len(packed), packed)
    code, answer = raw.answer()
    assert (code, "invalid character '\\x1f' looking for beginning of value" in message(answer)) == (400, True)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (CONFIG.decode().encode("utf-16"), "invalid character 'ÿ' looking for beginning of value"),
        (b"\xef\xbb\xbf" + CONFIG, "invalid character 'ï' looking for beginning of value"),
        (b"\0" * 20, "invalid character '\\x00' looking for beginning of value"),
        (b"  ", "unexpected end of JSON input"),
    ],
    ids=["utf-16", "byte order mark", "zeros", "blanks"],
)
def test_invalid_json_bodies_return_400(raw: Exchange, target: bytes, body: bytes, found: str) -> None:
    raw.send(b"POST", target, JSON + b"Content-Length: %d\r\n" % len(body), body)
    code, answer = raw.answer()
    assert (code, found in message(answer)) == (400, True)


def test_invalid_utf8_in_a_body_is_replaced(raw: Exchange, target: bytes) -> None:
    body = b'{"metadata":{"name":"m"},"data":{"a":"\xff\xfe"}}'
    raw.send(b"POST", target + b"?dryRun=All", JSON + b"Content-Length: %d\r\n" % len(body), body)
    code, answer = raw.answer()
    assert (code, json.loads(answer)["data"]) == (201, {"a": "\ufffd\ufffd"})


# ---------------------------------------------------------------- pipelining


def test_pipelined_requests(raw: Exchange, target: bytes) -> None:
    for name in (b"a", b"b"):
        body = b'{"metadata":{"name":"%s"}}' % name
        raw.send(b"POST", target, JSON + b"Content-Length: %d\r\n" % len(body), body)
    raw.send(b"GET", target + b"/b")
    raw.send(b"GET", target + b"/c")
    answers = [raw.answer() for _ in range(4)]
    assert [code for code, _ in answers] == [201, 201, 200, 404]
    assert json.loads(answers[2][1])["metadata"]["name"] == "b"


def test_unread_get_body_is_not_parsed_as_a_request(raw: Exchange, target: bytes) -> None:
    hidden = b"DELETE " + target + b"/m HTTP/1.1\r\nHost: localhost\r\n\r\n"
    raw.send(b"GET", target + b"/m", b"Content-Length: %d\r\n" % len(hidden), hidden)
    raw.send(b"GET", b"/version")
    assert [raw.answer()[0], raw.answer()[0]] == [404, 200]


@pytest.mark.parametrize("lengths", [b"5\r\nContent-Length: 6", b"-1", b"+5", b"99999999999999999999"])
def test_invalid_content_length_returns_400(raw: Exchange, target: bytes, lengths: bytes) -> None:
    raw.send(b"POST", target, JSON + b"Content-Length: " + lengths + b"\r\n", CONFIG)
    assert raw.answer()[0] == 400


# ---------------------------------------------------------------- invalid UTF-8


@pytest.mark.parametrize("name", [b"\xff", b"%ff"])
def test_invalid_utf8_names_in_paths_are_escaped(raw: Exchange, target: bytes, name: bytes) -> None:
    raw.send(b"GET", target + b"/" + name)
    code, answer = raw.answer()
    assert (code, message(answer)) == (404, 'configmaps "\\xff" not found')
    assert json.loads(answer)["details"] == {"name": "\ufffd", "kind": "configmaps"}


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        (b"limit=\xff", 'strconv.ParseInt: parsing "\\xff": invalid syntax'),
        (b"limit=%ff", 'strconv.ParseInt: parsing "\\xff": invalid syntax'),
        ("limit=٣".encode(), 'strconv.ParseInt: parsing "٣": invalid syntax'),
        (b"timeout=%ff", 'invalid timeout specified in the request URL - time: invalid duration "\\xff"'),
    ],
)
def test_invalid_queries_return_400(raw: Exchange, target: bytes, query: bytes, shown: str) -> None:
    raw.send(b"GET", target + b"?" + query)
    code, answer = raw.answer()
    assert (code, message(answer)) == (400, shown)


@pytest.mark.parametrize(("user", "shown"), [(b"\xff", "\\xff"), ("é".encode(), "é")])
def test_non_ascii_impersonated_users(raw: Exchange, user: bytes, shown: str) -> None:
    raw.send(b"GET", b"/api/v1/nodes", b"Impersonate-User: " + user + b"\r\n")
    code, answer = raw.answer()
    assert code == 403
    assert message(answer).startswith(f'nodes is forbidden: User "{shown}" cannot list resource "nodes"')


@pytest.mark.parametrize(("agent", "manager"), [(b"\xff/1", "\ufffd"), ("é/1".encode(), "é"), (b"a" * 5000, "a" * 128)])
def test_non_ascii_user_agents(raw: Exchange, target: bytes, agent: bytes, manager: str) -> None:
    body = CONFIG.replace(b"}}", b'},"data":{"a":"b"}}')
    headers = JSON + b"User-Agent: " + agent + b"\r\nContent-Length: %d\r\n" % len(body)
    raw.send(b"POST", target + b"?dryRun=All", headers, body)
    code, answer = raw.answer()
    assert (code, [entry["manager"] for entry in json.loads(answer)["metadata"]["managedFields"]]) == (201, [manager])


# ---------------------------------------------------------------- large requests


def test_many_query_parameters(raw: Exchange, target: bytes) -> None:
    raw.send(b"GET", target + b"?" + b"&".join(b"a%d=b" % number for number in range(20_000)))
    assert raw.answer()[0] == 200


def test_long_selectors(raw: Exchange, target: bytes) -> None:
    raw.send(b"GET", target + b"?labelSelector=" + b",".join(b"a%d=b" % number for number in range(5_000)))
    code, answer = raw.answer()
    assert (code, json.loads(answer)["items"]) == (200, [])
    raw.send(b"GET", target + b"?labelSelector=" + b"(" * 5000)
    assert raw.answer()[0] == 400


def test_many_headers(raw: Exchange) -> None:
    raw.send(b"GET", b"/version", b"".join(b"X%d: a\r\n" % number for number in range(20_000)))
    assert raw.answer()[0] == 200


def test_too_large_request_headers_return_431(raw: Exchange) -> None:
    raw.send(b"GET", b"/version", b"X: " + b"a" * 1_100_000 + b"\r\n")
    assert raw.answer()[0] == 431
