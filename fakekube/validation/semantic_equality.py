"""Semantic equality of two trees: absent, null and empty values are equal.

Specified by: k8s.io/apimachinery/pkg/api/equality (Semantic.DeepEqual).
"""

from __future__ import annotations

from typing import Any

from fakekube.schema.model import Shape, Type

__all__ = ["contains_empty", "same"]


def same(left: Any, right: Any) -> bool:
    """Reports whether the values are equal, where absent, null, {} and [] are equal."""
    if left == right:
        return True
    if isinstance(left, dict) and isinstance(right, dict):
        return all(same(left.get(key), right.get(key)) for key in {**left, **right})
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        return all(map(same, left, right))
    return _is_empty(left) and _is_empty(right)


def contains_empty(type_: Type, value: Any) -> bool:
    """Reports whether this tree contains a list or map that is empty, but not null.

    Go's reflect.DeepEqual sees that as a change, as the stored object has null in its place.
    """
    if type_.shape in (Shape.LIST, Shape.MAP) and type_.items is not None and isinstance(value, dict | list):
        items = value.values() if isinstance(value, dict) else value
        return not value or any(contains_empty(type_.items, item) for item in items)
    if type_.shape is Shape.STRUCT and isinstance(value, dict):
        fields = type_.fields
        return any(contains_empty(fields[name].type, member) for name, member in value.items() if name in fields)
    return False


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, dict | list) and not value)
