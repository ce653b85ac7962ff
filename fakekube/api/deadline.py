"""`?timeout=…`: how long a client would wait. Nothing here takes that long, but a duration must be one.

Specified by: k8s.io/apiserver/pkg/endpoints/filters/request_deadline.go, Go's time.ParseDuration.
"""

from __future__ import annotations

import re
from typing import Final

from fakekube.errors import status
from fakekube.errors.field import go_quote
from fakekube.verbs.request import Query, RequestInfo

__all__ = ["check_timeout", "is_long_running"]

_LONG_VERBS: Final = frozenset({"watch", "proxy"})
_LONG_SUBRESOURCES: Final = frozenset({"attach", "exec", "proxy", "log", "portforward"})
_PROFILES: Final = "/debug/pprof/"
_NANOSECONDS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_MAXIMUM: Final = 1 << 63
_MAXIMUM_DIGITS: Final = 19
_NUMBER: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?")
_UNIT: Final = re.compile(r"[^0-9.]*")


def check_timeout(info: RequestInfo, query: Query) -> None:
    """Raises StatusError 400 for a timeout that is no duration, unless the request is a long-running one."""
    text = query.get("timeout")
    if not text or is_long_running(info):
        return
    problem = _duration_problem(text)
    if problem:
        raise status.bad_request(f"invalid timeout specified in the request URL - time: {problem}")


def is_long_running(info: RequestInfo) -> bool:
    """Is a request one whose answer may take any time?"""
    if not info.is_resource_request and info.path.startswith(_PROFILES):
        return True
    return info.verb in _LONG_VERBS or info.subresource in _LONG_SUBRESOURCES


def _duration_problem(text: str) -> str:
    """What is wrong with a duration such as 1h30m or -1.5s; "" if nothing."""
    invalid = f"invalid duration {go_quote(text)}"
    rest = text[1:] if text[0] in "+-" else text
    if rest == "0":
        return ""
    if not rest:
        return invalid
    total = 0
    while rest:
        number = _NUMBER.match(rest)
        assert number is not None  # it matches nothing, too
        whole, fraction = number[1], number[2] or ""
        if not whole and not fraction:
            return invalid
        unit = _UNIT.match(rest, number.end())
        assert unit is not None
        if not unit[0]:
            return f"missing unit in duration {go_quote(text)}"
        if unit[0] not in _NANOSECONDS:
            return f"unknown unit {go_quote(unit[0])} in duration {go_quote(text)}"
        if len(whole.lstrip("0")) > _MAXIMUM_DIGITS:
            return invalid
        total += int(whole or "0") * _NANOSECONDS[unit[0]]
        if total > _MAXIMUM:
            return invalid
        rest = rest[unit.end() :]
    return ""
