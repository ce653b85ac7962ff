"""Which volume suits a claim.

A volume that is meant for the claim (its claimRef says so) is taken before all others; else the smallest of those with
the fewest access modes that has all that the claim asks for.

Specified by: k8s.io/component-helpers/storage/volume/pv_helpers.go,
pkg/controller/volume/persistentvolume/{index,pv_controller}.go (checkVolumeSatisfyClaim).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fakekube.apis.core.pods.references import claim_names
from fakekube.schema.quantity import Quantity
from fakekube.selectors import from_label_selector
from fakekube.validation.resource_lists import quantity

__all__ = [
    "BIND_COMPLETED",
    "BOUND_BY_CONTROLLER",
    "DELAYED",
    "PROVISIONED_BY",
    "SELECTED_NODE",
    "best_match",
    "fits",
    "has_annotation",
    "is_bound_to",
    "mode_of",
    "offers_modes",
    "problem_with",
    "requested",
    "size_of",
    "storage_class",
    "uses_claim",
]

Object = Mapping[str, Any]

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
DELAYED: Final = "WaitForFirstConsumer"
"""The binding mode of a class whose claims wait for a pod."""


def storage_class(obj: Object) -> str:
    """The class of a claim or a volume, "" without one."""
    annotations = obj["metadata"].get("annotations") or {}
    return annotations.get(BETA_CLASS) or obj["spec"].get("storageClassName") or ""


def has_annotation(obj: Object, name: str) -> bool:
    """Is the annotation there, whatever it says?"""
    return name in (obj["metadata"].get("annotations") or {})


def requested(claim: Object) -> Quantity:
    """How much storage a claim asks for."""
    return quantity(((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage", "0"))


def size_of(volume: Object) -> Quantity:
    """How much storage a volume has."""
    return quantity((volume["spec"].get("capacity") or {}).get("storage", "0"))


def mode_of(obj: Object) -> str:
    """The volume mode of a claim or a volume."""
    return obj["spec"].get("volumeMode") or "Filesystem"


def is_bound_to(volume: Object, claim: Object) -> bool:
    """Is the volume meant for, or bound to, this claim?"""
    reference, metadata = volume["spec"].get("claimRef"), claim["metadata"]
    if reference is None or (reference.get("name"), reference.get("namespace")) != (metadata["name"], metadata["namespace"]):
        return False
    return reference.get("uid", "") in ("", metadata["uid"])


def problem_with(volume: Object, claim: Object) -> str:
    """Why a volume that a claim names cannot be bound to it; "" if it can."""
    if "deletionTimestamp" in volume["metadata"]:
        return f'the volume is marked for deletion "{volume["metadata"]["name"]}"'
    if size_of(volume).value() < requested(claim).value():
        return "requested PV is too small"
    if storage_class(volume) != storage_class(claim):
        return "storageClassName does not match"
    if _attributes_class(volume) != _attributes_class(claim):
        return "volumeAttributesClassName does not match"
    if mode_of(volume) != mode_of(claim):
        return "incompatible volumeMode"
    return "" if offers_modes(volume, claim) else "incompatible accessMode"


def uses_claim(pod: Object, claim: str) -> bool:
    """Is the claim of this name among the volumes of a pod?"""
    return claim in claim_names(pod["spec"], pod["metadata"]["name"])


def fits(volume: Object, claim: Object) -> bool:
    """Is it large enough, of the same mode and attributes, and there to stay?"""
    return (
        not size_of(volume) < requested(claim)
        and mode_of(volume) == mode_of(claim)
        and _attributes_class(volume) == _attributes_class(claim)
        and "deletionTimestamp" not in volume["metadata"]
    )


def offers_modes(volume: Object, claim: Object) -> bool:
    """Has the volume all access modes that the claim asks for?"""
    return set(claim["spec"].get("accessModes") or ()) <= set(volume["spec"].get("accessModes") or ())


def best_match(claim: Object, volumes: Iterable[Object], *, delayed: bool) -> Any:
    """The volume for a claim that names none, or None; `delayed`: the scheduler chooses among those that are free."""
    by_modes: dict[tuple[str, ...], list[Object]] = {}
    for volume in volumes:
        if offers_modes(volume, claim):
            by_modes.setdefault(tuple(sorted(volume["spec"].get("accessModes") or ())), []).append(volume)
    for _, group in sorted(by_modes.items(), key=lambda item: (len(item[0]), item[0])):
        found = _smallest(claim, group, delayed)
        if found is not None:
            return found
    return None


def _smallest(claim: Object, volumes: Iterable[Object], delayed: bool) -> Object | None:
    best: Object | None = None
    selector = claim["spec"].get("selector")
    matches = from_label_selector(selector).matches if selector is not None else None
    for volume in volumes:
        reference = volume["spec"].get("claimRef")
        if (reference is not None and not is_bound_to(volume, claim)) or not fits(volume, claim):
            continue
        if reference is not None:
            return volume
        if delayed or (volume.get("status") or {}).get("phase") != "Available":
            continue
        if storage_class(volume) != storage_class(claim):
            continue
        if matches is not None and not matches(volume["metadata"].get("labels") or {}):
            continue
        if best is None or size_of(volume) < size_of(best):
            best = volume
    return best


def _attributes_class(obj: Object) -> str:
    return obj["spec"].get("volumeAttributesClassName") or ""
