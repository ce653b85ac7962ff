"""Completion indexes of Indexed Jobs, as sorted intervals ("1,3-5,7").

Invariant: intervals are sorted, do not overlap and do not touch.

Specified by: pkg/controller/job/indexed_job_utils.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

__all__ = ["COMPLETION_INDEX", "Intervals", "completion_index", "first_pending", "parse_indexes"]

Object = dict[str, Any]

COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
"""Annotation and label of the pods of an Indexed Job."""


@dataclass(slots=True, frozen=True)
class Intervals:
    """A set of indexes."""

    items: tuple[tuple[int, int], ...] = ()
    """First and last index of each interval."""

    @classmethod
    def of(cls, indexes: Iterable[int]) -> Intervals:
        """The set of these indexes, in any order."""
        return cls().merge(cls(tuple((index, index) for index in sorted(indexes))))

    def merge(self, other: Intervals) -> Intervals:
        """The indexes of both."""
        merged: list[tuple[int, int]] = []
        for first, last in sorted(self.items + other.items):
            if merged and first <= merged[-1][1] + 1:
                merged[-1] = merged[-1][0], max(merged[-1][1], last)
            else:
                merged.append((first, last))
        return Intervals(tuple(merged))

    def total(self) -> int:
        """How many indexes there are."""
        return sum(last - first + 1 for first, last in self.items)

    def overlap(self, other: Intervals) -> int:
        """How many indexes are in both."""
        return sum(max(min(last, end) - max(first, start) + 1, 0) for first, last in self.items for start, end in other.items)

    def __contains__(self, index: int) -> bool:
        return any(first <= index <= last for first, last in self.items)

    def __bool__(self) -> bool:
        return bool(self.items)

    def __str__(self) -> str:
        """Two neighbours are written as two numbers, more as a range."""
        return ",".join(
            str(first) if first == last else f"{first}{',' if last == first + 1 else '-'}{last}" for first, last in self.items
        )


def parse_indexes(text: str, completions: int) -> Intervals:
    """The indexes that a text lists, below `completions`; malformed parts are skipped."""
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
    return Intervals().merge(Intervals(tuple(found)))


def completion_index(pod: Object) -> int:
    """The index that the pod's annotation tells; -1 if there is none."""
    text = (pod["metadata"].get("annotations") or {}).get(COMPLETION_INDEX, "")
    digits = text.removeprefix("+")
    return int(digits) if digits.isascii() and digits.isdigit() else -1


def first_pending(taken: Intervals, count: int, completions: int) -> list[int]:
    """The lowest indexes that are not taken, at most `count`."""
    found: list[int] = []
    candidate = 0
    for first, last in (*taken.items, (completions, completions)):
        found += range(candidate, min(first, completions, candidate + count - len(found)))
        candidate = max(candidate, last + 1)
        if len(found) >= count:
            break
    return found
