"""Validation of updates of a pod: images, deadlines, tolerations, gates and a few other fields are mutable.

The mutable fields are restored to the old values, then both specs are compared; a remaining difference is reported as a diff
of the internal forms.

Specified by: pkg/apis/core/validation/validation.go (ValidatePodUpdate).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import forbidden, invalid, required
from fakekube.apis.core.pods.containers import validate_image_without_padding
from fakekube.apis.core.pods.validation_options import REQUIRED, ValidationOptions
from fakekube.apis.rest.strategy import restore
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import invalid_each
from fakekube.apis.validation.differences import diff
from fakekube.apis.validation.selectors import tolerations
from fakekube.apis.validation.to_internal import semantic_deep_equal, to_internal
from fakekube.base.golang.strconv import MAX_INT32
from fakekube.base.objects import Object

_UPDATABLE = (
    "`spec.containers[*].image`",
    "`spec.initContainers[*].image`",
    "`spec.activeDeadlineSeconds`",
    "`spec.tolerations` (only additions to existing tolerations)",
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
)


def validate_spec_update(
    new: Object, old: Object, options: ValidationOptions, stored: Callable[[Object], Object]
) -> list[FieldError]:
    """Validates an update of the spec of a pod, which is valid itself.

    `stored` converts a spec to the stored form: that form is compared, but the message shows the spec as sent.
    """
    errors: list[FieldError] = []
    for field in ("containers", "initContainers"):
        wrong, stop = _validate_images(new.get(field) or (), old.get(field) or (), f"spec.{field}")
        errors += wrong
        if stop:
            return errors
    wrong, stop = _validate_active_deadline(new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds"))
    errors += wrong
    if stop:
        return errors
    errors += _validate_only_added_tolerations(new, old, options)
    errors += _validate_only_deleted_scheduling_gates(new.get("schedulingGates") or (), old.get("schedulingGates") or ())
    if new == old:
        return errors
    munged = _with_old_images(new, old)
    restore(munged, old, "activeDeadlineSeconds", "schedulingGates", "tolerations")
    if (old.get("terminationGracePeriodSeconds") or 0) < 0 and munged.get("terminationGracePeriodSeconds") == 1:
        restore(munged, old, "terminationGracePeriodSeconds")
    if old.get("schedulingGates"):
        errors += _validate_gated_pod_update(munged, old)
    if munged != old and stored(munged) != old:
        text = f"pod updates may not change fields other than {','.join(_UPDATABLE)}"
        errors.append(forbidden("spec", f"{text}\n{diff('PodSpec', old, munged)}"))
    return errors


def _validate_images(new: Sequence[Object], old: Sequence[Object], path: str) -> tuple[list[FieldError], bool]:
    """Returns the errors of images (ValidateContainerUpdates), and whether validation stops."""
    if len(new) != len(old):
        return [forbidden(path, "pod updates may not add or remove containers")], True
    errors: list[FieldError] = []
    for index, container in enumerate(new):
        if not container.get("image"):
            errors.append(required(f"{path}[{index}].image"))
        errors += validate_image_without_padding(container, f"{path}[{index}]")
    return errors, False


def _validate_active_deadline(new: int | None, old: int | None) -> tuple[list[FieldError], bool]:
    path = "spec.activeDeadlineSeconds"
    if new is None:
        text = "must not update from a positive integer to nil value"
        return [] if old is None else [invalid(path, None, text)], False
    if not 0 <= new <= MAX_INT32:
        return invalid_each(path, new, names.in_range(new, 0, MAX_INT32)), True
    if old is not None and old < new:
        return [invalid(path, new, "must be less than or equal to previous value")], True
    return [], False


def _validate_only_added_tolerations(new: Object, old: Object, options: ValidationOptions) -> list[FieldError]:
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


def _validate_only_deleted_scheduling_gates(new: Sequence[Object], old: Sequence[Object]) -> list[FieldError]:
    """Validates that scheduling gates are only removed (validateOnlyDeletedSchedulingGates)."""
    known = {gate.get("name") for gate in old}
    added = {gate.get("name", ""): index for index, gate in enumerate(new) if gate.get("name") not in known}
    return [
        forbidden(f"spec.schedulingGates[{index}].name", f"only deletion is allowed, but found new scheduling gate '{name}'")
        for name, index in added.items()
    ]


def _with_old_images(new: Object, old: Object) -> Object:
    """Returns a copy of the new spec with the old images."""
    munged = dict(new)
    for field in ("containers", "initContainers"):
        if new.get(field):
            munged[field] = [
                _with_image(container, before.get("image")) for container, before in zip(new[field], old[field], strict=True)
            ]
    return munged


def _with_image(container: Object, image: str | None) -> Object:
    if container.get("image") == image:
        return container
    return {**container, "image": image} if image else {k: v for k, v in container.items() if k != "image"}


def _validate_gated_pod_update(munged: Object, old: Object) -> list[FieldError]:
    """Validates that the update of a gated pod only narrows its node selection; restores mutable fields."""
    errors: list[FieldError] = []
    wanted, before = munged.get("nodeSelector") or {}, old.get("nodeSelector") or {}
    if wanted != before:
        if any(wanted.get(key) != value for key, value in before.items()):
            text = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            errors.append(invalid("spec.nodeSelector", munged.get("nodeSelector"), text))
        restore(munged, old, "nodeSelector")
    affinity, old_affinity = munged.get("affinity"), old.get("affinity")
    rules, old_rules = (affinity or {}).get("nodeAffinity"), (old_affinity or {}).get("nodeAffinity")
    if (rules is None) != (old_rules is None) or not semantic_deep_equal(rules, old_rules):
        errors += _validate_node_affinity_mutation(rules or {}, old_rules or {})
        _restore_node_affinity(munged, affinity, old_affinity, old_rules)
    return errors


def _restore_node_affinity(
    munged: Object, affinity: Object | None, old_affinity: Object | None, old_rules: Object | None
) -> None:
    if affinity is None:
        munged["affinity"] = {"nodeAffinity": old_rules}
    elif old_affinity is None and not {"podAffinity", "podAntiAffinity"} & affinity.keys():
        del munged["affinity"]
    else:
        others = {name: rules for name, rules in affinity.items() if name != "nodeAffinity"}
        munged["affinity"] = others if old_rules is None else {"nodeAffinity": old_rules, **others}


def _validate_node_affinity_mutation(rules: Object, old_rules: Object) -> list[FieldError]:
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


def _only_grown(term: Object, old: Object) -> bool:
    """Reports whether requirements were only added; an empty term matches nothing, so it must stay empty."""
    fields = ("matchExpressions", "matchFields")
    if not any(old.get(field) for field in fields):
        return not any(term.get(field) for field in fields)
    for field in fields:
        before = old.get(field) or []
        if (term.get(field) or [])[: len(before)] != before:
            return False
    return True
