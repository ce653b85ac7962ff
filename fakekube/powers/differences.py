"""Paths of fields, and the differences of two versions of an object: paths with their old and new values.

    spec.replicas   metadata.labels["app.kubernetes.io/name"]   spec.containers[name=web].image   args[2]

An item of a list is named by its merge key if all items of the list have that key with different values, else by its position.

Members are compared one by one; items of lists are matched by their merge key, or by position if the lists are equally long; else
the whole list differs. A member that is missing on one side is one difference with its whole value. The page computes the same
(page/static/paths.js, diff.js), so that a path means the same in a row, in a finding and in an address.

Invariant: applying the differences to the old version results in the new one, except for the places of new items in a list with a
merge key.

Specified by: k8s.io/api (patchMergeKey, listMapKey) for the keys of lists.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

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


#: Paths that change with every write, or that record who wrote.
_ASSIGNED: Final = ("metadata.managedFields", "metadata.resourceVersion", "metadata.generation")

#: In place of a value that is missing; null is a value.
ABSENT: Final = object()


class Difference(NamedTuple):
    """One path whose value differs."""

    path: str
    old: Any
    """`ABSENT` if there was no value."""
    new: Any
    """`ABSENT` if there is no value."""

    def data(self) -> dict[str, Any]:
        """Returns the difference as plain data; the member of a missing value is left out."""
        return {name: value for name, value in self._asdict().items() if value is not ABSENT}


def differences(old: Any, new: Any) -> Iterator[Difference]:
    """Returns the differences of two values, in the order of the fields."""
    return _differ(old, new, "")


def paths(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> list[str]:
    """Returns the paths that an update changed, without those that every write changes; none for a creation or deletion."""
    if old is None or new is None:
        return []
    return [one.path for one in differences(old, new) if not is_assigned(one.path)]


def is_assigned(path: str) -> bool:
    """Reports whether every write changes this path, or it says who wrote."""
    return path.startswith(_ASSIGNED) and any(path == one or path[len(one) : len(one) + 1] in (".", "[") for one in _ASSIGNED)


def _differ(old: Any, new: Any, path: str) -> Iterator[Difference]:
    if old is new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for name in {**old, **new}:
            yield from _differ(old.get(name, ABSENT), new.get(name, ABSENT), member(path, name))
    elif isinstance(old, list) and isinstance(new, list):
        yield from _differ_lists(old, new, path)
    elif old != new or isinstance(old, bool) is not isinstance(new, bool):
        yield Difference(path, old, new)


def _differ_lists(old: Sequence[Any], new: Sequence[Any], path: str) -> Iterator[Difference]:
    names = merge_key(old, new) if old and new else None
    if names is not None:
        before, after = ({item_name(names, item): item for item in items} for items in (old, new))
        if [name for name in before if name in after] != [name for name in after if name in before]:
            yield Difference(path, old, new)  # the common items have another order
            return
        for name in {**before, **after}:
            yield from _differ(before.get(name, ABSENT), after.get(name, ABSENT), path + name)
    elif len(old) == len(new):
        for place, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _differ(one, other, f"{path}[{place}]")
    else:
        yield Difference(path, old, new)
