"""The health of volumes, in the status of claims and of pods (1.37).

Specified by: pkg/apis/core/validation/validation.go (validateVolumeHealthStatus, validatePodVolumeHealth),
pkg/apis/core/v1/zz_generated.validations.go (VolumeHealthStatus, PodVolumeHealth).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import duplicate, not_found, required, too_many
from fakekube.apis.validation.checks import condition_reason, repeated_indices
from fakekube.apis.validation.rules import Rule, each, fits, form, needed, nonempty, one_of, rules, then

_MAX_CONDITIONS: Final = 16
REASON: Final = form(condition_reason, "reason of a condition")

_CONDITION = rules(
    "VolumeHealthCondition",
    "Validate_VolumeHealthCondition",
    Rule("status", one_of("DataLoss", "Degraded", "Inaccessible", needs="")),
    Rule("reason", then(needed(), fits(256))),
    Rule("message", fits(1024)),
)
#: What is validated by hand, also where nothing changes.
_REASONS = rules(
    "VolumeHealthStatus",
    "validateVolumeHealthConditions",
    Rule(
        "healthConditions",
        each(rules("VolumeHealthCondition", "validateVolumeHealthCondition", Rule("reason", nonempty(REASON)))),
    ),
)


def validate_health_of_claim(status: Mapping[str, Any], old: Mapping[str, Any]) -> list[FieldError]:
    """Validates the health in the status of a claim."""
    health, before = status.get("healthStatus") or {}, old.get("healthStatus") or {}
    errors = _REASONS.validate(health, "status.healthStatus")
    return errors + _validate_conditions(health, before, "status.healthStatus.healthConditions")


def validate_health_of_pod(
    status: Mapping[str, Any], old: Mapping[str, Any], volumes: Sequence[Mapping[str, Any]]
) -> list[FieldError]:
    """Validates the health of each volume in the status of a pod."""
    items, before = status.get("volumeHealth") or [], old.get("volumeHealth") or []
    errors: list[FieldError] = []
    for index, item in enumerate(items):
        path, name = f"status.volumeHealth[{index}]", item.get("name", "")
        if name and all(volume.get("name") != name for volume in volumes):
            errors.append(not_found(f"{path}.name", name))
        errors += _REASONS.validate(item, path)
    return errors if items == before else errors + _validate_declared_rules(items, before)


def _validate_declared_rules(items: Sequence[Mapping[str, Any]], before: Sequence[Mapping[str, Any]]) -> list[FieldError]:
    """Validates the items that have changed (Validate_PodVolumeHealth)."""
    errors = [
        duplicate(f"status.volumeHealth[{index}]", items[index])
        for index in repeated_indices(item.get("name", "") for item in items)
    ]
    known = {item.get("name", ""): item for item in reversed(before)}
    for index, item in enumerate(items):
        path, name = f"status.volumeHealth[{index}]", item.get("name", "")
        if item != known.get(name):
            errors += [] if name else [required(f"{path}.name")]
            errors += _validate_conditions(item, known.get(name) or {}, f"{path}.healthConditions")
    return errors


def _validate_conditions(health: Mapping[str, Any], before: Mapping[str, Any], path: str) -> list[FieldError]:
    conditions: Sequence[Mapping[str, Any]] = health.get("healthConditions") or []
    known: Sequence[Mapping[str, Any]] = before.get("healthConditions") or []
    if conditions == known:
        return []
    if len(conditions) > _MAX_CONDITIONS:
        return [too_many(path, len(conditions), _MAX_CONDITIONS)]
    keys = [(item.get("status", ""), item.get("reason", "")) for item in conditions]
    errors = [duplicate(f"{path}[{index}]", conditions[index]) for index in repeated_indices(keys)]
    return errors + [
        error
        for index, item in enumerate(conditions)
        if item not in known
        for error in _CONDITION.validate(item, f"{path}[{index}]")
    ]
