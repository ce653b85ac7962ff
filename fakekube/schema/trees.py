"""Trees of plain JSON data, of whatever type."""

from __future__ import annotations

from typing import Any

import orjson

__all__ = ["copied", "in_order"]


def copied(value: Any) -> Any:
    """Returns a deep copy of a tree, which the caller may change."""
    try:
        return orjson.loads(orjson.dumps(value))  # much faster than to walk
    except orjson.JSONEncodeError:  # integers beyond 64 bits, invalid UTF-8
        return _copied(value)


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copied(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value


def in_order(value: Any) -> Any:
    """Returns a deep copy with sorted keys and unchanged numbers."""
    if isinstance(value, dict):
        return {name: in_order(value[name]) for name in sorted(value)}
    return [in_order(item) for item in value] if isinstance(value, list) else value
