"""The plugins that look at the volumes of a pod.

* VolumeBinding checks whether a node can access the bound volumes of a pod, and has volumes for its unbound claims.
* NodeVolumeLimits checks how many volumes of a CSI driver can be attached to a node.
* VolumeRestrictions: disks that only one pod may mount, and claims with the access mode ReadWriteOncePod.
* VolumeZone: a volume with labels for zones or regions can be used in these only.

Specified by: pkg/scheduler/framework/plugins/{volumebinding,nodevolumelimits,volumerestrictions,volumezone}.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from fakekube.controllers.scheduler.framework import Code, Cycle, FilterPlugin, Lister, PreFilterRejection, Status
from fakekube.controllers.scheduler.nodeinfo import NodeInfo, PodInfo
from fakekube.controllers.scheduler.volumes import (
    ClaimError,
    PodClaims,
    PodVolumes,
    claim_names,
    find_pod_volumes,
    get_pod_volume_claims,
)

__all__ = ["NodeVolumeLimits", "VolumeBinding", "VolumeRestrictions", "VolumeZone"]

UNBOUND: Final = "pod has unbound immediate PersistentVolumeClaims"


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


Disk = tuple[str, str]


class NodeVolumeLimits(FilterPlugin):
    """Rejects nodes on which the pod's volumes would exceed the limit."""

    name = "NodeVolumeLimits"
    refusal = Status(Code.UNSCHEDULABLE, ("node(s) exceed max volume count",), name)

    def __init__(self, cycle: Cycle, disks: frozenset[Disk]) -> None:
        self._cycle, self._csi_disks = cycle, disks

    @classmethod
    def pre_filter(cls, cycle: Cycle) -> FilterPlugin | None:
        disks = frozenset(_csi_disks(cycle.pod.obj, cycle.lister))
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
        attached = {disk for pod in node.pods.values() for disk in _csi_disks(pod.obj, self._cycle.lister)}
        used = Counter(driver for driver, _ in attached)
        new = Counter(driver for driver, _ in self._csi_disks - attached)
        exceeded = any(driver in limits and used[driver] + count > limits[driver] for driver, count in new.items())
        return self.refusal if exceeded else None


def _csi_disks(pod: Mapping[str, Any], lister: Lister) -> Iterator[Disk]:
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
        if not claims and not any(map(_parse_disk, volumes)):
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
            disk = _parse_disk(mine)
            if disk is not None and any(
                _disks_conflict(disk, _parse_disk(other))
                for pod in node.pods.values()
                for other in pod.obj["spec"].get("volumes") or ()
            ):
                return self.disk_conflict
        return self.claim_conflict if self._users > 0 else None


_Disk = tuple[str, frozenset[Any], bool, bool]


def _parse_disk(volume: Volume) -> _Disk | None:
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


def _disks_conflict(one: _Disk, other: _Disk | None) -> bool:
    if other is None or one[0] != other[0] or not one[1] & other[1]:
        return False
    return not (one[3] and one[2] and other[2])


#: Labels, and the deprecated labels with the same meaning.
TOPOLOGIES: Final = {
    "topology.kubernetes.io/zone": "failure-domain.beta.kubernetes.io/zone",
    "topology.kubernetes.io/region": "failure-domain.beta.kubernetes.io/region",
}
SEPARATOR: Final = "__"


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
