"""Validation of volume mounts and volume devices of containers.

Specified by: pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import forbidden, invalid, not_found, required
from fakekube.apis.validation.checks import one_of
from fakekube.apis.validation.paths import descending, no_backsteps

Part = Mapping[str, Any]

PROPAGATION = ("Bidirectional", "HostToContainer", "None")
RECURSIVE_READ_ONLY = ("Disabled", "Enabled", "IfPossible")


def volume_mounts(container: Part, volumes: Mapping[str, Part], path: str) -> list[FieldError]:
    """Validates volume mounts (ValidateVolumeMounts); `volumes` are those of the pod."""
    mounts = container.get("volumeMounts")
    if not mounts:
        return []
    devices = {item.get("name", ""): item.get("devicePath", "") for item in container.get("volumeDevices") or ()}
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, mount in enumerate(mounts):
        name, target = mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            errors.append(required(f"{path}[{index}].name"))
        if name not in volumes:
            errors.append(not_found(f"{path}[{index}].name", name))
        if not target:
            errors.append(required(f"{path}[{index}].mountPath"))
        if target in seen:
            errors.append(invalid(f"{path}[{index}].mountPath", target, "must be unique"))
        seen.add(target)
        if name in devices:
            errors.append(invalid(f"{path}[{index}].name", name, "must not already exist in volumeDevices"))
        if target in devices.values():
            text = "must not already exist as a path in volumeDevices"
            errors.append(invalid(f"{path}[{index}].mountPath", target, text))
        if len(mount) > 2:
            errors += _mount_options(mount, container, path, index)
    return errors


def _mount_options(mount: Part, container: Part, path: str, index: int) -> list[FieldError]:
    """Validates the other fields of a mount; most of the errors are about the list, not about the mount."""
    errors: list[FieldError] = []
    sub_path, expression = mount.get("subPath", ""), mount.get("subPathExpr", "")
    if sub_path:
        errors += descending(sub_path, f"{path}.subPath")
    if expression:
        if sub_path:
            text = "subPathExpr and subPath are mutually exclusive"
            errors.append(invalid(f"{path}[{index}].subPathExpr", expression, text))
        errors += descending(expression, f"{path}.subPathExpr")
    if "mountPropagation" in mount:
        errors += _propagation(mount["mountPropagation"], container, f"{path}.mountPropagation")
    if "recursiveReadOnly" in mount:
        errors += _recursive_read_only(mount, f"{path}.recursiveReadOnly")
    return errors


def _propagation(mode: str, container: Part, path: str) -> list[FieldError]:
    errors = one_of(mode, path, PROPAGATION)
    if mode == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
        text = "Bidirectional mount propagation is available only to privileged containers"
        errors.append(forbidden(path, text))
    return errors


def _recursive_read_only(mount: Part, path: str) -> list[FieldError]:
    mode = mount["recursiveReadOnly"]
    if mode not in ("Enabled", "IfPossible"):
        return one_of(mode, path, RECURSIVE_READ_ONLY)
    errors: list[FieldError] = []
    if not mount.get("readOnly"):
        errors.append(forbidden(path, "may only be specified when readOnly is true"))
    if mount.get("mountPropagation", "None") != "None":
        text = "may only be specified when mountPropagation is None or not specified"
        errors.append(forbidden(path, text))
    return errors


def volume_devices(container: Part, volumes: Mapping[str, Part], path: str) -> list[FieldError]:
    """Validates volume devices (ValidateVolumeDevices)."""
    mounts = {item.get("name", ""): item.get("mountPath", "") for item in container.get("volumeMounts") or ()}
    errors: list[FieldError] = []
    seen_names: set[str] = set()
    seen_paths: set[str] = set()
    for index, device in enumerate(container.get("volumeDevices") or ()):
        name, target = device.get("name", ""), device.get("devicePath", "")
        errors += _device_name(name, volumes, seen_names, f"{path}[{index}].name")
        errors += _device_path(target, seen_paths, f"{path}[{index}].devicePath")
        if name in mounts:
            errors.append(invalid(f"{path}[{index}].name", name, "must not already exist in volumeMounts"))
        if target in mounts.values():
            text = "must not already exist as a path in volumeMounts"
            errors.append(invalid(f"{path}[{index}].devicePath", target, text))
        if name:
            seen_names.add(name)
    return errors


def _device_name(name: str, volumes: Mapping[str, Part], seen: set[str], path: str) -> list[FieldError]:
    errors = [] if name else [required(path)]
    if name in seen:
        errors.append(invalid(path, name, "must be unique"))
    volume = volumes.get(name)
    if volume is None:
        errors.append(not_found(path, name))
    elif "persistentVolumeClaim" not in volume and "ephemeral" not in volume:
        text = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
        errors.append(invalid(path, name, text))
    return errors


def _device_path(target: str, seen: set[str], path: str) -> list[FieldError]:
    errors = [] if target else [required(path)]
    if target in seen:
        errors.append(invalid(path, target, "must be unique"))
    if target and no_backsteps(target, path):
        errors.append(invalid(path, target, "can not contain backsteps ('..')"))
    else:
        seen.add(target)
    return errors


def file_key_volumes(containers: Sequence[tuple[Part, str]], volumes: Sequence[Part]) -> list[FieldError]:
    """Validates that variables from files refer to emptyDir volumes (validateFileKeyRefVolumes)."""
    by_name = {volume.get("name", ""): volume for volume in volumes}
    errors: list[FieldError] = []
    for container, where in containers:
        for index, variable in enumerate(container.get("env") or ()):
            reference = variable.get("valueFrom", {}).get("fileKeyRef")
            if reference is None:
                continue
            name = reference.get("volumeName", "")
            path = f"{where}.env[{index}].valueFrom.fileKeyRef.volumeName"
            if name not in by_name:
                errors.append(not_found(path, name))
            elif "emptyDir" not in by_name[name]:
                errors.append(invalid(path, name, "referenced volume must be of type emptyDir"))
    return errors
