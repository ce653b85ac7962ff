"""The errors that a client receives as a Status, each with its code, reason, message and details.

Each function makes one kind of error with the text of the real server; callers raise what the function returns. A
`StatusError` has everything that the response needs; `apiserver/http/` writes the response.

Specified by: k8s.io/apimachinery/pkg/api/errors and the `Status` kind of meta/v1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from fakekube.apimachinery import features
from fakekube.apimachinery.errors.field import FieldError, aggregate, limit_text
from fakekube.base.golang.strconv import go_quote
from fakekube.base.objects import group_resource

#: The first minor whose messages show values as JSON; earlier ones show them in Go's syntax.
_JSON_VALUES_SINCE: Final = 34
_BYTES_SINCE: Final = 35
"""The first minor whose errors of labels count bytes, and speak of label keys."""
_BYTES: Final = re.compile(r"(must be no more than \d+) bytes")
_ONE_ITEM: Final = re.compile(r"(must have at most 1 item)\b")


#: Status code → the text about an answer that has no Status (NewGenericServerResponse).
GENERIC_MESSAGES: Final[Mapping[int, str]] = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    406: "the server was unable to respond with a content type that the client supports",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}
#: The text about a watch from a revision that is no longer in the history.
TOO_OLD_WATCH: Final = "The resourceVersion for the provided watch is too old."


class StatusError(Exception):
    """An error with the parts of a Status.

    `details` keeps the order name, group, kind, uid, causes, retryAfterSeconds. `retry_after` (seconds) is also sent
    as the Retry-After header. `continue_token` is the token that a 410 of a list offers.
    """

    def __init__(self, code: int, reason: str, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = None if details is None else dict(details)
        self.continue_token = ""

    @property
    def retry_after(self) -> int | None:
        """The seconds to wait before a retry; None if the error has no such value."""
        return (self.details or {}).get("retryAfterSeconds")

    def status(self) -> dict[str, Any]:
        """Returns the Status object, with the fields in the order of meta/v1."""
        metadata = {"continue": self.continue_token} if self.continue_token else {}
        body: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": metadata, "status": "Failure"}
        if self.message:
            body["message"] = self.message
        if self.reason:
            body["reason"] = self.reason
        if self.details is not None:
            body["details"] = self.details
        if self.code:
            body["code"] = self.code
        return body


class ConversionError(StatusError):
    """An object of the body that cannot be converted to the internal type: a 400, of which patches tell the problem otherwise."""

    def __init__(self, kind: str, version: str, problem: str) -> None:
        super().__init__(400, "BadRequest", f'{kind} in version "{version}" cannot be handled as a {kind}: {problem}')
        self.problem = problem


def _details(name: str = "", group: str = "", kind: str = "", **more: Any) -> dict[str, Any]:
    """Returns the details that are not empty, in the field order of StatusDetails."""
    return {k: v for k, v in (("name", name), ("group", group), ("kind", kind), *more.items()) if v}


def not_found(group: str, resource: str, name: str) -> StatusError:
    message = f"{group_resource(group, resource)} {go_quote(name)} not found"
    return StatusError(404, "NotFound", message, _details(name, group, resource))


def already_exists(group: str, resource: str, name: str) -> StatusError:
    message = f"{group_resource(group, resource)} {go_quote(name)} already exists"
    return StatusError(409, "AlreadyExists", message, _details(name, group, resource))


def generate_name_conflict(group: str, resource: str, name: str) -> StatusError:
    """Returns the 409 for a generateName of which every generated name exists."""
    taken = f"{group_resource(group, resource)} {go_quote(name)} already exists"
    message = f"{taken}, the server was not able to generate a unique name for the object"
    return StatusError(409, "AlreadyExists", message, _details(name, group, resource, retryAfterSeconds=1))


#: The problem of a write that was made from an older version of the object (OptimisticLockErrorMsg).
OPTIMISTIC_LOCK_ERROR: Final = "the object has been modified; please apply your changes to the latest version and try again"


def conflict(group: str, resource: str, name: str, problem: str) -> StatusError:
    message = f"Operation cannot be fulfilled on {group_resource(group, resource)} {go_quote(name)}: {problem}"
    return StatusError(409, "Conflict", message, _details(name, group, resource))


def precondition_failed(field: str, wanted: str, found: str | None) -> str:
    """Returns the problem of a write with the UID or ResourceVersion of another object (Preconditions.Check)."""
    return f"Precondition failed: {field} in precondition: {wanted}, {field} in object meta: {found}"


def invalid_object(key: str, problem: str) -> str:
    """Returns the text of the storage about an object that is not the expected one (NewInvalidObjError)."""
    return _storage_error("invalid object", 4, key, problem)


def corrupt_object(key: str, problem: str) -> str:
    """Returns the text of the storage about an object that cannot be decoded (NewCorruptObjError)."""
    return _storage_error("corrupt object", 7, key, problem)


def _storage_error(what: str, code: int, key: str, problem: str) -> str:
    return f"StorageError: {what}, Code: {code}, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {problem}"


def describe_refusal(user: str, verb: str, resource: str, subresource: str, *, group: str, namespace: str) -> str:
    """Returns what a user may not do with a resource (forbiddenMessage); "" as the namespace stands for all of the cluster."""
    what = f"{resource}/{subresource}" if subresource else resource
    where = f"in the namespace {go_quote(namespace)}" if namespace else "at the cluster scope"
    return f"User {go_quote(user)} cannot {verb} resource {go_quote(what)} in API group {go_quote(group)} {where}"


def sanitise(text: str) -> str:
    """Escapes HTML characters, as the real server does."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def forbidden(group: str, resource: str, name: str, problem: str) -> StatusError:
    what = group_resource(group, resource)
    if not what:
        message = f"forbidden: {problem}"
    elif not name:
        message = f"{what} is forbidden: {problem}"
    else:
        message = f"{what} {go_quote(name)} is forbidden: {problem}"
    return StatusError(403, "Forbidden", message, _details(name, group, resource))


def invalid(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> StatusError:
    """Returns the 422 for an object of this kind; without field errors the message ends after "is invalid"."""
    minor = features.current().minor
    if minor < _CHANGED_UNTIL:
        errors = [_in_older_words(error, minor) for error in errors]
    if minor < _BYTES_SINCE:
        errors = [replace(error, detail=_older_detail(error.detail, minor)) for error in errors]
    if minor < _JSON_VALUES_SINCE:
        from fakekube.apimachinery.errors.go_syntax import with_go_values

        errors = with_go_values(features.current().facts, group, kind, errors)
    message = f"{group_resource(group, kind)} {go_quote(name)} is invalid"
    errors = limit_text(errors)
    if errors:
        message = f"{message}: {aggregate(errors)}"
    causes = [_cause(error) for error in errors]
    return StatusError(422, "Invalid", message, _details(name, group, kind, causes=causes))


def bad_selector(problem: str) -> StatusError:
    """Returns a 400 for a selector that cannot be parsed, in the words of the current minor."""
    minor = features.current().minor
    return bad_request(_older_detail(problem, minor) if minor < _BYTES_SINCE else problem)


def _older_detail(detail: str, minor: int) -> str:
    """Returns the detail of an error in the words of the minors that count the characters of labels."""
    if minor < _JSON_VALUES_SINCE:
        detail = _ONE_ITEM.sub(r"\1s", detail)
    return _BYTES.sub(r"\1 characters", detail).replace("a valid label key must", "a qualified name must")


def _cause(error: FieldError) -> dict[str, str]:
    cause = {"reason": error.type.reason, "message": error.body, "field": error.path or "<nil>"}
    return {k: v for k, v in cause.items() if v}


def bad_request(message: str) -> StatusError:
    return StatusError(400, "BadRequest", message)


def unauthorized() -> StatusError:
    return StatusError(401, "Unauthorized", "Unauthorized")


def method_not_supported(group: str, resource: str, action: str) -> StatusError:
    message = f"{action} is not supported on resources of kind {go_quote(group_resource(group, resource))}"
    return StatusError(405, "MethodNotAllowed", message, _details("", group, resource))


def not_acceptable(message: str) -> StatusError:
    return StatusError(406, "NotAcceptable", message)


def unsupported_media_type(message: str) -> StatusError:
    return StatusError(415, "UnsupportedMediaType", message)


def request_entity_too_large(message: str) -> StatusError:
    return StatusError(413, "RequestEntityTooLarge", f"Request entity too large: {message}")


def expired(message: str) -> StatusError:
    """Returns the 410 for a revision or token that is no longer in the history."""
    return StatusError(410, "Expired", message)


def too_old_resource_version(requested: int, oldest: int) -> StatusError:
    """Returns the 410 for a watch from a revision that the watch cache does not have any more."""
    return expired(f"too old resource version: {requested} ({oldest})")


def expired_token(message: str, inconsistent_token: str) -> StatusError:
    """Returns the 410 for a continue token, with a new token that continues at the current revision."""
    error = expired(message)
    error.continue_token = inconsistent_token
    return error


def internal(problem: str) -> StatusError:
    return StatusError(500, "InternalError", f"Internal error occurred: {problem}", {"causes": [{"message": problem}]})


def timeout(message: str, retry_after: int = 0, causes: Sequence[Mapping[str, str]] = ()) -> StatusError:
    details = _details(causes=[dict(cause) for cause in causes], retryAfterSeconds=retry_after)
    return StatusError(504, "Timeout", f"Timeout: {message}", details)


def context_deadline_exceeded() -> StatusError:
    """Returns the 504 of a write that takes too long."""
    return timeout("request did not complete within requested timeout - context deadline exceeded")


def allotted_timeout() -> StatusError:
    """Returns the 504 of any request that takes too long (the timeout filter)."""
    return timeout("request did not complete within the allotted timeout")


def too_large_resource_version(requested: int, current: int, retry_after: int = 1) -> StatusError:
    """Returns the 504 for a revision that the server has not reached after the wait of the real server."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return timeout(f"Too large resource version: {requested}, current: {current}", retry_after, [cause])


def too_many_requests(message: str, retry_after: int = 0, causes: Sequence[Mapping[str, str]] = ()) -> StatusError:
    details = _details(causes=[dict(cause) for cause in causes], retryAfterSeconds=retry_after)
    return StatusError(429, "TooManyRequests", message, details)


def service_unavailable(message: str) -> StatusError:
    return StatusError(503, "ServiceUnavailable", message)


# --- Texts of k8s.io/apimachinery/pkg/runtime -------------------------------------------------------------------------


def missing_kind(data: str) -> str:
    """Returns the error about a document without a kind (NewMissingKindErrWithBody)."""
    return f"Object 'Kind' is missing in '{data}'"


def not_registered(kind: str, api_version: str) -> str:
    """Returns the error about a kind that is not registered in the scheme (NewNotRegisteredErrForKind)."""
    scheme = go_quote(features.current().scheme)
    return f"no kind {go_quote(kind)} is registered for version {go_quote(api_version)} in scheme {scheme}"


def not_convertible(kind: str, version: str) -> str:
    """Returns the error about the conversion of a custom resource into a version that it does not have (ConvertToVersion)."""
    return f"{kind} is unstructured and is not suitable for converting to {go_quote(version)}"


#: The Go type that a document is read into for its kind and apiVersion.
TYPE_META: Final = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'


def uninterpretable(problem: object) -> str:
    """Returns the error about a document whose kind and apiVersion cannot be read (SimpleMetaFactory.Interpret)."""
    return f"couldn't get version/kind; json parse error: {problem}"


def unreachable_service(problem: object) -> str:
    """Returns the text of a proxy about a server that does not answer (k8s.io/apimachinery/pkg/util/proxy)."""
    return f"error trying to reach service: {problem}"


def generic(code: int, reason: str, message: str) -> StatusError:
    """Returns an error that has only a code and a message."""
    return StatusError(code, reason, message)


# --- The words of errors in older minors -----------------------------------------------------------------------------
# The rule is the same in all minors, and only its words differ. A row says until which minor, for which fields, how the detail
# begins now, and the whole detail then.
#
# Specified by: the validation.go of the minors.


_OF_HOST: Final = ("hostNetwork", "hostPID", "hostIPC")
_ROWS: Final[tuple[tuple[int, tuple[str, ...], str, str], ...]] = (
    (34, ("name",), "must be a valid CEL", "name is not a valid CEL identifier"),
    (34, ("message",), "must be non-empty", "message must be non-empty if specified"),
    (34, ("message",), "must not contain", "message must not contain line breaks"),
    (
        34,
        ("selectableFields",),
        "may only be set when `version",
        "selectableFields may only be set when version.schema.openAPIV3Schema is not included",
    ),
    (
        34,
        ("selectableFields",),
        "may only be set when validations",
        "selectableFields may only be set when validations.schema is included",
    ),
    (34, ("completionTime",), "must be equal", "completionTime cannot be set before startTime"),
    (34, ("completionTime",), "field is", "completionTime cannot be mutated"),
    (34, ("uncountedTerminatedPods",), "must be empty for", "uncountedTerminatedPods needs to be empty for finished job"),
    (34, _OF_HOST, "when `hostUsers`", "when `pod.Spec.HostUsers` is false"),
    (34, ("type",), "must be 'Exempt'", "type must be 'Exempt' if and only if name is 'exempt'"),
    (36, ("resizePolicy",), "must be 'NotRequired'", "must be 'NotRequired' when `restartPolicy` is 'Never'"),
)
_BY_FIELD: Final[Mapping[str, list[tuple[int, str, str]]]] = {
    name.lower(): [(until, begin, then) for until, those, begin, then in _ROWS if name in those]
    for _, names, _, _ in _ROWS
    for name in names
}
_CHANGED_UNTIL: Final = max(until for until, *_ in _ROWS)
"""The first minor in which no row counts."""


def _in_older_words(error: FieldError, minor: int) -> FieldError:
    """Returns the error with the detail that the minor has for it."""
    for until, begin, then in _BY_FIELD.get(error.path.rpartition(".")[2].lower(), ()):
        if minor < until and error.detail.startswith(begin):
            return replace(error, detail=then)
    return error
