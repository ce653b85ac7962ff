"""Finds the volume for a claim.

A volume whose claimRef is the claim comes first; else the smallest volume, of those with the fewest access modes, that satisfies
the claim.

Specified by: k8s.io/component-helpers/storage/volume/pv_helpers.go (FindMatchingVolume),
pkg/controller/volume/persistentvolume/{index,pv_controller}.go (checkVolumeSatisfyClaim).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from fakekube.apimachinery.schema.quantity import Quantity
from fakekube.apimachinery.selectors import from_label_selector
from fakekube.apis.core.pods.references import claim_names
from fakekube.apis.validation.resource_lists import quantity
from fakekube.controllers.objects import StoredObject

__all__ = [
    "BIND_COMPLETED",
    "BOUND_BY_CONTROLLER",
    "PROVISIONED_BY",
    "SELECTED_NODE",
    "WAIT_FOR_FIRST_CONSUMER",
    "check_access_modes",
    "check_volume_satisfies_claim",
    "find_matching_volume",
    "get_class_name",
    "get_volume_mode",
    "has_annotation",
    "is_candidate",
    "is_volume_bound_to_claim",
    "requested_storage",
    "uses_claim",
    "volume_capacity",
]


BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
#: The volumeBindingMode of classes whose claims are bound when a pod is scheduled.
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"


def get_class_name(obj: StoredObject) -> str:
    """Returns the storage class of a claim or a volume; "" if it has none (GetPersistentVolumeClaimClass)."""
    annotations = obj["metadata"].get("annotations") or {}
    return annotations.get(BETA_CLASS) or obj["spec"].get("storageClassName") or ""


def has_annotation(obj: StoredObject, name: str) -> bool:
    """Whether the object has the annotation, with any value."""
    return name in (obj["metadata"].get("annotations") or {})


def requested_storage(claim: StoredObject) -> Quantity:
    """Returns the storage that a claim requests."""
    return quantity(((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage", "0"))


def volume_capacity(volume: StoredObject) -> Quantity:
    """Returns the storage capacity of a volume."""
    return quantity((volume["spec"].get("capacity") or {}).get("storage", "0"))


def get_volume_mode(obj: StoredObject) -> str:
    """Returns the volume mode of a claim or a volume."""
    return obj["spec"].get("volumeMode") or "Filesystem"


def is_volume_bound_to_claim(volume: StoredObject, claim: StoredObject) -> bool:
    """Whether the volume is bound to or reserved for this claim (IsVolumeBoundToClaim)."""
    reference, metadata = volume["spec"].get("claimRef"), claim["metadata"]
    if reference is None or (reference.get("name"), reference.get("namespace")) != (metadata["name"], metadata["namespace"]):
        return False
    return reference.get("uid", "") in ("", metadata["uid"])


def check_volume_satisfies_claim(volume: StoredObject, claim: StoredObject) -> str:
    """Returns why a volume cannot be bound to a claim with its name; "" if it can (checkVolumeSatisfyClaim)."""
    if "deletionTimestamp" in volume["metadata"]:
        return f'the volume is marked for deletion "{volume["metadata"]["name"]}"'
    if volume_capacity(volume).value() < requested_storage(claim).value():
        return "requested PV is too small"
    if get_class_name(volume) != get_class_name(claim):
        return "storageClassName does not match"
    if _attributes_class(volume) != _attributes_class(claim):
        return "volumeAttributesClassName does not match"
    if get_volume_mode(volume) != get_volume_mode(claim):
        return "incompatible volumeMode"
    return "" if check_access_modes(volume, claim) else "incompatible accessMode"


def uses_claim(pod: StoredObject, claim: str) -> bool:
    """Whether a pod has a volume of the claim with this name."""
    return claim in claim_names(pod["spec"], pod["metadata"]["name"])


def is_candidate(volume: StoredObject, claim: StoredObject) -> bool:
    """Whether the volume is large enough, has the right mode and attributes class, and is not being deleted."""
    return (
        not volume_capacity(volume) < requested_storage(claim)
        and get_volume_mode(volume) == get_volume_mode(claim)
        and _attributes_class(volume) == _attributes_class(claim)
        and "deletionTimestamp" not in volume["metadata"]
    )


def check_access_modes(volume: StoredObject, claim: StoredObject) -> bool:
    """Whether the volume has all access modes that the claim requests (CheckAccessModes)."""
    return set(claim["spec"].get("accessModes") or ()) <= set(volume["spec"].get("accessModes") or ())


def find_matching_volume(claim: StoredObject, volumes: Iterable[StoredObject], *, delayed: bool) -> Any:
    """Returns the volume for a claim without volumeName; None if there is none.

    Args:
        claim: The claim.
        volumes: The volumes to choose from.
        delayed: Only a volume that is reserved for the claim is returned; among others the scheduler chooses.
    """
    by_modes: dict[tuple[str, ...], list[StoredObject]] = {}
    for volume in volumes:
        if check_access_modes(volume, claim):
            by_modes.setdefault(tuple(sorted(volume["spec"].get("accessModes") or ())), []).append(volume)
    for _, group in sorted(by_modes.items(), key=lambda item: (len(item[0]), item[0])):
        found = _smallest(claim, group, delayed)
        if found is not None:
            return found
    return None


def _smallest(claim: StoredObject, volumes: Iterable[StoredObject], delayed: bool) -> StoredObject | None:
    best: StoredObject | None = None
    selector = claim["spec"].get("selector")
    matches = from_label_selector(selector).matches if selector is not None else None
    for volume in volumes:
        reference = volume["spec"].get("claimRef")
        if (reference is not None and not is_volume_bound_to_claim(volume, claim)) or not is_candidate(volume, claim):
            continue
        if reference is not None:
            return volume
        if delayed or (volume.get("status") or {}).get("phase") != "Available":
            continue
        if get_class_name(volume) != get_class_name(claim):
            continue
        if matches is not None and not matches(volume["metadata"].get("labels") or {}):
            continue
        if best is None or volume_capacity(volume) < volume_capacity(best):
            best = volume
    return best


def _attributes_class(obj: StoredObject) -> str:
    return obj["spec"].get("volumeAttributesClassName") or ""
