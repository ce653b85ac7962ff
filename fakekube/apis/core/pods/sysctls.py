"""Sysctls of a pod, and the namespaces to which they belong.

Specified by: k8s.io/component-helpers/node/util/sysctl; pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import duplicate, invalid, required

LENGTH = 253
_SEGMENT = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_NAME = rf"({_SEGMENT}[\./])*{_SEGMENT}"
_name_matches = re.compile(_NAME).fullmatch

_IPC = frozenset(
    {
        "kernel.sem", "kernel.shm", "kernel.shmall", "kernel.shmmax", "kernel.shmmni",
        "kernel.shm_rmid_forced", "kernel.msg", "kernel.msgmax", "kernel.msgmnb", "kernel.msgmni",
    }
)  # fmt: skip

_SWAPPED = str.maketrans("./", "/.")


def normalize_name(name: str) -> str:
    """Returns the name of a sysctl with dots; in one that was written with slashes, dots become slashes (NormalizeName)."""
    separator = next((character for character in name if character in "./"), ".")
    return name if separator == "." else name.translate(_SWAPPED)


def shared_namespace(name: str, spec: Mapping[str, Any]) -> str:
    """Returns the field by which the pod shares the namespace of this sysctl with its node; "" if it does not share it."""
    dotted = normalize_name(name).partition("*")[0]
    if dotted in _IPC or dotted.startswith("fs.mqueue."):
        field = "hostIPC"
    elif dotted.startswith("net."):
        field = "hostNetwork"
    else:
        return ""
    return field if spec.get(field) else ""


def validate_sysctls(
    items: Sequence[Mapping[str, Any]], spec: Mapping[str, Any], path: str, *, allow_shared: bool
) -> list[FieldError]:
    """Validates the sysctls of the security context of a pod (validateSysctls)."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, item in enumerate(items):
        name, where = item.get("name", ""), f"{path}[{index}].name"
        if not name:
            errors.append(required(where))
        elif len(name) > LENGTH or not _name_matches(name):
            text = f"must have at most {LENGTH} characters and match regex ^{_NAME}$"
            errors.append(invalid(where, name, text))
        elif name in seen:
            errors.append(duplicate(where, name))
        shared = "" if allow_shared else shared_namespace(name, spec)
        if shared:
            errors.append(invalid(where, name, f"may not be specified when '{shared}' is true"))
        seen.add(name)
    return errors
