"""The subresource resize of pods: a change in place of CPU and memory of containers, of the whole pod, and of volumes in memory.

The fields that a resize may change are restored to the old values, then both specs are compared.

Specified by: pkg/apis/core/validation/validation.go (ValidatePodResize), pkg/registry/core/pod/strategy.go
(dropNonResizeUpdates).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fakekube.apimachinery import features
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import forbidden, invalid
from fakekube.apis.core.pods.resources import qos_class
from fakekube.apis.core.pods.visitor import NIL_PATH, is_sidecar
from fakekube.apis.rest.strategy import restore
from fakekube.apis.validation.resource_lists import quantity
from fakekube.apis.validation.rules import from_minor
from fakekube.apis.well_known import MIRROR_POD_ANNOTATION_KEY
from fakekube.base.objects import Object

RESIZABLE = ("cpu", "memory")
_ONLY_COMPUTE = "only cpu and memory resources are mutable"
_SIZES_GATE = "InPlacePodVerticalScalingMemoryBackedVolumes"


def drop_non_resize_updates(new: Object, old: Object) -> None:
    """Reverts every change of the spec except those of resources (dropNonResizeUpdates).

    If the containers do not match the old ones, they stay as sent, and validation rejects them.
    """
    spec, before = new["spec"], old["spec"]
    fields = ("containers", "initContainers")
    if any(len(spec.get(field) or ()) != len(before.get(field) or ()) for field in fields):
        return
    kept = {**before}
    if features.current().enabled("InPlacePodLevelResourcesVerticalScaling"):
        restore(kept, spec, "resources")
    if features.current().enabled(_SIZES_GATE):
        restore(kept, spec, "volumes")
    for field in fields:
        if spec.get(field):
            kept[field] = _with_old_resources(spec[field], before[field])
    new["spec"] = kept


def _with_old_resources(containers: Sequence[Object], before: Sequence[Object]) -> Sequence[Object]:
    if any(new.get("name") != old.get("name") for new, old in zip(containers, before, strict=True)):
        return containers
    merged = [dict(old) for old in before]
    for target, sent in zip(merged, containers, strict=True):
        restore(target, sent, "resources", "resizePolicy")
    return merged


_NO_POD_LEVEL_RESIZE = (
    "resize of pods with pod-level resources is forbidden when InPlacePodLevelResourcesVerticalScalingEnabled feature gate "
    "is disabled"
)


def unresizable_error(old: Object) -> FieldError | None:
    """Returns the error of a pod that cannot be resized at all; None if the pod can be resized."""
    if not from_minor(35) and _has_resources(old["spec"].get("resources")):
        return forbidden(NIL_PATH, "pods with pod-level resources cannot be resized")
    if MIRROR_POD_ANNOTATION_KEY in (old["metadata"].get("annotations") or {}):
        return forbidden(NIL_PATH, "static pods cannot be resized")
    if (old["spec"].get("os") or {}).get("name") == "windows":
        return forbidden(NIL_PATH, "windows pods cannot be resized")
    return None


def validate_resize(new: Object, old: Object) -> list[FieldError]:
    """Validates a change of the resources of a pod; the pod itself is valid."""
    spec, before = new["spec"], old["spec"]
    errors: list[FieldError] = []
    status = old.get("status") or {}
    old_class = status.get("qosClass") or qos_class(before)
    if old_class != qos_class(spec):
        shown = (new.get("status") or {}).get("qosClass", "")
        errors.append(invalid("spec", shown, "Pod QOS Class may not change as a result of resizing"))
    if not _node_supports_resize(status):
        errors.append(forbidden("spec", "Pod running on node without support for resize"))
    left = dict(spec)
    if _has_resources(before.get("resources")) or _has_resources(spec.get("resources")):
        if not features.current().enabled("InPlacePodLevelResourcesVerticalScaling"):
            return [*errors, forbidden(NIL_PATH, _NO_POD_LEVEL_RESIZE)]
        errors += _validate_pod_level_resize(spec, before, left)
    if status.get("nodeAllocatableResourceClaimStatuses") and not from_minor(37):
        errors.append(forbidden("spec", "pods with node allocatable resource claims cannot be resized"))
    disorder = _validate_order(spec, before)
    if disorder:
        return errors + disorder
    all_inits = features.current().enabled("InPlacePodVerticalScalingInitContainers")
    for field in ("initContainers", "containers"):
        for index, (item, old_item) in enumerate(_pairs(spec, before, field)):
            if field == "initContainers" and not all_inits and not is_sidecar(old_item):
                continue
            errors += _forbid_removal(
                item.get("resources"), old_item.get("resources"), f"spec.{field}[{index}].resources", "resource "
            )
    errors += _validate_only_compute_changes(spec, before, left)
    if features.current().enabled(_SIZES_GATE):
        errors += _validate_volumes(spec.get("volumes") or (), before.get("volumes") or ())
        restore(left, before, "volumes")
    if not errors and left != before:
        errors.append(forbidden("spec", _ONLY_COMPUTE))
    return errors


def _validate_volumes(volumes: Sequence[Object], before: Sequence[Object]) -> list[FieldError]:
    """Validates that only the sizes of volumes in memory change."""
    if len(volumes) != len(before):
        return [forbidden("spec.volumes", "volumes may not be added or removed on resize")]
    return [
        error
        for index, (new, old) in enumerate(zip(volumes, before, strict=True))
        if new != old
        for error in _validate_volume(new, old, f"spec.volumes[{index}]")
    ]


def _validate_volume(new: Object, old: Object, path: str) -> list[FieldError]:
    if new.get("name") != old.get("name"):
        return [forbidden(f"{path}.name", "volumes may not be renamed or reordered on resize")]
    now, then = new.get("emptyDir"), old.get("emptyDir")
    if now is None or then is None or _without_size(new) != _without_size(old):
        return [forbidden(path, "only sizeLimit of memory-backed emptyDir volumes is mutable on resize")]
    path += ".emptyDir.sizeLimit"
    sizes = [quantity(part.get("sizeLimit", "0")) for part in (now, then)]
    if bool(sizes[0].sign) != bool(sizes[1].sign):
        return [forbidden(path, "adding or removing sizeLimit on an existing volume is not allowed")]
    if sizes[0] != sizes[1] and now.get("medium") != "Memory":
        return [forbidden(path, "sizeLimit is only mutable for memory-backed emptyDir volumes")]
    return []


def _without_size(volume: Object) -> Object:
    return {**volume, "emptyDir": {key: value for key, value in volume["emptyDir"].items() if key != "sizeLimit"}}


def _pairs(spec: Object, before: Object, field: str) -> list[tuple[Object, Object]]:
    return list(zip(spec.get(field) or (), before.get(field) or (), strict=True))


def _node_supports_resize(status: Mapping[str, Any]) -> bool:
    """Reports whether the node reports the resources of running containers."""
    for item in status.get("containerStatuses") or ():
        if "running" in (item.get("state") or {}):
            return "resources" in item
    return True


def _has_resources(new: Object | None) -> bool:
    return bool(new and (new.get("requests") or new.get("limits")))


def _validate_pod_level_resize(spec: Object, before: Object, left: Object) -> list[FieldError]:
    """Validates the resize at pod level (validatePodLevelResourcesResize); restores CPU and memory in `left`."""
    new, old = spec.get("resources"), before.get("resources")
    if new is None:
        return [forbidden("spec.resources", "pod-level resources cannot be removed")]
    errors = _forbid_removal(new, old, "spec.resources", "pod-level resource ") if old is not None else []
    claims = {"claims": new["claims"]} if new.get("claims") else {}
    restored = {**claims, **_restored_resources(new, old)}
    if old is None and not any(restored.values()):
        left.pop("resources")
    else:
        left["resources"] = restored
    if left.get("resources") != old:
        errors.append(forbidden("spec", f"{_ONLY_COMPUTE} at pod-level"))
    return errors


def _forbid_removal(new: Object | None, old: Object | None, path: str, what: str) -> list[FieldError]:
    """Validates that no quantity is removed."""
    return [
        forbidden(f"{path}.{side}", f"{what}{side} cannot be removed")
        for side in ("requests", "limits")
        if ((old or {}).get(side) or {}).keys() - ((new or {}).get(side) or {}).keys()
    ]


def _restored_resources(new: Object | None, old: Object | None) -> Object:
    """Returns the new resources with the old quantities of CPU and memory; until 1.34 nothing where there were none."""
    restored = {}
    for side in ("limits", "requests") if from_minor(35) else tuple(old or ()):
        amounts, before = (new or {}).get(side) or {}, (old or {}).get(side) or {}
        kept = {name: amount for name, amount in amounts.items() if name not in RESIZABLE}
        kept.update((name, before[name]) for name in RESIZABLE if name in before)
        if kept:
            restored[side] = kept
    return restored


def _validate_order(spec: Object, before: Object) -> list[FieldError]:
    """Validates the order of containers (validatePodResizeContainerOrdering)."""
    errors: list[FieldError] = []
    for field in ("containers", "initContainers"):
        now, then = spec.get(field) or (), before.get(field) or ()
        if len(now) != len(then):
            errors.append(forbidden(f"spec.{field}", f"{field} may not be added or removed on resize"))
            continue
        errors += [
            forbidden(f"spec.{field}[{index}].name", f"{field} may not be renamed or reordered on resize")
            for index, (item, old) in enumerate(zip(now, then, strict=True))
            if item.get("name") != old.get("name")
        ]
    return errors


def _validate_only_compute_changes(spec: Object, before: Object, left: Object) -> list[FieldError]:
    """Validates that only CPU and memory of containers change; restores them in `left`."""
    errors: list[FieldError] = []
    for field in ("containers", "initContainers"):
        restored = []
        resizes_all = field == "containers" or features.current().enabled("InPlacePodVerticalScalingInitContainers")
        for index, (item, old) in enumerate(_pairs(spec, before, field)):
            if not resizes_all and not is_sidecar(item):
                if item != old:
                    errors.append(forbidden("spec", "resources for non-sidecar init containers are immutable"))
                restored.append(old)
                continue
            munged = {**item, "resources": _restored_resources(item.get("resources"), old.get("resources"))}
            if from_minor(37) and (item.get("resources") or {}).get("claims"):
                munged["resources"]["claims"] = item["resources"]["claims"]
            restored.append(munged)
            if _comparable(munged) != _comparable(old):
                errors.append(_immutable_error(field, index))
            if field == "initContainers" and item != old and not is_sidecar(item):
                errors += _forbid_restart_policy(munged, index)
        if restored:
            left[field] = restored
    return errors


def _comparable(container: Object) -> Object:
    """Returns the container without empty resources, which the real server takes for none."""
    return {**container, "resources": {k: v for k, v in (container.get("resources") or {}).items() if v}}


def _immutable_error(field: str, index: int) -> FieldError:
    if field == "containers":
        return forbidden("spec", _ONLY_COMPUTE)
    if not from_minor(36):
        return forbidden("spec", "only cpu and memory resources for sidecar containers are mutable")
    text = "only cpu and memory resources for init or sidecar containers are mutable"
    return forbidden(f"spec.initContainers[{index}]", text)


def _forbid_restart_policy(container: Object, index: int) -> list[FieldError]:
    text = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
    return [
        forbidden(f"spec.initContainers[{index}]", text)
        for policy in container.get("resizePolicy") or ()
        if policy.get("restartPolicy") == "RestartContainer"
    ]
