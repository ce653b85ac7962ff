"""Durations as Go reads them."""

from __future__ import annotations

import math

import pytest

from fakekube.apimachinery.errors import StatusError
from fakekube.apiserver.endpoints.request import Query, RequestInfo
from fakekube.apiserver.http.request_info import timeout_of

GOOD = ["", "0", "%2B0", "-0", "1s", "-1s", "1.5h", ".5s", "1.s", "1h30m", "10ns", "3us", "3%C2%B5s"]
BAD = {
    "x": 'invalid duration "x"',
    "1": 'missing unit in duration "1"',
    "5m3": 'missing unit in duration "5m3"',
    "1x": 'unknown unit "x" in duration "1x"',
    ".": 'invalid duration "."',
    "-": 'invalid duration "-"',
    "9999999999h": 'invalid duration "9999999999h"',
}


def _check(text: str, verb: str = "list", subresource: str = "") -> float:
    info = RequestInfo("/", verb, True, subresource=subresource)
    return timeout_of(info, Query(f"timeout={text}"))


@pytest.mark.parametrize("text", GOOD)
def test_valid_durations(text: str) -> None:
    _check(text)


@pytest.mark.parametrize("text", BAD)
def test_invalid_durations_return_400(text: str) -> None:
    with pytest.raises(StatusError) as caught:
        _check(text)
    assert caught.value.code == 400
    assert caught.value.message == f"invalid timeout specified in the request URL - time: {BAD[text]}"


def test_very_long_digits_are_rejected() -> None:
    with pytest.raises(StatusError, match="invalid duration"):
        _check("9" * 5000 + "s")


@pytest.mark.parametrize(("verb", "subresource"), [("watch", ""), ("get", "log"), ("create", "exec")])
def test_long_running_requests_ignore_the_timeout(verb: str, subresource: str) -> None:
    assert _check("x", verb, subresource) == math.inf


@pytest.mark.parametrize(
    ("text", "verb", "seconds"),
    [
        ("", "list", 60),
        ("", "create", 34),
        ("0", "patch", 34),
        ("-1s", "update", 34),
        ("1.5s", "create", 1.5),
        ("50s", "create", 34),
        ("50s", "deletecollection", 50),
        ("2h", "list", 60),
    ],
)
def test_deadline_by_verb_and_timeout(text: str, verb: str, seconds: float) -> None:
    assert _check(text, verb) == seconds
