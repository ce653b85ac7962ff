from __future__ import annotations

import pytest

from fakekube.apiserver.http.nonresource_paths import content

BODY = b"0123456789"
HEADERS = [("Content-Type", "application/json"), ("Vary", "Accept")]


@pytest.mark.parametrize(
    ("wanted", "expected", "where"),
    [
        ("bytes=0-1", b"01", "bytes 0-1/10"),
        ("bytes= 8 - 99 ", b"89", "bytes 8-9/10"),
        ("bytes=-3", b"789", "bytes 7-9/10"),
        ("bytes=-30", BODY, "bytes 0-9/10"),
        ("bytes=7-", b"789", "bytes 7-9/10"),
        ("bytes=10-,0-0", b"0", "bytes 0-0/10"),
    ],
)
def test_satisfiable_ranges_return_206(wanted: str, expected: bytes, where: str) -> None:
    response = content(BODY, HEADERS, wanted)
    assert (response.status, response.body) == (206, expected)
    assert response.headers == [*HEADERS, ("Content-Range", where)]


@pytest.mark.parametrize("wanted", ["", "bytes=", "bytes=0-1,3-4"])
def test_ignored_range_headers_return_the_whole_body(wanted: str) -> None:
    response = content(BODY, HEADERS, wanted)
    assert (response.status, response.headers, response.body) == (200, HEADERS, BODY)


@pytest.mark.parametrize("wanted", ["items=0-1", "bytes=5-2", "bytes=x", "bytes=-", "bytes=--1", "bytes=1", "bytes=²-"])
def test_invalid_ranges(wanted: str) -> None:
    response = content(BODY, HEADERS, wanted)
    assert (response.status, response.body) == (416, b"invalid range\n")
    assert ("Vary", "Accept") in response.headers


def test_unsatisfiable_range_returns_416() -> None:
    response = content(BODY, HEADERS, "bytes=10-")
    assert (response.status, response.body) == (416, b"invalid range: failed to overlap\n")
    assert ("Content-Range", "bytes */10") in response.headers
