"""URLs, read as Go reads the target of a request: absolute, with a scheme or with a path that begins with a slash.

Specified by: k8s.io/apiserver/pkg/cel/library/urls.go; Go's net/url (ParseRequestURI).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, unquote

from fakekube.cel.errors import EvaluationError
from fakekube.cel.values import Map, Opaque
from fakekube.errors.field import go_quote

__all__ = ["FUNCTIONS", "url_problem"]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL)
_BAD_HOST = re.compile(r"[\x00-\x20\"<>\\^`{|}\x7f]")
_USER = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_PORT = re.compile(r"(?::[0-9]*)?")
_PATH_SAFE: Final = "/:@&=+$,;-_.~!'()*[]%"


@dataclass(frozen=True, slots=True)
class Url(Opaque):
    """The parts of a URL that functions give away."""

    type_name = "kubernetes.URL"
    go_type = "*url.URL"
    text: str
    scheme: str = ""
    host: str = ""
    path: str = ""
    query: str = ""

    def __str__(self) -> str:
        return self.text


class _Problem(ValueError):
    """What Go says after the quoted URL."""


def _split(text: str, request: bool) -> Url:
    if re.search(r"[\x00-\x1f\x7f]", text):
        raise _Problem("net/url: invalid control character in URL")
    if not text and request:
        raise _Problem("empty url")
    whole = text
    if not request:
        text, _, fragment = text.partition("#")
        _check_escapes(fragment)
    match = _SCHEME.fullmatch(text)
    scheme, rest = (match[1].lower(), match[2]) if match else ("", text)
    if not match and text.startswith(":"):
        raise _Problem("missing protocol scheme")
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return Url(whole, scheme, query=query)
        if request:
            raise _Problem("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise _Problem("first path segment in URL cannot contain colon")
    host = ""
    if rest.startswith("//") and (scheme or (not request and not rest.startswith("///"))):
        authority, slash, path = rest[2:].partition("/")
        host, rest = _host(authority), slash + path
    _check_escapes(rest)
    return Url(whole, scheme, host, rest, query)


def _host(authority: str) -> str:
    user, at, host = authority.rpartition("@")
    if at and not _USER.fullmatch(user):
        raise _Problem("net/url: invalid userinfo")
    if host.startswith("["):
        end = host.rfind("]")
        if end < 0:
            raise _Problem("missing ']' in host")
        port = host[end + 1 :]
    else:
        port = host[host.rfind(":") :] if ":" in host else ""
    if not _PORT.fullmatch(port):
        raise _Problem(f"invalid port {go_quote(port)} after host")
    _check_escapes(host)
    wrong = _BAD_HOST.search(host)
    if wrong:
        raise _Problem(f"invalid character {go_quote(wrong[0])} in host name")
    return unquote(host)


def _check_escapes(text: str) -> None:
    wrong = _BAD_ESCAPE.search(text)
    if wrong:
        raise _Problem(f"invalid URL escape {go_quote(wrong[0])}")


def url_problem(text: str) -> str:
    """What is wrong with the target of a request, in Go's words; empty if nothing is."""
    try:
        _split(text, request=True)
    except _Problem as problem:
        return f"parse {go_quote(text)}: {problem}"
    return ""


def _url(text: str) -> Url:
    problem = url_problem(text)
    if not problem:
        try:
            return _split(text, request=False)
        except _Problem as error:
            problem = f"parse {go_quote(text)}: {error}"
    raise EvaluationError(f"URL parse error during conversion from string: {problem}")


def _hostname(url: Url) -> str:
    if url.host.startswith("["):
        return url.host[1 : url.host.rfind("]")]
    return url.host.rpartition(":")[0] if ":" in url.host else url.host


def _port(url: Url) -> str:
    return url.host.rpartition(":")[2] if ":" in url.host.rpartition("]")[2] else ""


def _query(url: Url) -> Map:
    found: dict[str, list[str]] = {}
    for part in url.query.split("&"):
        name, _, value = part.partition("=")
        if part and ";" not in part and not _BAD_ESCAPE.search(part):
            found.setdefault(unquote(name.replace("+", " ")), []).append(unquote(value.replace("+", " ")))
    return Map.of(found.items())


FUNCTIONS: Final[dict[tuple[Any, ...], Callable[..., Any]]] = {
    ("url", False, str): _url,
    ("isURL", False, str): lambda text: not url_problem(text),
    ("getScheme", True, Url): lambda url: url.scheme,
    ("getHost", True, Url): lambda url: url.host,
    ("getHostname", True, Url): _hostname,
    ("getPort", True, Url): _port,
    ("getEscapedPath", True, Url): lambda url: quote(url.path, safe=_PATH_SAFE),
    ("getQuery", True, Url): _query,
}
