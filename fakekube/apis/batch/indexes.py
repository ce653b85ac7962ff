"""Indexes of indexed jobs, written as intervals (`1,3-5,7`).

Specified by: validateIndexesFormat and the functions next to it in pkg/apis/batch/validation/validation.go.
"""

from __future__ import annotations

import re

from fakekube.base.golang.strconv import go_quote

__all__ = ["IntervalError", "count_indexes", "overlap"]


class IntervalError(ValueError):
    """A text is not a list of intervals; the error text says why."""


_integer_matches = re.compile("[+-]?[0-9]+").fullmatch


def _index(text: str, completions: int) -> int:
    if not _integer_matches(text):
        raise IntervalError(f"cannot convert string to integer for index: {go_quote(text)}")
    if int(text) >= completions:
        raise IntervalError(f"too large index: {go_quote(text)}")
    return int(text)


def _interval(text: str, completions: int) -> tuple[int, int]:
    parts = text.split("-")
    if len(parts) > 2:
        rule = "violates the requirement that an index interval can have at most two parts separated by '-'"
        raise IntervalError(f"the fragment {go_quote(text)} {rule}")
    first = _index(parts[0], completions)
    last = _index(parts[1], completions) if len(parts) > 1 else first
    if len(parts) > 1 and first >= last:
        raise IntervalError(f"non-increasing order, previous: {first}, current: {last}")
    return first, last


def count_indexes(text: str, completions: int) -> int:
    """Returns the number of indexes of these intervals. Raises IntervalError."""
    total = 0
    previous: int | None = None
    for part in text.split(",") if text else ():
        first, last = _interval(part, completions)
        if previous is not None and previous >= first:
            raise IntervalError(f"non-increasing order, previous: {previous}, current: {first}")
        total += last - first + 1
        previous = last
    return total


def overlap(completed: str, failed: str, completions: int) -> int | None:
    """Returns the first index that both texts contain; invalid intervals are skipped."""
    done, lost = _parse_valid_intervals(completed, completions), _parse_valid_intervals(failed, completions)
    while done and lost:
        if done[0][0] <= lost[0][1] and lost[0][0] <= done[0][1]:
            return max(done[0][0], lost[0][0])
        (done if done[0][0] <= lost[0][0] else lost).pop(0)
    return None


def _parse_valid_intervals(text: str, completions: int) -> list[tuple[int, int]]:
    found = []
    for part in text.split(",") if text else ():
        try:
            found.append(_interval(part, completions))
        except IntervalError:
            continue
    return found
