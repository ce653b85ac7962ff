"""Trees of plain JSON data, of whatever type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

#: The parts of an object that are large in most kinds: to compare them costs less than to walk them.
_PARTS = frozenset({"spec", "status"})


def unchanged_parts(new: Mapping[str, Any], old: Mapping[str, Any], *, decoded: bool = False) -> dict[str, Any]:
    """Returns the spec and the status of an old object, as far as those of the new one are the same objects in JSON.

    `decoded`: both are decoded into a type without values of any form, so that equal numbers have the same text.
    """
    if _PARTS.isdisjoint(new):
        return {}
    are_same = are_equal if decoded else _are_identical
    return {name: old[name] for name in _PARTS if type(new.get(name)) is dict and are_same(new[name], old.get(name))}


def are_equal(one: Any, other: Any) -> bool:
    """Compares two trees.

    False for equal ones that nest too deeply: since Python 3.12 the depth of comparisons has a limit that cannot be raised.
    """
    try:
        return bool(one == other)
    except RecursionError:
        return False


def _are_identical(one: Any, other: Any) -> bool:
    """Reports whether two trees have the same JSON text: Python's 1, 1.0 and True are equal, but not identical.

    False for trees that nest too deeply to compare.
    """
    if one is other:
        return True
    try:
        return bool(one == other) and orjson.dumps(one) == orjson.dumps(other)
    except (RecursionError, orjson.JSONEncodeError):
        return False


#: The classes of values without parts, which copies share.
_SCALARS = frozenset({str, int, float, bool, type(None)})


def copied(value: Any) -> Any:
    """Returns a deep copy of a tree, which the caller may change."""
    if value.__class__ is dict and _SCALARS.issuperset(map(type, value.values())):
        return dict(value)
    try:
        return orjson.loads(orjson.dumps(value))  # much faster than to walk
    except orjson.JSONEncodeError:  # integers beyond 64 bits, invalid UTF-8
        return _copy(value)


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copy(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return value


def copy_with_texts(value: Any) -> Any:
    """Returns a deep copy of a tree, which shares the values that keep their text (`RawObject`): these are not changed."""
    try:
        return orjson.loads(orjson.dumps(value, option=orjson.OPT_PASSTHROUGH_SUBCLASS))
    except orjson.JSONEncodeError:
        return _copy_with_texts(value)


def _copy_with_texts(value: Any) -> Any:
    if value.__class__ is dict:
        return {name: _copy_with_texts(item) for name, item in value.items()}
    if value.__class__ is list:
        return [_copy_with_texts(item) for item in value]
    return value


def in_order(value: Any) -> Any:
    """Returns a deep copy with sorted keys and unchanged numbers."""
    if isinstance(value, dict):
        return {name: in_order(value[name]) for name in sorted(value)}
    return [in_order(item) for item in value] if isinstance(value, list) else value
