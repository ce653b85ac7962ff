"""VolumeRestrictions: disks that only one pod may mount, and claims with the access mode ReadWriteOncePod.

Specified by: pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fakekube.controllers.scheduler.cycle import Cycle
from fakekube.controllers.scheduler.framework import Code, FilterPlugin, PreFilterRejection, Status
from fakekube.controllers.scheduler.nodeinfo import NodeInfo, PodInfo
from fakekube.controllers.scheduler.volumes import claim_names

__all__ = ["VolumeRestrictions"]

Volume = Mapping[str, Any]


class VolumeRestrictions(FilterPlugin):
    """Rejects nodes on which a disk is mounted, and all nodes while another pod uses a ReadWriteOncePod claim."""

    name = "VolumeRestrictions"
    disk_conflict = Status(Code.UNSCHEDULABLE, ("node(s) had no available disk",), name)
    claim_conflict = Status(
        Code.UNSCHEDULABLE,
        ("node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",),
        name,
    )

    def __init__(self, cycle: Cycle, claims: frozenset[str]) -> None:
        self._cycle, self._claims = cycle, claims
        self._users = 0

    @classmethod
    def pre_filter(cls, cycle: Cycle) -> FilterPlugin | None:
        volumes = cycle.spec.get("volumes") or ()
        if not volumes:
            return None
        claims = set()
        for name, _ in claim_names(cycle.pod.obj):
            claim = cycle.lister.get("persistentvolumeclaims", cycle.pod.namespace, name)
            if claim is None:
                raise PreFilterRejection(Status(Code.UNRESOLVABLE, (f'persistentvolumeclaim "{name}" not found',), cls.name))
            if "ReadWriteOncePod" in (claim["spec"].get("accessModes") or ()):
                claims.add(name)
        if not claims and not any(map(_disk, volumes)):
            return None
        made = cls(cycle, frozenset(claims))
        for node in cycle.nodes:
            for pod in node.pods.values() if claims else ():
                made.update(pod, node, 1)
        return made

    def clone(self) -> FilterPlugin:
        made = type(self)(self._cycle, self._claims)
        made._users = self._users
        return made

    def update(self, pod: PodInfo, node: NodeInfo, delta: int) -> None:
        if pod.namespace == self._cycle.pod.namespace and pod.uid != self._cycle.pod.uid:
            self._users += delta * sum(name in self._claims for name, _ in claim_names(pod.obj))

    def filter(self, node: NodeInfo) -> Status | None:
        for mine in self._cycle.spec.get("volumes") or ():
            disk = _disk(mine)
            if disk is not None and any(
                _conflict(disk, _disk(other)) for pod in node.pods.values() for other in pod.obj["spec"].get("volumes") or ()
            ):
                return self.disk_conflict
        return self.claim_conflict if self._users > 0 else None


_Disk = tuple[str, frozenset[Any], bool, bool]


def _disk(volume: Volume) -> _Disk | None:
    """Returns (type, identity, read only, whether readers may share it) of a disk that only one pod may mount; else None."""
    if source := volume.get("gcePersistentDisk"):
        return "gce", frozenset({source["pdName"]}), bool(source.get("readOnly")), True
    if source := volume.get("awsElasticBlockStore"):
        return "aws", frozenset({source["volumeID"]}), False, False
    if source := volume.get("iscsi"):
        return "iscsi", frozenset({(source["iqn"], source.get("lun"))}), bool(source.get("readOnly")), True
    if source := volume.get("rbd"):
        image = (source.get("pool") or "rbd", source["image"])
        return "rbd", frozenset((monitor, *image) for monitor in source["monitors"]), bool(source.get("readOnly")), True
    return None


def _conflict(one: _Disk, other: _Disk | None) -> bool:
    if other is None or one[0] != other[0] or not one[1] & other[1]:
        return False
    return not (one[3] and one[2] and other[2])
