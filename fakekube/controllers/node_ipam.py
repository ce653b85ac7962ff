"""The node IPAM controller: assigns a pod CIDR to each node, a /24 of 10.244.0.0/16. It is disabled by default, as the real one.

Specified by: pkg/controller/nodeipam/ipam/range_allocator.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_network
from typing import ClassVar, Final

from fakekube.controllers.objects import StoredObject
from fakekube.controllers.reconciler import Key, Reconciler

__all__ = ["NodeIPAMController"]

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
