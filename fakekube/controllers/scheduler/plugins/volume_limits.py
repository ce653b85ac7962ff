"""NodeVolumeLimits: checks how many volumes of a CSI driver can be attached to a node.

Specified by: pkg/scheduler/framework/plugins/nodevolumelimits/csi.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from fakekube.controllers.scheduler.cycle import Cycle, Lister
from fakekube.controllers.scheduler.framework import Code, FilterPlugin, Status
from fakekube.controllers.scheduler.nodeinfo import NodeInfo
from fakekube.controllers.scheduler.volumes import claim_names

__all__ = ["NodeVolumeLimits"]

Disk = tuple[str, str]


class NodeVolumeLimits(FilterPlugin):
    """Rejects nodes on which the pod's volumes would exceed the limit."""

    name = "NodeVolumeLimits"
    refusal = Status(Code.UNSCHEDULABLE, ("node(s) exceed max volume count",), name)

    def __init__(self, cycle: Cycle, disks: frozenset[Disk]) -> None:
        self._cycle, self._disks = cycle, disks

    @classmethod
    def pre_filter(cls, cycle: Cycle) -> FilterPlugin | None:
        disks = frozenset(_disks(cycle.pod.obj, cycle.lister))
        return cls(cycle, disks) if disks else None

    def filter(self, node: NodeInfo) -> Status | None:
        found = self._cycle.lister.get("csinodes.storage.k8s.io", "", node.name)
        if found is None:
            return None
        limits = {
            driver["name"]: driver["allocatable"]["count"]
            for driver in found["spec"].get("drivers") or ()
            if "count" in (driver.get("allocatable") or {})
        }
        attached = {disk for pod in node.pods.values() for disk in _disks(pod.obj, self._cycle.lister)}
        used = Counter(driver for driver, _ in attached)
        new = Counter(driver for driver, _ in self._disks - attached)
        exceeded = any(driver in limits and used[driver] + count > limits[driver] for driver, count in new.items())
        return self.refusal if exceeded else None


def _disks(pod: Mapping[str, Any], lister: Lister) -> Iterator[Disk]:
    """Yields (driver, handle) of the CSI volumes of a pod."""
    namespace = pod["metadata"]["namespace"]
    for name, _ in claim_names(pod):
        claim = lister.get("persistentvolumeclaims", namespace, name)
        if claim is None:
            continue
        volume = lister.get("persistentvolumes", "", claim["spec"].get("volumeName") or "")
        csi = volume["spec"].get("csi") if volume else None
        if csi:
            yield csi["driver"], csi["volumeHandle"]
