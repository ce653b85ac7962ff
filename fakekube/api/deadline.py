"""Requests that may take long, and `?timeout=…` of the others: how long a client would wait. Nothing here takes
that long, but a duration must be one.

Specified by: k8s.io/apiserver/pkg/endpoints/filters/request_deadline.go, pkg/server/filters/longrunning.go.
"""

from __future__ import annotations

from typing import Final

from fakekube.errors import status
from fakekube.golang.durations import parse_duration
from fakekube.registry.request import Query, RequestInfo

__all__ = ["check_timeout", "is_long_running"]

_LONG_VERBS: Final = frozenset({"watch", "proxy"})
_LONG_SUBRESOURCES: Final = frozenset({"attach", "exec", "proxy", "log", "portforward"})
_PROFILES: Final = "/debug/pprof/"


def check_timeout(info: RequestInfo, query: Query) -> None:
    """Raises StatusError 400 for a timeout that is no duration, unless the request is a long-running one."""
    text = query.get("timeout")
    if not text or is_long_running(info):
        return
    try:
        parse_duration(text)
    except ValueError as problem:
        raise status.bad_request(f"invalid timeout specified in the request URL - {problem}") from None


def is_long_running(info: RequestInfo) -> bool:
    """Is a request one whose answer may take any time?"""
    if not info.is_resource_request and info.path.startswith(_PROFILES):
        return True
    return info.verb in _LONG_VERBS or info.subresource in _LONG_SUBRESOURCES
