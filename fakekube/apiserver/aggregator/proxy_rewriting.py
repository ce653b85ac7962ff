"""The headers of proxied requests and responses, and the links in responses.

Rewrites links to the proxied server in responses, so that they lead through the API server.

Specified by: net/http/httputil (ReverseProxy); net/textproto (CanonicalMIMEHeaderKey); k8s.io/client-go/transport
(SetAuthProxyHeaders); k8s.io/apimachinery/pkg/util/proxy (Transport); k8s.io/apimachinery/pkg/util/proxy/transport.go
(rewriteURL, rewriteHTML); golang.org/x/net/html (Tokenizer).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import quote, quote_plus, urlsplit, urlunsplit

from fakekube.apiserver.endpoints.request import Query, User
from fakekube.base.golang.strings import bytes_of

Headers = list[tuple[str, str]]

_HOP_BY_HOP = frozenset(
    {
        "connection",
        "proxy-connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
#: Headers that the filters of the API server consume or write.
_TAKEN = frozenset({"authorization", "host", "content-length", "audit-id", "x-remote-user", "x-remote-group", "x-remote-uid"})
_TAKEN_PREFIXES = ("x-remote-extra-", "impersonate-")
_CORS = frozenset(
    {
        "access-control-allow-credentials",
        "access-control-allow-headers",
        "access-control-allow-methods",
        "access-control-allow-origin",
    }
)
#: Characters of a path that Go does not escape, besides letters and digits (net/url, encodePath).
_PATH_SAFE = "-_.~$&+,/:;=@"
#: Characters of an extra key that are not escaped in the header name, besides letters and digits.
_KEY_SAFE = "!#$&'*+-.^_`|~"


def is_upgrade(headers: Mapping[str, str]) -> bool:
    """Reports whether the client requests an upgrade (IsUpgradeRequest)."""
    return "upgrade" in headers.get("connection", "").lower()


def request_headers(headers: Mapping[str, str], *, upgrade: bool) -> Headers:
    """Returns the headers of a client request to forward. Hop-by-hop headers are kept for an upgrade, which needs them."""
    dropped = frozenset() if upgrade else _HOP_BY_HOP | _split_names(headers.get("connection", ""))
    found = [
        (_canonical(name), headers[name])
        for name in headers
        if name not in dropped and name not in _TAKEN and not name.startswith(_TAKEN_PREFIXES)
    ]
    if not upgrade and "trailers" in _split_names(headers.get("te", "")):
        found.append(("Te", "trailers"))
    return found


def identity(user: User) -> Headers:
    """Returns the request headers of the user for servers that trust this one as their front proxy."""
    found = [("X-Remote-User", user.name)]
    if user.uid:
        found.append(("X-Remote-Uid", user.uid))
    found += [("X-Remote-Group", group) for group in user.groups]
    for key, values in user.extra.items():
        name = "X-Remote-Extra-" + quote(bytes_of(key), safe=_KEY_SAFE)
        found += [(name, value) for value in values]
    return found


def response_headers(headers: Iterable[tuple[str, str]]) -> Headers:
    """Returns the headers of a response to forward to the client."""
    found = list(headers)
    listed = frozenset().union(*(_split_names(value) for name, value in found if name.lower() == "connection"))
    dropped = _HOP_BY_HOP | _CORS | listed
    return [(_canonical(name), value) for name, value in found if name.lower() not in dropped]


def encoded_path(path: str) -> str:
    """Encodes a path like Go."""
    return quote(bytes_of(path), safe=_PATH_SAFE)


def encoded_query(query: Query) -> str:
    """Encodes a query like Go's Values.Encode: keys sorted, values in their order."""
    return "&".join(
        f"{quote_plus(bytes_of(key))}={quote_plus(bytes_of(value))}"
        for key, values in sorted(query.mapping().items(), key=lambda entry: bytes_of(entry[0]))
        for value in values
    )


def forwarded_uri(path: str) -> str:
    """Cleans an encoded path: removes empty and relative segments, and keeps a trailing slash."""
    cleaned = "/" + posixpath.normpath(path).lstrip("/")
    return f"{cleaned}/" if path.endswith("/") else cleaned


def _split_names(value: str) -> frozenset[str]:
    """Returns the comma-separated names in a header value, in lower case."""
    return frozenset(part.strip().lower() for part in value.split(",") if part.strip())


def _canonical(name: str) -> str:
    """Returns the canonical form of a header name."""
    return "-".join(part[:1].upper() + part[1:].lower() for part in name.split("-"))


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

#: A comment or a start tag.
_TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)"
    r"|<(?P<tag>[a-zA-Z][^\s/>]*)(?P<attributes>(?:[^>\"']|\"[^\"]*\"|'[^']*')*)>",
    re.DOTALL,
)
#: Elements whose content is raw text up to their end tag.
_RAW_TEXT = ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes", "plaintext")
_ATTRIBUTE = re.compile(r"([^\s=/>\"']+)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>]+)))?")
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
    """Rewrites the links of an HTML page. Tags are printed like Go's tokenizer, everything else is unchanged."""
    text, out, place = page.decode("latin-1"), [], 0
    while (found := _TOKEN.search(text, place)) is not None:
        out.append(text[place : found.start()])
        place = found.end()
        tag = (found["tag"] or "").lower()
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

    closes = attributes.endswith("/")
    shown = []
    for name, *values in _ATTRIBUTE.findall(attributes.removesuffix("/") if closes else attributes):
        value = unescape("".join(values))
        if name.lower() in _LINKS.get(tag, ()):
            value = rewrite_url(value, front)
        shown.append(f' {name.lower()}="{"".join(_ESCAPES.get(character, character) for character in value)}"')
    return f"<{tag}{''.join(shown)}{'/' if closes else ''}>"
