"""Validation of updates of a pod: images, deadlines, tolerations, gates and a few other fields are mutable; and of a
resize in place, of CPU and memory.

The mutable fields are restored to the old values, then both specs are compared; a remaining difference is reported as a diff
of the internal forms.

Specified by: pkg/apis/core/validation/validation.go (ValidatePodUpdate, ValidatePodResize).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fakekube.apimachinery import features
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import forbidden, invalid, required
from fakekube.apis.core.pods.containers import validate_image_without_padding
from fakekube.apis.core.pods.resources import qos_class
from fakekube.apis.core.pods.validation_options import REQUIRED, ValidationOptions
from fakekube.apis.core.pods.visitor import NIL_PATH, is_sidecar
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import invalid_each
from fakekube.apis.validation.differences import diff
from fakekube.apis.validation.resource_lists import quantity
from fakekube.apis.validation.rules import from_minor
from fakekube.apis.validation.selectors import tolerations
from fakekube.apis.validation.to_internal import semantic_deep_equal, to_internal
from fakekube.apis.well_known import MIRROR_POD_ANNOTATION_KEY
from fakekube.base.golang.strconv import MAX_INT32

Spec = dict[str, Any]

UPDATABLE = (
    "`spec.containers[*].image`",
    "`spec.initContainers[*].image`",
    "`spec.activeDeadlineSeconds`",
    "`spec.tolerations` (only additions to existing tolerations)",
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
)


def validate_spec_update(new: Spec, old: Spec, options: ValidationOptions, stored: Callable[[Spec], Spec]) -> list[FieldError]:
    """Validates an update of the spec of a pod, which is valid itself.

    `stored` converts a spec to the stored form: that form is compared, but the message shows the spec as sent.
    """
    errors: list[FieldError] = []
    for field in ("containers", "initContainers"):
        wrong, stop = _images(new.get(field) or (), old.get(field) or (), f"spec.{field}")
        errors += wrong
        if stop:
            return errors
    wrong, stop = _deadline(new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds"))
    errors += wrong
    if stop:
        return errors
    errors += _validate_only_added_tolerations(new, old, options)
    errors += _validate_only_deleted_scheduling_gates(new.get("schedulingGates") or (), old.get("schedulingGates") or ())
    if new == old:
        return errors
    munged = _with_old_images(new, old)
    for field in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        _put_back(munged, old, field)
    if (old.get("terminationGracePeriodSeconds") or 0) < 0 and munged.get("terminationGracePeriodSeconds") == 1:
        _put_back(munged, old, "terminationGracePeriodSeconds")
    if old.get("schedulingGates"):
        errors += _validate_gated_pod_update(munged, old)
    if munged != old and stored(munged) != old:
        text = f"pod updates may not change fields other than {','.join(UPDATABLE)}"
        errors.append(forbidden("spec", f"{text}\n{diff('PodSpec', old, munged)}"))
    return errors


def _put_back(spec: Spec, old: Spec, field: str) -> None:
    if field in old:
        spec[field] = old[field]
    else:
        spec.pop(field, None)


def _images(new: Sequence[Spec], old: Sequence[Spec], path: str) -> tuple[list[FieldError], bool]:
    """Returns the errors of images (ValidateContainerUpdates), and whether validation stops."""
    if len(new) != len(old):
        return [forbidden(path, "pod updates may not add or remove containers")], True
    errors: list[FieldError] = []
    for index, container in enumerate(new):
        if not container.get("image"):
            errors.append(required(f"{path}[{index}].image"))
        errors += validate_image_without_padding(container, f"{path}[{index}]")
    return errors, False


def _deadline(new: int | None, old: int | None) -> tuple[list[FieldError], bool]:
    path = "spec.activeDeadlineSeconds"
    if new is None:
        text = "must not update from a positive integer to nil value"
        return [] if old is None else [invalid(path, None, text)], False
    if not 0 <= new <= MAX_INT32:
        return invalid_each(path, new, names.in_range(new, 0, MAX_INT32)), True
    if old is not None and old < new:
        return [invalid(path, new, "must be less than or equal to previous value")], True
    return [], False


def _validate_only_added_tolerations(new: Spec, old: Spec, options: ValidationOptions) -> list[FieldError]:
    """Validates that tolerations are only added (validateOnlyAddedTolerations)."""
    path = "spec.tolerations"
    now = new.get("tolerations") or ()
    kept = {_without_seconds(item) for item in now}
    if any(_without_seconds(item) not in kept for item in old.get("tolerations") or ()):
        return [forbidden(path, "existing toleration can not be modified except its tolerationSeconds")]
    return tolerations(now, path, allow_comparisons=options.comparing_tolerations)


def _without_seconds(toleration: Mapping[str, Any]) -> frozenset[tuple[str, str]]:
    """Returns the fields of a toleration, all texts, without tolerationSeconds."""
    return frozenset((name, value) for name, value in toleration.items() if name != "tolerationSeconds")


def _validate_only_deleted_scheduling_gates(new: Sequence[Spec], old: Sequence[Spec]) -> list[FieldError]:
    """Validates that scheduling gates are only removed (validateOnlyDeletedSchedulingGates)."""
    known = {gate.get("name") for gate in old}
    added = {gate.get("name", ""): index for index, gate in enumerate(new) if gate.get("name") not in known}
    return [
        forbidden(f"spec.schedulingGates[{index}].name", f"only deletion is allowed, but found new scheduling gate '{name}'")
        for name, index in added.items()
    ]


def _with_old_images(new: Spec, old: Spec) -> Spec:
    """Returns a copy of the new spec with the old images."""
    munged = dict(new)
    for field in ("containers", "initContainers"):
        if new.get(field):
            munged[field] = [
                _with_image(container, before.get("image")) for container, before in zip(new[field], old[field], strict=True)
            ]
    return munged


def _with_image(container: Spec, image: str | None) -> Spec:
    if container.get("image") == image:
        return container
    return {**container, "image": image} if image else {k: v for k, v in container.items() if k != "image"}


def _validate_gated_pod_update(munged: Spec, old: Spec) -> list[FieldError]:
    """Validates that the update of a gated pod only narrows its node selection; restores mutable fields."""
    errors: list[FieldError] = []
    wanted, before = munged.get("nodeSelector") or {}, old.get("nodeSelector") or {}
    if wanted != before:
        if any(wanted.get(key) != value for key, value in before.items()):
            text = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            errors.append(invalid("spec.nodeSelector", munged.get("nodeSelector"), text))
        _put_back(munged, old, "nodeSelector")
    affinity, old_affinity = munged.get("affinity"), old.get("affinity")
    rules, old_rules = (affinity or {}).get("nodeAffinity"), (old_affinity or {}).get("nodeAffinity")
    if not semantic_deep_equal(rules, old_rules):
        errors += _validate_node_affinity_mutation(rules or {}, old_rules or {})
        _put_back_node_affinity(munged, affinity, old_affinity, old_rules)
    return errors


def _put_back_node_affinity(munged: Spec, affinity: Spec | None, old_affinity: Spec | None, old_rules: Spec | None) -> None:
    if affinity is None:
        munged["affinity"] = {"nodeAffinity": old_rules}
    elif old_affinity is None and not {"podAffinity", "podAntiAffinity"} & affinity.keys():
        del munged["affinity"]
    else:
        others = {name: rules for name, rules in affinity.items() if name != "nodeAffinity"}
        munged["affinity"] = others if old_rules is None else {"nodeAffinity": old_rules, **others}


def _validate_node_affinity_mutation(rules: Spec, old_rules: Spec) -> list[FieldError]:
    """Validates that requirements are only added to required terms (validateNodeAffinityMutation)."""
    path = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
    if REQUIRED not in old_rules:
        return []
    old_terms = old_rules[REQUIRED].get("nodeSelectorTerms") or []
    sent = (rules.get(REQUIRED) or {}).get("nodeSelectorTerms")
    terms = sent or []
    if old_terms and len(old_terms) != len(terms):
        text = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        shown = None if sent is None else [to_internal("NodeSelectorTerm", term) for term in sent]
        return [invalid(path, shown, text)]
    text = "only additions are allowed (no mutations or deletions)"
    return [
        invalid(f"{path}[{index}]", to_internal("NodeSelectorTerm", term), text)
        for index, (term, before) in enumerate(zip(terms, old_terms, strict=False))
        if not _only_grown(term, before)
    ]


def _only_grown(term: Spec, old: Spec) -> bool:
    """Reports whether requirements were only added; an empty term matches nothing, so it must stay empty."""
    fields = ("matchExpressions", "matchFields")
    if not any(old.get(field) for field in fields):
        return not any(term.get(field) for field in fields)
    for field in fields:
        before = old.get(field) or []
        if (term.get(field) or [])[: len(before)] != before:
            return False
    return True


Part = dict[str, Any]

RESIZABLE = ("cpu", "memory")
ONLY_COMPUTE = "only cpu and memory resources are mutable"
_SIZES_GATE = "InPlacePodVerticalScalingMemoryBackedVolumes"


def keep_all_but_resources(new: Part, old: Part) -> None:
    """Reverts every change of the spec except those of resources (dropNonResizeUpdates).

    If the containers do not match the old ones, they stay as sent, and validation rejects them.
    """
    spec, before = new["spec"], old["spec"]
    fields = ("containers", "initContainers")
    if any(len(spec.get(field) or ()) != len(before.get(field) or ()) for field in fields):
        return
    kept = {**before}
    if features.current().enabled("InPlacePodLevelResourcesVerticalScaling"):
        _move(kept, spec, "resources")
    if features.current().enabled(_SIZES_GATE):
        _move(kept, spec, "volumes")
    for field in fields:
        if spec.get(field):
            kept[field] = _with_old_resources(spec[field], before[field])
    new["spec"] = kept


def _with_old_resources(containers: Sequence[Part], before: Sequence[Part]) -> Sequence[Part]:
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


NO_POD_LEVEL_RESIZE = (
    "resize of pods with pod-level resources is forbidden when InPlacePodLevelResourcesVerticalScalingEnabled feature gate "
    "is disabled"
)


def refusal(old: Part) -> FieldError | None:
    """Returns the error of a pod that cannot be resized at all; None if the pod can be resized."""
    if not from_minor(35) and _has_resources(old["spec"].get("resources")):
        return forbidden(NIL_PATH, "pods with pod-level resources cannot be resized")
    if MIRROR_POD_ANNOTATION_KEY in (old["metadata"].get("annotations") or {}):
        return forbidden(NIL_PATH, "static pods cannot be resized")
    if (old["spec"].get("os") or {}).get("name") == "windows":
        return forbidden(NIL_PATH, "windows pods cannot be resized")
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
        if not features.current().enabled("InPlacePodLevelResourcesVerticalScaling"):
            return [*errors, forbidden(NIL_PATH, NO_POD_LEVEL_RESIZE)]
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
        _move(left, before, "volumes")
    if not errors and left != before:
        errors.append(forbidden("spec", ONLY_COMPUTE))
    return errors


def _validate_volumes(volumes: Sequence[Part], before: Sequence[Part]) -> list[FieldError]:
    """Validates that only the sizes of volumes in memory change."""
    if len(volumes) != len(before):
        return [forbidden("spec.volumes", "volumes may not be added or removed on resize")]
    return [
        error
        for index, (new, old) in enumerate(zip(volumes, before, strict=True))
        if new != old
        for error in _validate_volume(new, old, f"spec.volumes[{index}]")
    ]


def _validate_volume(new: Part, old: Part, path: str) -> list[FieldError]:
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


def _without_size(volume: Part) -> Part:
    return {**volume, "emptyDir": {key: value for key, value in volume["emptyDir"].items() if key != "sizeLimit"}}


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
    errors = _forbid_removal(new, old, "spec.resources", "pod-level resource ") if old is not None else []
    claims = {"claims": new["claims"]} if new.get("claims") else {}
    restored = {**claims, **_restored_resources(new, old)}
    if old is None and not any(restored.values()):
        left.pop("resources")
    else:
        left["resources"] = restored
    if left.get("resources") != old:
        errors.append(forbidden("spec", f"{ONLY_COMPUTE} at pod-level"))
    return errors


def _forbid_removal(new: Part | None, old: Part | None, path: str, what: str) -> list[FieldError]:
    """Validates that no quantity is removed."""
    return [
        forbidden(f"{path}.{side}", f"{what}{side} cannot be removed")
        for side in ("requests", "limits")
        if ((old or {}).get(side) or {}).keys() - ((new or {}).get(side) or {}).keys()
    ]


def _restored_resources(new: Part | None, old: Part | None) -> Part:
    """Returns the new resources with the old quantities of CPU and memory; until 1.34 nothing where there were none."""
    restored = {}
    for side in ("limits", "requests") if from_minor(35) else tuple(old or ()):
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


def _validate_only_compute_changes(spec: Part, before: Part, left: Part) -> list[FieldError]:
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
                errors.append(_immutable(field, index))
            if field == "initContainers" and item != old and not is_sidecar(item):
                errors += _forbid_restart_policy(munged, index)
        if restored:
            left[field] = restored
    return errors


def _comparable(container: Part) -> Part:
    """Returns the container without empty resources, which the real server takes for none."""
    return {**container, "resources": {k: v for k, v in (container.get("resources") or {}).items() if v}}


def _immutable(field: str, index: int) -> FieldError:
    if field == "containers":
        return forbidden("spec", ONLY_COMPUTE)
    if not from_minor(36):
        return forbidden("spec", "only cpu and memory resources for sidecar containers are mutable")
    text = "only cpu and memory resources for init or sidecar containers are mutable"
    return forbidden(f"spec.initContainers[{index}]", text)


def _forbid_restart_policy(container: Part, index: int) -> list[FieldError]:
    text = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
    return [
        forbidden(f"spec.initContainers[{index}]", text)
        for policy in container.get("resizePolicy") or ()
        if policy.get("restartPolicy") == "RestartContainer"
    ]
