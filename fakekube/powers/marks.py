"""The marks of a cluster: what a person, a test or the cluster did outside of the Kubernetes API.

Faults that were armed, a clock that was moved, snapshots, restarts, the phases of a test, and the texts of `Cluster.mark`.

Invariant: the latest `KEPT` marks are kept; a text has at most `MAX_TEXT` characters.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fakekube.powers.columns import Table, revision_value

if TYPE_CHECKING:
    from fakekube.base.clock import Reading


KEPT: Final = 10_000
MAX_TEXT: Final = 1_000

MARKS: Final = ("number", "after", "revision", "began", "time", "kind*", "text*")


class Mark(NamedTuple):
    """One mark."""

    number: int
    after: int
    """The number of the newest request; -1 if there was none."""
    revision: int
    """Of the cluster."""
    began: float
    """Real seconds, as `time.monotonic`."""
    time: float
    """Seconds since the epoch by the clock of the cluster."""
    kind: str
    """`mark`, `phase`, `fault`, `clock`, `snapshot`, `restore`, `reset`, `load`, `compaction`, `restart` or `outage`."""
    text: str


class Marks:
    """The marks of one cluster.

    Args:
        now: returns the newest request, the revision, and the time of the clock.
    """

    def __init__(self, now: Callable[[], tuple[int, int, float]]) -> None:
        self._now = now
        self._marks: deque[Mark] = deque(maxlen=KEPT)
        self._next = itertools.count(1).__next__
        self.newest = 0

    def add(self, kind: str, text: str) -> Mark:
        """Adds a mark at the present place."""
        after, revision, now = self._now()
        mark = Mark(self._next(), after, revision, time.monotonic(), now, kind, text[:MAX_TEXT])
        self._marks.append(mark)
        self.newest = mark.number
        return mark

    def since(self, number: int = 0) -> list[Mark]:
        """Returns the marks after a number, oldest first."""
        while True:
            try:
                return [mark for mark in self._marks if mark.number > number]
            except RuntimeError:  # another thread has added one
                continue

    def rows(self, since: int = 0, start: float = 0.0) -> dict[str, Any]:
        """Returns the marks after a number as columns; `start` is the time from which `began` counts."""
        table, found = Table(MARKS), self.since(since)
        for mark in found:
            began = round((mark.began - start) * 1000, 1)
            table.add(mark.number, mark.after, revision_value(mark.revision), began, round(mark.time, 3), mark.kind, mark.text)
        kept = self.since()
        return table.data(
            next=found[-1].number if found else since, more=False, oldest=kept[0].number if kept else self.newest + 1
        )


def describe_move(before: Reading, after: Reading) -> str:
    """Returns what was done to a clock, from its readings; "" if nothing was."""
    if before.held is not after.held:
        return "held" if after.held else "released"
    if before.factor != after.factor:
        return f"runs {after.factor:g} times as fast"
    moved = (after.now - before.now if after.held else after.offset - before.offset).total_seconds()
    return f"advanced by {format_duration(moved)}" if abs(moved) >= _LEAST else ""


#: Seconds; a smaller difference is one of the arithmetic of floats.
_LEAST: Final = 0.0005
_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "m"))


def format_duration(seconds: float) -> str:
    """Returns a duration as people read it: `1h 30m`, `12.5s`."""
    parts, rest = [], round(seconds, 3)
    for size, unit in _UNITS:
        if rest >= size:
            parts.append(f"{int(rest // size)}{unit}")
            rest = round(rest % size, 3)
    if rest or not parts:
        parts.append(f"{rest:g}s")
    return " ".join(parts)
