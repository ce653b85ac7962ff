"""The proxy of one cluster: forwards requests for the group versions of other servers.

    availability → transport → location → headers → upgrade or request → redirects and links → response

An error before the response is plain text with 503; a later one aborts the response.

Specified by: k8s.io/kube-aggregator/pkg/apiserver/handler_proxy.go; k8s.io/apimachinery/pkg/util/proxy (upgradeaware.go,
transport.go); k8s.io/apiserver/pkg/util/proxy (NewRequestForProxy); net/http/httputil (ReverseProxy).
"""

from __future__ import annotations

import gzip
import re
import time
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from fakekube.aggregator import headers as passing
from fakekube.aggregator.backends import BackendAnswer, BackendBody, BackendError, BackendRequest, BackendTimeoutError, header
from fakekube.aggregator.links import Front, rewritten, rewritten_location
from fakekube.aggregator.locations import Location, Locations, Unreachable, UnresolvedError
from fakekube.aggregator.mounted import MountedBackend, MountedBody
from fakekube.golang.durations import parse_duration
from fakekube.registry.request import Request, Response, User
from fakekube.registry.strategy import Object
from fakekube.streams import BrokenStreamError
from fakekube.validation.conditions import condition

if TYPE_CHECKING:
    from fakekube.aggregator.remote import RemoteBackend

__all__ = ["Origin", "Passing", "Proxy", "outgoing", "passed", "pieces", "text_error"]

_DISCOVERY_SECONDS: Final = 5.0
"""The timeout of discovery requests (aggregatedDiscoveryTimeout)."""
_REQUEST_SECONDS: Final = 60.0
"""The timeout of other requests that are not watches (--request-timeout)."""
_BUFFERED = 65536
"""Bytes of an answer that are passed on in one piece with its head."""
_NOT_CACHED: Final = ("Cache-Control", "no-cache, private")
_TEXT: Final = "text/plain; charset=utf-8"
_TIMED_OUT: Final = (
    b'{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout",'
    b'"reason":"Timeout","details":{},"code":504}\n'
)
_REDIRECTED: Final = b"the backend attempted to redirect this request, which is not permitted"
_FLUSH_SECONDS = 0.2
"""The maximum delay of received bytes (the FlushInterval of the proxy)."""
_LARGEST_PAGE = 4 << 20
_PIECE = 65536
_BINARY: Final = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")


@dataclass(slots=True, frozen=True)
class Origin:
    """The properties of a request that are not in its `Request`."""

    address: str
    """The address of the client."""
    audit_id: str
    long_running: bool
    environ: Any
    """The WSGI environ: it has the request's body."""


class Proxy:
    """Passes requests on."""

    def __init__(self, locations: Locations) -> None:
        self._locations = locations

    def respond(self, service: Object, request: Request, origin: Origin) -> Response:
        """The answer of the server behind an APIService, which has a Service."""
        if condition(service, "Available").get("status") != "True":
            return text_error(503, "service unavailable")
        try:
            location = self._locations.locate(service["metadata"]["name"], service["spec"])
        except UnresolvedError:
            return text_error(503, "service unavailable")
        if location.problem:
            return text_error(500, location.problem)
        upgrade = passing.is_upgrade(request.headers)
        sent = _outgoing(request, origin, location, upgrade=upgrade)
        if upgrade and not isinstance(location.backend, MountedBackend):
            return _upgraded(location.backend, sent)
        discovers, allowed = _allowed_seconds(request, origin)
        try:
            answer = location.backend.send(sent, None if allowed is None else time.monotonic() + allowed)
        except BackendError as error:
            if isinstance(error, BackendTimeoutError) and not discovers:
                return Response(504, [("Content-Type", _TEXT)], _TIMED_OUT)
            return text_error(503, f"error trying to reach service: {error}")
        if 300 <= answer.status <= 399 and header(answer.headers, "location"):
            answer.body.close()
            return Response(502, [("Content-Type", _TEXT)], _REDIRECTED)
        return passed(answer, request, _front(location), long_running=origin.long_running)


def text_error(code: int, text: str) -> Response:
    """Makes an error response like http.Error."""
    headers = [("Content-Type", _TEXT), ("X-Content-Type-Options", "nosniff")]
    return Response(code, headers, f"{text}\n".encode())


def outgoing(path: str, location: Location, user: User, accept: str) -> BackendRequest:
    """Makes a request of the aggregator itself."""
    found = [("Host", location.host), ("User-Agent", "Go-http-client/1.1"), *passing.identity(user)]
    return BackendRequest("GET", path, "", [*found, ("Accept", accept)] if accept else found)


def _outgoing(request: Request, origin: Origin, location: Location, *, upgrade: bool) -> BackendRequest:
    """The request as the server behind sees it."""
    path = passing.encoded_path(request.path)
    found = [("Host", location.host), *passing.passed_on(request.headers, upgrade=upgrade)]
    before = [value for name, value in found if name == "X-Forwarded-For"]
    found = [entry for entry in found if not entry[0].startswith("X-Forwarded-") or entry[0] == "X-Forwarded-Port"]
    if origin.address:
        found.append(("X-Forwarded-For", ", ".join([*before, origin.address])))
    if upgrade and not any(name == "User-Agent" for name, _ in found):
        found.append(("User-Agent", "Go-http-client/1.1"))
    if not upgrade:
        forwarded = {"Uri": passing.forwarded_uri(path), "Host": location.host, "Proto": "https"}
        found += [(f"X-Forwarded-{name}", value) for name, value in forwarded.items()]
    found += [("Audit-Id", origin.audit_id), *passing.identity(request.user)]
    body, length = _body(origin.environ)
    return BackendRequest(request.method, path, passing.encoded_query(request.query), found, body, length)


def _body(environ: Any) -> tuple[Iterable[bytes], int | None]:
    """Returns the body of a request as a stream, and its length if it is known."""
    told = environ.get("CONTENT_LENGTH")
    if told:
        return pieces(environ["wsgi.input"], int(told)), int(told)
    is_open = environ.get("HTTP_TRANSFER_ENCODING") or environ.get("fakekube.open_body")
    if environ.get("wsgi.input_terminated") and is_open:
        return pieces(environ["wsgi.input"], None), None
    return (), 0


def pieces(body: Any, left: int | None) -> Iterator[bytes]:
    """Reads `left` bytes of a body (None: all) with its method `read`, piece by piece."""
    while left is None or left > 0:
        piece = body.read(_PIECE if left is None else min(left, _PIECE))
        if not piece:
            return
        if left is not None:
            left -= len(piece)
        yield piece


def _allowed_seconds(request: Request, origin: Origin) -> tuple[bool, float | None]:
    """Returns whether this is a discovery request, and its timeout (None: unlimited)."""
    info = request.info
    if not info.is_resource_request and len(info.path.strip("/").split("/")) == 3:
        return True, _DISCOVERY_SECONDS
    if origin.long_running:
        return False, None
    told = request.query.get("timeout")
    return False, min(_REQUEST_SECONDS, parse_duration(told) / 1e9) if told else _REQUEST_SECONDS


def _upgraded(backend: RemoteBackend | Unreachable, sent: BackendRequest) -> Response:
    """The answer to a request for another protocol; one that refuses is passed on, and ends the connection."""
    if isinstance(backend, Unreachable):
        return text_error(503, f"error dialing backend: {backend.problem}")
    from fakekube.aggregator.upgrade import UpgradeError, UpgradeTunnel, upgraded

    try:
        answer = upgraded(backend, sent)
    except UpgradeError as error:
        return text_error(503, str(error))
    if isinstance(answer, UpgradeTunnel):
        return Response(101, answer.headers, answer)
    if answer.status < 400:
        answer.body.close()
        return text_error(503, f"invalid upgrade response: status code {answer.status}")
    body: Any = Passing(answer.body)
    return Response(answer.status, [*passing.passed_answer(answer.headers), ("Connection", "close")], body)


# ---------------------------------------------------------------- the answer


def _front(location: Location) -> Front:
    return Front((location.host,), "https", location.host)


def passed(answer: BackendAnswer, request: Request, front: Front, *, long_running: bool) -> Response:
    """The answer as the client sees it."""
    found = passing.passed_answer(answer.headers)
    if header(found, "location"):
        found = [(name, rewritten_location(value, front) if name == "Location" else value) for name, value in found]
    if any(name == "Cache-Control" for name, _ in found):  # both are sent
        found.insert(0, _NOT_CACHED)
    if isinstance(answer.body, MountedBody) and hasattr(answer.body.result, "take"):
        stream: Any = answer.body.result
        return Response(answer.status, found, stream)
    if header(found, "content-type").partition(";")[0].strip() == "text/html" and request.method != "HEAD":
        _rewrite_links(answer, front)
        found = [entry for entry in found if entry[0] != "Content-Length"]
    if answer.status == 304:  # as net/http has it
        found = [entry for entry in found if entry[0] != "Content-Type"]
    body = _transferred(answer, request, long_running=long_running)
    if answer.length and not header(found, "content-type"):
        found.append(("Content-Type", _sniffed(body[0]) if isinstance(body, tuple) and body else _TEXT))
    return Response(answer.status, found, body)


def _sniffed(body: bytes) -> str:
    """Detects the Content-Type of a text body like http.DetectContentType."""
    begin = body[:512].lstrip(b"\t\n\f\r ").upper()
    if begin.startswith((b"<!DOCTYPE HTML", b"<HTML", b"<HEAD", b"<BODY", b"<!--")):
        return "text/html; charset=utf-8"
    if begin.startswith(b"<?XML"):
        return "text/xml; charset=utf-8"
    return "application/octet-stream" if _BINARY.search(body, 0, 512) else _TEXT


def _rewrite_links(answer: BackendAnswer, front: Front) -> None:
    """Lead the links of a page through the API server. Large pages, and those packed in an unusual way, stay as they are."""
    packed = header(answer.headers, "content-encoding").lower()
    if packed not in ("", "gzip"):
        return
    pieces, size, rest = [], 0, iter(answer.body)
    for piece in rest:
        pieces.append(piece)
        size += len(piece)
        if size > _LARGEST_PAGE:
            answer.body, answer.length = _Resumed(pieces, rest, answer.body), None
            return
    page = b"".join(pieces)
    if packed:
        try:
            page = gzip.compress(rewritten(gzip.decompress(page), front))
        except (OSError, EOFError, zlib.error):
            page = b""
    else:
        page = rewritten(page, front)
    answer.body, answer.length = _Resumed([page], iter(()), answer.body), len(page)


class _Resumed:
    """A body whose first bytes have been read."""

    def __init__(self, read: list[bytes], rest: Iterator[bytes], body: BackendBody) -> None:
        self._read, self._rest, self._body = read, rest, body

    def __iter__(self) -> Iterator[bytes]:
        yield from self._read
        yield from self._rest

    def close(self) -> None:
        self._body.close()


def _transferred(answer: BackendAnswer, request: Request, *, long_running: bool) -> Any:
    """The body: what is short is read now, a watch is followed by a thread, the rest is read as it is sent."""
    if request.method == "HEAD" or answer.status in (204, 304) or answer.length == 0:
        answer.body.close()
        return ()
    if answer.length is not None and answer.length <= _BUFFERED:
        pieces: list[bytes] = []
        flushed_at = time.monotonic() + _FLUSH_SECONDS
        try:
            pieces.extend(answer.body)
            return (b"".join(pieces),)
        except BackendError as error:
            return _Broken(pieces if time.monotonic() >= flushed_at else [], str(error))
        finally:
            answer.body.close()
    if long_running:
        from fakekube.aggregator.following import Following

        return Following(answer.body)
    return Passing(answer.body)


class Passing:
    """A body that is forwarded while it is received; the WSGI server closes it."""

    def __init__(self, body: BackendBody) -> None:
        self._body = body

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._body
        except BackendError as error:
            raise BrokenStreamError(str(error)) from None
        finally:
            self._body.close()

    def close(self) -> None:
        self._body.close()


class _Broken:
    """An aborted body: the received part is sent, then the connection is closed."""

    def __init__(self, pieces: list[bytes], problem: str) -> None:
        self._pieces = pieces
        self._problem = problem

    def __iter__(self) -> Iterator[bytes]:
        yield from self._pieces
        raise BrokenStreamError(self._problem)

    def close(self) -> None:
        """There is nothing left to close."""
