"""The endpoints of the control API for the page, who may use the control prefix, the documents of the page, and its terminal.

    GET /fakekube/                      the page
    GET /fakekube/page/HASH/NAME        its modules and styles, which never change
    GET /fakekube/page/terminal         the document of the terminal
    GET /fakekube/v1/pods/NAMESPACE/NAME/terminal?container=   Upgrade: websocket, v5.channel.k8s.io

Below /fakekube/v1, what there is, what happened, and its changes:

    GET info
    GET rows/requests          ?since=&until=&before=&limit=&own=
    GET rows/changes           the same, and ?resource=&namespace=&name=&paths=true
    GET rows/objects           ?at=&kinds=&namespace=&after=&limit=
    GET requests/N             one request with bodies
    POST requests/N/repeat
    GET changes/REV            the object before and after a change, and what differs
    GET compare                ?from=&to=&resource=&namespace=&name=
    GET findings
    GET scenario               what is practised in the cluster: tasks, hints, and what is still missing
    POST trace                 {"redact": true}: a trace file
    GET live                   ?requests=&changes=&marks=: what happens, as JSON lines
    GET marks                  ?since=
    POST marks                 {"text": "scaled to 3"}
    GET objects/RESOURCE/NAMESPACE/NAME   ?at=
    POST objects               {"yaml": "…", "dryRun": false, "force": false}

Rows are columns (`powers.columns`). The object of POST objects is applied by server-side apply with the field manager
`fakekube-page`; its resourceVersion, if it has one, is a precondition. Errors are a list of paths and messages.

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
from collections.abc import Callable, Iterable, Mapping
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, quote, urlencode

from werkzeug.utils import redirect
from werkzeug.wrappers import Response

from fakekube.apimachinery.codecs import DecodeError, yaml
from fakekube.apimachinery.errors import status
from fakekube.apimachinery.patch import APPLY_YAML
from fakekube.apiserver.auth.browsers import ForeignRequest
from fakekube.apiserver.endpoints.negotiation import HTML
from fakekube.apiserver.endpoints.request import RequestInfo
from fakekube.cluster.control.members import PREFIX, Answer, BadMembers, Members, boolean_member
from fakekube.cluster.control.powers import NEGATIVE_LIMIT, NUMBER, Raw, parse_flag
from fakekube.controllers.client import ApiError, UnknownResource
from fakekube.net.wsgi import path_of
from fakekube.powers.columns import revision_value
from fakekube.store import Compacted, FutureRevision

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

    # --- Who may ------------------------------------------------------------------------------------------------------

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

    # --- Documents and files ------------------------------------------------------------------------------------------

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
    return Response(text, code, headers, content_type=HTML)


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


# --- The endpoints of the control API for the page --------------------------------------------------------------------


_MAX_KINDS = 1_000


def read_integer(members: Members, name: str, default: int | None = None) -> int | None:
    """Returns a parameter that is a whole number. Raises BadMembers."""
    text = members.get(name)
    if text is None or text == "":
        return default
    if not NUMBER.fullmatch(text):
        raise BadMembers(f"parameter {name!r} must be a whole number")
    return int(text)


def flag(members: Members, name: str, default: bool = False) -> bool:
    """Returns a parameter that is true or false. Raises BadMembers."""
    return parse_flag(members.get(name, "true" if default else "false"), name)


def _span(members: Members, first: int) -> dict[str, Any]:
    limit = read_integer(members, "limit", 1_000)
    if limit is None or limit < 0:
        raise BadMembers(NEGATIVE_LIMIT)
    return {
        "since": read_integer(members, "since", first),
        "until": read_integer(members, "until"),
        "before": read_integer(members, "before"),
        "limit": limit,
    }


def get_info(cluster: Cluster, _members: Members) -> Answer:
    return 200, cluster.describe()


def list_requests(cluster: Cluster, members: Members) -> Answer:
    return 200, cluster.rows.requests(**_span(members, -1), own=flag(members, "own", default=True))


def list_changes(cluster: Cluster, members: Members) -> Answer:
    namespace = members.get("namespace")
    return 200, cluster.rows.changes(
        **_span(members, 0),
        resource=members.get("resource", ""),
        namespace="" if namespace == "-" else namespace,
        name=members.get("name", ""),
        with_paths=flag(members, "paths"),
    )


def list_objects(cluster: Cluster, members: Members) -> Answer:
    kinds = [kind for kind in members.get("kinds", "").split(",") if kind]
    if len(kinds) > _MAX_KINDS:
        raise BadMembers(f"parameter 'kinds' has more than {_MAX_KINDS} names")
    limit = read_integer(members, "limit", 5_000)
    if limit is None or limit < 1:
        raise BadMembers("parameter 'limit' must be positive")
    try:
        found = cluster.rows.objects(
            read_integer(members, "at"),
            kinds=kinds,
            namespace=members.get("namespace"),
            after=members.get("after", ""),
            limit=min(limit, 5_000),
        )
    except (Compacted, FutureRevision) as problem:
        return _not_kept(problem)
    return 200, found


def _not_kept(problem: Compacted | FutureRevision) -> Answer:
    if isinstance(problem, Compacted):
        return 410, {"error": "the revision is not kept any more", "oldest": revision_value(problem.revision)}
    return 404, {"error": str(problem)}


def get_request(cluster: Cluster, members: Members) -> Answer:
    found = cluster.rows.request(members["number"])
    if found is None:
        raise LookupError(f"request {members['number']} is not recorded, or was dropped")
    return 200, found


def get_change(cluster: Cluster, members: Members) -> Answer:
    found = cluster.rows.change(int(members["revision"]))
    if found is None:
        raise LookupError(f"revision {members['revision']} is no change of an object, or was dropped")
    return 200, found


def get_object(cluster: Cluster, members: Members) -> Answer:
    namespace = members["namespace"]
    try:
        found = cluster.rows.object(
            members["resource"], "" if namespace == "-" else namespace, members["name"], read_integer(members, "at")
        )
    except UnknownResource as problem:
        raise LookupError(str(problem)) from None
    except (Compacted, FutureRevision) as problem:
        return _not_kept(problem)
    if found is None:
        raise LookupError(f"there is no {members['resource']} {namespace}/{members['name']} at this revision")
    return 200, found


def list_findings(cluster: Cluster, _members: Members) -> Answer:
    return 200, {"items": [one.data() for one in cluster.findings()]}


def get_scenario(cluster: Cluster, _members: Members) -> Answer:
    found = cluster.scenario()
    if found is None:
        raise LookupError("no scenario is played in this cluster")
    return 200, found


def compare(cluster: Cluster, members: Members) -> Answer:
    first, last = read_integer(members, "from"), read_integer(members, "to")
    if first is None or last is None:
        raise BadMembers("parameters 'from' and 'to' are required")
    namespace = members.get("namespace")
    try:
        found = cluster.compare(
            first,
            last,
            namespace="" if namespace == "-" else namespace,
            resource=members.get("resource", ""),
            name=members.get("name", ""),
        )
    except (Compacted, FutureRevision) as problem:
        return _not_kept(problem)
    return 200, found.data()


def follow(cluster: Cluster, members: Members) -> Answer:
    found = {name: read_integer(members, name, default) for name, default in (("requests", -1), ("changes", 0), ("marks", 0))}
    return 200, cluster.live(**{name: number or 0 for name, number in found.items()})


def list_marks(cluster: Cluster, members: Members) -> Answer:
    since = read_integer(members, "since", 0)
    return 200, cluster.mark_rows(since or 0)


def create_mark(cluster: Cluster, members: Members) -> Answer:
    mark = cluster.mark(members["text"])
    return 201, {"number": mark.number, "revision": revision_value(mark.revision), "text": mark.text}


def make_trace(cluster: Cluster, members: Members) -> Answer:
    raw = Raw(cluster.trace_html(redact=boolean_member(members, "redact", default=True)).encode())
    raw.content_type = HTML
    raw.file_name = "trace.html"
    return 200, raw


FIELD_MANAGER: Final = "fakekube-page"
_AGENT: Final = "fakekube-page"
#: Verbs of requests that are streams, and those of calls of webhooks.
_NOT_REPEATED: Final = frozenset({"watch", "connect", "proxy", "call"})
_MAX_BYTES: Final = 3 << 20


def apply_object(cluster: Cluster, members: Mapping[str, Any]) -> Answer:
    obj = _object_in(members["yaml"])
    dry_run, force = (boolean_member(members, name) for name in ("dryRun", "force"))
    client = cluster.client_of(_AGENT)
    metadata = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    try:
        group, _, version = str(obj["apiVersion"]).rpartition("/")
        resource = client.resource(f"{obj['kind']}.{version}.{group}" if group else str(obj["kind"]))
        path = client.path(resource, metadata.get("namespace") or "default", str(metadata["name"]))
        query = {"fieldManager": FIELD_MANAGER, "force": str(force).lower(), **({"dryRun": "All"} if dry_run else {})}
        found = client.call("PATCH", path, {**obj, "metadata": metadata}, query, content_type=APPLY_YAML)
    except UnknownResource as problem:
        raise BadMembers(str(problem)) from None
    except ApiError as problem:
        return 422 if problem.code == 422 else problem.code, {"error": str(problem), "errors": _causes(problem)}
    return 200, {"object": found, "dryRun": dry_run}


def repeat_request(cluster: Cluster, members: Mapping[str, Any]) -> Answer:
    """Sends a recorded request again, as an administrator."""
    found = next((one for one in cluster.requests.where(own=True) if one.number == members["number"]), None)
    if found is None:
        raise LookupError(f"request {members['number']} is not recorded, or was dropped")
    if found.verb in _NOT_REPEATED:
        raise BadMembers(f"a {found.verb} is not sent again")
    answer = cluster.client_of(_AGENT).request(
        found.method, found.path, found.raw_body or None, found.query, content_type=found.content_type
    )
    return 200, {"status": answer.code, "number": cluster.requests.mark()}


def _object_in(text: str) -> dict[str, Any]:
    """Returns the object in a text. Raises BadMembers."""
    if len(text) > _MAX_BYTES:
        raise BadMembers(f"member 'yaml' has more than {_MAX_BYTES} characters")
    try:
        obj, _ = yaml.loads(text.encode("utf-8", "surrogatepass"))
    except (DecodeError, RecursionError) as problem:
        raise BadMembers(f"member 'yaml' is no YAML: {problem}") from None
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    if not isinstance(obj, dict) or not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        raise BadMembers("member 'yaml' must be one object with metadata.name")
    if not isinstance(obj.get("kind"), str) or not isinstance(obj.get("apiVersion"), str):
        raise BadMembers("member 'yaml' must have kind and apiVersion")
    return obj


def _causes(problem: ApiError) -> list[dict[str, str]]:
    """Returns the errors of a Status by path; a conflict names the fields of other managers."""
    causes = (problem.status.get("details") or {}).get("causes") or []
    return [{"path": str(one.get("field", "")), "message": str(one.get("message", ""))} for one in causes]
