"""VolumeZone: a volume with labels for zones or regions can be used in these only.

Specified by: pkg/scheduler/framework/plugins/volumezone/volume_zone.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from fakekube.controllers.scheduler.cycle import Cycle
from fakekube.controllers.scheduler.framework import Code, FilterPlugin, Status
from fakekube.controllers.scheduler.nodeinfo import NodeInfo
from fakekube.controllers.scheduler.volumes import claim_names

__all__ = ["VolumeZone"]

#: Labels, and the deprecated labels with the same meaning.
TOPOLOGIES = {
    "topology.kubernetes.io/zone": "failure-domain.beta.kubernetes.io/zone",
    "topology.kubernetes.io/region": "failure-domain.beta.kubernetes.io/region",
}
SEPARATOR = "__"


class VolumeZone(FilterPlugin):
    """Rejects nodes in other zones than those of the pod's volumes."""

    name = "VolumeZone"
    refusal = Status(Code.UNRESOLVABLE, ("node(s) had no available volume zone",), name)

    def __init__(self, wanted: Iterable[tuple[str, str, frozenset[str]]]) -> None:
        self._wanted = tuple(wanted)

    @classmethod
    def pre_filter(cls, cycle: Cycle) -> FilterPlugin | None:
        wanted = []
        for name, _ in claim_names(cycle.pod.obj):
            claim = cycle.lister.get("persistentvolumeclaims", cycle.pod.namespace, name)
            volume = cycle.lister.get("persistentvolumes", "", (claim or {"spec": {}})["spec"].get("volumeName") or "")
            labels = (volume["metadata"].get("labels") or {}) if volume else {}
            for key, older in TOPOLOGIES.items():
                value = labels.get(key) or labels.get(older)
                if value:
                    wanted.append((key, older, frozenset(value.split(SEPARATOR))))
        return cls(wanted) if wanted else None

    def filter(self, node: NodeInfo) -> Status | None:
        labels = node.labels
        if not any(label in labels for pair in TOPOLOGIES.items() for label in pair):
            return None
        for key, older, values in self._wanted:
            if labels.get(key, labels.get(older)) not in values:
                return self.refusal
        return None
