"""Handles pods/log: checks the options, and streams what the kubelet has.

The log of a pod without a node is empty (204). A log over WebSocket comes as binary messages, base64 for those who ask
for that, after an empty one.

Specified by: pkg/registry/core/pod/rest/log.go; pkg/registry/core/pod/strategy.go (LogLocation);
validation.ValidatePodLogOptions; k8s.io/apiserver/pkg/endpoints/handlers/responsewriters (StreamObject).
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from fakekube.apimachinery.errors import FieldError, StatusError, field, status
from fakekube.apis.validation.checks import ABOVE_0, NOT_NEGATIVE
from fakekube.apiserver.endpoints import negotiation
from fakekube.apiserver.endpoints.connection_info import connection_info, container_of, format_refused_dial, pod_of, require_log
from fakekube.apiserver.endpoints.handlers.watch import is_web_socket
from fakekube.apiserver.endpoints.request import Query, Response
from fakekube.apiserver.registry.request_options import boolean, convert_option, int64
from fakekube.apiserver.registry.scope import Scope
from fakekube.base.golang.strconv import go_quote
from fakekube.base.golang.timestamps import ZERO_TIME, TimeError, parse_time
from fakekube.net.streaming.kubelet_api import ALL_STREAMS, KubeletError, LogOptions
from fakekube.net.streams import WholeStream

_FLAGS = ("follow", "previous", "timestamps")
_NUMBERS = ("tailLines", "limitBytes")
_STREAMS: Final = (ALL_STREAMS, "Stderr", "Stdout")


def handle(scope: Scope) -> Response:
    """Responds with a log. Raises StatusError."""
    negotiation.negotiate(scope)  # the log itself is text, also if the request fails
    query = scope.request.query
    flags = {name: boolean(query.all(name)) for name in _FLAGS}
    seconds = convert_option(query, "sinceSeconds", int64)  # in the order of the fields of PodLogOptions: the first error counts
    since = convert_option(query, "sinceTime", lambda values: _time(values[0]))
    numbers = {"sinceSeconds": seconds, **{name: convert_option(query, name, int64) for name in _NUMBERS}}
    selects = scope.backend.settings.emulation.enabled("PodLogsQuerySplitStreams")
    errors = _errors(query, numbers, has_time=since is not None, selects_stream=selects)
    if errors:
        raise status.invalid("", "PodLogOptions", scope.name, errors)
    pod = pod_of(scope)
    container = container_of(pod, query.get("container") or "")
    node = pod["spec"].get("nodeName", "")
    if not node:
        return Response(204, [], b"")
    info = connection_info(scope, node)
    if info.kubelet is None:
        given_flags = [(name, "true") for name, is_set in flags.items() if is_set]
        given_numbers = [(name, str(number)) for name, number in numbers.items() if number is not None]
        given_time = [("sinceTime", since)] if since else []
        path = f"/containerLogs/{scope.namespace}/{scope.name}/{container}"
        url = info.url(path, [*given_flags, *given_numbers, *given_time])
        raise status.generic(500, "", f"Get {go_quote(url)}: {format_refused_dial(info.host)}")
    options = LogOptions(
        follow=flags["follow"],
        previous=flags["previous"],
        timestamps=flags["timestamps"],
        since_seconds=numbers["sinceSeconds"],
        since_time=_datetime(since) if since else None,
        tail_lines=numbers["tailLines"],
        limit_bytes=numbers["limitBytes"],
        stream=query.get("stream") or ALL_STREAMS,
    )
    try:
        require_log(pod, container, previous=options.previous)
        body = info.kubelet.container_logs(pod, container, options)
    except KubeletError as error:
        raise _refusal(error, scope.name) from None
    if isinstance(body, bytes):
        body = WholeStream(body)
    if is_web_socket(scope.request):
        from fakekube.net.streaming.channels import log_messages

        header, messages = log_messages(scope.request.method, scope.request.headers, body, scope.backend.clock)
        return Response(101, header, messages)
    return Response(200, [("Content-Type", "text/plain")], body)


def _refusal(error: KubeletError, name: str) -> StatusError:
    """Returns what the API server makes of the kubelet's answer (GenericHttpResponseChecker)."""
    if error.code == 400:
        return status.bad_request(error.text)
    if error.code == 404:
        details = {"name": name, "kind": "pods/log"}
        text = f"the server could not find the requested resource (pods/log {name})"
        return StatusError(404, "NotFound", text, details)
    return status.internal(error.text)


def _time(text: str) -> str:
    """Returns a time as it is written to the kubelet. Raises StatusError 400."""
    try:
        return (parse_time(text) if text else None) or ZERO_TIME
    except TimeError as error:
        raise status.bad_request(str(error)) from None


def _datetime(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC) if text != ZERO_TIME else datetime.min.replace(tzinfo=UTC)


def _errors(query: Query, numbers: dict[str, Any], *, has_time: bool, selects_stream: bool) -> list[FieldError]:
    """ValidatePodLogOptions."""
    tail, limit, since = numbers["tailLines"], numbers["limitBytes"], numbers["sinceSeconds"]
    errors = []
    if tail is not None and tail < 0:
        errors.append(field.invalid("tailLines", tail, NOT_NEGATIVE))
    if limit is not None and limit < 1:
        errors.append(field.invalid("limitBytes", limit, ABOVE_0))
    if since is not None and has_time:
        errors.append(field.forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    elif since is not None and since < 1:
        errors.append(field.invalid("sinceSeconds", since, ABOVE_0))
    if selects_stream:
        stream = query.get("stream") or ALL_STREAMS
        if stream not in _STREAMS:
            errors.append(field.not_supported("stream", stream, _STREAMS))
        if stream != ALL_STREAMS and tail is not None:
            errors.append(field.forbidden("[]", "`tailLines` and specific `stream` are mutually exclusive for now"))
    elif query.get("stream") is not None:
        errors.append(field.forbidden("stream", "may not be specified"))
    return errors
