"""Paths of files in volumes and profiles: relative, and within their directory.

Specified by: pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import invalid

__all__ = ["descending", "no_backsteps", "non_reserved"]


def no_backsteps(target: str, path: str) -> list[FieldError]:
    """Validates that no element of the path is `..` (validatePathNoBacksteps)."""
    return [invalid(path, target, "must not contain '..'")] if ".." in target.split("/") else []


def descending(target: str, path: str) -> list[FieldError]:
    """Validates a relative path without `..` (validateLocalDescendingPath)."""
    errors = [invalid(path, target, "must be a relative path")] if target.startswith("/") else []
    return errors + no_backsteps(target, path)


def non_reserved(target: str, path: str) -> list[FieldError]:
    """Validates a relative path that does not start with a name that the kubelet reserves
    (ValidateLocalNonReservedPath).
    """
    errors = descending(target, path)
    if target.startswith("..") and not target.startswith("../"):
        errors.append(invalid(path, target, "must not start with '..'"))
    return errors
