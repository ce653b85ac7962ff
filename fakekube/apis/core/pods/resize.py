"""In-place resize of pods: CPU and memory of containers and of the pod (ValidatePodResize).

Specified by: pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fakekube.apimachinery import features
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import forbidden, invalid
from fakekube.apis.core.pods.qos import qos_class
from fakekube.apis.core.pods.visitor import NIL_PATH, is_sidecar
from fakekube.apis.well_known import MIRROR_POD_ANNOTATION_KEY

Part = dict[str, Any]

RESIZABLE = ("cpu", "memory")
ONLY_COMPUTE = "only cpu and memory resources are mutable"


def keep_all_but_resources(new: Part, old: Part) -> None:
    """Reverts every change of the spec except those of resources (dropNonResizeUpdates).

    If the containers do not match the old ones, they stay as sent, and validation rejects them.
    """
    spec, before = new["spec"], old["spec"]
    fields = ("containers", "initContainers")
    if any(len(spec.get(field) or ()) != len(before.get(field) or ()) for field in fields):
        return
    kept = {**before}
    _move(kept, spec, "resources")
    for field in fields:
        if spec.get(field):
            kept[field] = _resized(spec[field], before[field])
    new["spec"] = kept


def _resized(containers: Sequence[Part], before: Sequence[Part]) -> Sequence[Part]:
    if any(new.get("name") != old.get("name") for new, old in zip(containers, before, strict=True)):
        return containers
    merged = [dict(old) for old in before]
    for target, sent in zip(merged, containers, strict=True):
        _move(target, sent, "resources")
        _move(target, sent, "resizePolicy")
    return merged


def _move(target: Part, source: Part, field: str) -> None:
    if field in source:
        target[field] = source[field]
    else:
        target.pop(field, None)


def refusal(old: Part) -> FieldError | None:
    """Returns the error of a pod that cannot be resized at all; None if the pod can be resized."""
    if MIRROR_POD_ANNOTATION_KEY in (old["metadata"].get("annotations") or {}):
        return forbidden(NIL_PATH, "static pods cannot be resized")
    if (old["spec"].get("os") or {}).get("name") == "windows":
        return forbidden(NIL_PATH, "windows pods cannot be resized")
    if _has_resources(old["spec"].get("resources")) and not features.current().enabled("InPlacePodLevelResourcesVerticalScaling"):
        gate = "InPlacePodLevelResourcesVerticalScalingEnabled feature gate is disabled"
        return forbidden("[]", f"resize of pods with pod-level resources is forbidden when {gate}")
    return None


def validate_resize(new: Part, old: Part) -> list[FieldError]:
    """Validates a change of the resources of a pod; the pod itself is valid."""
    spec, before = new["spec"], old["spec"]
    errors: list[FieldError] = []
    status = old.get("status") or {}
    quality = status.get("qosClass") or qos_class(before)
    if quality != qos_class(spec):
        shown = (new.get("status") or {}).get("qosClass", "")
        errors.append(invalid("spec", shown, "Pod QOS Class may not change as a result of resizing"))
    if not _is_supported(status):
        errors.append(forbidden("spec", "Pod running on node without support for resize"))
    left = dict(spec)
    if _has_resources(before.get("resources")) or _has_resources(spec.get("resources")):
        errors += _validate_pod_level_resize(spec, before, left)
    if status.get("nodeAllocatableResourceClaimStatuses"):
        errors.append(forbidden("spec", "pods with node allocatable resource claims cannot be resized"))
    disorder = _validate_order(spec, before)
    if disorder:
        return errors + disorder
    for field in ("initContainers", "containers"):
        for index, (item, old_item) in enumerate(_pairs(spec, before, field)):
            errors += _removed(item.get("resources"), old_item.get("resources"), f"spec.{field}[{index}].resources", "resource ")
    errors += _only_compute(spec, before, left)
    if not errors and left != before:
        errors.append(forbidden("spec", ONLY_COMPUTE))
    return errors


def _pairs(spec: Part, before: Part, field: str) -> list[tuple[Part, Part]]:
    return list(zip(spec.get(field) or (), before.get(field) or (), strict=True))


def _is_supported(status: Mapping[str, Any]) -> bool:
    """Reports whether the node reports the resources of running containers."""
    for item in status.get("containerStatuses") or ():
        if "running" in (item.get("state") or {}):
            return "resources" in item
    return True


def _has_resources(new: Part | None) -> bool:
    return bool(new and (new.get("requests") or new.get("limits")))


def _validate_pod_level_resize(spec: Part, before: Part, left: Part) -> list[FieldError]:
    """Validates the resize at pod level (validatePodLevelResourcesResize); restores CPU and memory in `left`."""
    new, old = spec.get("resources"), before.get("resources")
    if new is None:
        return [forbidden("spec.resources", "pod-level resources cannot be removed")]
    errors = _removed(new, old, "spec.resources", "pod-level resource ") if old is not None else []
    claims = {"claims": new["claims"]} if new.get("claims") else {}
    restored = {**claims, **_restored_resources(new, old)}
    if old is None and not any(restored.values()):
        left.pop("resources")
    else:
        left["resources"] = restored
    if left.get("resources") != old:
        errors.append(forbidden("spec", f"{ONLY_COMPUTE} at pod-level"))
    return errors


def _removed(new: Part | None, old: Part | None, path: str, what: str) -> list[FieldError]:
    """Validates that no quantity is removed."""
    return [
        forbidden(f"{path}.{side}", f"{what}{side} cannot be removed")
        for side in ("requests", "limits")
        if ((old or {}).get(side) or {}).keys() - ((new or {}).get(side) or {}).keys()
    ]


def _restored_resources(new: Part | None, old: Part | None) -> Part:
    """Returns the new resources with the old quantities of CPU and memory."""
    restored = {}
    for side in ("limits", "requests"):
        amounts, before = (new or {}).get(side) or {}, (old or {}).get(side) or {}
        kept = {name: amount for name, amount in amounts.items() if name not in RESIZABLE}
        kept.update((name, before[name]) for name in RESIZABLE if name in before)
        if kept:
            restored[side] = kept
    return restored


def _validate_order(spec: Part, before: Part) -> list[FieldError]:
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


def _only_compute(spec: Part, before: Part, left: Part) -> list[FieldError]:
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
            restored.append(munged)
            if _comparable(munged) != _comparable(old):
                errors.append(_immutable(field, index))
            if field == "initContainers" and item != old and not is_sidecar(item):
                errors += _restarted(munged, index)
        if restored:
            left[field] = restored
    return errors


def _comparable(container: Part) -> Part:
    """Returns the container without claims, which the comparison of the real server ignores."""
    return {**container, "resources": {k: v for k, v in (container.get("resources") or {}).items() if v}}


def _immutable(field: str, index: int) -> FieldError:
    if field == "containers":
        return forbidden("spec", ONLY_COMPUTE)
    text = "only cpu and memory resources for init or sidecar containers are mutable"
    return forbidden(f"spec.initContainers[{index}]", text)


def _restarted(container: Part, index: int) -> list[FieldError]:
    text = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
    return [
        forbidden(f"spec.initContainers[{index}]", text)
        for policy in container.get("resizePolicy") or ()
        if policy.get("restartPolicy") == "RestartContainer"
    ]
