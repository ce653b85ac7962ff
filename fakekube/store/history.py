"""The events of one bucket in the order of their revisions, and the windows in which a watch may start.

A real API server has two: its watch cache keeps the last events of each resource whatever etcd forgets, and a
resource without a cache is watched in etcd itself, back to the compaction. Events stay here as long as either
window holds them. Every event has a sequence number, counted up within the bucket; a cursor is one, and a
window is its first one.

Specified by: k8s.io/apiserver/pkg/storage/cacher/watch_cache.go (resizing, oldest event) and etcd's watchable
store. Not thread-safe: `Bucket` holds the lock.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import islice
from operator import attrgetter
from typing import Generic, TypeVar

from fakekube.store.timeline import Retention
from fakekube.store.values import Compacted, Event
from fakekube.store.versions import Span

__all__ = ["History"]

V = TypeVar("V")

_revision = attrgetter("revision")

#: Dropped events are let go of in batches of at least as many, so that dropping one costs O(1).
_BATCH = 64


class History(Generic[V]):
    """The recent events of one bucket."""

    __slots__ = ("_cached", "_cached_floor", "_events", "_first", "_uncached", "_uncached_floor", "end")

    def __init__(self, floor: int, first: int = 0) -> None:
        self._events: list[Event[V]] = []
        self._first = first
        """The sequence number of the first event in the list."""
        self.end = first
        """The sequence number of the next event."""
        self._cached = self._uncached = first
        """The sequence numbers at which the windows begin."""
        self._cached_floor = self._uncached_floor = floor
        """The oldest revisions after which the windows know every event."""

    def copy(self) -> History[V]:
        """An independent twin."""
        twin: History[V] = History(self._cached_floor, self._first)
        twin._events = self._events.copy()
        twin.end = self.end
        twin._cached, twin._uncached = self._cached, self._uncached
        twin._uncached_floor = self._uncached_floor
        return twin

    def append(self, event: Event[V], retention: Retention) -> None:
        """Add an event, and let the cached window drop what its limits no longer allow."""
        self._events.append(event)
        self.end += 1
        while (size := self.end - self._cached) > retention.window_minimum and (
            size > retention.window_maximum
            or event.time - self._events[self._cached - self._first].time > retention.window_age
        ):
            self._cached += 1
            self._cached_floor = self._events[self._cached - self._first].revision - 1
        if min(self._cached, self._uncached) - self._first >= max(_BATCH, len(self._events) // 2):
            self._let_go()

    def compact(self, revision: int) -> Sequence[Event[V]]:
        """Begin the uncached window at `revision`, the event of which it keeps.

        Returns the events up to and with that revision which were in the window before.
        """
        start = self._uncached - self._first
        passed = self._events[start : bisect_right(self._events, revision, lo=start, key=_revision)]
        self._uncached = self._first + bisect_left(self._events, revision, lo=start, key=_revision)
        self._uncached_floor = revision - 1
        self._let_go()
        return passed

    def uncompacted(self, revision: int) -> bool:
        """Would `compact` change anything but numbers?"""
        return bool(self._events) and self._uncached_floor < revision - 1

    def growth(self, span: Span, revision: int) -> int:
        """How many keys of a span came into being after a revision, less those that ceased to be."""
        first, end = span
        growth = 0
        for event in islice(self._events, bisect_right(self._events, revision, key=_revision), None):
            if first <= event.key and (end is None or event.key < end):
                growth += (event.record is not None) - (event.previous is not None)
        return growth

    def forget(self, revision: int) -> None:
        """Begin the cached window anew, now, at `revision`."""
        self._cached = self.end
        self._cached_floor = revision
        self._let_go()

    def sequence_after(self, revision: int, *, cached: bool) -> int:
        """The sequence number of the first event after a revision. Raises Compacted if the window begins
        later.
        """
        start, floor = self._window(cached)
        if revision < floor:
            raise Compacted(floor)
        return self._first + bisect_right(self._events, revision, lo=start - self._first, key=_revision)

    def since(self, sequence: int, limit: int, *, cached: bool) -> list[Event[V]]:
        """At most `limit` events (0: all) from a sequence number on. Raises Compacted if the window begins
        later.
        """
        start, floor = self._window(cached)
        if sequence < start:
            raise Compacted(floor)
        place = sequence - self._first
        return self._events[place : place + limit] if limit > 0 else self._events[place:]

    def _window(self, cached: bool) -> tuple[int, int]:
        return (self._cached, self._cached_floor) if cached else (self._uncached, self._uncached_floor)

    def _let_go(self) -> None:
        start = min(self._cached, self._uncached)
        del self._events[: start - self._first]
        self._first = start
