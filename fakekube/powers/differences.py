"""The differences of two versions of an object: paths (`field_paths`) with their old and new values.

Members are compared one by one; items of lists are matched by their merge key, or by position if the lists are equally long; else
the whole list differs. A member that is missing on one side is one difference with its whole value. The page computes the same
(page/static/diff.js).

Invariant: applying the differences to the old version results in the new one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from fakekube.powers.field_paths import item_name, member, merge_key

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
