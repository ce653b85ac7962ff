"""The claims of a pod, and the volumes that a node would give it.

Specified by: pkg/scheduler/framework/plugins/volumebinding/binder.go,
k8s.io/component-helpers/storage/volume/{pv_helpers,helpers}.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fakekube.controllers.volumes.matching import (
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
from fakekube.scheduler.cycle import Catalog
from fakekube.selectors import from_label_selector
from fakekube.selectors.nodes import selects_node

__all__ = [
    "BIND_COMPLETED",
    "BOUND_BY_CONTROLLER",
    "SELECTED_NODE",
    "ClaimError",
    "NodeVolumes",
    "PodClaims",
    "claim_names",
    "get_class_name",
    "is_bound",
    "node_volumes",
    "pod_claims",
    "reaches",
]

Object = Mapping[str, Any]

NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"


class ClaimError(Exception):
    """A claim of the pod is not as it has to be; the words are the scheduler's."""


def claim_names(pod: Object) -> Iterator[tuple[str, bool]]:
    """The names of the claims that a pod's volumes mean, and whether they are made for the pod alone."""
    for volume in pod["spec"].get("volumes") or ():
        if "persistentVolumeClaim" in volume:
            yield volume["persistentVolumeClaim"]["claimName"], False
        elif "ephemeral" in volume:
            yield f"{pod['metadata']['name']}-{volume['name']}", True


def is_bound(claim: Object) -> bool:
    """Is the binding of a claim to its volume complete?"""
    return bool(claim["spec"].get("volumeName")) and BIND_COMPLETED in (claim["metadata"].get("annotations") or {})


@dataclass(slots=True)
class PodClaims:
    """The claims of a pod by how far they are."""

    bound: list[Object] = field(default_factory=list)
    immediate: list[Object] = field(default_factory=list)
    """Not bound, and somebody else's business."""
    delayed: list[Object] = field(default_factory=list)
    """Not bound before their pod has a node."""


def pod_claims(pod: Object, catalog: Catalog) -> PodClaims:
    """The claims of a pod. Raises ClaimError."""
    found = PodClaims()
    namespace = pod["metadata"]["namespace"]
    for name, ephemeral in claim_names(pod):
        claim = _usable(pod, catalog.get("persistentvolumeclaims", namespace, name), name, ephemeral)
        if is_bound(claim):
            found.bound.append(claim)
        elif not claim["spec"].get("volumeName") and _is_delayed(claim, catalog):
            found.delayed.append(claim)
        else:
            found.immediate.append(claim)
    return found


def _usable(pod: Object, claim: Object | None, name: str, ephemeral: bool) -> Object:
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
        owners = claim["metadata"].get("ownerReferences") or ()
        if not any(one.get("controller") and one.get("uid") == pod["metadata"]["uid"] for one in owners):
            where = f"{pod['metadata']['namespace']}/{name}"
            raise ClaimError(
                f"PVC {where} was not created for pod {pod['metadata']['namespace']}/{pod['metadata']['name']} (pod is not owner)"
            )
    return claim


def _is_delayed(claim: Object, catalog: Catalog) -> bool:
    name = get_class_name(claim)
    found = catalog.get("storageclasses.storage.k8s.io", "", name) if name else None
    return found is not None and found.get("volumeBindingMode") == WAIT_FOR_FIRST_CONSUMER


def reaches(volume: Object, node: Object) -> bool:
    """Can the node reach the volume?"""
    required = (volume["spec"].get("nodeAffinity") or {}).get("required")
    return required is None or selects_node(required, node)


@dataclass(slots=True)
class NodeVolumes:
    """What a node would give the delayed claims of a pod."""

    static: list[tuple[Object, Object]] = field(default_factory=list)
    """(claim, volume)."""
    provisions: list[Object] = field(default_factory=list)
    """Claims for which a provisioner is to make a volume."""
    conflicts: list[str] = field(default_factory=list)
    """Why the node does not do."""


NODE_CONFLICT: Final = "node(s) didn't match PersistentVolume's node affinity"
BIND_CONFLICT: Final = "node(s) didn't find available persistent volumes to bind"
NOT_EXISTING: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"


def node_volumes(claims: PodClaims, node: Object, catalog: Catalog, taken: frozenset[str] = frozenset()) -> NodeVolumes:
    """What a node would give a pod; `taken` are names of volumes that other pods have just been given."""
    found = NodeVolumes()
    for claim in claims.bound:
        volume = catalog.get("persistentvolumes", "", claim["spec"]["volumeName"])
        if volume is None:
            found.conflicts.append(NOT_EXISTING)
            break
        if not reaches(volume, node):
            found.conflicts.append(NODE_CONFLICT)
            break
    if not _find_delayed(found, claims.delayed, node, catalog, taken):
        found.conflicts.append(BIND_CONFLICT)
    return found


def _find_delayed(found: NodeVolumes, claims: Sequence[Object], node: Object, catalog: Catalog, taken: frozenset[str]) -> bool:
    chosen: set[str] = set(taken)
    for claim in sorted(claims, key=requested_storage):
        selected = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE)
        if selected is not None and selected != node["metadata"]["name"]:
            return False
        volume = None if selected is not None else _smallest(claim, node, catalog.list("persistentvolumes"), chosen)
        if volume is not None:
            chosen.add(volume["metadata"]["name"])
            found.static.append((claim, volume))
        elif _can_be_provisioned(claim, node, catalog):
            found.provisions.append(claim)
        else:
            return False
    return True


def _smallest(claim: Object, node: Object, volumes: Iterable[Object], taken: set[str]) -> Object | None:
    best: tuple[int, str] | None = None
    chosen = None
    for volume in volumes:
        name = volume["metadata"]["name"]
        if name in taken or not is_candidate(volume, claim):
            continue
        if volume["spec"].get("claimRef") is not None:
            if is_volume_bound_to_claim(volume, claim):
                return volume if reaches(volume, node) else None
            continue
        size = volume_capacity(volume).value()
        if not _matches(claim, volume) or not reaches(volume, node) or (best is not None and (size, name) >= best):
            continue
        best, chosen = (size, name), volume
    return chosen


def _matches(claim: Object, volume: Object) -> bool:
    spec = claim["spec"]
    selector = spec.get("selector")
    if (volume.get("status") or {}).get("phase") != "Available" or get_class_name(volume) != get_class_name(claim):
        return False
    if selector is not None and not from_label_selector(selector).matches(volume["metadata"].get("labels")):
        return False
    return check_access_modes(volume, claim)


def _can_be_provisioned(claim: Object, node: Object, catalog: Catalog) -> bool:
    found = catalog.get("storageclasses.storage.k8s.io", "", get_class_name(claim))
    if found is None or found.get("provisioner", "") in ("", NO_PROVISIONER):
        return False
    terms = found.get("allowedTopologies")
    labels = node["metadata"].get("labels") or {}
    return not terms or any(
        all(labels.get(one["key"]) in one.get("values", ()) for one in term.get("matchLabelExpressions") or ()) for term in terms
    )
