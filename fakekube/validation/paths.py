"""Paths of files in volumes and profiles: relative, and not leading out.

Specified by: pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from fakekube.errors import FieldError
from fakekube.errors.field import invalid

__all__ = ["descending", "no_backsteps", "non_reserved"]


def no_backsteps(target: str, path: str) -> list[FieldError]:
    """No `..` as a step (validatePathNoBacksteps)."""
    return [invalid(path, target, "must not contain '..'")] if ".." in target.split("/") else []


def descending(target: str, path: str) -> list[FieldError]:
    """A relative path that leads down (validateLocalDescendingPath)."""
    errors = [invalid(path, target, "must be a relative path")] if target.startswith("/") else []
    return errors + no_backsteps(target, path)


def non_reserved(target: str, path: str) -> list[FieldError]:
    """A relative path whose first step is no name of the kubelet's own (ValidateLocalNonReservedPath)."""
    errors = descending(target, path)
    if target.startswith("..") and not target.startswith("../"):
        errors.append(invalid(path, target, "must not start with '..'"))
    return errors
