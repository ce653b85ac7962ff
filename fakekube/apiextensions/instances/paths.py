"""Reads and writes values at dotted paths of an object (`.spec.replicas`).

Specified by: k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/helpers.go (NestedInt64, NestedString).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fakekube.base.golang.fmt import go_type, plain

__all__ = ["PathError", "integer_at", "segments", "string_at", "with_value"]


class PathError(ValueError):
    """The value at a path has the wrong type; has the error message of the real server."""


def segments(path: str) -> tuple[str, ...]:
    """Returns the field names of a path."""
    return tuple(path.removeprefix(".").split("."))


#: Marks an absent value, as opposed to null.
_NOTHING: Final = object()


def _value_at(obj: Any, path: tuple[str, ...]) -> Any:
    value = obj
    for depth, name in enumerate(path):
        if value is None or value is _NOTHING:
            return _NOTHING
        if not isinstance(value, Mapping):
            raise _misfit(path[: depth + 1], value, "map[string]interface{}")
        value = value.get(name, _NOTHING)
    return value


def _misfit(path: tuple[str, ...], value: Any, wanted: str) -> PathError:
    shown = f".{'.'.join(path)}"
    return PathError(f"{shown} accessor error: {plain(value)} is of the type {go_type(value)}, expected {wanted}")


def integer_at(obj: Any, path: str) -> int | None:
    """Returns the integer at a path, None if it is absent. Raises PathError."""
    value = _value_at(obj, segments(path))
    if value is _NOTHING:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise _misfit(segments(path), value, "int64")
    return value


def string_at(obj: Any, path: str) -> str | None:
    """Returns the string at a path, None if it is absent. Raises PathError."""
    value = _value_at(obj, segments(path))
    if value is _NOTHING:
        return None
    if not isinstance(value, str):
        raise _misfit(segments(path), value, "string")
    return value


def with_value(obj: Mapping[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """Returns the object with a value set at a path; everything beside the path is shared."""
    first, rest = path[0], path[1:]
    if not rest:
        return {**obj, first: value}
    below = obj.get(first)
    return {**obj, first: with_value(below if isinstance(below, Mapping) else {}, rest, value)}
