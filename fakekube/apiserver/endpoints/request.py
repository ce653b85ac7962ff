"""Requests and responses of handlers: plain values, independent of WSGI and sockets.

`apiserver/http/` creates a `Request` once per call (the path is already parsed, the user authenticated and authorized)
and sends the `Response`. Handlers only read a request, except that they add
`warnings` and `annotations`.

Specified by: k8s.io/apiserver/pkg/endpoints/request (RequestInfo), authentication/user (Info), and Go's
net/url for how a query is read: it is read as far as it goes, pairs that do not parse are dropped and never
answered with an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import unquote_to_bytes

from fakekube.apimachinery.codecs.document import Chunks
from fakekube.apimachinery.errors import status
from fakekube.base.golang.strings import text_of
from fakekube.net.streams import Stream

#: Bytes that a request's body may have (MaxRequestBodyBytes of the generic API server).
MAX_REQUEST_BODY_BYTES: Final = 3 * 1024 * 1024

_HEX: Final = frozenset("0123456789abcdefABCDEF")


@dataclass(slots=True, frozen=True)
class User:
    """The user of a request. `extra` has lower-case keys."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)


class Query:
    """The parameters of a query string: keys in the order of their first appearance, each with all its values.

    `raw` is what was sent. `error` is the first thing Go's url.ParseQuery would complain of ("" if nothing): the real server
    ignores it.
    """

    __slots__ = ("_values", "error", "raw")

    def __init__(self, raw: str = "") -> None:
        self.raw = raw
        self.error = ""
        self._values: dict[str, list[str]] = {}
        if raw:
            self._parse(raw)

    def _parse(self, raw: str) -> None:
        for pair in raw.split("&"):
            if not pair:
                continue
            try:
                if ";" in pair:
                    raise ValueError("invalid semicolon separator in query")
                key, _, value = pair.partition("=")
                key, value = _unescape(key), _unescape(value)
            except ValueError as problem:
                self.error = self.error or str(problem)
                continue
            self._values.setdefault(key, []).append(value)

    def get(self, key: str) -> str | None:
        """Returns the first value of a parameter, or None if it is not there."""
        values = self._values.get(key)
        return values[0] if values else None

    def all(self, key: str) -> Sequence[str]:
        """Returns all values of a parameter in order."""
        return self._values.get(key, ())

    def mapping(self) -> Mapping[str, Sequence[str]]:
        """Returns all parameters like Go's url.Values; must not be changed."""
        return self._values

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def __bool__(self) -> bool:
        return bool(self._values)

    def __repr__(self) -> str:
        return f"Query({self._values!r})"


def _unescape(text: str) -> str:
    """Unescapes like url.QueryUnescape. Raises ValueError with its message for an invalid escape."""
    if "+" in text:
        text = text.replace("+", " ")
    if "%" not in text:
        return text if text.isascii() else text_of(text.encode("latin-1"))
    for part in text.split("%")[1:]:
        if len(part) < 2 or part[0] not in _HEX or part[1] not in _HEX:
            raise ValueError(f'invalid URL escape "%{part[:2]}"')
    return text_of(unquote_to_bytes(text.encode("latin-1")))


class PathForm(NamedTuple):
    """The structure of the path of a resource request, by which routes are looked up."""

    depth: int
    """1: a collection, 2: an object, 3: something below an object."""
    in_namespace: bool
    watch_prefix: bool
    """The deprecated form: the verb stands before the resource."""
    subresource: str


@dataclass(slots=True)
class RequestInfo:
    """The meaning of a path and a method.

    For a request that is not about a resource, `verb` is the lower-case method and only `path` is set
    besides. For one that is, `verb` is get, list, watch, create, update, patch, delete, deletecollection
    (or proxy; "" for a method that is none of these).
    """

    path: str
    """Decoded, as it was sent."""
    verb: str
    is_resource_request: bool = False
    api_prefix: str = ""
    """"api" or "apis"."""
    group: str = ""
    version: str = ""
    namespace: str = ""
    """The one in the path; for the resource `namespaces` itself the name of the namespace."""
    resource: str = ""
    """The plural of the path, which may not exist."""
    subresource: str = ""
    name: str = ""
    """The name of the object; for list and watch also that of a field selector metadata.name=…"""
    field_selector: str = ""
    label_selector: str = ""
    """The encoded label selector of a list, watch or deletecollection; "" for deprecated watch paths."""
    parts: tuple[str, ...] = ()
    """The path from the resource on: resource, name, subresource, and the rest."""
    form: PathForm | None = None
    """None if the path has several leading slashes, or no group where one is required: then no resource has it."""


class Audit(Protocol):
    """Receives data for the audit event of a request."""

    def request_object(self, obj: Mapping[str, Any]) -> None:
        """Records the object in the body, in the version of the endpoint, with kind and apiVersion."""

    def request_patch(self, patch: Any) -> None:
        """Records the patch in the body."""

    def record_deprecation(self) -> None:
        """Records that the requested API version is deprecated."""


def _no_body(_limit: int) -> bytes:
    return b""


@dataclass(slots=True)
class Request:
    """A request, already authenticated and authorized."""

    method: str
    """The HTTP method as sent."""
    path: str
    """Decoded, as it was sent."""
    query: Query
    headers: Mapping[str, str]
    """Names in lower case; several headers of one name are joined by ", "."""
    info: RequestInfo
    user: User
    accept: str = ""
    """The header of that name, as the next two; "" if there is none."""
    content_type: str = ""
    user_agent: str = ""
    read: Callable[[int], bytes] = _no_body
    """Reads at most that many bytes of the rest of the body; use `read_body`."""
    warnings: list[str] = field(default_factory=list)
    """Texts of the Warning headers of the response, in order; each is sent once."""
    annotations: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The audit annotations of admission: key → (audit level, value)."""
    audit: Audit | None = None
    """The audit of the request; None if it is not audited."""
    deadline: float = inf
    """The deadline of the response, by `time.monotonic()`."""
    as_of: int | None = None
    """The revision for reads that may be stale; None: the current one."""
    address: str = ""
    """The address of the client."""
    sent_body: bytes | None = None
    """The body, if it was read."""

    def read_body(self, limit: int = MAX_REQUEST_BODY_BYTES) -> bytes:
        """Returns the whole body.

        Raises StatusError 413 if it has more than `limit` bytes.
        """
        body = self.sent_body
        if body is None:
            try:
                body = self.sent_body = self.read(limit + 1)
            except OSError as error:  # malformed framing, or the client closed the connection
                raise status.generic(500, "", str(error)) from None
        if len(body) > limit:
            raise status.request_entity_too_large(f"limit is {limit}")
        return body


@dataclass(slots=True)
class Response:
    """A response. `apiserver/http/` adds the headers that every response has (audit-id, cache-control, date, content-
    length …).
    """

    status: int
    headers: list[tuple[str, str]]
    body: bytes | Chunks | Stream
    is_watch_list: bool = False
    """Whether the body is a watch that begins with the state; such watches may be compressed."""
