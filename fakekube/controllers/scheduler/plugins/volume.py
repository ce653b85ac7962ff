"""The plugins that look at the volumes of a pod, its claims, and the volumes that it can use on a node.

* VolumeBinding checks whether a node can access the bound volumes of a pod, and has volumes for its unbound claims.
* NodeVolumeLimits checks how many volumes of a CSI driver can be attached to a node.
* VolumeRestrictions: disks that only one pod may mount, and claims with the access mode ReadWriteOncePod.
* VolumeZone: a volume with labels for zones or regions can be used in these only.

Specified by: pkg/scheduler/framework/plugins/{volumebinding,nodevolumelimits,volumerestrictions,volumezone};
pkg/scheduler/framework/plugins/volumebinding/binder.go (GetPodVolumeClaims, FindPodVolumes),
k8s.io/component-helpers/storage/volume/{pv_helpers,helpers}.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from fakekube.apimachinery.selectors import from_label_selector
from fakekube.apimachinery.selectors.nodes import selects_node
from fakekube.base.objects import StoredObject
from fakekube.controllers.informers import is_controlled_by
from fakekube.controllers.scheduler.framework import (
    Code,
    Cycle,
    FilterPlugin,
    Lister,
    NodeInfo,
    PodInfo,
    PreFilterRejection,
    Status,
)
from fakekube.controllers.volumes.binding import (
    BIND_COMPLETED,
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
    check_access_modes,
    get_class_name,
    is_candidate,
    is_volume_bound_to_claim,
    not_created_for_pod,
    requested_storage,
    volume_capacity,
)

NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"


class ClaimError(Exception):
    """A claim of the pod cannot be used; the message is that of the scheduler."""


def claim_names(pod: StoredObject) -> Iterator[tuple[str, bool]]:
    """Yields the names of the claims of a pod's volumes, and whether they belong to ephemeral volumes."""
    for volume in pod["spec"].get("volumes") or ():
        if "persistentVolumeClaim" in volume:
            yield volume["persistentVolumeClaim"]["claimName"], False
        elif "ephemeral" in volume:
            yield f"{pod['metadata']['name']}-{volume['name']}", True


def is_pvc_fully_bound(claim: StoredObject) -> bool:
    """Reports whether the claim is completely bound (isPVCFullyBound)."""
    return bool(claim["spec"].get("volumeName")) and BIND_COMPLETED in (claim["metadata"].get("annotations") or {})


@dataclass(slots=True)
class PodClaims:
    """The claims of a pod by their state."""

    bound: list[StoredObject] = field(default_factory=list)
    immediate: list[StoredObject] = field(default_factory=list)
    """Unbound, and bound by the PersistentVolume controller independently of pods."""
    delayed: list[StoredObject] = field(default_factory=list)
    """Unbound, with the binding mode WaitForFirstConsumer."""


def get_pod_volume_claims(pod: StoredObject, lister: Lister) -> PodClaims:
    """Returns the claims of a pod. Raises ClaimError."""
    found = PodClaims()
    namespace = pod["metadata"]["namespace"]
    for name, ephemeral in claim_names(pod):
        claim = _check_claim(pod, lister.get("persistentvolumeclaims", namespace, name), name, ephemeral)
        if is_pvc_fully_bound(claim):
            found.bound.append(claim)
        elif not claim["spec"].get("volumeName") and _is_delayed(claim, lister):
            found.delayed.append(claim)
        else:
            found.immediate.append(claim)
    return found


def _check_claim(pod: StoredObject, claim: StoredObject | None, name: str, ephemeral: bool) -> StoredObject:
    """Returns a claim that a pod can use. Raises ClaimError."""
    if claim is None:
        if ephemeral:
            raise ClaimError(f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"')
        raise ClaimError(f'persistentvolumeclaim "{name}" not found')
    if (claim.get("status") or {}).get("phase") == "Lost":
        volume = claim["spec"].get("volumeName", "")
        raise ClaimError(f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"')
    if "deletionTimestamp" in claim["metadata"]:
        raise ClaimError(f'persistentvolumeclaim "{name}" is being deleted')
    if ephemeral and not is_controlled_by(claim, pod):
        raise ClaimError(not_created_for_pod(claim, pod))
    return claim


def _is_delayed(claim: StoredObject, lister: Lister) -> bool:
    """Reports whether a claim is bound only when a pod uses it (IsDelayBindingMode)."""
    name = get_class_name(claim)
    found = lister.get("storageclasses.storage.k8s.io", "", name) if name else None
    return found is not None and found.get("volumeBindingMode") == WAIT_FOR_FIRST_CONSUMER


def check_node_affinity(volume: StoredObject, node: StoredObject) -> bool:
    """Reports whether the node affinity of the volume matches the node (CheckNodeAffinity)."""
    required = (volume["spec"].get("nodeAffinity") or {}).get("required")
    return required is None or selects_node(required, node)


@dataclass(slots=True)
class PodVolumes:
    """The volumes for the delayed claims of a pod on one node."""

    static: list[tuple[StoredObject, StoredObject]] = field(default_factory=list)
    """Bindings to existing volumes: (claim, volume)."""
    provisions: list[StoredObject] = field(default_factory=list)
    """The claims whose volumes are to be provisioned."""
    conflicts: list[str] = field(default_factory=list)
    """Why the node cannot be used."""


NODE_CONFLICT: Final = "node(s) didn't match PersistentVolume's node affinity"
BIND_CONFLICT: Final = "node(s) didn't find available persistent volumes to bind"
NOT_EXISTING: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"


def find_pod_volumes(claims: PodClaims, node: StoredObject, lister: Lister) -> PodVolumes:
    """Returns the volumes for a pod on a node (FindPodVolumes).

    Args:
        claims: the claims of the pod.
        node: the node.
        lister: reads claims, volumes and classes.
    """
    found = PodVolumes()
    for claim in claims.bound:
        volume = lister.get("persistentvolumes", "", claim["spec"]["volumeName"])
        if volume is None:
            found.conflicts.append(NOT_EXISTING)
            break
        if not check_node_affinity(volume, node):
            found.conflicts.append(NODE_CONFLICT)
            break
    if not _find_delayed(found, claims.delayed, node, lister):
        found.conflicts.append(BIND_CONFLICT)
    return found


def _find_delayed(found: PodVolumes, claims: Sequence[StoredObject], node: StoredObject, lister: Lister) -> bool:
    """Finds volumes for unbound claims, or has them provisioned. Returns False if the node has none for one of them."""
    chosen: set[str] = set()
    for claim in sorted(claims, key=requested_storage):
        selected = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE)
        if selected is not None and selected != node["metadata"]["name"]:
            return False
        volume = None if selected is not None else _find_smallest(claim, node, lister.list("persistentvolumes"), chosen)
        if volume is not None:
            chosen.add(volume["metadata"]["name"])
            found.static.append((claim, volume))
        elif _can_provision(claim, node, lister):
            found.provisions.append(claim)
        else:
            return False
    return True


def _find_smallest(
    claim: StoredObject, node: StoredObject, volumes: Iterable[StoredObject], taken: set[str]
) -> StoredObject | None:
    """Returns the smallest volume for a claim on a node, or the one that is reserved for it (FindMatchingVolume)."""
    best: tuple[int, str] | None = None
    chosen = None
    for volume in volumes:
        name = volume["metadata"]["name"]
        if name in taken or not is_candidate(volume, claim):
            continue
        if volume["spec"].get("claimRef") is not None:
            if is_volume_bound_to_claim(volume, claim):
                return volume if check_node_affinity(volume, node) else None
            continue
        size = volume_capacity(volume).value()
        if (
            not _volume_matches_claim(claim, volume)
            or not check_node_affinity(volume, node)
            or (best is not None and (size, name) >= best)
        ):
            continue
        best, chosen = (size, name), volume
    return chosen


def _volume_matches_claim(claim: StoredObject, volume: StoredObject) -> bool:
    """Reports whether a free volume has the class, the labels and the access modes that a claim asks for."""
    spec = claim["spec"]
    selector = spec.get("selector")
    if (volume.get("status") or {}).get("phase") != "Available" or get_class_name(volume) != get_class_name(claim):
        return False
    if selector is not None and not from_label_selector(selector).matches(volume["metadata"].get("labels")):
        return False
    return check_access_modes(volume, claim)


def _can_provision(claim: StoredObject, node: StoredObject, lister: Lister) -> bool:
    """Reports whether the class of a claim can provision a volume for a node (checkVolumeProvisions)."""
    found = lister.get("storageclasses.storage.k8s.io", "", get_class_name(claim))
    if found is None or found.get("provisioner", "") in ("", NO_PROVISIONER):
        return False
    terms = found.get("allowedTopologies")
    labels = node["metadata"].get("labels") or {}
    return not terms or any(
        all(labels.get(one["key"]) in one.get("values", ()) for one in term.get("matchLabelExpressions") or ()) for term in terms
    )


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
#: The first minor with the present message about ReadWriteOncePod.
_IN_USE_SINCE: Final = 34


class VolumeRestrictions(FilterPlugin):
    """Rejects nodes on which a disk is mounted, and all nodes while another pod uses a ReadWriteOncePod claim."""

    name = "VolumeRestrictions"
    disk_conflict = Status(Code.UNSCHEDULABLE, ("node(s) had no available disk",), name)
    claim_conflict = Status(
        Code.UNSCHEDULABLE,
        ("node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",),
        name,
    )

    claim_conflict_before = Status(
        Code.UNSCHEDULABLE,
        ("node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode",),
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
        if self._users <= 0:
            return None
        return self.claim_conflict if self._cycle.minor >= _IN_USE_SINCE else self.claim_conflict_before


class _Disk(NamedTuple):
    """A disk that only one pod may mount."""

    type: str
    identity: frozenset[Any]
    """What names it; two disks with one name in common are the same."""
    is_read_only: bool
    is_shared_by_readers: bool


def _parse_disk(volume: Volume) -> _Disk | None:
    """Returns the disk of a volume that only one pod may mount; None for other volumes."""
    if source := volume.get("gcePersistentDisk"):
        return _Disk("gce", frozenset({source["pdName"]}), bool(source.get("readOnly")), True)
    if source := volume.get("awsElasticBlockStore"):
        return _Disk("aws", frozenset({source["volumeID"]}), False, False)
    if source := volume.get("iscsi"):
        return _Disk("iscsi", frozenset({(source["iqn"], source.get("lun"))}), bool(source.get("readOnly")), True)
    if source := volume.get("rbd"):
        image = (source.get("pool") or "rbd", source["image"])
        return _Disk("rbd", frozenset((monitor, *image) for monitor in source["monitors"]), bool(source.get("readOnly")), True)
    return None


def _disks_conflict(one: _Disk, other: _Disk | None) -> bool:
    """Reports whether two pods cannot mount two disks on one node (isVolumeConflict)."""
    if other is None or one.type != other.type or not one.identity & other.identity:
        return False
    return not (one.is_shared_by_readers and one.is_read_only and other.is_read_only)


#: Labels, and the deprecated labels with the same meaning.
TOPOLOGIES: Final = {
    "topology.kubernetes.io/zone": "failure-domain.beta.kubernetes.io/zone",
    "topology.kubernetes.io/region": "failure-domain.beta.kubernetes.io/region",
}
#: Stands between the zones of a label of a volume (LabelMultiZoneDelimiter).
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
