"""When two trees mean the same: absent, null and empty are one.

Specified by: k8s.io/apimachinery/pkg/api/equality (Semantic.DeepEqual).
"""

from __future__ import annotations

from typing import Any

from fakekube.schema.model import Shape, Type

__all__ = ["holds_empty", "same"]


def same(left: Any, right: Any) -> bool:
    """Are these equal, if nothing, null, {} and [] are all nothing?"""
    if left == right:
        return True
    if isinstance(left, dict) and isinstance(right, dict):
        return all(same(left.get(key), right.get(key)) for key in {**left, **right})
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        return all(map(same, left, right))
    return _is_nothing(left) and _is_nothing(right)


def holds_empty(type_: Type, value: Any) -> bool:
    """Is a list or map of this tree empty, though not null? Where Go compares with reflect.DeepEqual, that is a change:
    what was stored has none."""
    if type_.shape in (Shape.LIST, Shape.MAP) and type_.items is not None and isinstance(value, dict | list):
        items = value.values() if isinstance(value, dict) else value
        return not value or any(holds_empty(type_.items, item) for item in items)
    if type_.shape is Shape.STRUCT and isinstance(value, dict):
        fields = type_.fields
        return any(holds_empty(fields[name].type, member) for name, member in value.items() if name in fields)
    return False


def _is_nothing(value: Any) -> bool:
    return value is None or (isinstance(value, dict | list) and not value)
