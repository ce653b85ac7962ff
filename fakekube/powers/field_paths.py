"""Paths of fields: `spec.replicas`, `metadata.labels["app.kubernetes.io/name"]`, `spec.containers[name=web].image`, `args[2]`.

An item of a list is named by its merge key if all items of the list have that key with different values, else by its position.
The page computes the same (page/static/paths.js), so that a path means the same in a row, in a finding and in an address.

Specified by: k8s.io/api (patchMergeKey, listMapKey) for the keys of lists.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

#: Members that identify the items of a list; the first combination that fits is used.
MERGE_KEYS: Final = (("name",), ("containerPort", "protocol"), ("port", "protocol"), ("type",), ("ip",), ("uid",), ("key",))

_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+")
_PLAIN_VALUE: Final = re.compile(r"[A-Za-z0-9_.:/-]+")


def member(path: str, name: str) -> str:
    """Returns the path of a member."""
    if not _PLAIN.fullmatch(name):
        return f"{path}[{json.dumps(name, ensure_ascii=False)}]"
    return f"{path}.{name}" if path else name


def merge_key(*lists: Sequence[Any]) -> Sequence[str] | None:
    """Returns the members that identify each item in all of these lists; None if there are none."""
    used = [one for one in lists if one]
    if not used or not all(isinstance(item, dict) for one in used for item in one):
        return None
    return next((names for names in MERGE_KEYS if all(_identifies(one, names) for one in used)), None)


def _identifies(items: Sequence[Mapping[str, Any]], names: Sequence[str]) -> bool:
    seen = set()
    for item in items:
        values = tuple(item.get(name) for name in names)
        if not all(isinstance(value, str | int | float) for value in values):
            return False
        seen.add(tuple(map(_text, values)))
    return len(seen) == len(items)


def item_name(names: Sequence[str], item: Mapping[str, Any]) -> str:
    """Returns the name of an item within brackets: `[name=web]`."""
    return "[" + ",".join(f"{name}={_quote(_text(item[name]))}" for name in names) + "]"


def item_names(items: Sequence[Any]) -> list[str]:
    """Returns the names of the items of a list, by merge key or position."""
    names = merge_key(items)
    return [f"[{place}]" if names is None else item_name(names, item) for place, item in enumerate(items)]


def _text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, str) else json.dumps(value)


def _quote(text: str) -> str:
    return text if _PLAIN_VALUE.fullmatch(text) else json.dumps(text, ensure_ascii=False)
