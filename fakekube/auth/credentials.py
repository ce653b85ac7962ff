"""What the kinds of credentials share: the error of bad ones, and whose token it is.

Specified by: k8s.io/apiserver/pkg/authentication/authenticator/interfaces.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from fakekube.golang.quoting import go_quote
from fakekube.registry.request import User

__all__ = [
    "INVALID_TOKEN", "AuthenticatedToken", "BadCredentialsError", "Getter", "TokenAuthenticator", "common_audiences", "go_list",
]

INVALID_TOKEN: Final = "invalid bearer token"


class BadCredentialsError(Exception):
    """Credentials that are no good; the text tells a TokenReview why."""


class Getter(Protocol):
    """Looks objects up; the cluster's services are one."""

    def get(self, group: str, plural: str, namespace: str, name: str) -> dict[str, Any] | None:
        """The stored object, or None."""


@dataclass(slots=True, frozen=True)
class AuthenticatedToken:
    """Whose token it is, and for which of the audiences asked for."""

    user: User
    audiences: tuple[str, ...]


class TokenAuthenticator(Protocol):
    """One kind of bearer tokens."""

    def authenticate(self, token: str, audiences: Sequence[str]) -> AuthenticatedToken | None:
        """The user of a token for these audiences; None if it is none of this kind. Raises BadCredentialsError."""


def common_audiences(wanted: Sequence[str], given: Sequence[str]) -> tuple[str, ...]:
    """Which of the audiences that are wanted a token is for."""
    return tuple(name for name in wanted if name in given)


def go_list(values: Sequence[str]) -> str:
    """A list of strings as Go prints it with %q."""
    return f"[{' '.join(map(go_quote, values))}]"
