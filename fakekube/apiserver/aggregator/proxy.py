"""The proxies of the API server: of group versions of other servers, and of pods/proxy, services/proxy and nodes/proxy.

availability → transport → location → headers → upgrade or request → redirects and links → response

Aggregated APIs: an error before the response is plain text with 503; a later one aborts the response. The proxy subresources
keep the Host of the client and send no headers about the user; redirects and links in the response are rewritten to lead through
the API server, and an error before the response is a Status.

Specified by: k8s.io/kube-aggregator/pkg/apiserver/handler_proxy.go; k8s.io/apimachinery/pkg/util/proxy (upgradeaware.go,
transport.go: rewriteURL, rewriteHTML); k8s.io/apiserver/pkg/util/proxy (NewRequestForProxy); pkg/registry/core/{pod,service,node}
(ProxyREST); net/http/httputil (ReverseProxy); golang.org/x/net/html (Tokenizer).
"""

from __future__ import annotations

import posixpath
import re
import time
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit, urlunsplit

from fakekube.apimachinery.errors import status
from fakekube.apis.validation.objectmeta import condition
from fakekube.apiserver.aggregator.backends import (
    BackendBody,
    BackendError,
    BackendRequest,
    BackendResponse,
    BackendTimeoutError,
    ForwardedBody,
    MountedBackend,
    MountedBody,
    header,
)
from fakekube.apiserver.aggregator.headers import (
    encoded_path,
    encoded_query,
    forwarded_uri,
    identity,
    is_upgrade,
    request_headers,
    response_headers,
)
from fakekube.apiserver.aggregator.locations import Location, Locations, Unreachable, UnresolvedError
from fakekube.apiserver.endpoints.negotiation import HTML, PLAIN_TEXT
from fakekube.apiserver.endpoints.request import Request, Response, User
from fakekube.base.golang.timestamps import parse_duration
from fakekube.base.objects import Object
from fakekube.net.streaming.kubelet_api import Destination
from fakekube.net.streams import BrokenStreamError

if TYPE_CHECKING:
    from fakekube.apiserver.aggregator.remote import RemoteBackend


# --- Links in responses ------------------------------------------------------------------------------------------------


@dataclass(slots=True, frozen=True)
class Front:
    """The address of a proxied server for clients of the API server."""

    own: tuple[str, ...]
    """The hosts of the proxied server and of the API server: links to them are rewritten."""
    scheme: str = ""
    host: str = ""
    """The host of rewritten links; "" to keep the host of a link, or its absence."""
    prefix: str = ""
    """The prefix of its paths."""


#: The attributes with URLs, by tag (atomsToAttrs).
_LINKS = {
    "a": ("href",), "applet": ("codebase",), "area": ("href",), "audio": ("src",), "base": ("href",), "blockquote": ("cite",),
    "body": ("background",), "button": ("formaction",), "command": ("icon",), "del": ("cite",), "embed": ("src",),
    "form": ("action",), "frame": ("longdesc", "src"), "head": ("profile",), "html": ("manifest",),
    "iframe": ("longdesc", "src"), "img": ("longdesc", "src", "usemap"), "input": ("src", "usemap", "formaction"),
    "ins": ("cite",), "link": ("href",), "object": ("classid", "codebase", "data", "usemap"), "q": ("cite",),
    "script": ("src",), "source": ("src",), "video": ("poster", "src"),
}  # fmt: skip

#: A comment, or a start tag, which may lack its end. Nothing is tried twice: a page may be made to take long.
_TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)"
    r"|<(?P<tag>[a-zA-Z][^\s/>]*+)(?P<attributes>(?:[^>=]++|=\s*+(?:\"[^\"]*+\"|'[^']*+')|=(?!\s*+[\"']))*+)(?P<end>>)?",
    re.DOTALL,
)
#: Elements whose content is raw text up to their end tag.
_RAW_TEXT = ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes", "plaintext")
_ATTRIBUTE = re.compile(r"(=?[^\s=/>]+|=)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>\"'][^\s>]*))?)?")
_ESCAPES = {"&": "&amp;", "'": "&#39;", "<": "&lt;", ">": "&gt;", '"': "&#34;"}


def rewrite_url(url: str, front: Front) -> str:
    """Rewrites a URL to the proxied server (with its host, or with an absolute path) to one through the API server."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    if (parts.netloc and parts.netloc not in front.own) or not parts.path.startswith("/"):
        return url
    scheme, host, path = front.scheme, front.host, parts.path
    if not (scheme or host) and parts.netloc == front.own[0]:
        scheme, host = parts.scheme, parts.netloc
    if not path.startswith(front.prefix):
        path = posixpath.normpath(front.prefix + path) + ("/" if path.endswith("/") else "")
    return urlunsplit((scheme, host, path, parts.query, parts.fragment))


def rewrite_html(page: bytes, front: Front) -> bytes:
    """Rewrites the links of an HTML page. Tags are printed like Go's tokenizer, everything else is unchanged; a tag without an
    end is dropped with all that follows."""
    text, out, place = page.decode("latin-1"), [], 0
    while (found := _TOKEN.search(text, place)) is not None:
        out.append(text[place : found.start()])
        place = found.end()
        tag = (found["tag"] or "").lower()
        if tag and not found["end"]:
            return "".join(out).encode("latin-1")
        out.append(_tag(tag, found["attributes"], front) if tag else found[0])
        if tag in _RAW_TEXT:
            end = re.compile(rf"</{tag}[\s/>]", re.IGNORECASE).search(text, place)
            stop = end.start() if end else len(text)
            out.append(text[place:stop])
            place = stop
    out.append(text[place:])
    return "".join(out).encode("latin-1")


def _tag(tag: str, attributes: str, front: Front) -> str:
    from html import unescape  # many entities, which most clusters do not need

    shown: dict[str, str] = {}
    end = 0
    for found in _ATTRIBUTE.finditer(attributes):
        name, *values = found.groups("")
        value, end = unescape("".join(values)), found.end()
        if name.lower() in _LINKS.get(tag, ()):
            value = rewrite_url(value, front)
        shown.setdefault(name.lower(), "".join(_ESCAPES.get(character, character) for character in value))
    closes = attributes.endswith("/") and end < len(attributes)  # an unquoted value may end so as well
    texts = (f' {name}="{value}"' for name, value in shown.items())
    return f"<{tag}{''.join(texts)}{'/' if closes else ''}>"


class UpgradeAwareHandler:
    """Forwards requests to one server.

    Args:
        scheme: "http" or "https". The certificate of the server is not verified.
        host: the host and port of the server in its own links.
        destination: the address of the server, or a WSGI application.
    """

    def __init__(self, scheme: str, host: str, destination: Destination) -> None:
        self._host = host
        self._backend: RemoteBackend | MountedBackend
        if isinstance(destination, tuple):
            from fakekube.apiserver.aggregator.remote import RemoteBackend
            from fakekube.apiserver.webhooks.transport import Endpoint

            self._backend = RemoteBackend(Endpoint(f"{scheme}://{host}", destination, b"", verified=False))
        else:
            self._backend = MountedBackend(destination)

    def respond(self, request: Request, subpath: str) -> Response:
        """Returns the response of the backend.

        Args:
            request: the request of the client.
            subpath: the path after `proxy`; "" if the request path ends with it.

        Raises:
            StatusError: there is no response.
        """
        path = _join_paths("", subpath)
        upgrade = is_upgrade(request.headers)
        if not path and not upgrade and request.method in ("GET", "HEAD"):
            query = f"?{request.query.raw}" if request.query.raw else ""
            body: Any = () if request.method == "HEAD" else b""
            return Response(301, [("Location", f"{request.path}/{query}")], body)
        suffix = f"{path}/" if request.path.endswith("/") and not path.endswith("/") else path
        prefix = request.path.removesuffix(suffix)
        sent = _new_upgrade_aware_request(request, suffix or "/", prefix, upgrade=upgrade)
        if upgrade and not isinstance(self._backend, MountedBackend):
            return _upgrade_or_fail(self._backend, sent)
        try:
            response = self._backend.send(sent, None)
        except BackendError as error:
            raise status.service_unavailable(status.unreachable_service(error)) from None
        front = Front((request.headers.get("host", ""), self._host), prefix=prefix)
        return _proxy_response(response, request, front, long_running=True)


def _new_upgrade_aware_request(request: Request, path: str, prefix: str, *, upgrade: bool) -> BackendRequest:
    """Returns the request to forward."""
    written = encoded_path(path)
    found = [("Host", request.headers.get("host", "")), *request_headers(request.headers, upgrade=upgrade)]
    before = [value for name, value in found if name == "X-Forwarded-For"]
    found = [entry for entry in found if entry[0] not in ("X-Forwarded-For", "X-Forwarded-Uri")]
    if request.address:
        found.append(("X-Forwarded-For", ", ".join([*before, request.address])))
    if upgrade and not any(name == "User-Agent" for name, _ in found):
        found.append(("User-Agent", "Go-http-client/1.1"))
    if not upgrade:
        found.append(("X-Forwarded-Uri", _join_paths(prefix, written)))
    body, length = _body_of_request(request)
    return BackendRequest(request.method, written, request.query.raw, found, body, length)


def _join_paths(prefix: str, path: str) -> str:
    """Joins two paths like Go's path.Join, and keeps a trailing slash."""
    if not prefix and not path:
        return ""
    joined = posixpath.normpath(f"{prefix}/{path}")
    joined = "/" + joined.lstrip("/")
    return f"{joined}/" if path.endswith("/") and not joined.endswith("/") else joined


def _body_of_request(request: Request) -> tuple[Iterable[bytes], int | None]:
    """Returns the body of a request as a stream, and its length if it is known."""
    length = request.headers.get("content-length")
    if length:
        return _read_pieces(request, int(length)), int(length)
    return (_read_pieces(request, None), None) if "transfer-encoding" in request.headers else ((), 0)


def _upgrade_or_fail(backend: RemoteBackend, request: BackendRequest) -> Response:
    from fakekube.apiserver.aggregator.remote import UpgradeError, try_upgrade

    try:
        return try_upgrade(backend, request)
    except UpgradeError as error:
        raise status.generic(500, "", str(error)) from None


_DISCOVERY_SECONDS: Final = 5.0
"""The timeout of discovery requests (aggregatedDiscoveryTimeout)."""
_REQUEST_SECONDS: Final = 60.0
"""The timeout of other requests that are not watches (--request-timeout)."""
_BUFFERED = 65536
"""The maximum size in bytes of a body that is read before the response is sent."""
NOT_CACHED: Final = ("Cache-Control", "no-cache, private")
_TIMED_OUT: Final = (
    b'{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout",'
    b'"reason":"Timeout","details":{},"code":504}\n'
)
_REDIRECTED: Final = b"the backend attempted to redirect this request, which is not permitted"
_FLUSH_SECONDS = 0.2
"""The maximum delay of received bytes (the FlushInterval of the proxy)."""
_LARGEST_PAGE = 4 << 20
_BINARY: Final = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")


@dataclass(slots=True, frozen=True)
class Origin:
    """The properties of a request that are not in its `Request`."""

    address: str
    """The address of the client."""
    audit_id: str
    long_running: bool
    environ: Any
    """The WSGI environ, for the body of the request."""


class Proxy:
    """Forwards requests to the servers of APIServices."""

    def __init__(self, locations: Locations) -> None:
        self._locations = locations

    def respond(self, service: Object, request: Request, origin: Origin) -> Response:
        """Forwards a request to the server of an APIService with a Service, and returns the response."""
        if condition(service, "Available").get("status") != "True":
            return text_error(503, "service unavailable")
        try:
            location = self._locations.locate(service["metadata"]["name"], service["spec"])
        except UnresolvedError:
            return text_error(503, "service unavailable")
        if location.problem:
            return text_error(500, location.problem)
        upgrade = is_upgrade(request.headers)
        sent = _new_proxy_request(request, origin, location, upgrade=upgrade)
        if upgrade and not isinstance(location.backend, MountedBackend):
            return _upgrade(location.backend, sent)
        is_discovery, timeout = _timeout(request, origin)
        try:
            response = location.backend.send(sent, None if timeout is None else time.monotonic() + timeout)
        except BackendError as error:
            if isinstance(error, BackendTimeoutError) and not is_discovery:
                return Response(504, [("Content-Type", PLAIN_TEXT)], _TIMED_OUT)
            return text_error(503, status.unreachable_service(error))
        if 300 <= response.status <= 399 and header(response.headers, "location"):
            response.body.close()
            return Response(502, [("Content-Type", PLAIN_TEXT)], _REDIRECTED)
        return _proxy_response(
            response, request, Front((location.host,), "https", location.host), long_running=origin.long_running
        )


def text_error(code: int, text: str) -> Response:
    """Makes an error response like http.Error."""
    headers = [("Content-Type", PLAIN_TEXT), ("X-Content-Type-Options", "nosniff")]
    return Response(code, headers, f"{text}\n".encode())


def new_request(path: str, location: Location, user: User, accept: str) -> BackendRequest:
    """Makes a request of the aggregator itself."""
    found = [("Host", location.host), ("User-Agent", "Go-http-client/1.1"), *identity(user)]
    return BackendRequest("GET", path, "", [*found, ("Accept", accept)] if accept else found)


def _new_proxy_request(request: Request, origin: Origin, location: Location, *, upgrade: bool) -> BackendRequest:
    """Returns the request to forward (NewRequestForProxy)."""
    path = encoded_path(request.path)
    found = [("Host", location.host), *request_headers(request.headers, upgrade=upgrade)]
    before = [value for name, value in found if name == "X-Forwarded-For"]
    found = [entry for entry in found if not entry[0].startswith("X-Forwarded-") or entry[0] == "X-Forwarded-Port"]
    if origin.address:
        found.append(("X-Forwarded-For", ", ".join([*before, origin.address])))
    if upgrade and not any(name == "User-Agent" for name, _ in found):
        found.append(("User-Agent", "Go-http-client/1.1"))
    if not upgrade:
        forwarded = {"Uri": forwarded_uri(path), "Host": location.host, "Proto": "https"}
        found += [(f"X-Forwarded-{name}", value) for name, value in forwarded.items()]
    found += [("Audit-Id", origin.audit_id), *identity(request.user)]
    body, length = _body(origin.environ)
    return BackendRequest(request.method, path, encoded_query(request.query), found, body, length)


def _body(environ: Any) -> tuple[Iterable[bytes], int | None]:
    """Returns the body of a request as a stream, and its length if it is known."""
    length = environ.get("CONTENT_LENGTH")
    if length:
        return _read_pieces(environ["wsgi.input"], int(length)), int(length)
    is_open = environ.get("HTTP_TRANSFER_ENCODING") or environ.get("fakekube.open_body")
    if environ.get("wsgi.input_terminated") and is_open:
        return _read_pieces(environ["wsgi.input"], None), None
    return (), 0


def _read_pieces(body: Any, left: int | None) -> Iterator[bytes]:
    """Reads `left` bytes of a body (None: all) with its method `read`, piece by piece."""
    while left is None or left > 0:
        piece = body.read(_BUFFERED if left is None else min(left, _BUFFERED))
        if not piece:
            return
        if left is not None:
            left -= len(piece)
        yield piece


def _timeout(request: Request, origin: Origin) -> tuple[bool, float | None]:
    """Returns the timeout of a request (None: unlimited), after whether it is a discovery request."""
    info = request.info
    if not info.is_resource_request and len(info.path.strip("/").split("/")) == 3:
        return True, _DISCOVERY_SECONDS
    if origin.long_running:
        return False, None
    timeout = request.query.get("timeout")
    return False, min(_REQUEST_SECONDS, parse_duration(timeout) / 1e9) if timeout else _REQUEST_SECONDS


def _upgrade(backend: RemoteBackend | Unreachable, request: BackendRequest) -> Response:
    if isinstance(backend, Unreachable):
        return text_error(503, f"error dialing backend: {backend.problem}")
    from fakekube.apiserver.aggregator.remote import UpgradeError, try_upgrade

    try:
        return try_upgrade(backend, request)
    except UpgradeError as error:
        return text_error(503, str(error))


# --- Responses --------------------------------------------------------------------------------------------------------


def _proxy_response(response: BackendResponse, request: Request, front: Front, *, long_running: bool) -> Response:
    """Converts the response of a server to the response for the client.

    Args:
        response: the response of the server.
        request: the request of the client.
        front: how links of the response are rewritten.
        long_running: whether a thread reads the body, as for a watch.
    """
    found = response_headers(response.headers)
    if header(found, "location"):
        found = [(name, rewrite_url(value, front) if name == "Location" else value) for name, value in found]
    if any(name == "Cache-Control" for name, _ in found):  # both are sent
        found.insert(0, NOT_CACHED)
    if isinstance(response.body, MountedBody) and hasattr(response.body.result, "take"):
        stream: Any = response.body.result
        return Response(response.status, found, stream)
    if header(found, "content-type").partition(";")[0].strip() == "text/html" and request.method != "HEAD":
        _rewrite_links(response, front)
        found = [entry for entry in found if entry[0] != "Content-Length"]
    if response.status == 304:  # as in net/http
        found = [entry for entry in found if entry[0] != "Content-Type"]
    body = _body_of(response, request, long_running=long_running)
    if response.length and not header(found, "content-type"):
        found.append(("Content-Type", _detect_content_type(body[0]) if isinstance(body, tuple) and body else PLAIN_TEXT))
    return Response(response.status, found, body)


def _detect_content_type(body: bytes) -> str:
    """Detects the Content-Type of a text body like http.DetectContentType."""
    begin = body[:512].lstrip(b"\t\n\f\r ").upper()
    if begin.startswith((b"<!DOCTYPE HTML", b"<HTML", b"<HEAD", b"<BODY", b"<!--")):
        return HTML
    if begin.startswith(b"<?XML"):
        return "text/xml; charset=utf-8"
    return "application/octet-stream" if _BINARY.search(body, 0, 512) else PLAIN_TEXT


def _rewrite_links(response: BackendResponse, front: Front) -> None:
    """Rewrites the links of an HTML body. Bodies above 4 MiB (uncompressed, too), or with a content encoding other than gzip, are
    kept unchanged."""
    encoding = header(response.headers, "content-encoding").lower()
    if encoding not in ("", "gzip"):
        return
    pieces, size, rest = [], 0, iter(response.body)
    for piece in rest:
        pieces.append(piece)
        size += len(piece)
        if size > _LARGEST_PAGE:
            response.body, response.length = _Resumed(pieces, rest, response.body), None
            return
    page = b"".join(pieces)
    if encoding:
        import gzip

        try:
            with gzip.GzipFile(fileobj=BytesIO(page)) as file:
                text = file.read(_LARGEST_PAGE + 1)
            page = page if len(text) > _LARGEST_PAGE else gzip.compress(rewrite_html(text, front))
        except (OSError, EOFError, zlib.error):
            page = b""
    else:
        page = rewrite_html(page, front)
    response.body, response.length = _Resumed([page], iter(()), response.body), len(page)


class _Resumed:
    """A body whose beginning has been read already."""

    def __init__(self, read: list[bytes], rest: Iterator[bytes], body: BackendBody) -> None:
        self._read, self._rest, self._body = read, rest, body

    def __iter__(self) -> Iterator[bytes]:
        yield from self._read
        yield from self._rest

    def close(self) -> None:
        self._body.close()


def _body_of(response: BackendResponse, request: Request, *, long_running: bool) -> Any:
    """Returns the body: a short one is read now, a thread reads that of a watch, any other is read while it is sent."""
    if request.method == "HEAD" or response.status in (204, 304) or response.length == 0:
        response.body.close()
        return ()
    if response.length is not None and response.length <= _BUFFERED:
        pieces: list[bytes] = []
        flushed_at = time.monotonic() + _FLUSH_SECONDS
        try:
            pieces.extend(response.body)
            return (b"".join(pieces),)
        except BackendError as error:
            return _Broken(pieces if time.monotonic() >= flushed_at else [], str(error))
        finally:
            response.body.close()
    if long_running:
        from fakekube.apiserver.aggregator.backends import Following

        return Following(response.body)
    return ForwardedBody(response.body)


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
