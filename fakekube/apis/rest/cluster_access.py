"""The interface through which strategies access the cluster: other objects, and the pools of allocated values.

A strategy never accesses the store. It reads and writes other objects through this protocol, which
`apiserver.registry.store_access` implements and unit tests fake.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from fakekube.apimachinery.features import Emulation
    from fakekube.apis.rest.resource import Resource
    from fakekube.apis.rest.service_ranges import ServiceRanges
    from fakekube.apis.rest.strategy import Object

__all__ = ["AdmissionSnapshot", "ClusterAccess", "Decision", "Recorded"]


@dataclass(slots=True, frozen=True)
class AdmissionSnapshot:
    """What a cluster has configured that admission acts upon, at the beginning of a write.

    False: there is none, so that admission need not look. The default is to look for everything.
    """

    webhooks_or_policies: bool = True
    """Webhook configurations, or bindings of admission policies."""
    limit_ranges: bool = True
    resource_quotas: bool = True
    default_priority_class: bool = True
    """A PriorityClass with globalDefault."""


@dataclass(slots=True, frozen=True)
class Recorded:
    """A write of the server as its own client, which is recorded in managedFields."""

    subresource: str
    """The subresource of the write; "" for the main resource."""
    time: datetime


@dataclass(slots=True, frozen=True)
class Decision:
    """The decision of the authorizers. Neither allowed nor denied means no opinion; the request is then forbidden."""

    allowed: bool
    reason: str = ""
    """The reason, or the error of the search for a rule."""
    denied: bool = False
    error: str = ""
    """The evaluation error of an authorizer."""


class ClusterAccess(Protocol):
    """The interface of the cluster; `group` is "" for the core group, `namespace` is "" for cluster-scoped resources."""

    others_work: Callable[[], bool]
    """Reports whether controllers run in another thread, so that callers can wait for their writes."""

    @property
    def emulation(self) -> Emulation:
        """The minor and the gates of the server."""

    def get(self, group: str, plural: str, namespace: str, name: str) -> Object | None:
        """Returns the stored object (storage version, without kind and apiVersion), or None. It must not be changed."""

    def expect(self, group: str, plural: str, namespace: str, name: str, seconds: float) -> Object | None:
        """Like `get`, for an object that a controller creates: if controllers run in another thread, waits for it, at most
        `seconds` of real time."""

    def list(self, group: str, plural: str, namespace: str = "") -> Iterator[Object]:
        """Iterates over the stored objects of one namespace or (if "") of all. They must not be changed."""

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
        """Updates an object by compare-and-set: `change` gets the stored object and returns a new tree (or the same
        object for no change). It may be called again after a conflict, and may raise StatusError. Raises not-found."""

    def create(self, group: str, plural: str, namespace: str, obj: Object) -> Object:
        """Creates an object on behalf of the server; it must be complete. Raises already-exists."""

    def remove(self, group: str, plural: str, namespace: str, name: str) -> None:
        """Removes an object on behalf of the server; does nothing if it does not exist."""

    def reserve(self, pool: str, value: str) -> bool:
        """Allocates a value of a pool (node ports); returns False if it is already allocated."""

    def reserved(self, pool: str, value: str) -> bool:
        """Reports whether a value is allocated."""

    def release(self, pool: str, value: str) -> None:
        """Releases a value; does nothing if it is not allocated."""

    def has_any(self, group: str, plural: str) -> bool:
        """Reports whether a resource has any object. Faster than `list`."""

    def admission_snapshot(self) -> AdmissionSnapshot:
        """Returns what is configured for admission now. A write asks once."""

    def last_change(self, group: str, plural: str) -> int:
        """Returns the revision of the last write of a resource; values derived from its objects are valid until it changes."""

    def resource_of_kind(self, group: str, version: str, kind: str) -> Resource | None:
        """Returns the served resource of a kind, or None."""

    def equivalents(self, resource: Resource, subresource: str) -> Sequence[Resource]:
        """Returns the served resources with the same objects that have this subresource, including `resource`."""

    def enabled(self, gate: str) -> bool:
        """Reports whether a feature gate is enabled."""

    @property
    def service_ranges(self) -> ServiceRanges:
        """The ranges of ClusterIPs and node ports of Services."""

    def authorize(self, user: str, groups: Any, attributes: dict[str, Any]) -> tuple[bool, str]:
        """Authorizes a user for attributes (those of a SubjectAccessReview's spec). Returns (allowed, reason)."""

    def decide(self, spec: Mapping[str, Any]) -> Decision:
        """Returns the decision of the authorizers for the spec of a SubjectAccessReview."""

    def authenticate(self, token: str, audiences: Any) -> dict[str, Any]:
        """Returns the status of a TokenReview of a bearer token."""

    def rules(self, user: str, groups: Any, namespace: str) -> dict[str, Any]:
        """Returns the status of a SelfSubjectRulesReview: the permissions of a user in a namespace."""

    def rbac_rules(self, user: str, groups: Any, namespace: str) -> tuple[Sequence[Mapping[str, Any]], str]:
        """Returns the RBAC rules that apply to a user in a namespace, and the errors of references that cannot be resolved."""

    def sign(self, claims: dict[str, Any]) -> str:
        """Returns a service account token (JWT) with these claims, signed with the cluster's key."""

    @property
    def issuer(self) -> str:
        """The issuer URL of service account tokens."""
