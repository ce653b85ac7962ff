"""Where a webhook is called: a URL, or a service of the cluster. Shared by all kinds that name webhooks.

Specified by: k8s.io/apiserver/pkg/util/webhook/validation.go; net/url (what its Parse refuses, in its words).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from fakekube.errors import FieldError
from fakekube.errors.field import go_quote, invalid, required
from fakekube.resources import names

__all__ = ["SERVICE_PORT", "service_errors", "url_errors"]

SERVICE_PORT = 443
FORM = "; desired format: https://host[/path]"

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
_PORT = re.compile(r"(:[0-9]*)?")
_USER = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*", re.ASCII)
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL)
_BAD_IN_HOST = re.compile(
    r"(?P<escape>%(?![0-9A-Fa-f]{2}).{0,2}|%(?!25)[0-7][0-9A-Fa-f])|[^A-Za-z0-9\-_.~!$&'()*+,;=:\[\]<>\"%\u0080-\U0010ffff]",
    re.DOTALL,
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class _Unparsable(Exception):
    """A text is not a URL; says why."""


@dataclass(slots=True, frozen=True)
class _Url:
    scheme: str = ""
    user: str | None = None
    host: str = ""
    query: str = ""
    fragment: str = ""


def url_errors(value: str, path: str) -> list[FieldError]:
    """The URL of a webhook."""
    try:
        url = _parse(value)
    except _Unparsable as error:
        return [required(path, f"url must be a valid URL: {error}{FORM}")]
    errors: list[FieldError] = []
    if url.scheme != "https":
        errors.append(invalid(path, url.scheme, f"'https' is the only allowed URL scheme{FORM}"))
    if not url.host:
        errors.append(invalid(path, url.host, f"host must be specified{FORM}"))
    if url.user is not None:
        errors.append(invalid(path, url.user, "user information is not permitted in the URL"))
    if url.fragment:
        errors.append(invalid(path, url.fragment, "fragments are not permitted in the URL"))
    if url.query:
        errors.append(invalid(path, url.query, "query parameters are not permitted in the URL"))
    return errors


def service_errors(service: Mapping[str, Any], path: str, *, swapped: bool = False) -> list[FieldError]:
    """A reference to a service. The admission kinds of the real server look at its name for the namespace and
    the other way round (`swapped`)."""
    errors: list[FieldError] = []
    name, namespace = service.get("name", ""), service.get("namespace", "")
    if swapped:
        name, namespace = namespace, name
    if not name:
        errors.append(required(f"{path}.name"))
    if not namespace:
        errors.append(required(f"{path}.namespace"))
    port = service.get("port", 0)
    refused = names.port_number(port)
    if refused:
        errors.append(invalid(f"{path}.port", port, "port is not valid: " + ", ".join(refused)))
    return errors + _path_errors(service.get("path", ""), f"{path}.path")


def _path_errors(value: str, path: str) -> list[FieldError]:
    if value in ("", "/"):
        return []
    if value == "//":
        return [invalid(path, value, "segment[0] may not be empty")]
    errors = [] if value.startswith("/") else [invalid(path, value, "must start with a '/'")]
    for index, step in enumerate(value[1:].removesuffix("/").split("/")):
        if step:
            errors += [invalid(path, value, f"segment[{index}]: {text}") for text in names.dns_subdomain(step)]
        else:
            errors.append(invalid(path, value, f"segment[{index}] may not be empty"))
    return errors


def _parse(text: str) -> _Url:
    address, _, fragment = text.partition("#")
    part = address
    try:
        url = _parse_address(address)
        part = text
        _check_escapes(fragment)
    except _Unparsable as error:
        raise _Unparsable(f"parse {go_quote(part)}: {error}") from None
    return _Url(url.scheme, url.user, url.host, url.query, unquote(fragment))


def _parse_address(text: str) -> _Url:
    if _CONTROL.search(text):
        raise _Unparsable("net/url: invalid control character in URL")
    if text.startswith(":"):
        raise _Unparsable("missing protocol scheme")
    found = _SCHEME.match(text)
    scheme = found.group()[:-1].lower() if found else ""
    rest, _, query = text[found.end() if found else 0 :].partition("?")
    if not rest.startswith("/"):
        if not scheme and ":" in rest.partition("/")[0]:
            raise _Unparsable("first path segment in URL cannot contain colon")
        if scheme:
            return _Url(scheme, query=query)
    user, host = None, ""
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        user, host = _parse_authority(scheme, authority)
        rest = slash + path
    _check_escapes(rest)
    return _Url(scheme, user, host, query)


def _parse_authority(scheme: str, authority: str) -> tuple[str | None, str]:
    user, at, host = authority.rpartition("@")
    host = _parse_host(scheme, host)
    if not at:
        return None, host
    if not _USER.fullmatch(user):
        raise _Unparsable("net/url: invalid userinfo")
    _check_escapes(user)
    return user, host


def _parse_host(scheme: str, host: str) -> str:
    if host.rfind("[") > 0:
        raise _Unparsable("invalid IP-literal")
    if host.startswith("["):
        return _parse_literal(host)
    first, last = host.find(":"), host.rfind(":")
    start = first if scheme in ("http", "https") else last
    if start >= 0:
        _check_port(host[start:])
    _check_host(host)
    return host


def _parse_literal(host: str) -> str:
    end = host.rfind("]")
    if end < 0:
        raise _Unparsable("missing ']' in host")
    _check_port(host[end + 1 :])
    literal = host[1:end]
    _check_host(literal.partition("%25")[0])
    address = unquote(literal)
    try:
        version = ipaddress.ip_address(address).version
    except ValueError:
        raise _Unparsable(f"invalid host: ParseAddr({go_quote(address)}): unable to parse IP") from None
    if version == 4:
        raise _Unparsable("invalid IP-literal")
    return host


def _check_port(text: str) -> None:
    if not _PORT.fullmatch(text):
        raise _Unparsable(f"invalid port {go_quote(text)} after host")


def _check_host(text: str) -> None:
    bad = _BAD_IN_HOST.search(text)
    if bad and bad["escape"]:
        raise _Unparsable(f"invalid URL escape {go_quote(bad.group())}")
    if bad:
        raise _Unparsable(f"invalid character {go_quote(bad.group())} in host name")


def _check_escapes(text: str) -> None:
    bad = _BAD_ESCAPE.search(text)
    if bad:
        raise _Unparsable(f"invalid URL escape {go_quote(bad.group())}")
