"""When two trees mean the same: absent, null and empty are one.

Specified by: k8s.io/apimachinery/pkg/api/equality (Semantic.DeepEqual).
"""

from __future__ import annotations

from typing import Any

__all__ = ["same"]


def same(left: Any, right: Any) -> bool:
    """Are these equal, if nothing, null, {} and [] are all nothing?"""
    if left == right:
        return True
    if isinstance(left, dict) and isinstance(right, dict):
        return all(same(left.get(key), right.get(key)) for key in {**left, **right})
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        return all(map(same, left, right))
    return _is_nothing(left) and _is_nothing(right)


def _is_nothing(value: Any) -> bool:
    return value is None or (isinstance(value, dict | list) and not value)
