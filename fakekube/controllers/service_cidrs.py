"""The controllers of address ranges: of Services and of nodes.

The ServiceCIDR controller sets the condition Ready, and removes the finalizer of a deleted ServiceCIDR when no IPAddress depends
on it.

The node IPAM controller: assigns a pod CIDR to each node, a /24 of 10.244.0.0/16. It is disabled by default, as the real one.

Specified by: pkg/controller/servicecidrs/servicecidrs_controller.go, pkg/api/servicecidr/servicecidr.go;
pkg/controller/nodeipam/ipam/range_allocator.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, ClassVar, Final

from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.controller_utils import parse_time
from fakekube.controllers.reconciler import Key, Reconciler

CIDRS, ADDRESSES = "servicecidrs.networking.k8s.io", "ipaddresses.networking.k8s.io"
FINALIZER: Final = "networking.k8s.io/service-cidr-finalizer"
#: The label of addresses that the API server allocates to Services.
ALLOCATED: Final = ("ipaddress.kubernetes.io/managed-by", "ipallocator.k8s.io")
#: Seconds for which a deleted ServiceCIDR remains, so that the allocators stop using it (deletionGracePeriod).
DELETION_GRACE_PERIOD: Final = 10.0

_TERMINATING: Final = "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR"

Network = IPv4Network | IPv6Network


class ServiceCIDRController(Reconciler):
    """Writes conditions and finalizers; keys are ServiceCIDRs."""

    name = "service-cidr-controller"
    watches = (CIDRS, ADDRESSES)

    @staticmethod
    def concerns(resource: str, obj: StoredObject, old: StoredObject | None) -> bool:
        return resource == CIDRS or obj is old

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        if resource == ADDRESSES:
            address = _allocated_address(obj)
            containing = self._list_containing_cidrs(address) if address is not None and event_type != "MODIFIED" else ()
            return [Key("", cidr["metadata"]["name"]) for cidr in containing]
        overlapping = [Key("", other["metadata"]["name"]) for other in self.cache.list(CIDRS) if _networks_overlap(other, obj)]
        return overlapping if event_type != "MODIFIED" else (Key("", obj["metadata"]["name"]),)

    def reconcile(self, key: Key) -> None:
        cidr = self.cache.get(CIDRS, "", key.name)
        if cidr is None:
            return
        if "deletionTimestamp" in cidr["metadata"]:
            self._remove_finalizer(key, cidr)
            return
        if FINALIZER not in cidr["metadata"].get("finalizers", ()):
            cidr = self.client.strategic_patch(CIDRS, key.name, {"metadata": {"finalizers": [FINALIZER]}})
        self._set_ready(cidr, "True", "", "Kubernetes Service CIDR is ready")

    def _remove_finalizer(self, key: Key, cidr: Object) -> None:
        if not self._can_delete(cidr):
            self._set_ready(cidr, "False", "Terminating", _TERMINATING)
            return
        deleted = parse_time(cidr["metadata"]["deletionTimestamp"])
        left = DELETION_GRACE_PERIOD - (self.clock.now() - deleted).total_seconds()
        if left > 0:
            self.requeue_after(key, left)
        elif FINALIZER in cidr["metadata"].get("finalizers", ()):
            self.client.strategic_patch(CIDRS, key.name, {"metadata": {"$deleteFromPrimitiveList/finalizers": [FINALIZER]}})

    def _can_delete(self, cidr: Object) -> bool:
        """Reports whether every allocated address also belongs to another ServiceCIDR (canDeleteCIDR)."""
        others = [other for other in self.cache.list(CIDRS) if other["metadata"]["name"] != cidr["metadata"]["name"]]
        if all(any(_cidr_contains(other, network) for other in others) for network in _parse_networks(cidr)):
            return True
        addresses = (_allocated_address(obj) for obj in self.cache.list(ADDRESSES))
        return not any(
            [one["metadata"]["name"] for one in self._list_containing_cidrs(found)] == [cidr["metadata"]["name"]]
            for found in addresses
            if found is not None
        )

    def _list_containing_cidrs(self, address: IPv4Address | IPv6Address) -> list[Object]:
        """Returns the ServiceCIDRs to which an address can belong."""
        return [cidr for cidr in self.cache.list(CIDRS) if any(_contains_address(one, address) for one in _parse_networks(cidr))]

    def _set_ready(self, cidr: Object, status: str, reason: str, message: str) -> None:
        condition = {"type": "Ready", "status": status, "reason": reason, "message": message}
        for known in (cidr.get("status") or {}).get("conditions") or ():
            if {name: known.get(name, "") for name in condition} == condition:
                return
        applied = {
            "apiVersion": cidr["apiVersion"],
            "kind": cidr["kind"],
            "metadata": {"name": cidr["metadata"]["name"]},
            "status": {"conditions": [{**condition, "lastTransitionTime": self.client.now()}]},
        }
        self.client.apply(applied, field_manager=self.name, force=True, subresource="status")


def _parse_networks(cidr: Mapping[str, Any]) -> Iterator[Network]:
    for text in cidr["spec"].get("cidrs") or ():
        yield ip_network(text)


def _networks_overlap(one: Object, other: StoredObject) -> bool:
    return any(a.version == b.version and a.overlaps(b) for a in _parse_networks(one) for b in _parse_networks(other))


def _cidr_contains(cidr: Object, network: Network) -> bool:
    return any(
        other.version == network.version and other.prefixlen <= network.prefixlen and other.overlaps(network)
        for other in _parse_networks(cidr)
    )


def _contains_address(network: Network, address: IPv4Address | IPv6Address) -> bool:
    """Reports whether a Service can have the address: it is in the network, and neither its first nor (IPv4) its last one."""
    ends = {network.network_address, *([network.broadcast_address] if address.version == 4 else [])}
    return address in network and address not in ends


def _allocated_address(obj: StoredObject) -> IPv4Address | IPv6Address | None:
    """Returns the address of an IPAddress that is allocated to a Service; None for other ones."""
    label, value = ALLOCATED
    if (obj["metadata"].get("labels") or {}).get(label) != value:
        return None
    return ip_address(obj["metadata"]["name"])


CLUSTER_CIDR: Final = ip_network("10.244.0.0/16")
NODE_MASK_SIZE: Final = 24


def pod_cidrs(node: StoredObject) -> list[str]:
    """Returns the pod CIDRs of a node."""
    spec = node.get("spec") or {}
    return list(spec.get("podCIDRs") or ([spec["podCIDR"]] if spec.get("podCIDR") else ()))


class NodeIPAMController(Reconciler):
    """Assigns pod CIDRs; keys are nodes."""

    name: ClassVar[str] = "node-ipam-controller"
    component: ClassVar[str] = "cidrAllocator"
    watches: ClassVar[tuple[str, ...]] = ("nodes",)

    def on_start(self) -> None:
        for node in self.cache.list("nodes"):
            self.enqueue(Key("", node["metadata"]["name"]))

    @staticmethod
    def concerns(resource: str, obj: StoredObject, old: StoredObject | None) -> bool:
        return obj is old or not pod_cidrs(obj)

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        if event_type == "DELETED":  # other nodes may get its CIDR
            return [Key("", node["metadata"]["name"]) for node in self.cache.list("nodes") if not pod_cidrs(node)]
        return () if pod_cidrs(obj) else (Key("", obj["metadata"]["name"]),)

    def reconcile(self, key: Key) -> None:
        node = self.cache.get("nodes", "", key.name)
        if node is None or pod_cidrs(node):
            return
        used = {cidr for other in self.cache.list("nodes") for cidr in pod_cidrs(other)}
        free = next((str(one) for one in CLUSTER_CIDR.subnets(new_prefix=NODE_MASK_SIZE) if str(one) not in used), None)
        if free is None:
            about = {"kind": "Node", "apiVersion": "v1", "name": key.name, "uid": node["metadata"]["uid"]}
            self.recorder.event(about, "Normal", "CIDRNotAvailable", f"Node {key.name} status is now: CIDRNotAvailable")
            return
        self.client.patch("nodes", key.name, {"spec": {"podCIDR": free, "podCIDRs": [free]}})
