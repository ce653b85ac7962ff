"""Correlates new values with old ones, and compares them (ratcheting).

Properties, map values and items of lists of type map can be correlated. An unchanged value, or one within an unchanged
value, may violate rules (ratcheting).

Specified by: k8s.io/apiserver/pkg/cel/common/{equality,maplist}.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from fakekube.apimachinery.cel.values import key_of

Schema = Mapping[str, Any]
_SCALARS = frozenset({bool, int, float, str})


def key_of_item(schema: Schema, item: Any) -> tuple[Any, ...] | None:
    """The keys of an item of a list of type map, None if it has none."""
    names = schema.get("x-kubernetes-list-map-keys")
    if not names or schema.get("x-kubernetes-list-type") != "map" or not isinstance(item, dict):
        return None
    found = [item.get(name) for name in names]
    return tuple(map(key_of, found)) if all(value.__class__ in _SCALARS for value in found) else None


def items_by_key(schema: Schema, items: Any) -> dict[tuple[Any, ...], Any]:
    """The items of a list of type map; empty for other lists."""
    found: dict[tuple[Any, ...], Any] = {}
    for item in items if isinstance(items, list) else ():
        key = key_of_item(schema, item)
        if key is not None:
            found.setdefault(key, item)
    return found


class Correlation:
    """A new value, the correlated old value, and their schema."""

    def __init__(self, schema: Schema, value: Any, old: Any) -> None:
        self._schema, self._value, self._old = schema, value, old

    def key(self, name: str) -> Correlation | None:
        """Returns the correlation of a property or map value; None if it is missing in one of them or in the schema."""
        if not isinstance(self._value, dict) or not isinstance(self._old, dict):
            return None
        if name not in self._value or name not in self._old:
            return None
        schema = (self._schema.get("properties") or {}).get(name) or self._schema.get("additionalProperties")
        return Correlation(schema, self._value[name], self._old[name]) if isinstance(schema, Mapping) else None

    def index(self, number: int) -> Correlation | None:
        """Returns the correlation of an item of a list of type map; None without an old item with the same keys."""
        item = self._value[number]
        old, schema = self._old_items.get(key_of_item(self._schema, item) or ()), self._schema.get("items")
        return Correlation(schema, item, old) if old is not None and schema is not None else None

    @cached_property
    def _old_items(self) -> dict[tuple[Any, ...], Any]:
        return items_by_key(self._schema, self._old)

    @cached_property
    def equal(self) -> bool:
        """Whether the new value equals the old one."""
        value, old = self._value, self._old
        if value is None or old is None:
            return value is old
        if value.__class__ is not old.__class__:
            return False
        if isinstance(value, dict):
            return len(value) == len(old) and all(child is not None and child.equal for child in map(self.key, value))
        if isinstance(value, list):
            if self._schema.get("x-kubernetes-list-type") != "map":
                return bool(value == old)
            children = map(self.index, range(len(value)))
            return len(value) == len(old) and all(child is not None and child.equal for child in children)
        return bool(value == old)
