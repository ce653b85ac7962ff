"""The events of one bucket in the order of their revisions, the two windows in which a watch can start, and the indexes by
events.

In a real API server the watch cache keeps the last events of each resource regardless of compactions in etcd, and a
resource without a watch cache is watched in etcd, back to the compaction. An event is kept as long as one of the two
windows contains it. Every event has a sequence number, counted within the bucket; a cursor is a sequence number, and a
window is that of its first event.

An `Index` maps the current values of one attribute to keys, so that the cost of a selective read depends on its result. It is
built on first use and costs writes nothing: like a cursor, it reads the events of the bucket before each query. When events that
it has not read were dropped, it is rebuilt. An index has no history. A key that matched a condition at a revision still matches
it or was written since; so the candidates at an old revision are the keys of the index and those of all later events.

Specified by: k8s.io/apiserver/pkg/storage/cacher/watch_cache.go (resizing, oldest event) and etcd's watchable
store. Not thread-safe: `Bucket` holds the lock.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Sequence
from operator import attrgetter
from typing import Generic, NamedTuple, TypeVar

from fakekube.store.timeline import Retention
from fakekube.store.values import VISITED, Event, untrack
from fakekube.store.versions import EVERYTHING, Keys, SortedKeys, Span, Versions

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
        """The revision of the last event; if the history is empty, that at which it was emptied."""
        return self._events[-1].revision if self._events else self.floor

    def all(self) -> Sequence[Event[V]]:
        """Returns all events of the history."""
        return self._events

    def events_at(self, revision: int) -> Sequence[Event[V]]:
        """Returns the events of one revision."""
        start = bisect_left(self._events, revision, key=_revision)
        return self._events[start : bisect_right(self._events, revision, lo=start, key=_revision)]

    def append(self, event: Event[V], retention: Retention) -> None:
        """Appends an event, and drops from the cached window the events that exceed its limits, and their encodings."""
        self._events.append(event)
        if not len(self._events) % VISITED:  # also of a copy, which is visited at first
            untrack(self._events)
        self.end += 1
        while (size := self.end - self._cached) > retention.window_minimum and (
            size > retention.window_maximum or event.time - self._events[self._cached - self._first].time > retention.window_age
        ):
            self._events[self._cached - self._first].encodings.clear()
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


# --- Indexes of records by attributes of their values ----------------------------------------------------------------


#: The maximum number of indexes of a bucket.
_MAXIMUM = 16
#: How many of the conditions of a selection are compared to find the most selective one; each may need an index that is built.
_MAX_CONSIDERED = 8


Attribute = Callable[[V], str | None]
"""Returns an attribute of a value, None if it has none. Equal attributes share an index."""


class Condition(NamedTuple, Generic[V]):
    """Matches the values whose attribute is one of some strings."""

    attribute: Attribute[V]
    admitted: Collection[str]
    """The strings, without duplicates."""


class Index(Generic[V]):
    """The keys of a bucket by one attribute."""

    __slots__ = ("_attribute", "_keys", "_sequence")

    def __init__(self, attribute: Attribute[V]) -> None:
        self._attribute = attribute
        self._keys: dict[str, SortedKeys] = {}
        self._sequence = -1
        """The sequence number of the first event that is not in the index yet."""

    def catch_up(self, versions: Versions[V], history: History[V]) -> None:
        """Applies the new events, or rebuilds the index."""
        events = history.kept_since(self._sequence)
        if events is None or len(events) > len(versions.heads):
            self._build(versions)
        else:
            for event in events:
                self._apply(event)
        self._sequence = history.end

    def _build(self, versions: Versions[V]) -> None:
        keys: dict[str, list[str]] = {}
        for record in versions.current_records(EVERYTHING, 0):
            text = self._attribute(record.value)
            if text is not None:
                keys.setdefault(text, []).append(record.key)
        self._keys = {text: SortedKeys(those) for text, those in keys.items()}

    def _apply(self, event: Event[V]) -> None:
        before = self._attribute(event.previous.value) if event.previous is not None else None
        now = self._attribute(event.record.value) if event.record is not None else None
        if before == now:
            return
        if before is not None:
            self._keys[before].remove(event.key)
            if not self._keys[before]:
                del self._keys[before]
        if now is not None:
            self._keys.setdefault(now, SortedKeys()).add(event.key)

    def count(self, admitted: Collection[str]) -> int:
        """Returns the number of keys with one of these strings."""
        return sum(len(self._keys[text]) for text in admitted if text in self._keys)

    def first_keys(self, admitted: Collection[str], span: Span, limit: int) -> list[str]:
        """Returns the first `limit` keys of a span (0: all) with one of these strings."""
        runs = [self._keys[text].first_keys(span, limit) for text in admitted if text in self._keys]
        if len(runs) == 1:
            return runs[0]
        return sorted(key for run in runs for key in run)[: limit or None]


class Indexes(Generic[V]):
    """The indexes of one bucket by attribute; only the most recently used ones are kept."""

    __slots__ = ("_indexes",)

    def __init__(self) -> None:
        self._indexes: dict[Attribute[V], Index[V]] = {}

    def keys(self, conditions: Sequence[Condition[V]], versions: Versions[V], history: History[V], revision: int | None) -> Keys:
        """Returns a superset of the keys that match the conditions, now (None) or at a revision that is not compacted.

        Now these are the keys that match the most selective condition.
        """
        index, admitted = self._rarest(conditions, versions, history)
        if revision is None:
            return lambda span, limit: index.first_keys(admitted, span, limit)
        then = revision

        def met_then(span: Span, limit: int) -> list[str]:
            return sorted({*index.first_keys(admitted, span, limit), *history.keys_since(span, then)})[: limit or None]

        return met_then

    def _rarest(
        self, conditions: Sequence[Condition[V]], versions: Versions[V], history: History[V]
    ) -> tuple[Index[V], Collection[str]]:
        considered = conditions[:_MAX_CONSIDERED]
        found = [(self._current(one.attribute, versions, history), one.admitted) for one in considered]
        return min(found, key=lambda one: one[0].count(one[1]))

    def _current(self, attribute: Attribute[V], versions: Versions[V], history: History[V]) -> Index[V]:
        index = self._indexes.pop(attribute, None) or Index(attribute)
        index.catch_up(versions, history)
        self._indexes[attribute] = index
        if len(self._indexes) > _MAXIMUM:
            del self._indexes[next(iter(self._indexes))]
        return index
