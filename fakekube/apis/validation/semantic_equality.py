"""Semantic equality of two trees: absent, null and empty values are equal.

What a pointer of Go leads to is an exception: an absent struct differs from an empty one. `same_as` knows the type.

Specified by: k8s.io/apimachinery/pkg/api/equality (Semantic.DeepEqual).
"""

from __future__ import annotations

from functools import partial
from typing import Any

from fakekube.apimachinery.schema.model import Field, Shape, Type

__all__ = ["contains_empty", "same", "same_as"]


def same(left: Any, right: Any) -> bool:
    """Reports whether the values are equal, where absent, null, {} and [] are equal."""
    if left == right:
        return True
    if isinstance(left, dict) and isinstance(right, dict):
        return all(same(left.get(key), right.get(key)) for key in {**left, **right})
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        return all(map(same, left, right))
    return _is_empty(left) and _is_empty(right)


def same_as(type_: Type, left: Any, right: Any) -> bool:
    """Reports whether the values of a type are equal, where absent, empty and zero are equal except behind a pointer."""
    if type_.shape is Shape.STRUCT:
        left, right = left or {}, right or {}
        fields = type_.fields
        return all(_is_same_field(fields[name], left.get(name), right.get(name)) for name in {**left, **right} if name in fields)
    if type_.shape in (Shape.LIST, Shape.MAP) and type_.items is not None:
        return _are_same_items(type_.items, left, right)
    return bool(left == right) or (not left and not right)


def _is_same_field(field: Field, left: Any, right: Any) -> bool:
    if field.pointer and (left is None or right is None):
        return left is right
    return same_as(field.type, left, right)


def _are_same_items(type_: Type, left: Any, right: Any) -> bool:
    if not left or not right:
        return not left and not right
    if isinstance(left, dict):
        return bool(left.keys() == right.keys()) and all(same_as(type_, item, right[key]) for key, item in left.items())
    return len(left) == len(right) and all(map(partial(same_as, type_), left, right))


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
