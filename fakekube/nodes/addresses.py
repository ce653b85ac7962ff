"""Allocates the addresses of pods and nodes, and has those of the API server.

A pod gets an address of its node's podCIDR, or, if the node has none or it is exhausted, of 10.244.0.0/16. Released addresses are
used again last.

Invariant: no two pods have the same address, except those in the host network of their node.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, Final

from fakekube.apis.well_known import LABEL_SKIP_MIRROR

PODS: Final = "10.244.0.0/16"
NODES: Final = "172.18.0.0/16"
#: The first address of the network of the nodes.
API_SERVER: Final = "172.18.0.1"
_API_PORT: Final[dict[str, Any]] = {"name": "https", "port": 6443, "protocol": "TCP"}


API_SERVER_ENDPOINTS: Final[tuple[dict[str, Any], ...]] = (
    {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": {LABEL_SKIP_MIRROR: "true"}},
        "subsets": [{"addresses": [{"ip": API_SERVER}], "ports": [_API_PORT]}],
    },
    {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": {"kubernetes.io/service-name": "kubernetes"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [API_SERVER], "conditions": {"ready": True}}],
        "ports": [_API_PORT],
    },
)
"""Endpoints and EndpointSlice of the Service `kubernetes` (pkg/controlplane/reconcilers): where pods reach the API server. One
that listens on loopback only has none; that of a cluster with nodes has its address in the network of the nodes."""


class AddressesExhausted(Exception):
    """There is no free address."""


@dataclass(slots=True)
class _Range:
    """The addresses of one network, allocated in a circle."""

    network: IPv4Network | IPv6Network
    next: int = 1
    used: set[str] = field(default_factory=set)

    def take(self, holder: str = "") -> str | None:
        """Returns a free address; not the first or the last of the network, nor the second, which is that of the gateway.

        With `holder`, the search starts where its hash says, so that the address does not depend on the order of holders.
        """
        size = self.network.num_addresses
        if holder:
            self.next = int.from_bytes(sha256(holder.encode()).digest()[:8]) % size
        for _ in range(min(size, 1 << 17)):
            self.next = self.next + 1 if self.next + 1 < size - 1 else 2
            address = str(self.network[self.next]) if self.next < size else None
            if address is not None and address not in self.used:
                self.used.add(address)
                return address
        return None


class Addresses:
    """Allocates the addresses of one cluster. The owner of an address is the uid of a pod, or "node/NAME".

    Args:
        seeded: whether the address of a pod depends on its uid alone, and not on the order of pods.
    """

    def __init__(self, *, seeded: bool = False) -> None:
        self._seeded = seeded
        self._ranges: dict[str, _Range] = {}
        self._held: dict[str, list[tuple[str, str]]] = {}

    def _range(self, cidr: str) -> _Range:
        if cidr not in self._ranges:
            self._ranges[cidr] = _Range(ip_network(cidr, strict=False))
        return self._ranges[cidr]

    def node(self, name: str) -> str:
        """Allocates an address for a node. Raises AddressesExhausted."""
        return self._take(f"node/{name}", (NODES,))

    def pod(self, uid: str, cidrs: tuple[str, ...]) -> list[str]:
        """Allocates addresses for a pod, one for each podCIDR of its node. Raises AddressesExhausted."""
        ranges = cidrs or (PODS,)
        return [self._take(uid, (cidr, PODS) if ":" not in cidr else (cidr,)) for cidr in ranges]

    def _take(self, holder: str, cidrs: tuple[str, ...]) -> str:
        for cidr in cidrs:
            address = self._range(cidr).take(holder if self._seeded and not holder.startswith("node/") else "")
            if address is not None:
                self._held.setdefault(holder, []).append((cidr, address))
                return address
        raise AddressesExhausted(cidrs[0])

    def hold(self, holder: str, address: str) -> None:
        """Marks an address as used that was allocated earlier, or by someone else."""
        for cidr in (PODS, NODES, *self._ranges):
            found = self._range(cidr)
            if _contains(found.network, address):
                if address not in found.used:
                    found.used.add(address)
                    self._held.setdefault(holder, []).append((cidr, address))
                return

    def release(self, holder: str) -> None:
        """Releases the addresses of a deleted pod or node."""
        for cidr, address in self._held.pop(holder, ()):
            self._ranges[cidr].used.discard(address)

    def list_for(self, holder: str) -> list[str]:
        """Returns the addresses of a pod or node."""
        return [address for _, address in self._held.get(holder, ())]

    def __iter__(self) -> Iterator[str]:
        """Iterates over all addresses in use."""
        return (address for held in self._held.values() for _, address in held)


def _contains(network: IPv4Network | IPv6Network, address: str) -> bool:
    try:
        return ip_network(address).subnet_of(network)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
