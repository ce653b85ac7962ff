"""Completion indexes, sorted intervals such as "1,3-5,7", and the successPolicy, which names some of them.

Invariant: intervals are sorted, do not overlap and do not touch.

Specified by: pkg/controller/job/{indexed_job_utils,success_policy}.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from fakekube.base.golang.strconv import parse_int
from fakekube.base.objects import Object

#: The annotation and the label of the pods of an Indexed Job.
COMPLETION_INDEX: Final = "batch.kubernetes.io/job-completion-index"


@dataclass(slots=True, frozen=True)
class OrderedIntervals:
    """A set of indexes, which are not negative."""

    items: tuple[tuple[int, int], ...] = ()
    """The first and the last index of each interval."""

    @classmethod
    def from_indexes(cls, indexes: Iterable[int]) -> OrderedIntervals:
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
            first, last = parse_int(limits[0]), parse_int(limits[1] if len(limits) > 1 else limits[0])
        except ValueError:
            continue
        if first >= completions:
            break
        found.append((first, min(last, completions - 1)))
    return OrderedIntervals().merge(OrderedIntervals(tuple(found)))


def get_completion_index(pod: Object) -> int:
    """Returns the completion index in the pod's annotation; -1 if there is none."""
    text = (pod["metadata"].get("annotations") or {}).get(COMPLETION_INDEX, "")
    try:
        return max(parse_int(text), -1)
    except ValueError:
        return -1


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


def match_success_policy(job: Object, succeeded: OrderedIntervals) -> str | None:
    """Returns the message about the rule of the successPolicy that is met; None if none is (matchSuccessPolicy)."""
    if not succeeded:
        return None
    policy = job["spec"].get("successPolicy") or {}
    for index, rule in enumerate(policy.get("rules") or ()):
        if _is_rule_met(rule, succeeded, job["spec"]["completions"]):
            return f"Matched rules at index {index}"
    return None


def _is_rule_met(rule: Object, succeeded: OrderedIntervals, completions: int) -> bool:
    """Reports whether a rule is met: enough of its indexes, by default all, have succeeded (matchSucceededIndexesRule)."""
    count = rule.get("succeededCount")
    if rule.get("succeededIndexes") is None:
        return count is not None and succeeded.total() >= count
    required = parse_indexes(rule["succeededIndexes"], completions)
    if not required:
        return False
    done = required.overlap(succeeded)
    return done == required.total() or (count is not None and done >= count)
