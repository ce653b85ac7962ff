"""VolumeBinding: checks whether a node can access the bound volumes of a pod, and has volumes for its unbound claims.

Specified by: pkg/scheduler/framework/plugins/volumebinding/volume_binding.go.
"""

from __future__ import annotations

from fakekube.controllers.scheduler.cycle import Cycle
from fakekube.controllers.scheduler.framework import Code, FilterPlugin, PreFilterRejection, Status
from fakekube.controllers.scheduler.nodeinfo import NodeInfo
from fakekube.controllers.scheduler.volumes import (
    ClaimError,
    PodClaims,
    PodVolumes,
    claim_names,
    find_pod_volumes,
    get_pod_volume_claims,
)

__all__ = ["VolumeBinding"]

UNBOUND = "pod has unbound immediate PersistentVolumeClaims"


class VolumeBinding(FilterPlugin):
    """Rejects nodes without the volumes for the pod; keeps the volumes of the others for the binding."""

    name = "VolumeBinding"

    def __init__(self, cycle: Cycle, claims: PodClaims) -> None:
        self._cycle, self._claims = cycle, claims
        self.volumes: dict[str, PodVolumes] = {}

    @classmethod
    def pre_filter(cls, cycle: Cycle) -> FilterPlugin | None:
        if next(claim_names(cycle.pod.obj), None) is None:
            return None
        try:
            claims = get_pod_volume_claims(cycle.pod.obj, cycle.lister)
        except ClaimError as error:
            raise PreFilterRejection(Status(Code.UNRESOLVABLE, (str(error),), cls.name)) from error
        if claims.immediate:
            raise PreFilterRejection(Status(Code.UNRESOLVABLE, (UNBOUND,), cls.name))
        return cls(cycle, claims)

    def filter(self, node: NodeInfo) -> Status | None:
        found = self.volumes[node.name] = find_pod_volumes(self._claims, node.obj, self._cycle.lister)
        return Status(Code.UNRESOLVABLE, tuple(found.conflicts), self.name) if found.conflicts else None
