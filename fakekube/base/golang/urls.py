"""Parses URLs like Go's net/url, with the same error messages.

The components are stored decoded; of the path, the query and the user info the raw text is stored, too. In a host
only bytes beyond ASCII may be escaped; brackets enclose an IPv6 address.

Specified by: Go's net/url (Parse, ParseRequestURI), RFC 3986, RFC 6874.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote_to_bytes

from fakekube.base.golang.net import parse_address
from fakekube.base.golang.strconv import go_quote
from fakekube.base.golang.strings import bytes_of, text_of

CONTROL_CHARACTER: Final = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_USER: Final = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_PORT: Final = re.compile(r"(?::([0-9]*))?")
INVALID_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_IN_HOST: Final = re.compile(r"[^\x00-\x20#%/?@\\^`{|}\x7f]")
_ESCAPE_OR_CHARACTER: Final = re.compile("%[0-9A-Fa-f]{2}|.", re.DOTALL)
_ZONE_ESCAPES: Final = ("%25", "%20")
_STRICT_COLONS: Final = ("http", "https")
_PATH: Final = re.compile(r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/\[\]]|%[0-9A-Fa-f]{2})*")
_PATH_SAFE: Final = "/:@&=+$,;"


@dataclass(frozen=True, slots=True)
class Url:
    """The components of a URL."""

    text: str
    scheme: str = ""
    user: str | None = None
    """As it was written."""
    host: str = ""
    """With the port."""
    path: str = ""
    """The raw text; "" for an opaque URL such as mailto:someone."""
    query: str = ""
    """As it was written."""
    fragment: str = ""

    @property
    def hostname(self) -> str:
        """The host without port and brackets."""
        name = self._split[0]
        return name[1:-1] if name.startswith("[") and name.endswith("]") else name

    @property
    def port(self) -> str:
        """The port; "" if there is none."""
        return self._split[1]

    @property
    def _split(self) -> tuple[str, str]:
        name, colon, port = self.host.rpartition(":")
        return (name, port) if colon and _PORT.fullmatch(f":{port}") else (self.host, "")

    @property
    def escaped_path(self) -> str:
        """The path in escaped form."""
        if self.path == "*" or _PATH.fullmatch(self.path):
            return self.path
        return quote(unquote_to_bytes(bytes_of(self.path)), safe=_PATH_SAFE)


def parse_url(text: str) -> Url:
    """Parses a URL or a relative reference, with its fragment. Raises ValueError with Go's message."""
    address, _, fragment = text.partition("#")
    url = _parse_url(address, request=False)
    try:
        fragment = _unescape(fragment)
    except ValueError as problem:
        raise ValueError(f"parse {go_quote(text)}: {problem}") from None
    return Url(text, url.scheme, url.user, url.host, url.path, url.query, fragment)


def parse_request_uri(text: str) -> Url:
    """Parses the target of a request: an absolute URL or a path. `#` starts no fragment. Raises ValueError with Go's message."""
    return _parse_url(text, request=True)


def query_values(query: str) -> dict[str, list[str]]:
    """Parses the parameters of a query; invalid ones are dropped."""
    found: dict[str, list[str]] = {}
    for part in query.split("&"):
        name, _, value = part.partition("=")
        if part and ";" not in part and not INVALID_ESCAPE.search(part):
            found.setdefault(_unescape(name.replace("+", " ")), []).append(_unescape(value.replace("+", " ")))
    return found


def _parse_url(text: str, *, request: bool) -> Url:
    try:
        return _parse(text, request)
    except ValueError as problem:
        raise ValueError(f"parse {go_quote(text)}: {problem}") from None


def _parse(text: str, request: bool) -> Url:
    if CONTROL_CHARACTER.search(text):
        raise ValueError("net/url: invalid control character in URL")
    if not text and request:
        raise ValueError("empty url")
    if text == "*":
        return Url(text, path=text)
    if text.startswith(":"):
        raise ValueError("missing protocol scheme")
    match = _SCHEME.fullmatch(text)
    scheme, rest = (match[1].lower(), match[2]) if match else ("", text)
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return Url(text, scheme, query=query)
        if request:
            raise ValueError("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise ValueError("first path segment in URL cannot contain colon")
    user, host = None, ""
    if rest.startswith("//") and (scheme or (not request and not rest.startswith("///"))):
        authority, slash, path = rest[2:].partition("/")
        user, host = _authority(scheme, authority)
        rest = slash + path
    _unescape(rest)
    return Url(text, scheme, user, host, rest, query)


def _authority(scheme: str, text: str) -> tuple[str | None, str]:
    user, at, host = text.rpartition("@")
    host = _host(scheme, host)
    if not at:
        return None, host
    if not _USER.fullmatch(user):
        raise ValueError("net/url: invalid userinfo")
    for part in user.partition(":"):
        _unescape(part)
    return user, host


def _host(scheme: str, host: str) -> str:
    bracket = host.rfind("[")
    if bracket > 0:
        raise ValueError("invalid IP-literal")
    if bracket == 0:
        return _literal(host)
    colon = host.find(":") if scheme in _STRICT_COLONS else host.rfind(":")
    if colon >= 0:
        _check_port(host[colon:])
    return _decoded_host(host)


def _literal(host: str) -> str:
    """Parses an address in brackets. `%25` starts a zone, in which more characters may be escaped."""
    end = host.rfind("]")
    if end < 0:
        raise ValueError("missing ']' in host")
    port = host[end + 1 :]
    _check_port(port)
    name, percent, zone = host[1:end].partition("%25")
    address = _decoded_host(name) + (_decoded_zone(percent + zone) if percent else "")
    try:
        version = parse_address(address).version
    except ValueError as problem:
        raise ValueError(f"invalid host: {problem}") from None
    if version == 4:
        raise ValueError("invalid IP-literal")
    return f"[{address}]{port}"


def _check_port(text: str) -> None:
    if not _PORT.fullmatch(text):
        raise ValueError(f"invalid port {go_quote(text)} after host")


def _decoded_host(text: str) -> str:
    """Decodes a host, in which only bytes beyond ASCII and the `%` before a zone may be escaped."""
    return _decoded_authority(text, lambda escape: escape == "%25" or int(escape[1:], 16) >= 0x80)


def _decoded_zone(text: str) -> str:
    """Decodes a zone, in which characters that are legal without an escape, and spaces, may be escaped."""
    return _decoded_authority(text, lambda escape: escape in _ZONE_ESCAPES or bool(_IN_HOST.match(_ascii(escape))))


def _ascii(escape: str) -> str:
    code = int(escape[1:], 16)
    return chr(code) if code < 0x80 else ""


def _decoded_authority(text: str, may_escape: Callable[[str], bool]) -> str:
    for piece in _ESCAPE_OR_CHARACTER.finditer(text):
        if piece[0] == "%" or (piece[0][0] == "%" and not may_escape(piece[0])):
            raise _invalid_escape(text[piece.start() :])
        if piece[0][0] != "%" and not _IN_HOST.match(piece[0]):
            raise ValueError(f"invalid character {go_quote(piece[0])} in host name")
    return _unescape(text)


def refused_dial(place: str) -> str:
    """Returns the error of package net for an address on which nothing listens."""
    return f"dial tcp {place}: connect: connection refused"


def _unescape(text: str) -> str:
    if "%" not in text:
        return text
    bad = INVALID_ESCAPE.search(text)
    if bad:
        raise _invalid_escape(text[bad.start() :])
    return text_of(unquote_to_bytes(bytes_of(text)))


def _invalid_escape(rest: str) -> ValueError:
    """Go's message contains the first three bytes."""
    return ValueError(f"invalid URL escape {go_quote(text_of(bytes_of(rest)[:3]))}")
