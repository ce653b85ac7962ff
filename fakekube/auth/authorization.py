"""May this user do that? The question, the answer, and what one who may not is told.

Members of system:masters may do everything and are never looked up; all others need a rule (`rbac`). The same
authorizer answers requests, impersonation and the review kinds.

Specified by: k8s.io/apiserver/pkg/endpoints/filters/authorization.go and
…/handlers/responsewriters/errors.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from fakekube.auth.identities import MASTERS
from fakekube.errors import StatusError, status
from fakekube.golang.quoting import go_quote
from fakekube.registry.request import RequestInfo, User

__all__ = [
    "ALLOWED",
    "Attributes",
    "Authorizer",
    "Decision",
    "UnionAuthorizer",
    "attributes_of",
    "forbidden",
    "sanitised",
]


@dataclass(slots=True, frozen=True)
class Attributes:
    """What is to be done. `path` counts for requests that are not about resources, the rest for those that
    are.
    """

    user: User
    verb: str
    namespace: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    path: str = ""
    is_resource_request: bool = True


@dataclass(slots=True, frozen=True)
class Decision:
    """`reason` tells why it is allowed, or what went wrong while looking for a rule."""

    allowed: bool
    reason: str = ""


ALLOWED = Decision(True)


class Authorizer(Protocol):
    """Whoever decides."""

    def authorize(self, attributes: Attributes) -> Decision:
        """May the user do that?"""


class UnionAuthorizer:
    """The privileged group first, then whoever else decides."""

    def __init__(self, rules: Authorizer) -> None:
        self._rules = rules

    def authorize(self, attributes: Attributes) -> Decision:
        """May the user do that?"""
        return ALLOWED if MASTERS in attributes.user.groups else self._rules.authorize(attributes)


def attributes_of(info: RequestInfo, user: User) -> Attributes:
    """The question that a request asks."""
    return Attributes(
        user,
        info.verb,
        info.namespace,
        info.group,
        info.resource,
        info.subresource,
        info.name,
        info.path,
        info.is_resource_request,
    )


def forbidden(attributes: Attributes, reason: str = "") -> StatusError:
    """403: what may not be done, and what went wrong while looking for a rule."""
    problem = sanitised(_description(attributes))
    if reason:
        problem = f"{problem}: {reason}"
    return status.forbidden(attributes.group, attributes.resource, attributes.name, problem)


def sanitised(text: str) -> str:
    """The real server keeps its texts from looking like HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _description(attributes: Attributes) -> str:
    who = f"User {go_quote(attributes.user.name)} cannot {attributes.verb}"
    if not attributes.is_resource_request:
        return f"{who} path {go_quote(attributes.path)}"
    resource = attributes.resource
    if attributes.subresource:
        resource = f"{resource}/{attributes.subresource}"
    what = f"{who} resource {go_quote(resource)} in API group {go_quote(attributes.group)}"
    if attributes.namespace:
        return f"{what} in the namespace {go_quote(attributes.namespace)}"
    return f"{what} at the cluster scope"
