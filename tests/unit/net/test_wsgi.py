"""Reading of the WSGI environment."""

from __future__ import annotations

import io

import pytest

from fakekube.net.wsgi import Headers, body_reader, path_of, request_uri


def test_headers_are_case_insensitive() -> None:
    headers = Headers({"HTTP_ACCEPT": "a, b", "CONTENT_TYPE": "t", "CONTENT_LENGTH": "", "wsgi.input": None, "HTTP_X_Y": "1"})
    assert (headers["accept"], headers["content-type"], headers["x-y"]) == ("a, b", "t", "1")
    assert headers.get("nope") is None
    assert headers.get("nope", "") == ""
    assert sorted(headers) == ["accept", "content-type", "x-y"]
    assert len(headers) == 3
    assert "x-y" in headers
    assert "y" not in headers
    assert 1 not in headers
    with pytest.raises(KeyError):
        headers["nope"]


def test_repeated_headers_are_split() -> None:
    headers = Headers({"HTTP_IMPERSONATE_GROUP": "a, b,c", "HTTP_X": ""})
    assert headers.all("impersonate-group") == ["a", "b", "c"]
    assert headers.all("x") == [""]
    assert [Headers({"HTTP_X": value})["x"] for value in ("\xc3\xa4", "\xff")] == ["ä", "\udcff"]
    assert headers.all("nope") == []


@pytest.mark.parametrize(
    ("info", "path"),
    [("/a b", "/a b"), ("", "/"), ("/\xc3\xa4", "/ä"), ("/\xff", "/\udcff"), ("/a//b", "/a//b")],
    ids=["ascii", "empty", "utf-8", "no utf-8", "slashes"],
)
def test_decoded_paths(info: str, path: str) -> None:
    assert path_of({"PATH_INFO": info}) == path


def test_request_uri_is_the_raw_target() -> None:
    assert request_uri({"REQUEST_URI": "/a%2Fb?c", "PATH_INFO": "/a/b"}) == "/a%2Fb?c"
    assert request_uri({"RAW_URI": "/a%2Fb", "PATH_INFO": "/a/b"}) == "/a%2Fb"
    assert request_uri({"PATH_INFO": "/a b/\xc3\xa4"}) == "/a%20b/%C3%A4"
    assert request_uri({"PATH_INFO": "/a", "QUERY_STRING": "b=c"}) == "/a?b=c"


def test_body_reader_stops_at_content_length() -> None:
    stream = io.BytesIO(b"body and the next request")
    assert body_reader({"CONTENT_LENGTH": "4", "wsgi.input": stream})(100) == b"body"
    stream.seek(0)
    assert body_reader({"CONTENT_LENGTH": "4", "wsgi.input": stream})(2) == b"bo"
    assert body_reader({"wsgi.input": stream})(100) == b""
    stream.seek(0)
    assert body_reader({"wsgi.input": stream, "wsgi.input_terminated": True})(4) == b"body"


def test_body_is_read_lazily() -> None:
    body_reader({"CONTENT_LENGTH": "4"})  # there is no wsgi.input to read
