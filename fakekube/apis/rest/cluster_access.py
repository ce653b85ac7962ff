"""What strategies see of the cluster: other objects, pools of allocated values, ranges of Services, webhooks.

A strategy never accesses the store. It reads and writes other objects through this protocol, which
`apiserver.registry.store_access` implements and unit tests fake.

`Call` is the interface for calling webhooks; `apiserver.webhooks.caller.Caller` implements it. `ServiceRanges` are the ranges
from which Services get addresses and node ports, the values of two flags.

Invariant: a call, which takes time and may fail, is never made while a lock is held.

Invariant: there are one or two networks, of different families; the first is that of the Service `kubernetes`.

Specified by: cmd/kube-apiserver/app/options (completion.go: getServiceIPAndRanges, validation.go: validateClusterIPFlags),
pkg/controlplane/services.go (ServiceIPRange) and k8s.io/apimachinery/pkg/util/net/port_range.go.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from fakekube.base.golang.strconv import parse_int

if TYPE_CHECKING:
    from fakekube.apimachinery.features import Emulation
    from fakekube.apis.rest.resource import Resource
    from fakekube.base.objects import Object


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
    components: Callable[[], Container[str]]
    """Returns the names of the components of the control plane that run beside the API server."""

    pace: float
    """The least time, in seconds of the clock, between a deletion and the removal of what has a finalizer of the server.
    A part of it passes between the two writes of a client's deletion with a grace period of 0."""

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

    def is_allocated(self, pool: str, value: str) -> bool:
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

    @property
    def certificate_authority(self) -> str:
        """The certificate (PEM) of the cluster's own authority; "" if it has none."""


class CallError(Exception):
    """A call failed; has the error message of the real server."""


class CallTimeoutError(CallError):
    """The call timed out."""


class Call(Protocol):
    """Sends a review to a webhook and returns the review in its response."""

    def __call__(self, client_config: Mapping[str, Any], review: dict[str, Any], *, timeout: float = 30.0) -> dict[str, Any]:
        """Returns the response, decoded by the type of the sent kind, with its own `kind` and `apiVersion`.

        Args:
            client_config: the clientConfig of a webhook: url or service, caBundle.
            review: the request, with `kind` and `apiVersion`; members are encoded in the order of the dict.
            timeout: seconds for the whole call, at most 30.

        Raises:
            CallError: the webhook could not be called, or its response is invalid.
        """
        ...

    def begin(
        self, client_config: Mapping[str, Any], review: dict[str, Any], *, timeout: float = 30.0
    ) -> Callable[[], dict[str, Any]]:
        """Begins a call, so that several calls can run at the same time. Returns a function that waits for the response
        and returns or raises like `__call__`; it must be called."""
        ...


_SMALLEST = 8
"""The minimum number of addresses of a range."""


@dataclass(slots=True, frozen=True)
class ServiceRanges:
    """The ranges of one cluster."""

    networks: tuple[str, ...] = ("10.0.0.0/16",)
    node_ports: range = range(30000, 32768)

    @property
    def families(self) -> tuple[str, ...]:
        """The IP families of the cluster; the first is the default."""
        return tuple("IPv6" if ":" in network else "IPv4" for network in self.networks)

    @property
    def first_address(self) -> str:
        """The address of the Service `kubernetes`."""
        return str(ipaddress.ip_network(self.networks[0])[1])

    @property
    def dns_address(self) -> str:
        """The address of the Service `kube-dns`: the tenth of the first network (GetDNSIP), or the last of a smaller one."""
        network = ipaddress.ip_network(self.networks[0])
        return str(network[min(10, network.num_addresses - 2)])

    @property
    def static_ports(self) -> int:
        """The number of the lowest ports that are allocated last: a 32nd of the range, at least 16, at most 128."""
        size = len(self.node_ports)
        return 0 if size <= 16 else min(max(size // 32, 16), 128)


def parse_networks(text: str) -> tuple[str, ...]:
    """Reads --service-cluster-ip-range. Raises ValueError with the words of the real server."""
    parts = text.split(",")
    if len(parts) > 2:
        raise ValueError("--service-cluster-ip-range must not contain more than two entries")
    found = []
    for place, part in enumerate(parts):
        try:
            found.append(ipaddress.ip_network(part, strict=False))
        except ValueError:
            what = ("a valid cidr", "an ip net")[place]
            raise ValueError(f"service-cluster-ip-range[{place}] is not {what}") from None
    if found[0].num_addresses < _SMALLEST:
        reason = f"the service cluster IP range must be at least {_SMALLEST} IP addresses"
        raise ValueError(f"error determining service IP ranges for primary service cidr: {reason}")
    if len({network.version for network in found}) < len(found):
        raise ValueError("--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family")
    return tuple(map(str, found))


def parse_ports(text: str) -> range:
    """Reads --service-node-port-range: `30000-32767`, `30000+2767` or one port. Raises ValueError."""
    value = text.strip()
    if "-" in value and "+" in value:
        raise ValueError(f"unable to parse port range: {value}")
    first, sign, second = value.partition("+" if "+" in value else "-")
    low = high = parse_int(first, "Atoi")
    if sign:
        high = parse_int(second, "Atoi") + (low if sign == "+" else 0)
    if max(low, high) > 65535:
        raise ValueError(f"the port range cannot be greater than 65535: {value}")
    if high < low:
        raise ValueError(f"end port cannot be less than start port: {value}")
    return range(low, high + 1)
