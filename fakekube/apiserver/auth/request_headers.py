"""Authenticates requests of front proxies, which authenticate users themselves and send them in headers.

A front proxy needs a client certificate of the requestheader CA with an allowed common name.

Specified by: k8s.io/apiserver/pkg/authentication/request/headerrequest/requestheader.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from fakekube.apiserver.auth.certificates import CertificateVerifier, common_name
from fakekube.apiserver.auth.credentials import BadCredentialsError
from fakekube.apiserver.auth.identities import with_authenticated
from fakekube.apiserver.endpoints.request import User
from fakekube.base.golang.strings import text_of
from fakekube.net.wsgi import Headers

_BAD_ESCAPE: Final = re.compile("%(?![0-9A-Fa-f]{2})")


@dataclass(slots=True, frozen=True)
class RequestHeaders:
    """Authenticates requests of front proxies. Names of headers are those of the flags."""

    verifier: CertificateVerifier
    allowed_names: Sequence[str]
    """Common names of the proxies' certificates; empty: any."""
    username_headers: Sequence[str]
    uid_headers: Sequence[str]
    group_headers: Sequence[str]
    extra_prefixes: Sequence[str]

    def user_of(self, environment: Mapping[str, Any], certificates: tuple[str, ...], now: datetime) -> User | None:
        """Returns the user in the headers; None without a user or a certificate. Raises BadCredentialsError."""
        if not certificates:
            return None
        self.verifier.check(certificates, now)
        name = common_name(certificates[0])
        if self.allowed_names and name not in self.allowed_names:
            raise BadCredentialsError(f"x509: subject with cn={name} is not in the allowed list")
        headers = Headers(environment)
        username = _first(headers, self.username_headers)
        if not username:
            return None
        groups = tuple(value for name in self.group_headers for value in headers.all(name) if value)
        return with_authenticated(User(username, _first(headers, self.uid_headers), groups, self._extra(headers)))

    def _extra(self, headers: Headers) -> Mapping[str, Sequence[str]]:
        extra: dict[str, list[str]] = {}
        for prefix in map(str.lower, self.extra_prefixes):
            for name in headers:
                if name.startswith(prefix):
                    extra.setdefault(unescaped(name.removeprefix(prefix)), []).extend(headers.all(name))
        return extra


def unescaped(key: str) -> str:
    """Unescapes the key of an extra header; an invalid escape leaves it unchanged."""
    if "%" not in key or _BAD_ESCAPE.search(key):
        return key
    return text_of(unquote_to_bytes(key))


def _first(headers: Headers, names: Sequence[str]) -> str:
    """Returns the first non-empty value of these headers; values may contain commas."""
    return next((value for name in names if (value := headers.get(name))), "")
