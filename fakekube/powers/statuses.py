"""The reason and the message of a Status for each status code, for faults that give only the code.

Specified by: k8s.io/apimachinery/pkg/api/errors/errors.go (the constructors, NewGenericServerResponse);
k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fakekube.apimachinery.errors import StatusError
from fakekube.apiserver.endpoints.request import RequestInfo
from fakekube.base.golang.strconv import go_quote

__all__ = ["status_of"]

#: code → reason and message; {what} is the resource with its group, {name} the quoted name.
_STATUSES: Mapping[int, tuple[str, str]] = {
    400: ("BadRequest", "the server rejected our request for an unknown reason"),
    401: ("Unauthorized", "Unauthorized"),
    403: ("Forbidden", "{what} {name} is forbidden: unknown"),
    404: ("NotFound", "{what} {name} not found"),
    405: ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
    406: ("NotAcceptable", "the server was unable to respond with a content type that the client supports"),
    409: (
        "Conflict",
        "Operation cannot be fulfilled on {what} {name}: the object has been modified; please apply your changes to the "
        "latest version and try again",
    ),
    410: ("Expired", "The resourceVersion for the provided watch is too old."),
    413: ("RequestEntityTooLarge", "Request entity too large: limit is 3145728"),
    415: ("UnsupportedMediaType", "the server was unable to process the media type of the request"),
    422: ("Invalid", "{what} {name} is invalid"),
    429: ("TooManyRequests", "Too many requests, please try again later."),
    500: ("InternalError", "Internal error occurred: unknown"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: ("Timeout", "Timeout: request did not complete within the allotted timeout"),
}


def status_of(
    info: RequestInfo | None, code: int, reason: str | None, message: str | None, retry_after: int | None
) -> StatusError:
    """Returns the error with a code, about the object of the request.

    Args:
        info: the request; None if its path could not be parsed.
        code: the HTTP status code.
        reason, message: of the Status; by default those that the real server has for the code.
        retry_after: seconds for details.retryAfterSeconds; None for none.
    """
    known_reason, known_message = _STATUSES.get(code, ("", "unknown"))
    group, resource, name = (info.group, info.resource, info.name) if info is not None else ("", "", "")
    what = f"{resource}.{group}" if group else resource
    details: dict[str, Any] = {"name": name, "group": group, "kind": resource, "retryAfterSeconds": retry_after}
    found = {key: value for key, value in details.items() if value}
    said = known_message.format(what=what, name=go_quote(name)) if message is None else message
    return StatusError(code, known_reason if reason is None else reason, said, found or None)
