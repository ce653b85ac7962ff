"""What a proxied request and its response have of the client's: headers, the user, path and query.

Invariant: a client cannot claim to be another user: headers about users are those of this server.

Specified by: net/http/httputil (ReverseProxy); net/textproto (CanonicalMIMEHeaderKey); net/url; k8s.io/client-go/transport
(SetAuthProxyHeaders).
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from urllib.parse import quote, quote_plus

from fakekube.apiserver.aggregator.backends import Headers
from fakekube.apiserver.endpoints.request import Query, User
from fakekube.base.golang.strings import bytes_of

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
