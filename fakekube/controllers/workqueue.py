"""The work queue of the controllers of a cluster: items to process now, and items to process at a later time.

Invariant: an item is queued at most once. Times are those of the cluster's clock; of several times for one item the earliest
counts. Failures of one item in a row delay it by 5 ms, 10 ms, 20 ms … up to 1,000 s.

Specified by: k8s.io/client-go/util/workqueue (delaying_queue.go, default_rate_limiters.go, rate_limiting_queue.go).
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Iterator
from typing import Final, Generic, TypeVar

__all__ = ["WorkQueue"]

T = TypeVar("T")

#: Seconds.
BASE_DELAY: Final = 0.005
MAX_DELAY: Final = 1000.0


class WorkQueue(Generic[T]):
    """A delaying, rate-limiting queue. It is not thread-safe; all times are seconds of the clock."""

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
        """Iterates over the items to process now, in order."""
        return iter(list(self._ready))

    def add(self, item: T) -> None:
        """Appends an item, unless it is queued already."""
        if item not in self._queued:
            self._queued.add(item)
            self._ready.append(item)

    def add_at(self, item: T, due: float) -> None:
        """Adds an item at a time, or earlier if it is added earlier by another call."""
        known = self._due.get(item)
        if known is None or due < known:
            self._due[item] = due
            heapq.heappush(self._waiting, (due, next(self._order), item))

    def get(self) -> T | None:
        """Removes and returns the next item; None if there is none."""
        if not self._ready:
            return None
        item = self._ready.popleft()
        self._queued.discard(item)
        return item

    def add_due(self, now: float) -> None:
        """Appends the delayed items whose time has come."""
        while self._waiting and self._waiting[0][0] <= now:
            due, _, item = heapq.heappop(self._waiting)
            if self._due.get(item) == due:
                del self._due[item]
                self.add(item)

    @property
    def next_due(self) -> float | None:
        """The time of the next delayed item; None if there is none."""
        while self._waiting and self._due.get(self._waiting[0][2]) != self._waiting[0][0]:
            heapq.heappop(self._waiting)  # superseded by an earlier time
        return self._waiting[0][0] if self._waiting else None

    def due_until(self, time: float) -> list[T]:
        """Returns the delayed items whose time comes until then."""
        return [item for item, due in self._due.items() if due <= time]

    def waiting(self) -> list[tuple[float, T]]:
        """Returns the delayed items with their times, the next one first."""
        return sorted(((due, item) for item, due in list(self._due.items())), key=lambda one: one[0])

    def when(self, item: T) -> float:
        """Counts a failure of the item, and returns the seconds after which to retry it (RateLimiter.When)."""
        failures = self._failures.get(item, 0)
        self._failures[item] = failures + 1
        return min(BASE_DELAY * 2.0 ** min(failures, 32), MAX_DELAY)

    def num_requeues(self, item: T) -> int:
        """Returns how often the item has failed in a row (RateLimiter.NumRequeues)."""
        return self._failures.get(item, 0)

    def forget(self, item: T) -> None:
        """Resets the failures of an item (RateLimiter.Forget)."""
        self._failures.pop(item, None)
