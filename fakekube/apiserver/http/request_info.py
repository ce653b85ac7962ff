"""Parses path and method into the RequestInfo, which authentication, authorization and the handlers share, and the deadline.

The parser does not know which resources exist: `/api/v1/nope` is a list of "nope", and routing responds with 404. The order
matters, because a user without permission gets "forbidden" before "not found".

The deadline comes from `?timeout=…`; long-running requests have none. It matters for calls of other servers only, such as
admission webhooks.

Specified by: k8s.io/apiserver/pkg/endpoints/request/requestinfo.go, pkg/endpoints/filters/request_deadline.go,
pkg/endpoints/handlers/rest.go, pkg/server/filters/longrunning.go.
"""

from __future__ import annotations

from math import inf
from typing import Final

from fakekube.apimachinery import selectors
from fakekube.apimachinery.errors import status
from fakekube.apiserver.endpoints.request import PathForm, Query, RequestInfo
from fakekube.base.golang.strconv import parse_int
from fakekube.base.golang.timestamps import parse_duration

#: Method → verb of a request for one resource.
VERBS: Final = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
#: Segments after the version that set the verb (deprecated, but parsed).
_VERB_SEGMENTS: Final = frozenset({"proxy", "watch"})
#: Segments after /namespaces/NAME that are subresources of the namespace instead of resources in it.
_NAMESPACE_SUBRESOURCES: Final = frozenset({"status", "finalize"})
_SELECTING: Final = frozenset({"list", "watch", "deletecollection"})
_NOTHING: Final = ("false", "0")
#: The depth of a path that ends with the name of an object.
_OBJECT: Final = 2


class UnknownTargetError(Exception):
    """A path with a verb and nothing else; the real server responds with a plain text 500."""


def split_path(path: str) -> list[str]:
    """Splits a path; slashes at both ends are ignored, repeated slashes within give empty segments."""
    path = path.strip("/")
    return path.split("/") if path else []


def request_info(method: str, path: str, query: Query) -> RequestInfo:
    """Returns the RequestInfo of a request. Raises UnknownTargetError for /api/VERSION/watch and the like."""
    parts = split_path(path)
    prefix = parts[0] if parts else ""
    versioned = 1 if prefix == "api" else 2 if prefix == "apis" else 0
    if not versioned or len(parts) < versioned + 2:
        return RequestInfo(path, method.lower())

    verb, group, version, namespace = VERBS.get(method, ""), parts[1] if versioned == 2 else "", parts[versioned], ""
    target = parts[versioned + 1 :]
    by_path = target[0] in _VERB_SEGMENTS
    if by_path:
        if len(target) < 2:
            raise UnknownTargetError(path)
        verb, *target = target
    in_namespace = False
    if target[0] == "namespaces" and len(target) > 1:
        namespace = target[1]
        in_namespace = len(target) > 2 and target[2] not in _NAMESPACE_SUBRESOURCES
        if in_namespace:
            target = target[2:]
    name = target[1] if len(target) > 1 else ""
    below = target[2] if len(target) > 2 else ""
    subresource = below if verb != "proxy" else ""
    info = RequestInfo(path, verb, True, prefix, group, version, namespace, target[0], subresource, name, parts=tuple(target))
    if path.startswith("/api/" if versioned == 1 else "/apis/") and (group or versioned == 1):
        info.form = PathForm(min(len(target), 3), in_namespace, by_path, below)
    if not name:
        if verb == "get":
            _refine_collection_read(info, query)
        elif verb == "delete":
            info.verb = "deletecollection"
        if query.raw and info.verb in _SELECTING and not by_path:
            info.field_selector = query.get("fieldSelector") or ""
            info.label_selector = query.get("labelSelector") or ""
    return info


def has_siblings(info: RequestInfo) -> bool:
    """Reports whether `sibling_info` applies: only the last segment of the path depends on the object.

    That of a namespace is also the namespace of the request.
    """
    form = info.form
    return form is not None and form.depth == _OBJECT and not form.watch_prefix and info.resource != "namespaces"


def sibling_info(info: RequestInfo, path: str, name: str) -> RequestInfo:
    """Returns what `request_info` does for another object of the collection, with the same method and query.

    Args:
        info: that of an object for which `has_siblings` is true.
        path: the path of the collection, a slash and the name.
        name: the name of the other object, which is not empty and without a slash.
    """
    resource = info.resource
    return RequestInfo(
        path,
        info.verb,
        True,
        info.api_prefix,
        info.group,
        info.version,
        info.namespace,
        resource,
        "",
        name,
        "",
        "",
        (resource, name),
        info.form,
    )


def _refine_collection_read(info: RequestInfo, query: Query) -> None:
    """Turns a get without a name into a list or watch, with the name of a metadata.name field selector."""
    watch = query.get("watch")
    info.verb = "list" if watch is None or watch.lower() in _NOTHING else "watch"
    selector = query.get("fieldSelector")
    if selector and "metadata.name" in selector and _options_decode(query):
        try:
            name = selectors.parse_fields(selector).exact("metadata.name")
        except selectors.SelectorError:
            return
        if name is not None and name not in (".", "..") and "/" not in name and "%" not in name:
            info.name = name


def _options_decode(query: Query) -> bool:
    """Reports whether all list options can be decoded; if not, the real server ignores the selector here."""
    for parameter in ("limit", "timeoutSeconds"):
        value = query.get(parameter)
        if value is not None and not _is_int64(value):
            return False
    try:
        selectors.parse_labels(query.get("labelSelector") or "")
    except selectors.SelectorError:
        return False
    return True


def _is_int64(text: str) -> bool:
    try:
        parse_int(text)
    except ValueError:
        return False
    return True


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
    text = query.get("timeout") if query.raw else None
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
