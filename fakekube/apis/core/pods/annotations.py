"""Validation of annotations of pods: mirror pods, tolerations, deletion cost, deprecated security profiles.

Specified by: ValidatePodSpecificAnnotations and the functions next to it in pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import forbidden, invalid
from fakekube.apis.core.pods.validation_options import ValidationOptions, is_deletion_cost
from fakekube.apis.core.pods.visitor import containers, containers_with_paths
from fakekube.apis.validation.checks import descending
from fakekube.apis.validation.objectmeta import read_tolerations
from fakekube.apis.validation.selectors import tolerations
from fakekube.apis.well_known import (
    DEPRECATED_APP_ARMOR_ANNOTATION_KEY_PREFIX,
    MIRROR_POD_ANNOTATION_KEY,
    POD_DELETION_COST,
    SECCOMP_CONTAINER_ANNOTATION_KEY_PREFIX,
    SECCOMP_POD_ANNOTATION_KEY,
)
from fakekube.base.golang.json_reader import JSONError
from fakekube.base.golang.strconv import go_quote

_TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"
_RUNTIME_DEFAULT = "runtime/default"
_DOCKER_DEFAULT = "docker/default"
_UNCONFINED = "unconfined"
LOCALHOST = "localhost/"

Annotations = Mapping[str, str]

#: The prefixes of the annotations that are validated.
_READ: Final = (
    MIRROR_POD_ANNOTATION_KEY,
    _TOLERATIONS,
    POD_DELETION_COST,
    SECCOMP_POD_ANNOTATION_KEY,
    SECCOMP_CONTAINER_ANNOTATION_KEY_PREFIX,
    DEPRECATED_APP_ARMOR_ANNOTATION_KEY_PREFIX,
)


def concerns_pods(annotations: Annotations) -> bool:
    """Reports whether any annotation is one that the API server reads of pods."""
    for key in annotations:  # noqa: SIM110 - several times in each write of a pod; a generator costs more
        if key.startswith(_READ):
            return True
    return False


def validate_pod_annotations(
    annotations: Annotations, spec: dict[str, Any], path: str, options: ValidationOptions
) -> list[FieldError]:
    """Validates the annotations of a pod or template at `path` (ValidatePodSpecificAnnotations)."""
    errors: list[FieldError] = []
    if not concerns_pods(annotations):
        return errors
    mirror = annotations.get(MIRROR_POD_ANNOTATION_KEY)
    if mirror is not None and not spec.get("nodeName"):
        text = "must set spec.nodeName if mirror pod annotation is set"
        errors.append(invalid(f"{path}[{MIRROR_POD_ANNOTATION_KEY}]", mirror, text))
    if annotations.get(_TOLERATIONS):
        errors += _validate_tolerations(annotations[_TOLERATIONS], path, options)
    cost = annotations.get(POD_DELETION_COST)
    if not options.deletion_cost and not is_deletion_cost(cost):
        errors.append(invalid(f"{path}[{POD_DELETION_COST}]", cost, "must be a 32bit integer"))
    return errors + _validate_seccomp_annotations(annotations, path) + _validate_apparmor_annotations(annotations, spec, path)


def _validate_tolerations(text: str, path: str, options: ValidationOptions) -> list[FieldError]:
    try:
        found = read_tolerations(text)
    except JSONError as problem:
        return [invalid(path, _TOLERATIONS, str(problem))]
    return tolerations(found, f"{path}.{_TOLERATIONS}", allow_comparisons=options.comparing_tolerations)


def _validate_seccomp_annotations(annotations: Annotations, path: str) -> list[FieldError]:
    keys = [
        key for key in annotations if key == SECCOMP_POD_ANNOTATION_KEY or key.startswith(SECCOMP_CONTAINER_ANNOTATION_KEY_PREFIX)
    ]
    return [error for key in keys for error in _validate_seccomp_profile(annotations[key], f"{path}.{key}")]


def _validate_seccomp_profile(profile: str, path: str) -> list[FieldError]:
    if profile in (_RUNTIME_DEFAULT, _DOCKER_DEFAULT, _UNCONFINED):
        return []
    if profile.startswith(LOCALHOST):
        return descending(profile.removeprefix(LOCALHOST), path)
    return [invalid(path, profile, "must be a valid seccomp profile")]


def _validate_apparmor_annotations(annotations: Annotations, spec: dict[str, Any], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for key, profile in annotations.items():
        if not key.startswith(DEPRECATED_APP_ARMOR_ANNOTATION_KEY_PREFIX):
            continue
        name = key.removeprefix(DEPRECATED_APP_ARMOR_ANNOTATION_KEY_PREFIX)
        if all(container.get("name") != name for container in containers(spec)):
            errors.append(invalid(f"{path}[{key}]", name, "container not found"))
        if profile not in ("", _RUNTIME_DEFAULT, _UNCONFINED) and not profile.startswith(LOCALHOST):
            text = f"invalid AppArmor profile name: {go_quote(profile)}"
            errors.append(invalid(f"{path}[{key}]", profile, text))
    return errors


def profile_of_annotation(annotation: str) -> dict[str, Any] | None:
    """Returns the AppArmor profile of a deprecated annotation."""
    if annotation == _RUNTIME_DEFAULT:
        return {"type": "RuntimeDefault"}
    if annotation == _UNCONFINED:
        return {"type": "Unconfined"}
    if annotation.startswith(LOCALHOST):
        name = annotation.removeprefix(LOCALHOST)
        return {"type": "Localhost", "localhostProfile": name} if name else None
    return None


def annotation_of_profile(profile: Mapping[str, Any]) -> str:
    """Returns the deprecated annotation of an AppArmor profile; "" if there is none (appArmorAnnotationForField)."""
    name = profile.get("localhostProfile")
    localhost = "" if name is None else f"{LOCALHOST}{name}"
    return {"Unconfined": _UNCONFINED, "RuntimeDefault": _RUNTIME_DEFAULT, "Localhost": localhost}.get(
        profile.get("type", ""), ""
    )


def validate_annotations_update(new: Annotations, old: Annotations, path: str) -> list[FieldError]:
    """Validates annotations that cannot be added or removed (the first part of ValidatePodSpecificAnnotationUpdates)."""
    errors: list[FieldError] = []
    for key, value in old.items():
        if new.get(key) == value:
            continue
        if key.startswith(DEPRECATED_APP_ARMOR_ANNOTATION_KEY_PREFIX):
            errors.append(forbidden(f"{path}[{key}]", "may not remove or update AppArmor annotations"))
        if key == MIRROR_POD_ANNOTATION_KEY:
            errors.append(forbidden(f"{path}[{key}]", "may not remove or update mirror pod annotation"))
    for key in new:
        if key in old:
            continue
        if key.startswith(DEPRECATED_APP_ARMOR_ANNOTATION_KEY_PREFIX):
            errors.append(forbidden(f"{path}[{key}]", "may not add AppArmor annotations"))
        if key == MIRROR_POD_ANNOTATION_KEY:
            errors.append(forbidden(f"{path}[{key}]", "may not add mirror pod annotation"))
    return errors


def validate_profiles_match(annotations: Annotations, spec: dict[str, Any], path: str) -> list[FieldError]:
    """Validates, on create, that annotations and fields have the same profiles."""
    if not concerns_pods(annotations):
        return []
    return _validate_seccomp_fields_match(annotations, spec, path) + _validate_apparmor_fields_match(annotations, spec, path)


def _validate_seccomp_fields_match(annotations: Annotations, spec: dict[str, Any], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    of_pod = (spec.get("securityContext") or {}).get("seccompProfile")
    if of_pod is not None and SECCOMP_POD_ANNOTATION_KEY in annotations:
        where = f"{path}.securityContext.seccompProfile"
        errors += _validate_same_profile("seccomp", annotations[SECCOMP_POD_ANNOTATION_KEY], of_pod, where)
    for container, where in containers_with_paths(spec, path):
        profile = (container.get("securityContext") or {}).get("seccompProfile")
        key = f"{SECCOMP_CONTAINER_ANNOTATION_KEY_PREFIX}{container.get('name', '')}"
        if profile is not None and key in annotations:
            errors += _validate_same_profile("seccomp", annotations[key], profile, f"{where}.securityContext.seccompProfile")
    return errors


def _validate_apparmor_fields_match(annotations: Annotations, spec: dict[str, Any], path: str) -> list[FieldError]:
    if (spec.get("os") or {}).get("name") == "windows":
        return []
    errors: list[FieldError] = []
    of_pod = (spec.get("securityContext") or {}).get("appArmorProfile")
    for container, where in containers_with_paths(spec, path):
        profile = (container.get("securityContext") or {}).get("appArmorProfile", of_pod)
        key = f"{DEPRECATED_APP_ARMOR_ANNOTATION_KEY_PREFIX}{container.get('name', '')}"
        if profile is not None and key in annotations:
            errors += _validate_same_profile("apparmor", annotations[key], profile, f"{where}.securityContext.appArmorProfile")
    return errors


def _validate_same_profile(what: str, annotation: str, profile: Mapping[str, Any], path: str) -> list[FieldError]:
    kind = profile.get("type", "")
    defaults = (_RUNTIME_DEFAULT, _DOCKER_DEFAULT) if what == "seccomp" else (_RUNTIME_DEFAULT,)
    same_type = {
        "Unconfined": annotation == _UNCONFINED,
        "RuntimeDefault": annotation in defaults,
        "Localhost": annotation.startswith(LOCALHOST),
    }
    if not same_type.get(kind, True):
        return [forbidden(f"{path}.type", f"{what} type in annotation and field must match")]
    if kind == "Localhost" and annotation.removeprefix(LOCALHOST) != profile.get("localhostProfile"):
        text = f"{what} profile in annotation and field must match"
        return [forbidden(f"{path}.localhostProfile", text)]
    return []
