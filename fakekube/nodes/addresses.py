"""The addresses of pods and nodes.

A pod gets an address of its node's podCIDR, or, where the node has none or it is used up, of 10.244.0.0/16. Addresses of pods
that are gone are used again last.

Invariant: no two pods that are known here have the same address, but those in the network of their node.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Final

__all__ = ["Addresses", "AddressesExhausted"]

PODS: Final = "10.244.0.0/16"
NODES: Final = "172.18.0.0/16"


class AddressesExhausted(Exception):
    """There is no address left."""


@dataclass(slots=True)
class _Range:
    """The addresses of one network, handed out in a circle."""

    network: IPv4Network | IPv6Network
    next: int = 1
    used: set[str] = field(default_factory=set)

    def take(self) -> str | None:
        """A free address; the first and the last of the network are nobody's, the second is the gateway's."""
        size = self.network.num_addresses
        for _ in range(min(size, 1 << 17)):
            self.next = self.next + 1 if self.next + 1 < size - 1 else 2
            address = str(self.network[self.next]) if self.next < size else None
            if address is not None and address not in self.used:
                self.used.add(address)
                return address
        return None


class Addresses:
    """Hands out the addresses of one cluster."""

    def __init__(self) -> None:
        self._ranges: dict[str, _Range] = {}
        self._held: dict[str, list[tuple[str, str]]] = {}

    def _range(self, cidr: str) -> _Range:
        if cidr not in self._ranges:
            self._ranges[cidr] = _Range(ip_network(cidr, strict=False))
        return self._ranges[cidr]

    def node(self, name: str) -> str:
        """An address for a node. Raises AddressesExhausted."""
        return self._take(f"node/{name}", (NODES,))

    def pod(self, uid: str, cidrs: tuple[str, ...]) -> list[str]:
        """Addresses for a pod, one for each family of its node. Raises AddressesExhausted."""
        wanted = cidrs or (PODS,)
        return [self._take(uid, (cidr, PODS) if ":" not in cidr else (cidr,)) for cidr in wanted]

    def _take(self, holder: str, cidrs: tuple[str, ...]) -> str:
        for cidr in cidrs:
            address = self._range(cidr).take()
            if address is not None:
                self._held.setdefault(holder, []).append((cidr, address))
                return address
        raise AddressesExhausted(cidrs[0])

    def hold(self, holder: str, address: str) -> None:
        """The address is in use: it was given by somebody else, or before."""
        for cidr in (PODS, NODES, *self._ranges):
            found = self._range(cidr)
            if _contains(found.network, address):
                if address not in found.used:
                    found.used.add(address)
                    self._held.setdefault(holder, []).append((cidr, address))
                return

    def release(self, holder: str) -> None:
        """The pod is gone."""
        for cidr, address in self._held.pop(holder, ()):
            self._ranges[cidr].used.discard(address)

    def of(self, holder: str) -> list[str]:
        """What a pod holds."""
        return [address for _, address in self._held.get(holder, ())]

    def __iter__(self) -> Iterator[str]:
        """All addresses in use."""
        return (address for held in self._held.values() for _, address in held)


def _contains(network: IPv4Network | IPv6Network, address: str) -> bool:
    try:
        return ip_network(address).subnet_of(network)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
