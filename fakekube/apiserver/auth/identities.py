"""Builds and parses the user and group names of Kubernetes.

Specified by: k8s.io/apiserver/pkg/authentication/user and …/serviceaccount (util.go).
"""

from __future__ import annotations

from typing import Final

from fakekube.apis.validation import names
from fakekube.apiserver.endpoints.request import User

MASTERS: Final = "system:masters"
AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
NODES: Final = "system:nodes"
CREDENTIAL_ID: Final = "authentication.kubernetes.io/credential-id"

ANONYMOUS: Final = User("system:anonymous", groups=(UNAUTHENTICATED,))
ADMIN: Final = User("admin", "admin", (MASTERS, AUTHENTICATED))

NODE_PREFIX: Final = "system:node:"
_SERVICE_ACCOUNT_PREFIX: Final = "system:serviceaccount:"
_SERVICE_ACCOUNTS_GROUP: Final = "system:serviceaccounts"


def with_authenticated(user: User) -> User:
    """Returns the user with the group system:authenticated added, unless it has that group or
    system:unauthenticated."""
    if user.name == ANONYMOUS.name or AUTHENTICATED in user.groups or UNAUTHENTICATED in user.groups:
        return user
    return User(user.name, user.uid, (*user.groups, AUTHENTICATED), user.extra)


def service_account_username(namespace: str, name: str) -> str:
    return f"{_SERVICE_ACCOUNT_PREFIX}{namespace}:{name}"


def service_account_groups(namespace: str) -> tuple[str, ...]:
    """Returns the groups of a service account, without system:authenticated."""
    return (_SERVICE_ACCOUNTS_GROUP, f"{_SERVICE_ACCOUNTS_GROUP}:{namespace}")


def service_account(username: str) -> tuple[str, str] | None:
    """Returns namespace and name of the service account of a user name; None for other user names."""
    if not username.startswith(_SERVICE_ACCOUNT_PREFIX):
        return None
    parts = username[len(_SERVICE_ACCOUNT_PREFIX) :].split(":")
    if len(parts) != 2 or names.dns_label(parts[0], False) or names.dns_subdomain(parts[1], False):
        return None
    return parts[0], parts[1]


def is_node_username(username: str) -> bool:
    """Reports whether this is the user name of a kubelet."""
    return username.startswith(NODE_PREFIX)


def node_name(username: str) -> str | None:
    """Returns the name of the node of a user, or None."""
    if not username.startswith(NODE_PREFIX):
        return None
    name = username[len(NODE_PREFIX) :]
    return None if names.dns_subdomain(name, False) else name
