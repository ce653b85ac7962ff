"""The claims of a pod, and the volumes that it can use on a node.

Specified by: pkg/scheduler/framework/plugins/volumebinding/binder.go (GetPodVolumeClaims, FindPodVolumes),
k8s.io/component-helpers/storage/volume/{pv_helpers,helpers}.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from fakekube.apimachinery.selectors import from_label_selector
from fakekube.apimachinery.selectors.nodes import selects_node
from fakekube.controllers.objects import StoredObject, is_controlled_by
from fakekube.controllers.scheduler.framework import Lister
from fakekube.controllers.volumes.binding import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
    check_access_modes,
    get_class_name,
    is_candidate,
    is_volume_bound_to_claim,
    requested_storage,
    volume_capacity,
)

__all__ = [
    "BIND_COMPLETED",
    "BOUND_BY_CONTROLLER",
    "SELECTED_NODE",
    "ClaimError",
    "PodClaims",
    "PodVolumes",
    "check_node_affinity",
    "claim_names",
    "find_pod_volumes",
    "get_class_name",
    "get_pod_volume_claims",
    "is_pvc_fully_bound",
]


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
    if claim is None:
        if ephemeral:
            raise ClaimError(f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"')
        raise ClaimError(f'persistentvolumeclaim "{name}" not found')
    if (claim.get("status") or {}).get("phase") == "Lost":
        volume = claim["spec"].get("volumeName", "")
        raise ClaimError(f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"')
    if "deletionTimestamp" in claim["metadata"]:
        raise ClaimError(f'persistentvolumeclaim "{name}" is being deleted')
    if ephemeral:
        namespace, pod_name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        if not is_controlled_by(claim, pod):
            raise ClaimError(f"PVC {namespace}/{name} was not created for pod {namespace}/{pod_name} (pod is not owner)")
    return claim


def _is_delayed(claim: StoredObject, lister: Lister) -> bool:
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
    spec = claim["spec"]
    selector = spec.get("selector")
    if (volume.get("status") or {}).get("phase") != "Available" or get_class_name(volume) != get_class_name(claim):
        return False
    if selector is not None and not from_label_selector(selector).matches(volume["metadata"].get("labels")):
        return False
    return check_access_modes(volume, claim)


def _can_provision(claim: StoredObject, node: StoredObject, lister: Lister) -> bool:
    found = lister.get("storageclasses.storage.k8s.io", "", get_class_name(claim))
    if found is None or found.get("provisioner", "") in ("", NO_PROVISIONER):
        return False
    terms = found.get("allowedTopologies")
    labels = node["metadata"].get("labels") or {}
    return not terms or any(
        all(labels.get(one["key"]) in one.get("values", ()) for one in term.get("matchLabelExpressions") or ()) for term in terms
    )
