"""Who may use the control prefix, the documents and modules of the page, and its terminal.

    GET /fakekube/                      the page
    GET /fakekube/page/HASH/NAME        its modules and styles, which never change
    GET /fakekube/page/terminal         the document of the terminal
    GET /fakekube/v1/pods/NAMESPACE/NAME/terminal?container=   Upgrade: websocket, v5.channel.k8s.io

Documents and modules contain no data of the cluster. Requests that a web page of another origin may have sent are refused; only a
navigation to a document may come from elsewhere, so that links work. What a browser changes needs the header `X-Fakekube: page`,
which no other origin can set without being asked first. The terminal becomes an exec of a shell by the Kubernetes API.

Where nobody is an administrator without credentials, the page has a token of its own: `/fakekube/?token=…` sets a cookie and
redirects to the address without it. So it is, for everybody, at the port of `Cluster.serve_page`.

Invariants: a request that is neither of a person at this machine nor has credentials reads no data. The terminal is reached after
these checks only, and runs what an exec in the container would.

Specified by: Fetch (Sec-Fetch-Site, Sec-Fetch-Mode), CSP Level 3, RFC 6265bis (SameSite);
k8s.io/kubelet/pkg/cri/streaming/remotecommand (v5.channel.k8s.io).
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Iterable
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, quote, urlencode

from werkzeug.utils import redirect
from werkzeug.wrappers import Response

from fakekube.apimachinery.errors import status
from fakekube.apiserver.auth.browsers import ForeignRequest
from fakekube.apiserver.endpoints.request import RequestInfo
from fakekube.cluster.control.members import PREFIX
from fakekube.net.wsgi import path_of

if TYPE_CHECKING:
    from fakekube.apimachinery.errors import StatusError
    from fakekube.apiserver.auth.access import Access
    from fakekube.cluster import Cluster


_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_TERMINAL: Final = f"{PREFIX}page/terminal"

#: Headers of answers with data.
DATA_HEADERS: Final = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_DOCUMENT_HEADERS: Final = {**DATA_HEADERS, "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin"}
_FILE_HEADERS: Final = {**DATA_HEADERS, "Cache-Control": "public, max-age=31536000, immutable"}


class Page:
    """The page of one cluster.

    Args:
        access: authenticates and authorizes requests.
        token: the token of the page, which stands for an administrator below the control prefix.
        is_served: whether there is a page, and not only the control API.
        needs_token: whether a request without credentials needs the token, whoever it would be for the Kubernetes API.
    """

    def __init__(self, access: Access, token: str, *, is_served: bool = True, needs_token: bool = False) -> None:
        self._access = access
        self._needs_token = needs_token
        self._is_served = is_served
        self._token = token

    # ------------------------------------------------------------ who may

    def admit(self, environ: dict[str, Any]) -> None:
        """Checks a request. Raises ForeignRequest, and StatusError 401 or 403."""
        authenticator, method, path = self._access.authenticator, environ["REQUEST_METHOD"], path_of(environ)
        if _is_navigation(environ, path):
            environ = {name: value for name, value in environ.items() if name != "HTTP_SEC_FETCH_SITE"}
        authenticator.guard.check(environ)  # also with credentials: a browser may hold some
        has_token = self._has_token(environ)
        is_browser = has_token or "HTTP_ORIGIN" in environ or "HTTP_SEC_FETCH_SITE" in environ
        if is_browser and method not in _SAFE_METHODS and environ.get("HTTP_X_FAKEKUBE") != "page":
            raise ForeignRequest("a browser changes something only with the header X-Fakekube: page")
        if has_token or self._is_public(environ, path):
            return
        if self._needs_token and "HTTP_AUTHORIZATION" not in environ:
            raise status.unauthorized()
        self._access.require(RequestInfo(path, method.lower()), authenticator.user_of(environ))

    def _has_token(self, environ: dict[str, Any]) -> bool:
        try:
            cookie = SimpleCookie(environ.get("HTTP_COOKIE", "")).get(_cookie_name(environ))
        except CookieError:
            return False
        return cookie is not None and self._is_token(cookie.value)

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode("utf-8", "surrogateescape"), self._token.encode())

    def _is_public(self, environ: dict[str, Any], path: str) -> bool:
        """Reports whether a request needs no user: one for a module, or one that brings the token."""
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return False
        return (path.startswith(f"{PREFIX}page/") and path != _TERMINAL) or self._brings_token(environ, path)

    def _brings_token(self, environ: dict[str, Any], path: str) -> bool:
        if path != PREFIX or "token=" not in environ.get("QUERY_STRING", ""):
            return False
        given = parse_qs(environ["QUERY_STRING"]).get("token", [""])
        return self._is_token(given[0])

    def refuse(self, environ: dict[str, Any], error: StatusError) -> Response | None:
        """Returns the document for somebody who may not see the page; None for other requests."""
        if path_of(environ) not in (PREFIX, _TERMINAL) or environ["REQUEST_METHOD"] != "GET":
            return None
        from fakekube.page import refusal

        html, policy = refusal(str(error))
        return _html(html, policy, error.code)

    # ------------------------------------------------------------ documents and files

    def answer(self, environ: dict[str, Any]) -> Response | None:
        """Answers a request for a document or a file; returns None for all others."""
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD") or not self._is_served:
            return None
        path = path_of(environ)
        if path == PREFIX:
            from fakekube.page import document

            if self._brings_token(environ, path):
                return self._with_cookie(environ)
            return _html(*document(PREFIX))
        if path == _TERMINAL:
            from fakekube.page import terminal_document

            return _html(*terminal_document(PREFIX))
        if path.startswith(f"{PREFIX}page/"):
            return _file(path.removeprefix(f"{PREFIX}page/"))
        return None

    def _with_cookie(self, environ: dict[str, Any]) -> Response:
        answer = redirect(PREFIX, 303)
        secure = environ.get("wsgi.url_scheme") == "https"
        answer.set_cookie(_cookie_name(environ), self._token, path=PREFIX, httponly=True, samesite="Strict", secure=secure)
        answer.headers.update(_DOCUMENT_HEADERS)
        return Response(answer.response, answer.status, answer.headers)


def _cookie_name(environ: dict[str, Any]) -> str:
    """Returns the name of the cookie, which has the port: browsers send the cookies of a host to all its ports."""
    port = str(environ.get("HTTP_HOST", "")).rpartition(":")[2]
    return f"fakekube-{port}" if port.isdecimal() and port.isascii() else "fakekube"


def _is_navigation(environ: dict[str, Any], path: str) -> bool:
    """Reports whether a person follows a link to a document."""
    return (
        path in (PREFIX, _TERMINAL)
        and environ["REQUEST_METHOD"] == "GET"
        and environ.get("HTTP_SEC_FETCH_MODE") == "navigate"
        and environ.get("HTTP_SEC_FETCH_DEST", "document") == "document"
    )


def _html(text: str, policy: str, code: int = 200) -> Response:
    headers = {**_DOCUMENT_HEADERS, "Content-Security-Policy": policy}
    return Response(text, code, headers, content_type="text/html; charset=utf-8")


def _file(place: str) -> Response | None:
    """Returns a module or style by its hash and name; None if there is none."""
    from fakekube.page import asset, assets

    digest, _, name = place.partition("/")
    found = asset(name) if digest == assets().hash else None
    if found is None:
        return None
    return Response(found.data, 200, _FILE_HEADERS, content_type=found.media_type)


_PATH: Final = re.compile(rf"{PREFIX}v1/pods/([^/]+)/([^/]+)/terminal")
#: Headers of the browser that are no business of the API: the control prefix has checked them.
_REMOVED: Final = frozenset({"HTTP_COOKIE", "HTTP_ORIGIN", "HTTP_SEC_FETCH_SITE", "HTTP_SEC_FETCH_MODE", "HTTP_SEC_FETCH_DEST"})


class Terminal:
    """Passes terminals on to the Kubernetes API.

    Args:
        cluster: whose administrator the page is.
        api: the application of the Kubernetes API.
    """

    def __init__(self, cluster: Cluster, api: Callable[..., Iterable[bytes]]) -> None:
        self._cluster, self._api = cluster, api

    def is_wanted(self, environ: dict[str, Any]) -> bool:
        """Reports whether a request opens a terminal."""
        return environ.get("HTTP_UPGRADE", "").lower() == "websocket" and _PATH.fullmatch(path_of(environ)) is not None

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Serves one terminal."""
        place = _PATH.fullmatch(path_of(environ))
        assert place is not None
        container = parse_qs(environ.get("QUERY_STRING", "")).get("container", [""])[0]
        query = {"command": "sh", "stdin": "true", "stdout": "true", "tty": "true"}
        if container:
            query["container"] = container
        path = f"/api/v1/namespaces/{place[1]}/pods/{place[2]}/exec"
        passed = {name: value for name, value in environ.items() if name not in _REMOVED}
        passed |= {
            "PATH_INFO": path.encode().decode("latin-1"),
            "QUERY_STRING": urlencode(query),
            "REQUEST_URI": f"{quote(path)}?{urlencode(query)}",
            "HTTP_AUTHORIZATION": f"Bearer {self._cluster.token}",
        }
        return self._api(passed, start_response)
