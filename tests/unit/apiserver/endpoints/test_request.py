"""Queries as Go's net/url reads them, and bodies that are read once and no further than allowed."""

from __future__ import annotations

import pytest

from fakekube.apimachinery.errors import StatusError
from fakekube.apiserver.endpoints.request import Query, Request, RequestInfo, User

CASES = [
    ("", {}, ""),
    ("a=1&b=2&a=3", {"a": ["1", "3"], "b": ["2"]}, ""),
    ("a", {"a": [""]}, ""),
    ("=", {"": [""]}, ""),
    ("&&", {}, ""),
    ("a=b+c%20d", {"a": ["b c d"]}, ""),
    ("a+b=1", {"a b": ["1"]}, ""),
    ("a;b=c", {}, "invalid semicolon separator in query"),
    ("x=1&limit=1;limit=2", {"x": ["1"]}, "invalid semicolon separator in query"),
    ("a=%zz&b=1", {"b": ["1"]}, 'invalid URL escape "%zz"'),
    ("a=%", {}, 'invalid URL escape "%"'),
    ("a=%c3%a9", {"a": ["é"]}, ""),
    ("a=%ff", {"a": ["\udcff"]}, ""),
    ("a=\xc3\xa9", {"a": ["é"]}, ""),
    ("a=b=c", {"a": ["b=c"]}, ""),
]


@pytest.mark.parametrize(("raw", "expected", "error"), CASES, ids=[ascii(raw) for raw, _, _ in CASES])
def test_query_parsing(raw: str, expected: dict[str, list[str]], error: str) -> None:
    query = Query(raw)
    assert dict(query.mapping()) == expected
    assert query.error == error


def test_query_get_returns_the_first_value_or_none() -> None:
    query = Query("a=&a=1")
    assert query.get("a") == ""
    assert list(query.all("a")) == ["", "1"]
    assert query.get("b") is None
    assert list(query.all("b")) == []
    assert "a" in query
    assert "b" not in query
    assert not Query("")


def _request(body: bytes) -> tuple[Request, list[int]]:
    asked: list[int] = []

    def read(limit: int) -> bytes:
        asked.append(limit)
        return body[:limit]

    info = RequestInfo("/", "post")
    return Request("POST", "/", Query(), {}, info, User("admin"), read=read), asked


def test_a_body_is_read_once() -> None:
    request, asked = _request(b"x" * 10)
    assert request.read_body() == request.read_body() == b"x" * 10
    assert len(asked) == 1


def test_body_beyond_the_limit_returns_413() -> None:
    request, asked = _request(b"x" * 11)
    with pytest.raises(StatusError) as caught:
        request.read_body(10)
    assert caught.value.code == 413
    assert caught.value.message.endswith("limit is 10")
    assert asked == [11], "no more is read than tells that it is too much"
