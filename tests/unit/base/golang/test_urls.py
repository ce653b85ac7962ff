"""URLs are parsed as by Go's net/url (fixtures/urls); arbitrary text does not raise."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.base.golang.urls import Url, parse_request_uri, parse_url, query_values

CASES = [json.loads(line) for line in (Path(__file__).parents[4] / "fixtures/urls/cases.jsonl").read_text("utf-8").splitlines()]
PIECES = (
    "http:",
    "//",
    "/",
    "?",
    "#",
    "@",
    ":",
    "[",
    "]",
    "::1",
    "%",
    "%20",
    "%25",
    "%C3%A9",
    "é",
    "\udcff",
    "a.b",
    "80",
    " ",
    "\n",
    "&=",
    "*",
)


def read(parse: Callable[[str], Url], text: str) -> Any:
    """The parts that are there, or the problem."""
    try:
        url = parse(text)
    except ValueError as problem:
        return str(problem)
    parts = {
        "scheme": url.scheme, "user": url.user is not None, "host": url.host, "hostname": url.hostname, "port": url.port,
        "path": url.escaped_path, "query": query_values(url.query), "fragment": url.fragment,
    }  # fmt: skip
    return {name: part for name, part in parts.items() if part}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["text"])
def test_urls_are_parsed_as_by_net_url(case: dict[str, Any]) -> None:
    assert read(parse_url, case["text"]) == case["url"]
    assert read(parse_request_uri, case["text"]) == case["request"]


@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join) | st.text(max_size=20))
def test_arbitrary_text_is_parsed_or_rejected(text: str) -> None:
    for parse in (parse_url, parse_request_uri):
        found = read(parse, text)
        assert isinstance(found, dict) or found.startswith("parse ")
