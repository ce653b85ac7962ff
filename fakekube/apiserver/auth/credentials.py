"""Types shared by the authenticators: the error for invalid credentials, and the result for a token.

Specified by: k8s.io/apiserver/pkg/authentication/authenticator/interfaces.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from fakekube.apiserver.endpoints.request import User
from fakekube.base.golang.quoting import go_quote

INVALID_TOKEN: Final = "invalid bearer token"


class BadCredentialsError(Exception):
    """Invalid credentials; the text is the error of a TokenReview."""


class Getter(Protocol):
    """Gets stored objects; `ClusterAccess` implements it."""

    def get(self, group: str, plural: str, namespace: str, name: str) -> dict[str, Any] | None:
        """Returns the stored object, or None."""


@dataclass(slots=True, frozen=True)
class AuthenticatedToken:
    """The user of a token, and the requested audiences for which it is valid."""

    user: User
    audiences: tuple[str, ...]


class TokenAuthenticator(Protocol):
    """Authenticates one kind of bearer tokens."""

    def authenticate(self, token: str, audiences: Sequence[str]) -> AuthenticatedToken | None:
        """Returns the user of a token for these audiences; None if the token is not of this kind.

        Raises BadCredentialsError.
        """


def common_audiences(wanted: Sequence[str], given: Sequence[str]) -> tuple[str, ...]:
    """Returns the requested audiences for which a token is valid."""
    return tuple(name for name in wanted if name in given)


def go_list(values: Sequence[str]) -> str:
    """Formats a list of strings as Go does with %q."""
    return f"[{' '.join(map(go_quote, values))}]"
