"""The user and group names of Kubernetes, and the types that all authenticators share.

Types shared by the authenticators: the error for invalid credentials, and the result for a token.

Specified by: k8s.io/apiserver/pkg/authentication/user and …/serviceaccount (util.go);
k8s.io/apiserver/pkg/authentication/authenticator/interfaces.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from fakekube.apis.validation import names
from fakekube.apis.well_known import NODE_USER_NAME_PREFIX, SERVICE_ACCOUNT_USERNAME_PREFIX, SYSTEM_PRIVILEGED_GROUP
from fakekube.apiserver.endpoints.request import User
from fakekube.base.golang.strconv import go_quote

AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
CREDENTIAL_ID: Final = "authentication.kubernetes.io/credential-id"

ANONYMOUS: Final = User("system:anonymous", groups=(UNAUTHENTICATED,))
ADMIN: Final = User("admin", "admin", (SYSTEM_PRIVILEGED_GROUP, AUTHENTICATED))


def with_authenticated(user: User) -> User:
    """Returns the user with the group system:authenticated added, unless it has that group or system:unauthenticated."""
    if user.name == ANONYMOUS.name or AUTHENTICATED in user.groups or UNAUTHENTICATED in user.groups:
        return user
    return User(user.name, user.uid, (*user.groups, AUTHENTICATED), user.extra)


def service_account(username: str) -> tuple[str, str] | None:
    """Returns namespace and name of the service account of a user name; None for other user names."""
    if not username.startswith(SERVICE_ACCOUNT_USERNAME_PREFIX):
        return None
    parts = username[len(SERVICE_ACCOUNT_USERNAME_PREFIX) :].split(":")
    if len(parts) != 2 or names.dns_label(parts[0], False) or names.dns_subdomain(parts[1], False):
        return None
    return parts[0], parts[1]


def is_node_username(username: str) -> bool:
    """Reports whether this is the user name of a kubelet."""
    return username.startswith(NODE_USER_NAME_PREFIX)


def node_name(username: str) -> str | None:
    """Returns the name of the node of a user, or None."""
    if not username.startswith(NODE_USER_NAME_PREFIX):
        return None
    name = username[len(NODE_USER_NAME_PREFIX) :]
    return None if names.dns_subdomain(name, False) else name


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
