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

from fakekube.auth.certificates import CertificateVerifier, common_name
from fakekube.auth.credentials import BadCredentialsError
from fakekube.auth.identities import with_authenticated
from fakekube.golang.strings import text_of, text_of_native
from fakekube.registry.request import User

__all__ = ["RequestHeaders", "unescaped"]

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
        username = _first(environment, self.username_headers)
        if not username:
            return None
        groups = tuple(value for header in self.group_headers for value in _values(environment, header) if value)
        return with_authenticated(User(username, _first(environment, self.uid_headers), groups, self._extra(environment)))

    def _extra(self, environment: Mapping[str, Any]) -> Mapping[str, Sequence[str]]:
        extra: dict[str, list[str]] = {}
        for prefix in map(_key, self.extra_prefixes):
            for key in environment:
                if key.startswith(prefix):
                    name = unescaped(key[len(prefix) :].replace("_", "-").lower())
                    extra.setdefault(name, []).extend(_split(environment[key]))
        return extra


def unescaped(key: str) -> str:
    """Unescapes the key of an extra header; an invalid escape leaves it unchanged."""
    if "%" not in key or _BAD_ESCAPE.search(key):
        return key
    return text_of(unquote_to_bytes(key))


def _key(header: str) -> str:
    return "HTTP_" + header.upper().replace("-", "_")


def _values(environment: Mapping[str, Any], header: str) -> list[str]:
    joined = environment.get(_key(header))
    return [] if joined is None else _split(joined)


def _split(joined: str) -> list[str]:
    return [value.strip() for value in text_of_native(joined).split(",")]


def _first(environment: Mapping[str, Any], headers: Sequence[str]) -> str:
    """Returns the first non-empty value of these headers; names may contain commas."""
    return next((text_of_native(value) for header in headers if (value := environment.get(_key(header)))), "")
