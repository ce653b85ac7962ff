from __future__ import annotations

import pytest

from fakekube.net import response
from fakekube.net.http1 import Request, RequestParser
from fakekube.net.response import Head, encode_head

TYPE = ("Content-Type", "text/plain")


def request(line: str = "GET / HTTP/1.1", *fields: str) -> Request:
    parser = RequestParser()
    parser.feed("\r\n".join([line, "Host: a", *fields, "\r\n"]).encode())
    parsed = parser.request()
    assert parsed is not None
    return parsed


def encode(
    asked: Request, *fields: tuple[str, str], status: str = "200 OK", length: int | None = None, keep_alive: bool = True
) -> Head:
    return encode_head(asked, status, fields, date="<now>", length=length, keep_alive=keep_alive)


def lines(head: Head) -> list[str]:
    assert head.data.endswith(b"\r\n\r\n")
    return head.data.decode()[:-4].split("\r\n")


def test_application_headers_come_first_and_unchanged() -> None:
    head = encode(request(), TYPE, ("x-Lower", "y"), length=3)
    assert lines(head) == ["HTTP/1.1 200 OK", "Content-Type: text/plain", "x-Lower: y", "Date: <now>", "Content-Length: 3"]
    assert head.keep_alive
    assert head.has_body


def test_a_body_of_unknown_length_is_chunked() -> None:
    head = encode(request())
    assert lines(head)[1:] == ["Date: <now>", "Transfer-Encoding: chunked"]
    assert head.chunked


def test_http_1_0_body_of_unknown_length_ends_with_the_connection() -> None:
    head = encode(request("GET / HTTP/1.0", "Connection: keep-alive"))
    assert lines(head) == ["HTTP/1.0 200 OK", "Date: <now>"]
    assert not head.chunked
    assert not head.keep_alive


def test_http_1_0_keep_alive_with_content_length() -> None:
    head = encode(request("GET / HTTP/1.0", "Connection: keep-alive"), length=3)
    assert lines(head)[-1] == "Connection: keep-alive"
    assert head.keep_alive


@pytest.mark.parametrize(
    ("asked", "fields", "keep_alive"),
    [
        (request("GET / HTTP/1.1", "Connection: close"), (), True),
        (request(), (("Connection", "close"),), True),
        (request(), (), False),
    ],
)
def test_client_application_or_server_can_close_the_connection(
    asked: Request, fields: tuple[tuple[str, str], ...], keep_alive: bool
) -> None:
    head = encode(asked, *fields, length=0, keep_alive=keep_alive)
    assert lines(head).count("Connection: close") == 1
    assert not head.keep_alive


@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified"])
def test_204_and_304_responses_have_no_body(status: str) -> None:
    head = encode(request(), TYPE, ("Content-Length", "5"), status=status, length=5)
    assert "Content-Length: 5" not in lines(head)
    assert not head.has_body
    assert not head.chunked
    assert head.keep_alive
    assert ("Content-Type: text/plain" in lines(head)) is (status[:3] == "204")


@pytest.mark.parametrize(("length", "line"), [(7, "Content-Length: 7"), (0, "Date: <now>"), (None, "Date: <now>")])
def test_head_response_has_content_length_if_known(length: int | None, line: str) -> None:
    head = encode(request("HEAD / HTTP/1.1"), length=length)
    assert lines(head)[-1] == line
    assert not head.has_body


def test_hop_by_hop_headers_of_the_application_are_dropped() -> None:
    head = encode(request(), ("Transfer-Encoding", "chunked"), ("Connection", "Upgrade"), length=1)
    assert lines(head) == ["HTTP/1.1 200 OK", "Date: <now>", "Content-Length: 1"]


def test_application_can_set_date_and_content_length() -> None:
    head = encode(request(), ("Date", "then"), ("Content-Length", "2"), length=5)
    assert lines(head)[1:] == ["Date: then", "Content-Length: 2"]
    assert head.length == 2


def test_line_breaks_in_header_values_become_spaces() -> None:
    assert lines(encode(request(), ("A", "b\r\nEvil: c"), length=0))[1] == "A: b  Evil: c"


@pytest.mark.parametrize(
    ("status", "fields"),
    [
        ("200 OK\r\nEvil: c", []),
        ("200 OK", [("A", "b"), ("B", "b\nEvil: c")]),
        ("200 OK", [("A", "b"), ("B\r\nEvil: c", "b")]),
        ("200 OK", [("Content-Type", "b\r\nEvil: c")]),
        ("200 OK", [("Date", "b\rEvil: c")]),
    ],
    ids=["status", "value", "name", "media type", "date"],
)
def test_no_part_of_a_header_breaks_its_line(status: str, fields: list[tuple[str, str]]) -> None:
    data = encode(request(), *fields, status=status, length=0).data.decode()
    assert not any(line.startswith("Evil") for line in data.replace("\r", "\n").split("\n"))
    assert "Evil: c" in data


def test_names_of_fields_have_any_case_and_their_lines_are_remembered_within_a_bound() -> None:
    for name in ("CONTENT-LENGTH", "content-Length"):
        assert lines(encode(request(), (name, "5"))) == ["HTTP/1.1 200 OK", "Date: <now>", "Content-Length: 5"]
    kept = response._known_lines.__self__  # type: ignore[attr-defined]
    for number in range(response._MAX_KNOWN + 10):
        assert lines(encode(request(), ("A", "b"), (f"X-{number}", "y"), length=0))[1:3] == ["A: b", f"X-{number}: y"]
        assert len(kept) <= response._MAX_KNOWN


def test_long_fields_are_not_remembered() -> None:
    kept = response._known_lines.__self__  # type: ignore[attr-defined]
    before = len(kept)
    assert lines(encode(request(), ("A", "b"), ("B", "c" * 3000), length=0))[2] == "B: " + "c" * 3000
    encode(request(), status="200 " + "c" * 3000)
    assert len(kept) == before


def test_fields_that_the_server_treats_come_in_any_place() -> None:
    head = encode(request(), ("Content-Length", "5"), ("Date", "<then>"), ("A", "b"), ("Connection", "close"), length=9)
    assert lines(head) == ["HTTP/1.1 200 OK", "A: b", "Connection: close", "Date: <then>", "Content-Length: 5"]
    assert not head.keep_alive


def test_remembered_names_have_any_case() -> None:
    assert lines(encode(request(), ("Transfer-ENCODING", "chunked"), length=0))[1] == "Date: <now>"
