from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import pytest

from fakekube.net import environ as environ_module
from fakekube.net.environ import ConnectionVariables, base_environ, make_environ
from fakekube.net.http1 import RequestParser
from fakekube.net.wsgi import SHARED_VARIABLES
from fakekube.powers.requests import Recorder


def environ(line: str = "GET / HTTP/1.1", *fields: str, host: str = "Host: a") -> dict[str, Any]:
    parser = RequestParser()
    parser.feed("\r\n".join([line, host, *fields, "\r\n"]).encode("latin-1"))
    request = parser.request()
    assert request is not None
    return make_environ(ConnectionVariables(base_environ("127.0.0.1", 80, "http")), request, io.BytesIO())


@pytest.mark.parametrize(
    ("target", "path", "query", "uri"),
    [
        ("/a/b?c=d&e", "/a/b", "c=d&e", "/a/b?c=d&e"),
        ("/a%2Fb%20c?%2F", "/a/b c", "%2F", "/a%2Fb%20c?%2F"),
        ("/%C3%A9", "/\xc3\xa9", "", "/%C3%A9"),
        ("/\xc3\xa9", "/\xc3\xa9", "", "/\xc3\xa9"),
        ("http://h:1/x?y", "/x", "y", "/x?y"),
        ("http://h", "", "", ""),
        ("*", "*", "", "*"),
        ("//x", "//x", "", "//x"),
    ],
)
def test_request_target_is_split_into_path_and_query(target: str, path: str, query: str, uri: str) -> None:
    made = environ(f"GET {target} HTTP/1.1")
    assert (made["PATH_INFO"], made["QUERY_STRING"], made["REQUEST_URI"]) == (path, query, uri)


def test_absolute_form_target_sets_the_host() -> None:
    assert environ("GET http://h:1/ HTTP/1.1")["HTTP_HOST"] == "h:1"
    assert environ("GET / HTTP/1.1")["HTTP_HOST"] == "a"


def test_header_fields_in_environ() -> None:
    made = environ(
        "POST / HTTP/1.0",
        "aCcePt: x",
        "ACCEPT: y",
        "Cookie: a=b",
        "Cookie: c=d",
        "Content-Type: text/plain",
        "Content-Type: other",
        "Content-Length: 007",
        "Impersonate-Group: a",
        "Impersonate-Group: b",
    )
    assert made["HTTP_ACCEPT"] == "x"
    assert made["HTTP_COOKIE"] == "a=b; c=d"
    assert made["CONTENT_TYPE"] == "text/plain"
    assert made["CONTENT_LENGTH"] == "7"
    assert made["HTTP_IMPERSONATE_GROUP"] == "a,b"
    assert made["SERVER_PROTOCOL"] == "HTTP/1.0"


def test_header_names_with_underscores_are_dropped() -> None:
    made = environ("GET / HTTP/1.1", "X_Remote_User: evil", "X-Remote-User: good")
    assert made["HTTP_X_REMOTE_USER"] == "good"
    assert "HTTP_X_REMOTE_USER" not in environ("GET / HTTP/1.1", "X_Remote_User: evil")


def test_a_chunked_body_has_no_length() -> None:
    made = environ("POST / HTTP/1.1", "Transfer-Encoding: chunked", "Content-Length: 5")
    assert "CONTENT_LENGTH" not in made
    assert made["wsgi.input_terminated"] is True


def test_environs_are_not_shared_between_requests() -> None:
    environ("GET / HTTP/1.1", "A: b")["HTTP_A"] = "changed"
    assert environ("GET / HTTP/1.1", "A: b")["HTTP_A"] == "b"


def test_values_of_many_repeated_fields_are_joined_in_order() -> None:
    count = 100_000
    found = environ("GET / HTTP/1.1", *[f"A: {number}" for number in range(count)], "Cookie: a=b", "Cookie: c=d")
    assert found["HTTP_A"] == ",".join(map(str, range(count)))
    assert found["HTTP_COOKIE"] == "a=b; c=d"


def test_requests_with_equal_headers_share_variables() -> None:
    variables, parser = ConnectionVariables(base_environ("127.0.0.1", 80, "http")), RequestParser()

    def shared_of(line: str, field: str) -> Any:
        parser.feed(f"{line}\r\nHost: a\r\n{field}\r\n\r\n".encode())
        request = parser.request()
        assert request is not None
        return make_environ(variables, request, io.BytesIO()).get(SHARED_VARIABLES)

    first = shared_of("GET /a HTTP/1.1", "Accept: x")
    assert shared_of("DELETE /b?c HTTP/1.1", "Accept: x") is first
    assert shared_of("GET /a HTTP/1.0", "Accept: x") is not first
    assert shared_of("GET http://h/ HTTP/1.1", "Accept: x") is None
    for number in range(100):
        assert shared_of("GET /a HTTP/1.1", f"Accept: {number}")["HTTP_ACCEPT"] == str(number)
        assert len(variables._by_block) <= environ_module._MAX_BLOCKS
    while len(variables._by_block) < environ_module._MAX_BLOCKS:
        shared_of("GET /a HTTP/1.1", f"Accept: more{len(variables._by_block)}")
    assert shared_of("GET /a HTTP/1.1", f"Accept: {'x' * 3000}") is None
    assert len(variables._by_block) == environ_module._MAX_BLOCKS


def test_requests_that_differ_in_their_content_length_have_it_in_their_variables() -> None:
    variables, parser = ConnectionVariables(base_environ("127.0.0.1", 80, "http")), RequestParser()

    def environ_of(length: int) -> dict[str, Any]:
        parser.feed(f"POST / HTTP/1.1\r\nHost: of-lengths\r\nContent-Length: {length}\r\n\r\n{'x' * length}".encode())
        request = parser.request()
        assert request is not None and parser.body(length) == b"x" * length
        return make_environ(variables, request, io.BytesIO())

    lengths = [*range(1, 40), 1]
    found = [environ_of(length) for length in lengths]
    assert [environ["CONTENT_LENGTH"] for environ in found] == list(map(str, lengths))
    assert [environ[SHARED_VARIABLES]["CONTENT_LENGTH"] for environ in found] == list(map(str, lengths))
    assert len(variables._by_block) == 1


def test_equal_requests_have_environs_of_their_own() -> None:
    variables, parser = ConnectionVariables(base_environ("127.0.0.1", 80, "http")), RequestParser()

    def environ_of(target: str) -> dict[str, Any]:
        parser.feed(f"GET {target} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        request = parser.request()
        assert request is not None
        return make_environ(variables, request, io.BytesIO())

    first, second = environ_of("/a?b"), environ_of("/a?b")
    assert first.pop("wsgi.input") is not second.pop("wsgi.input")
    assert first == second
    first.clear()
    assert environ_of("/a?b")["QUERY_STRING"] == "b"
    assert environ_of("/c")["PATH_INFO"] == "/c"


def test_exchanges_with_equal_long_headers_share_variables() -> None:
    variables, parser, recorder = ConnectionVariables(base_environ("127.0.0.1", 80, "http")), RequestParser(), Recorder(2, str)

    def kept_of(path: str) -> Mapping[str, Any]:
        parser.feed(f"GET {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {'x' * 3000}\r\n\r\n".encode())
        request = parser.request()
        assert request is not None
        return recorder.share_environ(make_environ(variables, request, io.BytesIO()))

    first = kept_of("/a")
    assert kept_of("/b") is first
    assert len(first["HTTP_AUTHORIZATION"]) > 3000
