"""What a cluster offers to its strategies: other objects, and the pools that values are drawn from.

A strategy never sees the store. It looks up and changes other objects through this protocol, which the cluster
implements (`registry/store_access.py`) and unit tests fake.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from fakekube.registry.resource import Resource
    from fakekube.registry.strategy import Object

__all__ = ["ClusterAccess", "Decision", "Recorded"]


@dataclass(slots=True, frozen=True)
class Recorded:
    """A write that managedFields tell of: the server wrote as a client of its own."""

    subresource: str
    """Through which it wrote; "" for the main resource."""
    time: datetime


@dataclass(slots=True, frozen=True)
class Decision:
    """Whether somebody may do something. Neither allowed nor denied: nobody has an opinion, which is a no."""

    allowed: bool
    reason: str = ""
    """Why, or what went wrong while looking for a rule."""
    denied: bool = False
    error: str = ""
    """What kept an authorizer from deciding."""


class ClusterAccess(Protocol):
    """See the module; `group` is "" for the core group, `namespace` is "" for cluster-scoped resources."""

    others_work: Callable[[], bool]
    """Are controllers at work in another thread, so that what they do may be waited for?"""

    def get(self, group: str, plural: str, namespace: str, name: str) -> Object | None:
        """The stored object (storage version, without kind and apiVersion), or None. Not to be changed."""

    def expect(self, group: str, plural: str, namespace: str, name: str, seconds: float) -> Object | None:
        """The same for an object that a controller is about to make: where controllers are at work, it is waited for, so many
        real seconds at most."""

    def list(self, group: str, plural: str, namespace: str = "") -> Iterator[Object]:
        """All stored objects, of one namespace or (if "") of all. Not to be changed."""

    def update(
        self,
        group: str,
        plural: str,
        namespace: str,
        name: str,
        change: Callable[[Object], Object],
        *,
        recorded: Recorded | None = None,
    ) -> Object:
        """Compare-and-set: `change` gets the stored object and returns a new tree (or the same object for no
        change); it may be called again after a conflict, and may raise StatusError. Raises not-found."""

    def create(self, group: str, plural: str, namespace: str, obj: Object) -> Object:
        """Store an object that the server itself makes (already complete); raises already-exists."""

    def remove(self, group: str, plural: str, namespace: str, name: str) -> None:
        """Remove an object that the server itself made; nothing if it is not there."""

    def reserve(self, pool: str, value: str) -> bool:
        """Take a value out of a pool of the server's own (node ports); False if it is taken."""

    def reserved(self, pool: str, value: str) -> bool:
        """Has somebody taken this value?"""

    def release(self, pool: str, value: str) -> None:
        """Give a value back; nothing if nobody had it."""

    def has_any(self, group: str, plural: str) -> bool:
        """Is there any object of a resource? Quicker than `list`."""

    def last_change(self, group: str, plural: str) -> int:
        """The revision of the last write of a resource: what was made from its objects is good until it is another one."""

    def resource_of_kind(self, group: str, version: str, kind: str) -> Resource | None:
        """The served resource whose objects are of a kind, or None."""

    def equivalents(self, resource: Resource, subresource: str) -> Sequence[Resource]:
        """The served resources that show the same objects and have this subresource, `resource` among them."""

    def enabled(self, gate: str) -> bool:
        """Is a feature gate on?"""

    def authorize(self, user: str, groups: Any, attributes: dict[str, Any]) -> tuple[bool, str]:
        """May this user do that (the attributes of a SubjectAccessReview's spec)? With the reason in words."""

    def decide(self, spec: Mapping[str, Any]) -> Decision:
        """What the authorizers say of the question that the spec of a SubjectAccessReview asks."""

    def authenticate(self, token: str, audiences: Any) -> dict[str, Any]:
        """The status of a TokenReview of a bearer token."""

    def rules(self, user: str, groups: Any, namespace: str) -> dict[str, Any]:
        """The status of a SelfSubjectRulesReview: what a user may do in a namespace."""

    def rbac_rules(self, user: str, groups: Any, namespace: str) -> tuple[Sequence[Mapping[str, Any]], str]:
        """The rules of roles that apply to a user in a namespace, and in words what could not be resolved."""

    def sign(self, claims: dict[str, Any]) -> str:
        """A service account token (JWT) with these claims, signed with the cluster's key."""

    @property
    def issuer(self) -> str:
        """The issuer URL of service account tokens."""
