"""The endpoints of the control API. Requests and responses are JSON.

    POST settle                {"timeout": 5, "horizon": 0}
    GET  clock
    POST clock/hold, clock/release, clock/next
    POST clock/advance         {"seconds": 60}
    POST clock/scale           {"factor": 60}
    GET, POST, DELETE faults; GET, DELETE faults/ID; GET faults/actions; POST faults/preview
    GET, DELETE requests
    GET  history/RESOURCE/NAMESPACE/NAME
    GET, POST snapshots; POST snapshots/NAME/restore; DELETE snapshots/NAME
    POST reset, compact, restart, outage, load
    GET  export, state, openapi.json
    POST objects               {"yaml": …, "dryRun": true}: applies an object
    GET  info, rows/…, live, changes/REV, objects/…: `cluster.control.page`
    POST, GET, DELETE recording; POST, GET, DELETE replay
    GET, POST, DELETE services/forward; POST services/certificate: `cluster.control.pods`

Errors have the body {"error": text}; errors of authentication and authorization are a Status, as those of the Kubernetes API.

Invariant: no request raises an exception into the server.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound, RequestEntityTooLarge
from werkzeug.routing import Map, Rule
from werkzeug.wrappers import Request, Response

from fakekube.apimachinery.errors import StatusError
from fakekube.apiserver.auth.access import Access
from fakekube.apiserver.auth.browsers import ForeignRequest
from fakekube.apiserver.endpoints.request import MAX_REQUEST_BODY_BYTES, Query
from fakekube.apiserver.http import responses
from fakekube.cluster import pool
from fakekube.cluster.control import page, pods, powers
from fakekube.cluster.control.members import PREFIX, Answer, BadMembers, Member, any_value, read, seconds, string, text
from fakekube.cluster.control.openapi import openapi
from fakekube.cluster.control.page import DATA_HEADERS, Page, Terminal
from fakekube.net.wsgi import Headers
from fakekube.powers.exchange import json_line

if TYPE_CHECKING:
    from fakekube.cluster import Cluster
    from fakekube.powers.live import Live


_log = logging.getLogger(__name__)

#: The default timeout of settle, in real seconds.
SETTLE_TIMEOUT = 10.0

#: The maximum size, in bytes, of raw bodies, which may be the state of a whole cluster.
RAW_LIMIT = 256 << 20


@dataclass(slots=True, frozen=True, eq=False)
class Endpoint:
    """One method of one path."""

    method: str
    path: str
    """The path after /fakekube/v1/, as a rule of werkzeug.routing."""
    answer: Callable[[Cluster, Mapping[str, Any]], Answer]
    """Called with the members of the body or the query and the variables of the path. May raise BadMembers (400), LookupError
    (404) and RuntimeError (409)."""
    members: Mapping[str, Member] = field(default_factory=dict)
    """The members of the body, with the functions that check them."""
    required: tuple[str, ...] = ()
    """The names of required members."""
    parameters: tuple[str, ...] = ()
    """The names of query parameters; their values are strings."""
    raw: bool = False
    """Whether the body is passed as bytes, as the member `body`; it may have `RAW_LIMIT` bytes."""


def _settle(cluster: Cluster, members: Mapping[str, Any]) -> Answer:
    timeout, horizon = members.get("timeout", SETTLE_TIMEOUT), members.get("horizon", 0.0)
    try:
        cluster.settle(timeout, horizon)
    except TimeoutError:
        return 504, {"settled": False, "working": cluster.working(horizon)}
    return 200, {"settled": True}


def _clock(cluster: Cluster, _members: Mapping[str, Any]) -> Answer:
    return 200, cluster.describe_clock()


def _hold(cluster: Cluster, members: Mapping[str, Any]) -> Answer:
    cluster.clock.hold()
    return _clock(cluster, members)


def _release(cluster: Cluster, members: Mapping[str, Any]) -> Answer:
    cluster.clock.release()
    return _clock(cluster, members)


def _advance(cluster: Cluster, members: Mapping[str, Any]) -> Answer:
    try:
        cluster.clock.advance(seconds=members["seconds"])
    except OverflowError:
        raise BadMembers("the clock cannot be moved so far") from None
    return _clock(cluster, members)


def _next(cluster: Cluster, members: Mapping[str, Any]) -> Answer:
    moved = cluster.clock.next()
    code, clock = _clock(cluster, members)
    return code, {**clock, "moved": None if moved is None else moved.total_seconds()}


def _scale(cluster: Cluster, members: Mapping[str, Any]) -> Answer:
    factor = members["factor"]
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not _SLOWEST <= factor <= _FASTEST:
        raise BadMembers(f"member 'factor' must be a number from {_SLOWEST} to {_FASTEST}")
    cluster.clock.scale(factor)
    return _clock(cluster, members)


#: The limits of the speed of the clock.
_SLOWEST = 0.001
_FASTEST = 1_000_000


#: The members of a fault to arm.
_FAULT = dict.fromkeys(("on", "do", "times", "after", "every", "probability", "lasts", "label"), any_value)

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("POST", "settle", _settle, {"timeout": seconds, "horizon": seconds}),
    Endpoint("GET", "clock", _clock),
    Endpoint("POST", "clock/hold", _hold),
    Endpoint("POST", "clock/release", _release),
    Endpoint("POST", "clock/advance", _advance, {"seconds": seconds}, ("seconds",)),
    Endpoint("POST", "clock/next", _next),
    Endpoint("POST", "clock/scale", _scale, {"factor": any_value}, ("factor",)),
    Endpoint("GET", "faults", powers.list_faults),
    Endpoint("POST", "faults", powers.arm_fault, _FAULT, ("on", "do")),
    Endpoint("GET", "faults/actions", powers.list_actions),
    Endpoint("POST", "faults/preview", powers.preview_fault, _FAULT, ("on", "do")),
    Endpoint("DELETE", "faults", powers.clear_faults),
    Endpoint("GET", "faults/<int:id>", powers.get_fault),
    Endpoint("DELETE", "faults/<int:id>", powers.delete_fault),
    Endpoint(
        "GET",
        "requests",
        powers.list_requests,
        parameters=("verb", "resource", "namespace", "name", "user", "agent", "status", "own", "since", "wait", "limit"),
    ),
    Endpoint("DELETE", "requests", powers.clear_requests),
    Endpoint("GET", "requests/<int:number>", page.get_request),
    Endpoint("POST", "requests/<int:number>/repeat", page.repeat_request),
    Endpoint("GET", "info", page.get_info),
    Endpoint("GET", "rows/requests", page.list_requests, parameters=("since", "until", "before", "limit", "own")),
    Endpoint(
        "GET",
        "rows/changes",
        page.list_changes,
        parameters=("since", "until", "before", "limit", "resource", "namespace", "name", "paths"),
    ),
    Endpoint("GET", "rows/objects", page.list_objects, parameters=("at", "kinds", "namespace", "after", "limit")),
    Endpoint("GET", "changes/<int:revision>", page.get_change),
    Endpoint("POST", "objects", page.apply_object, {"yaml": text, "dryRun": any_value, "force": any_value}, ("yaml",)),
    Endpoint("GET", "objects/<resource>/<namespace>/<name>", page.get_object, parameters=("at",)),
    Endpoint("POST", "trace", page.make_trace, {"redact": any_value}),
    Endpoint("GET", "findings", page.list_findings),
    Endpoint("GET", "scenario", page.get_scenario),
    Endpoint("GET", "compare", page.compare, parameters=("from", "to", "resource", "namespace", "name")),
    Endpoint("GET", "live", page.follow, parameters=("requests", "changes", "marks")),
    Endpoint("GET", "marks", page.list_marks, parameters=("since",)),
    Endpoint("POST", "marks", page.create_mark, {"text": text}, ("text",)),
    Endpoint("GET", "history/<resource>/<namespace>/<name>", powers.object_history),
    Endpoint("GET", "snapshots", powers.list_snapshots),
    Endpoint("POST", "snapshots", powers.create_snapshot, {"name": text}, ("name",)),
    Endpoint("POST", "snapshots/<name>/restore", powers.restore_snapshot),
    Endpoint("DELETE", "snapshots/<name>", powers.delete_snapshot),
    Endpoint("POST", "reset", powers.reset),
    Endpoint("POST", "compact", powers.compact),
    Endpoint("POST", "restart", powers.restart, {"cold": seconds}),
    Endpoint("POST", "outage", powers.outage, {"seconds": seconds}, ("seconds",)),
    Endpoint("POST", "load", powers.apply_load, raw=True),
    Endpoint("GET", "export", powers.export, parameters=("format", "namespace", "kinds", "normalised")),
    Endpoint("GET", "state", powers.save_state, parameters=("form", "history")),
    Endpoint("POST", "recording", powers.start_recording, {"kinds": any_value, "namespace": text, "redact": any_value}),
    Endpoint("GET", "recording", powers.get_recording),
    Endpoint("DELETE", "recording", powers.stop_recording),
    Endpoint("POST", "replay", powers.start_replay, parameters=("speed",), raw=True),
    Endpoint("GET", "replay", powers.get_replay),
    Endpoint("DELETE", "replay", powers.stop_replay),
    Endpoint("GET", "pods/rules", pods.list_rules),
    Endpoint("POST", "pods/rules", pods.create_rule, {"on": any_value, "do": any_value}, ("on", "do")),
    Endpoint("DELETE", "pods/rules", pods.clear_rules),
    Endpoint("DELETE", "pods/rules/<int:id>", pods.delete_rule),
    Endpoint("GET", "images", pods.list_images),
    Endpoint("POST", "images", pods.set_image, dict.fromkeys(pods.FIELDS, any_value), ("name",)),
    Endpoint("DELETE", "images", pods.delete_image, parameters=("name",)),
    Endpoint("GET", "pods/<namespace>/<name>/log", pods.read_log, parameters=("container",)),
    Endpoint(
        "POST", "pods/<namespace>/<name>/log", pods.write_log, {"lines": any_value, "container": text, "stream": text}, ("lines",)
    ),
    Endpoint(
        "POST",
        "pods/<namespace>/<name>/exec",
        pods.exec_in_pod,
        {"command": any_value, "stdin": string, "container": text, "timeout": seconds},
        ("command",),
    ),
    Endpoint("GET", "services/forward", pods.list_forwards),
    Endpoint(
        "POST", "services/forward", pods.forward_service, {"service": text, "port": pods.port, "host": text}, ("service", "port")
    ),
    Endpoint("DELETE", "services/forward", pods.end_forward, parameters=("service",)),
    Endpoint("POST", "services/certificate", pods.issue_certificate, {"service": text}, ("service",)),
    Endpoint("GET", "clusters", pool.list_clusters),
    Endpoint("POST", "clusters", pool.create_cluster, dict.fromkeys(pool.MEMBERS, any_value)),
    Endpoint("DELETE", "clusters", pool.clear_clusters),
    Endpoint("GET", "clusters/<name>", pool.get_cluster),
    Endpoint("DELETE", "clusters/<name>", pool.delete_cluster),
    Endpoint("GET", "openapi.json", lambda _cluster, _members: (200, openapi(ENDPOINTS))),
)

#: Compiling the rules takes longer than most requests, so that the clusters of a process share them.
_URLS: Final = Map([Rule(f"{PREFIX}v1/{one.path}", methods=[one.method], endpoint=one) for one in ENDPOINTS], merge_slashes=False)


class Endpoints:
    """The control API of one cluster as a WSGI application."""

    def __init__(
        self, cluster: Cluster, access: Access, api: Callable[..., Iterable[bytes]], *, needs_token: bool = False
    ) -> None:
        self._cluster = cluster
        self._terminal = Terminal(cluster, api)
        self._page = Page(access, cluster.page_token, is_served=cluster.has_page or needs_token, needs_token=needs_token)

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Serves one request."""
        try:
            self._page.admit(environ)
        except ForeignRequest as problem:
            return self._send(403, {"error": str(problem)})(environ, start_response)
        except StatusError as error:
            refused = self._page.refuse(environ, error)
            if refused is None:
                answer = responses.error_response(error, Headers(environ), Query())
                refused = Response(answer.body, answer.status, answer.headers)
            return refused(environ, start_response)
        if self._terminal.is_wanted(environ):
            return self._terminal(environ, start_response)
        answered = self._page.answer(environ) or self._respond(environ)
        if isinstance(answered, Response):
            return answered(environ, start_response)
        start_response("200 OK", [("Content-Type", "application/x-ndjson"), *DATA_HEADERS.items()])
        return answered

    def _respond(self, environ: dict[str, Any]) -> Response | Live:
        request = Request(environ)
        limit = MAX_REQUEST_BODY_BYTES
        try:
            endpoint, parts = _URLS.bind_to_environ(environ).match()
            limit = request.max_content_length = RAW_LIMIT if endpoint.raw else MAX_REQUEST_BODY_BYTES
            code, value = endpoint.answer(self._cluster, {**self._members(endpoint, request), **parts})
            return value if hasattr(value, "take") else self._send(code, value)
        except BadMembers as problem:
            return self._send(400, {"error": str(problem)})
        except NotFound:
            return self._send(404, {"error": f"there is no {request.path}"})
        except LookupError as problem:
            return self._send(404, {"error": str(problem.args[0] if problem.args else problem)})
        except MethodNotAllowed as wrong:
            allowed = ", ".join(sorted(wrong.valid_methods or ()))
            return self._send(405, {"error": f"{request.path} takes {allowed}"}, {"Allow": allowed})
        except RequestEntityTooLarge:
            return self._send(413, {"error": f"the body has more than {limit} bytes"})
        except HTTPException as problem:
            return self._send(problem.code or 500, {"error": problem.description or problem.name})
        except RecursionError:
            return self._send(400, {"error": "the body is nested too deeply"})
        except RuntimeError as problem:
            return self._send(409, {"error": str(problem)})
        except Exception as problem:
            _log.exception("%s %s", request.method, request.path)
            return self._send(500, {"error": f"{type(problem).__name__}: {problem}"})

    @staticmethod
    def _members(endpoint: Endpoint, request: Request) -> dict[str, Any]:
        unknown = sorted(set(request.args) - set(endpoint.parameters))
        if unknown:
            raise BadMembers(f"unknown parameter {unknown[0]!r}; known are {', '.join(endpoint.parameters) or 'none'}")
        if request.method in ("GET", "HEAD"):
            return dict(request.args)
        try:
            body = request.get_data()
        except OSError as problem:  # the framing is invalid, or the client has disconnected
            raise BadMembers(str(problem)) from None
        if endpoint.raw:
            return {**request.args, "body": body}
        return {**request.args, **read(body, endpoint.members, endpoint.required)}

    @staticmethod
    def _send(code: int, value: Any, headers: Mapping[str, str] | None = None) -> Response:
        if isinstance(value, powers.Raw):
            if value.file_name:
                headers = {**(headers or {}), "Content-Disposition": f'attachment; filename="{value.file_name}"'}
            return Response(bytes(value), code, {**DATA_HEADERS, **(headers or {})}, content_type=value.content_type)
        if isinstance(value, powers.Last):
            headers = {**(headers or {}), "Connection": "close"}
        return Response(json_line(value), code, {**DATA_HEADERS, **(headers or {})}, content_type="application/json")
