"""Allocation of ClusterIPs, node ports and health check node ports for Services.

Each allocated ClusterIP is an IPAddress object, whose parent is the Service; node ports are from a pool of the server. Values
are chosen at random from the upper part of their range first; the lower part is left to clients that request certain values.
A failed write releases everything that it allocated; a successful one then releases what is no longer used. A dry run
allocates nothing.

Invariant: each port is in the pool once. An address has at most one Service, because its IPAddress can be created only once.

Specified by: pkg/registry/core/service/storage/alloc.go; pkg/registry/core/service/portallocator/allocator.go;
pkg/registry/core/service/ipallocator (cidrallocator.go, ipallocator.go).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fakekube.apimachinery.data import NETWORKING
from fakekube.apimachinery.errors import FieldError, StatusError, status
from fakekube.apimachinery.errors.field import invalid
from fakekube.apis.core.services.types import (
    EXTERNAL_NAME,
    NODE_PORT,
    NONE,
    is_headless,
    is_same_field,
    needs_health_check,
    node_ports,
    uses_node_ports,
)
from fakekube.apis.core.services.validation import validate_cluster_ip_fields
from fakekube.apis.networking import service_ip_address, validate_parent_reference
from fakekube.apis.rest.strategy import WriteContext
from fakekube.apis.validation import ip as addresses
from fakekube.base.chance import chance
from fakekube.base.golang.net import Address
from fakekube.base.objects import Object

_PORT_POOL = "nodeports"

_DRY_RUN_PORT = 32769
"""The first of the ports that a dry run returns."""

_TAKEN_PORT = "provided port is already allocated"
_OTHER_PORTS = "provided port is not in the valid range. The range of valid ports is {}-{}"

SINGLE_STACK, PREFER_DUAL_STACK, REQUIRE_DUAL_STACK = "SingleStack", "PreferDualStack", "RequireDualStack"


class Allocation:
    """What one write of a Service allocates and releases; `finish` ends it."""

    def __init__(self, context: WriteContext, obj: Object, old: Object | None) -> None:
        self._context = context
        self._ranges = context.services.service_ranges
        self._obj = obj
        self._spec: Object = obj["spec"]
        self._old: Object = old["spec"] if old else {}
        self._ips = IPAllocator(context, obj["metadata"].get("name", ""))
        self._allocated_ips: list[str] = []
        self._allocated_ports: dict[int, None] = {}
        self._highest_port = 0
        self._free_ports = candidates(self._ranges.node_ports, self._ranges.static_ports)
        self._released_ips: list[str] = []
        self._released_ports: list[int] = []

    def begin(self) -> None:
        """Allocates what the Service needs, and sets its fields. Raises StatusError, after releasing everything."""
        try:
            self._init_ip_families()
            if self._old:
                self._change_ips()
                self._change_ports()
            else:
                self._allocate_ips(range(len(self._spec.get("ipFamilies", ()))))
                self._allocate_new_ports()
        except StatusError:
            self.finish(False)
            raise

    def finish(self, stored: bool) -> None:
        """Releases what is no longer used (on success), or what was allocated (on failure)."""
        if self._context.dry_run:
            return
        _release(
            self._context,
            self._released_ips if stored else self._allocated_ips,
            self._released_ports if stored else list(self._allocated_ports),
        )

    def _invalid(self, errors: list[FieldError]) -> StatusError:
        return status.invalid("", "Service", self._obj["metadata"].get("name", ""), errors)

    # --- Families -----------------------------------------------------------------------------------------------------

    def _init_ip_families(self) -> None:
        """Sets ipFamilyPolicy and ipFamilies where the client does not (initIPFamilyFields)."""
        spec, old = self._spec, self._old
        if spec.get("type") == EXTERNAL_NAME or self._keeps_preferred_families():
            return
        selectorless = spec.get("clusterIP") == NONE and not spec.get("selector")
        if spec.get("ipFamilyPolicy") is None:
            usual = REQUIRE_DUAL_STACK if selectorless else SINGLE_STACK
            spec["ipFamilyPolicy"] = old.get("ipFamilyPolicy") or usual
        errors = validate_cluster_ip_fields(spec, old)
        if errors:
            raise self._invalid(errors)
        errors = self._trim_for_single_stack() if old else []
        errors += self._validate_single_stack()
        errors += self._infer_families()
        if errors:
            raise self._invalid(errors)
        if not selectorless:
            errors = self._validate_configured_families()
            if errors:
                raise self._invalid(errors)
        families = spec.get("ipFamilies") or [self._ranges.families[0]]
        both = spec["ipFamilyPolicy"] != SINGLE_STACK and (selectorless or len(self._ranges.families) == 2)
        if both and len(families) == 1:
            families = [families[0], "IPv6" if families[0] == "IPv4" else "IPv4"]
        spec["ipFamilies"] = families

    def _keeps_preferred_families(self) -> bool:
        """Reports whether a PreferDualStack Service keeps its families, although the cluster has changed."""
        new, old = self._spec, self._old
        return (
            bool(old)
            and new.get("type") == old.get("type") != EXTERNAL_NAME
            and new.get("ipFamilyPolicy") == PREFER_DUAL_STACK
            and old.get("ipFamilyPolicy") in (None, PREFER_DUAL_STACK)
            and is_same_field(new, old, "clusterIPs")
            and is_same_field(new, old, "ipFamilies")
        )

    def _trim_for_single_stack(self) -> list[FieldError]:
        """Drops the second address and family for the policy SingleStack; returns an error if another policy lost them."""
        spec, old = self._spec, self._old
        errors: list[FieldError] = []
        for field, what in (("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")):
            new_values, old_values = spec.get(field) or [], old.get(field) or []
            if spec["ipFamilyPolicy"] == SINGLE_STACK:
                if new_values == old_values and len(new_values) > 1:
                    spec[field] = new_values[:1]
            elif new_values and len(new_values) < len(old_values):
                detail = f"must be 'SingleStack' to release the secondary {what}"
                errors.append(invalid("spec.ipFamilyPolicy", spec["ipFamilyPolicy"], detail))
        return errors

    def _validate_single_stack(self) -> list[FieldError]:
        spec = self._spec
        if spec["ipFamilyPolicy"] != SINGLE_STACK:
            return []
        errors: list[FieldError] = []
        for field, what in (("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")):
            if len(spec.get(field) or ()) == 2:
                detail = f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
                errors.append(invalid("spec.ipFamilyPolicy", SINGLE_STACK, detail))
        return errors

    def _infer_families(self) -> list[FieldError]:
        """Adds the families of the requested addresses to ipFamilies; returns the errors."""
        spec = self._spec
        errors: list[FieldError] = []
        ips: Sequence[str] = spec.get("clusterIPs") or ()
        families: list[str] = list(spec.get("ipFamilies") or ())
        for index, ip in enumerate(ips):
            if ip == NONE:
                break
            if index < len(families):
                continue
            family = "IPv6" if addresses.is_ipv6(ip) else "IPv4"
            if family in self._ranges.families:
                families.append(family)
            else:
                detail = f"{family} is not configured on this cluster"
                errors.append(invalid(f"spec.clusterIPs[{index}]", list(ips), detail))
        if families:
            spec["ipFamilies"] = families
        return errors

    def _validate_configured_families(self) -> list[FieldError]:
        spec = self._spec
        errors: list[FieldError] = []
        if spec["ipFamilyPolicy"] == REQUIRE_DUAL_STACK and len(self._ranges.families) < 2:
            detail = "this cluster is not configured for dual-stack services"
            errors.append(invalid("spec.ipFamilyPolicy", REQUIRE_DUAL_STACK, detail))
        for index, family in enumerate(spec.get("ipFamilies") or ()):
            if family not in self._ranges.families:
                errors.append(invalid(f"spec.ipFamilies[{index}]", family, "not configured on this cluster"))
        return errors

    # --- Cluster IPs --------------------------------------------------------------------------------------------------

    def _change_ips(self) -> None:
        spec, old = self._spec, self._old
        if self._keeps_preferred_families():
            return
        families, old_families = spec.get("ipFamilies") or [], old.get("ipFamilies") or []
        if old.get("type") == EXTERNAL_NAME and spec.get("type") != EXTERNAL_NAME:
            self._allocate_ips(range(len(families)))
        elif is_headless(old):
            return
        elif old.get("type") != EXTERNAL_NAME and spec.get("type") == EXTERNAL_NAME:
            self._released_ips = list(old.get("clusterIPs") or ())
        elif len(old_families) == 1 and len(families) == 2:
            self._allocate_ips(range(1, 2))
        elif len(old_families) == 2 and len(families) == 1:
            self._released_ips = list(old.get("clusterIPs") or ())[1:2]

    def _allocate_ips(self, positions: range) -> None:
        """Allocates an address for each of these families: the requested one, or any."""
        spec = self._spec
        if spec.get("type") == EXTERNAL_NAME or (spec.get("clusterIPs") or [""])[0] == NONE:
            return
        ips: list[str] = list(spec.get("clusterIPs") or ())
        ips += [""] * (positions.stop - len(ips))
        for position in positions:
            ips[position] = self._allocate_one_ip(ips, position, spec["ipFamilies"][position])
        spec["clusterIP"], spec["clusterIPs"] = ips[0], ips

    def _allocate_one_ip(self, ips: list[str], position: int, family: str) -> str:
        requested = ips[position]
        try:
            taken = self._ips.allocate(requested) if requested else self._ips.allocate_next(family)
        except FullError as problem:
            name = self._obj["metadata"].get("name", "")
            raise status.internal(f'failed to allocate a serviceIP for Service "{name}": {problem}') from None
        except NotAllocatedError as problem:
            detail = f"failed to allocate IP{requested and ' '}{requested}: {problem}"
            raise self._invalid([invalid("spec.clusterIPs", ips, detail)]) from None
        if not self._context.dry_run:
            self._allocated_ips.append(taken)
        return taken

    # --- Ports --------------------------------------------------------------------------------------------------------

    def _allocate_new_ports(self) -> None:
        spec = self._spec
        if uses_node_ports(spec):
            by_port: dict[int, int] = {}
            requested = _requested_node_ports(spec)
            for index, item in enumerate(spec.get("ports", ())):
                if item.get("nodePort") or _allocates_node_ports(spec):
                    self._allocate_node_port(index, item, by_port, requested)
        if needs_health_check(spec):
            self._allocate_health_check_port()

    def _allocate_node_port(self, index: int, item: Object, by_port: dict[int, int], requested: Mapping[int, int]) -> None:
        """Allocates a node port; the same port of two protocols gets the same node port, unless the client requests two."""
        number, path = item.get("port", 0), f"spec.ports[{index}].nodePort"
        held = by_port.get(number)
        if held is None:
            held = self._allocate_port(requested[number], path) if number in requested else self._allocate_next_port()
            by_port[number] = item["nodePort"] = held
        elif not item.get("nodePort"):
            item["nodePort"] = held
        elif item["nodePort"] != held:
            self._allocate_port(item["nodePort"], path)

    def _change_ports(self) -> None:
        spec, old = self._spec, self._old
        if uses_node_ports(spec):
            self._change_node_ports()
        elif uses_node_ports(old):
            self._released_ports += node_ports(old)
        if needs_health_check(spec) and not needs_health_check(old):
            self._allocate_health_check_port()
        elif needs_health_check(old) and not needs_health_check(spec) and old.get("healthCheckNodePort"):
            self._released_ports.append(old["healthCheckNodePort"])

    def _change_node_ports(self) -> None:
        spec = self._spec
        held = dict.fromkeys(node_ports(self._old))
        fresh: set[int] = set()
        seen: set[tuple[str, int]] = set()
        for index, item in enumerate(spec.get("ports", ())):
            requested, protocol = item.get("nodePort", 0), item.get("protocol", "")
            if not requested and not _allocates_node_ports(spec):
                continue
            if not requested:
                item["nodePort"] = self._allocate_next_port()
            elif requested not in held and requested not in fresh:
                fresh.add(self._allocate_port(requested, f"spec.ports[{index}].nodePort"))
            key = (protocol, item["nodePort"])
            if key in seen:
                raise status.generic(500, "", f"duplicate nodePort: {{{key[0]} {key[1]}}}")
            seen.add(key)
        kept = set(node_ports(spec))
        self._released_ports += [number for number in held if number not in kept]

    def _allocate_health_check_port(self) -> None:
        spec = self._spec
        requested = spec.get("healthCheckNodePort", 0)
        if not requested:
            spec["healthCheckNodePort"] = self._allocate_next_port("failed to allocate a HealthCheck NodePort 0: ")
            return
        try:
            self._hold_port(requested)
        except NotAllocatedError as problem:
            text = f"failed to allocate requested HealthCheck NodePort {requested}: {problem}"
            raise status.internal(text) from None

    def _allocate_port(self, requested: int, path: str) -> int:
        try:
            self._hold_port(requested)
        except NotAllocatedError as problem:
            raise self._invalid([invalid(path, requested, str(problem))]) from None
        return requested

    def _hold_port(self, number: int) -> None:
        services, value = self._context.services, str(number)
        if self._context.dry_run:
            if services.is_allocated(_PORT_POOL, value) or number in self._allocated_ports:
                raise NotAllocatedError(_TAKEN_PORT)
        elif number not in self._ranges.node_ports:
            raise NotAllocatedError(_OTHER_PORTS.format(self._ranges.node_ports[0], self._ranges.node_ports[-1]))
        elif not services.reserve(_PORT_POOL, value):
            raise NotAllocatedError(_TAKEN_PORT)
        self._note_port(number)

    def _note_port(self, number: int) -> None:
        self._allocated_ports[number] = None
        self._highest_port = max(self._highest_port, number)

    def _allocate_next_port(self, failure: str = "failed to allocate a nodePort: ") -> int:
        if self._context.dry_run:
            number = self._highest_port + 1 if self._allocated_ports else _DRY_RUN_PORT
            self._note_port(number)
            return number
        for number in self._free_ports:
            if self._context.services.reserve(_PORT_POOL, str(number)):
                self._note_port(number)
                return number
        raise status.internal(f"{failure}{FULL}")


def release(context: WriteContext, obj: Object) -> None:
    """Releases everything that a deleted Service has allocated."""
    spec = obj["spec"]
    ips = [] if spec.get("type") == EXTERNAL_NAME or is_headless(spec) else spec.get("clusterIPs") or []
    health_check = [spec["healthCheckNodePort"]] if needs_health_check(spec) and spec.get("healthCheckNodePort") else []
    _release(context, ips, node_ports(spec) + health_check)


def _release(context: WriteContext, ips: Sequence[str], ports: Sequence[int]) -> None:
    for ip in ips:
        context.services.remove(NETWORKING, "ipaddresses", "", str(addresses.parse_ip(ip)))
    for number in ports:
        context.services.release(_PORT_POOL, str(number))


def _allocates_node_ports(spec: Object) -> bool:
    return spec.get("type") == NODE_PORT or spec.get("allocateLoadBalancerNodePorts") is True


def _requested_node_ports(spec: Object) -> dict[int, int]:
    """Returns the node port that the client requests for each port, of any protocol; the first one counts."""
    return {item.get("port", 0): item["nodePort"] for item in reversed(spec.get("ports", ())) if item.get("nodePort")}


FULL = "range is full"
_TAKEN_IP = "provided IP is already allocated"
_OTHER_NETWORK = "the provided network does not match the current range"


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
            raise NotAllocatedError(_OTHER_NETWORK)
        elif not self._create_ip_address(str(address)):
            raise NotAllocatedError(_TAKEN_IP)
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
        errors = validate_parent_reference(holder["spec"]["parentRef"], "spec.parentRef")
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


def _usable(network: _Network, address: Address | None) -> bool:
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
            start = chance().randrange(len(part))
            yield from part[start:]
            yield from part[:start]
