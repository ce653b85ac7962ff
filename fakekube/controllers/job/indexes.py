"""Completion indexes of Indexed Jobs, as sorted intervals ("1,3-5,7").

Invariant: intervals are sorted, do not overlap and do not touch.

Specified by: pkg/controller/job/indexed_job_utils.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fakekube.controllers.objects import Object

__all__ = ["COMPLETION_INDEX", "OrderedIntervals", "first_pending_indexes", "get_completion_index", "parse_indexes"]


#: The annotation and the label of the pods of an Indexed Job.
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"


@dataclass(slots=True, frozen=True)
class OrderedIntervals:
    """A set of indexes."""

    items: tuple[tuple[int, int], ...] = ()
    """The first and the last index of each interval."""

    @classmethod
    def of(cls, indexes: Iterable[int]) -> OrderedIntervals:
        """Returns the set of these indexes, which may have any order."""
        return cls().merge(cls(tuple((index, index) for index in sorted(indexes))))

    def merge(self, other: OrderedIntervals) -> OrderedIntervals:
        """Returns the union."""
        merged: list[tuple[int, int]] = []
        for first, last in sorted(self.items + other.items):
            if merged and first <= merged[-1][1] + 1:
                merged[-1] = merged[-1][0], max(merged[-1][1], last)
            else:
                merged.append((first, last))
        return OrderedIntervals(tuple(merged))

    def total(self) -> int:
        """Returns the number of indexes."""
        return sum(last - first + 1 for first, last in self.items)

    def overlap(self, other: OrderedIntervals) -> int:
        """Returns the number of indexes that are in both sets."""
        return sum(max(min(last, end) - max(first, start) + 1, 0) for first, last in self.items for start, end in other.items)

    def __contains__(self, index: int) -> bool:
        return any(first <= index <= last for first, last in self.items)

    def __bool__(self) -> bool:
        return bool(self.items)

    def __str__(self) -> str:
        """Formats the set. Two consecutive indexes are written as two numbers, more as a range."""
        return ",".join(
            str(first) if first == last else f"{first}{',' if last == first + 1 else '-'}{last}" for first, last in self.items
        )


def parse_indexes(text: str, completions: int) -> OrderedIntervals:
    """Parses a list of indexes below `completions`; malformed parts are skipped."""
    found = []
    for part in text.split(",") if text else ():
        limits = part.split("-")
        try:
            first, last = int(limits[0]), int(limits[1] if len(limits) > 1 else limits[0])
        except ValueError:
            continue
        if first >= completions:
            break
        found.append((first, min(last, completions - 1)))
    return OrderedIntervals().merge(OrderedIntervals(tuple(found)))


def get_completion_index(pod: Object) -> int:
    """Returns the completion index in the pod's annotation; -1 if there is none."""
    text = (pod["metadata"].get("annotations") or {}).get(COMPLETION_INDEX, "")
    digits = text.removeprefix("+")
    return int(digits) if digits.isascii() and digits.isdigit() else -1


def first_pending_indexes(taken: OrderedIntervals, count: int, completions: int) -> list[int]:
    """Returns the lowest indexes that are not taken, at most `count`."""
    found: list[int] = []
    candidate = 0
    for first, last in (*taken.items, (completions, completions)):
        found += range(candidate, min(first, completions, candidate + count - len(found)))
        candidate = max(candidate, last + 1)
        if len(found) >= count:
            break
    return found
