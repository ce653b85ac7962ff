"""What is to be done now, and what is to be done later: one queue for all controllers of a cluster.

An item is in the queue at most once. Items that wait do so by the cluster's clock; an item that is asked for earlier
than it waited for comes then. Failures of one item in a row make it wait 5 ms, 10 ms, 20 ms … up to 1,000 s.

Specified by: k8s.io/client-go/util/workqueue (delaying_queue.go, default_rate_limiters.go).
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

__all__ = ["WorkQueue"]

T = TypeVar("T")

BASE_DELAY = 0.005
MAX_DELAY = 1000.0


class WorkQueue(Generic[T]):
    """See the module. Not thread-safe; times are seconds of the clock."""

    def __init__(self) -> None:
        self._ready: deque[T] = deque()
        self._queued: set[T] = set()
        self._waiting: list[tuple[float, int, T]] = []
        self._due: dict[T, float] = {}
        self._order = itertools.count()
        self._failures: dict[T, int] = {}

    def __len__(self) -> int:
        return len(self._ready)

    def __iter__(self) -> Iterator[T]:
        """What is to be done now, in order."""
        return iter(list(self._ready))

    def add(self, item: T) -> None:
        """Do it now, after what is there."""
        if item not in self._queued:
            self._queued.add(item)
            self._ready.append(item)

    def add_at(self, item: T, due: float) -> None:
        """Do it at a time, or earlier if it is asked for earlier."""
        known = self._due.get(item)
        if known is None or due < known:
            self._due[item] = due
            heapq.heappush(self._waiting, (due, next(self._order), item))

    def take(self) -> T | None:
        """The next item, or None."""
        if not self._ready:
            return None
        item = self._ready.popleft()
        self._queued.discard(item)
        return item

    def ripen(self, now: float) -> None:
        """Queue what is due."""
        while self._waiting and self._waiting[0][0] <= now:
            due, _, item = heapq.heappop(self._waiting)
            if self._due.get(item) == due:
                del self._due[item]
                self.add(item)

    @property
    def next_due(self) -> float | None:
        """When the next waiting item is due; None if none waits."""
        while self._waiting and self._due.get(self._waiting[0][2]) != self._waiting[0][0]:
            heapq.heappop(self._waiting)  # it was asked for earlier
        return self._waiting[0][0] if self._waiting else None

    def due_until(self, time: float) -> list[T]:
        """The items that wait, and are due until then."""
        return [item for item, due in self._due.items() if due <= time]

    def failed(self, item: T) -> float:
        """Count a failure; returns the seconds after which the item is to be tried again."""
        failures = self._failures.get(item, 0)
        self._failures[item] = failures + 1
        return min(BASE_DELAY * 2.0 ** min(failures, 32), MAX_DELAY)

    def failures(self, item: T) -> int:
        """How often the item has failed in a row."""
        return self._failures.get(item, 0)

    def succeeded(self, item: T) -> None:
        """Forget the failures of an item."""
        self._failures.pop(item, None)
