"""VolumeBinding: a node must reach the bound volumes of a pod, and find some for claims that wait for their first consumer.

Specified by: pkg/scheduler/framework/plugins/volumebinding/volume_binding.go.
"""

from __future__ import annotations

from fakekube.scheduler.cycle import Cycle
from fakekube.scheduler.framework import Code, FilterPlugin, PreFilterRejection, Status
from fakekube.scheduler.nodeinfo import NodeInfo
from fakekube.scheduler.volumes import ClaimError, NodeVolumes, PodClaims, claim_names, node_volumes, pod_claims

__all__ = ["VolumeBinding"]

UNBOUND = "pod has unbound immediate PersistentVolumeClaims"


class VolumeBinding(FilterPlugin):
    """Refuses nodes that cannot give the pod its volumes; remembers what the others would give."""

    name = "VolumeBinding"

    def __init__(self, cycle: Cycle, claims: PodClaims) -> None:
        self._cycle, self._claims = cycle, claims
        self.volumes: dict[str, NodeVolumes] = {}

    @classmethod
    def pre_filter(cls, cycle: Cycle) -> FilterPlugin | None:
        if next(claim_names(cycle.pod.obj), None) is None:
            return None
        try:
            claims = pod_claims(cycle.pod.obj, cycle.catalog)
        except ClaimError as error:
            raise PreFilterRejection(Status(Code.UNRESOLVABLE, (str(error),), cls.name)) from error
        if claims.immediate:
            raise PreFilterRejection(Status(Code.UNRESOLVABLE, (UNBOUND,), cls.name))
        return cls(cycle, claims)

    def filter(self, node: NodeInfo) -> Status | None:
        found = self.volumes[node.name] = node_volumes(self._claims, node.obj, self._cycle.catalog)
        return Status(Code.UNRESOLVABLE, tuple(found.conflicts), self.name) if found.conflicts else None
