"""The events of one bucket in the order of their revisions, and the two windows in which a watch can start.

In a real API server the watch cache keeps the last events of each resource regardless of compactions in etcd, and a
resource without a watch cache is watched in etcd, back to the compaction. An event is kept as long as one of the two
windows contains it. Every event has a sequence number, counted within the bucket; a cursor is a sequence number, and a
window is that of its first event.

Specified by: k8s.io/apiserver/pkg/storage/cacher/watch_cache.go (resizing, oldest event) and etcd's watchable
store. Not thread-safe: `Bucket` holds the lock.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import Generic, TypeVar

from fakekube.store.timeline import Retention
from fakekube.store.values import Event
from fakekube.store.versions import Span

V = TypeVar("V")

_revision = attrgetter("revision")

#: The minimum number of dropped events that are removed from the list at once, so that dropping one is amortized O(1).
_BATCH = 64


class History(Generic[V]):
    """The recent events of one bucket."""

    __slots__ = ("_cached", "_events", "_first", "_uncached", "end", "floor")

    def __init__(self, floor: int, first: int = 0) -> None:
        self._events: list[Event[V]] = []
        self._first = first
        """The sequence number of the first event in the list."""
        self.end = first
        """The sequence number of the next event."""
        self._cached = self._uncached = first
        """The sequence numbers at which the windows begin."""
        self.floor = floor
        """The oldest revision after which the cached window contains every event."""

    def copy(self) -> History[V]:
        """Returns an independent copy."""
        twin: History[V] = History(self.floor, self._first)
        twin._events = self._events.copy()
        twin.end = self.end
        twin._cached, twin._uncached = self._cached, self._uncached
        return twin

    @property
    def newest(self) -> int:
        """Returns the revision of the last event; if the history is empty, that at which it was emptied."""
        return self._events[-1].revision if self._events else self.floor

    def all(self) -> Sequence[Event[V]]:
        """Returns all events of the history."""
        return self._events

    def append(self, event: Event[V], retention: Retention) -> None:
        """Appends an event, and drops from the cached window the events that exceed its limits."""
        self._events.append(event)
        self.end += 1
        while (size := self.end - self._cached) > retention.window_minimum and (
            size > retention.window_maximum or event.time - self._events[self._cached - self._first].time > retention.window_age
        ):
            self._cached += 1
            self.floor = self._events[self._cached - self._first].revision - 1
        if min(self._cached, self._uncached) - self._first >= max(_BATCH, len(self._events) // 2):
            self._let_go()

    def has_before(self, revision: int) -> bool:
        """Reports whether `compact` would remove an event from the uncached window."""
        return self._uncached < self.end and self._events[self._uncached - self._first].revision <= revision

    def compact(self, revision: int) -> Sequence[Event[V]]:
        """Moves the start of the uncached window to the event at `revision`.

        Returns the events up to and including that revision which were in the window before.
        """
        start = self._uncached - self._first
        passed = self._events[start : bisect_right(self._events, revision, lo=start, key=_revision)]
        self._uncached = self._first + bisect_left(self._events, revision, lo=start, key=_revision)
        self._let_go()
        return passed

    def growth(self, span: Span, revision: int) -> int:
        """Returns the number of keys of a span that were created after a revision, minus the number of deleted ones."""
        first, end = span
        growth = 0
        for event in self._events[bisect_right(self._events, revision, key=_revision) :]:
            if first <= event.key and (end is None or event.key < end):
                growth += (event.record is not None) - (event.previous is not None)
        return growth

    def forget(self, revision: int) -> None:
        """Empties the cached window; it starts at `revision`."""
        self._cached = self.end
        self.floor = revision
        self._let_go()

    def sequence_after(self, revision: int) -> int:
        """Returns the sequence number of the first event after a revision, which must not precede the windows."""
        return self._first + bisect_right(self._events, revision, key=_revision)

    def since(self, sequence: int, limit: int, *, cached: bool) -> list[Event[V]] | None:
        """Returns at most `limit` events (0: all) from a sequence number on; None if the window starts later."""
        if sequence < (self._cached if cached else self._uncached):
            return None
        place = sequence - self._first
        return self._events[place : place + limit] if limit > 0 else self._events[place:]

    def kept_since(self, sequence: int) -> Sequence[Event[V]] | None:
        """Returns all events from a sequence number on, regardless of the windows; None if one of them was dropped."""
        return self._events[sequence - self._first :] if sequence >= self._first else None

    def keys_since(self, span: Span, revision: int) -> set[str]:
        """Returns the keys of a span that were written after a revision."""
        first, end = span
        later = self._events[bisect_right(self._events, revision, key=_revision) :]
        return {event.key for event in later if first <= event.key and (end is None or event.key < end)}

    def _let_go(self) -> None:
        start = min(self._cached, self._uncached)
        del self._events[: start - self._first]
        self._first = start
