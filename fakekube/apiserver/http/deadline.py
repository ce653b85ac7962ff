"""Computes the deadline of a request from `?timeout=…`; long-running requests have none.

The deadline matters for calls of other servers only, such as admission webhooks.

Specified by: k8s.io/apiserver/pkg/endpoints/filters/request_deadline.go, pkg/endpoints/handlers/rest.go,
pkg/server/filters/longrunning.go.
"""

from __future__ import annotations

from math import inf
from typing import Final

from fakekube.apimachinery.errors import status
from fakekube.apiserver.endpoints.request import Query, RequestInfo
from fakekube.base.golang.durations import parse_duration

_LONG_VERBS: Final = frozenset({"watch", "proxy"})
_LONG_SUBRESOURCES: Final = frozenset({"attach", "exec", "proxy", "log", "portforward"})
_WRITES: Final = frozenset({"create", "update", "patch", "delete"})
#: Seconds: --request-timeout, and the upper limit for writes (requestTimeoutUpperBound).
_LONGEST: Final = 60.0
_LONGEST_WRITE: Final = 34.0
_PROFILES: Final = "/debug/pprof/"


def timeout_of(info: RequestInfo, query: Query) -> float:
    """Returns the timeout of a request in seconds; infinity for long-running requests.

    Raises StatusError 400 if `timeout` is not a duration.
    """
    if is_long_running(info):
        return inf
    longest = _LONGEST_WRITE if info.verb in _WRITES else _LONGEST
    text = query.get("timeout")
    if not text:
        return longest
    try:
        wanted = parse_duration(text) / 1e9
    except ValueError as problem:
        raise status.bad_request(f"invalid timeout specified in the request URL - {problem}") from None
    return min(wanted, longest) if wanted > 0 else longest


def is_long_running(info: RequestInfo) -> bool:
    """Reports whether a request is long-running (a watch, a proxy, exec, logs, …)."""
    if not info.is_resource_request and info.path.startswith(_PROFILES):
        return True
    return info.verb in _LONG_VERBS or info.subresource in _LONG_SUBRESOURCES
