"""Allocates the ClusterIPs of Services: each allocated address is an IPAddress object, whose parent is the Service.

Invariant: an address has at most one Service, because its IPAddress can be created only once. A dry run creates none.

Specified by: pkg/registry/core/service/ipallocator (cidrallocator.go, ipallocator.go).
"""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Iterator, Sequence
from typing import Any

from fakekube.apimachinery.errors import StatusError, status
from fakekube.apis.networking.ipaddresses import parent_reference, service_ip_address
from fakekube.apis.rest.strategy import Object, WriteContext
from fakekube.apis.validation import ip as addresses

__all__ = ["FULL", "NETWORKING", "FullError", "IPAllocator", "NotAllocatedError", "candidates"]

NETWORKING = "networking.k8s.io"
FULL = "range is full"
TAKEN_IP = "provided IP is already allocated"
OTHER_NETWORK = "the provided network does not match the current range"


class NotAllocatedError(Exception):
    """A value cannot be allocated; the text is the reason."""


class FullError(NotAllocatedError):
    """There is no free address left."""


class IPAllocator:
    """Allocates addresses for one Service, in the networks of the ServiceCIDRs."""

    def __init__(self, context: WriteContext, service: str) -> None:
        self._context = context
        self._service = service

    def allocate(self, requested: str) -> str:
        """Allocates an address. Raises NotAllocatedError."""
        address = addresses.parse_ip(requested)
        networks = list(_networks(self._context, None))
        if self._context.dry_run:
            if networks and not any(_usable(network, address) for network in networks):
                of_family = [network for network in networks if address is not None and network.version == address.version]
                network = (of_family or networks)[0]
                raise NotAllocatedError(
                    f"the provided IP ({address}) is not in the valid range. The range of valid IPs is {network}"
                )
        elif not any(_usable(network, address) for network in networks):
            raise NotAllocatedError(OTHER_NETWORK)
        elif not self._create_ip_address(str(address)):
            raise NotAllocatedError(TAKEN_IP)
        return requested

    def allocate_next(self, family: str) -> str:
        """Allocates any address of a family. Raises FullError."""
        for network in _networks(self._context, family):
            if self._context.dry_run:
                return str(network.network_address)
            for candidate in _candidate_addresses(network):
                if self._create_ip_address(candidate):
                    return candidate
        raise FullError(FULL)

    def _create_ip_address(self, address: str) -> bool:
        services = self._context.services
        if services.get(NETWORKING, "ipaddresses", "", address) is not None:
            return False
        holder = service_ip_address(self._context, address, self._service)
        errors = parent_reference(holder["spec"]["parentRef"], "spec.parentRef")
        if errors:
            raise NotAllocatedError(status.invalid(NETWORKING, "IPAddress", address, errors).message)
        try:
            services.create(NETWORKING, "ipaddresses", "", holder)
        except StatusError as error:
            if error.reason == "AlreadyExists":
                return False
            raise
        return True


_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def _networks(context: WriteContext, family: str | None) -> Iterator[_Network]:
    """Yields the service networks from which addresses can be allocated, of one family or all."""
    for obj in context.services.list(NETWORKING, "servicecidrs"):
        if "deletionTimestamp" in obj["metadata"] or not _is_ready(obj):
            continue
        for text in obj["spec"].get("cidrs", ()):
            network = ipaddress.ip_network(text)
            network_family = f"IPv{network.version}"
            if network_family == family or (family is None and network_family in context.services.service_ranges.families):
                yield network


def _is_ready(obj: Object) -> bool:
    """Reports whether a ServiceCIDR is ready; without a Ready condition (no controller) it is."""
    conditions: Sequence[dict[str, Any]] = obj.get("status", {}).get("conditions") or ()
    return all(item.get("status") == "True" for item in conditions if item.get("type") == "Ready")


def _usable(network: _Network, address: addresses.Address | None) -> bool:
    """Reports whether the address is in the network, and is neither its base nor (IPv4) its broadcast address."""
    if address is None or address.version != network.version or address not in network:
        return False
    return address != network.network_address and (network.version == 6 or address != network.broadcast_address)


def _candidate_addresses(network: _Network) -> Iterator[str]:
    """Yields all addresses of a network, in the order of allocation."""
    size = network.num_addresses
    static = 0 if size <= 16 else min(max(size // 16, 16), 256)
    usable = range(1, size - (1 if network.version == 4 else 0))
    for offset in candidates(usable, static):
        yield str(network[offset])


def candidates(values: range, static: int) -> Iterator[int]:
    """Yields all values, the `static` lowest ones last; each part starts at a random value."""
    for part in (values[static:], values[:static]):
        if part:
            start = random.randrange(len(part))
            yield from part[start:]
            yield from part[:start]
