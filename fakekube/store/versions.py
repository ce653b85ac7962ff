"""The records of the keys of one bucket, now and at every revision that is not compacted.

The current state is a dictionary of heads and a sorted set of their keys. The past is an undo log for each key: the events
that replaced a record, oldest first. The record of a key at a revision is the one that the first later event replaced, or
the head if there is no later event. A deleted key stays in a second sorted set, `gone`, as long as it has an undo log.

So the cost of a page is proportional to its size; at an old revision, also to the number of keys in its range that were
created or deleted since. Not thread-safe: `Bucket` holds the lock.

What a large bucket holds is not visited by the cyclic collector (`values.untrack`), nor are its own large containers.

The keys of a `SortedKeys` are in chunks of bounded size, so that an insertion moves only the rest of one chunk. `_lasts` has the
last key of each chunk: a bisection of it finds the chunk, a bisection of the chunk the position. No chunk is empty. Counts use
the cumulative sizes of the chunks, which are computed on the first count after a change.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from operator import attrgetter
from typing import Final, Generic, TypeVar

from fakekube.store.values import VISITED, Event, Record, untrack

# --- A sorted set of keys with fast writes ----------------------------------------------------------------------------


#: A range of keys: the start (inclusive) and the end (exclusive; None: no end).
Span = tuple[str, str | None]

EVERYTHING: Final[Span] = ("", None)

#: The maximum number of keys in a chunk; a larger one is split in two.
_MAXIMUM = 1024


class SortedKeys:
    """A sorted set of keys. Not thread-safe."""

    __slots__ = ("_chunks", "_lasts", "_offsets")

    def __init__(self, keys: Sequence[str] = ()) -> None:
        """`keys` must be sorted."""
        half = _MAXIMUM // 2
        self._chunks: list[list[str]] = [[*keys[start : start + half]] for start in range(0, len(keys), half)]
        self._lasts: list[str] = [chunk[-1] for chunk in self._chunks]
        self._offsets: list[int] = []
        """The number of keys before each chunk, and the total; empty after a change."""

    def copy(self) -> SortedKeys:
        """Returns an independent copy."""
        twin = SortedKeys()
        twin._chunks = [chunk.copy() for chunk in self._chunks]
        twin._lasts = self._lasts.copy()
        twin._offsets = self._offsets.copy()
        return twin

    def add(self, key: str) -> None:
        """Adds a key that is not in the set."""
        lasts, chunks = self._lasts, self._chunks
        self._offsets = []
        place = bisect_left(lasts, key)
        if place < len(lasts):
            insort(chunks[place], key)
        elif chunks:
            place -= 1
            chunks[place].append(key)
            lasts[place] = key
        else:
            chunks.append([key])
            lasts.append(key)
        if len(chunks[place]) > _MAXIMUM:
            self._split(place)

    def _split(self, place: int) -> None:
        chunk = self._chunks[place]
        middle = len(chunk) // 2
        self._chunks.insert(place + 1, chunk[middle:])
        self._lasts.insert(place, chunk[middle - 1])
        del chunk[middle:]
        untrack(chunk, self._chunks[place + 1])

    def remove(self, key: str) -> None:
        """Removes a key that is in the set."""
        self._offsets = []
        place = bisect_left(self._lasts, key)
        chunk = self._chunks[place]
        del chunk[bisect_left(chunk, key)]
        if not chunk:
            del self._chunks[place], self._lasts[place]
        else:
            self._lasts[place] = chunk[-1]

    def __len__(self) -> int:
        return self._offset(len(self._chunks))

    def count(self, span: Span) -> int:
        """Returns the number of keys in a span."""
        first, end = span
        before = self._rank(first) if first else 0
        return max(0, (self._rank(end) if end is not None else self._offset(len(self._chunks))) - before)

    def _rank(self, key: str) -> int:
        """Returns the number of keys before a key."""
        place = bisect_left(self._lasts, key)
        inside = bisect_left(self._chunks[place], key) if place < len(self._chunks) else 0
        return self._offset(place) + inside

    def _offset(self, place: int) -> int:
        if not self._offsets:
            self._offsets = [0, *accumulate(map(len, self._chunks))]
        return self._offsets[place]

    def first_keys(self, span: Span, limit: int) -> list[str]:
        """Returns the first `limit` keys of a span (0: all)."""
        keys: list[str] = []
        for run in self._runs(span):
            keys += run[: limit - len(keys)] if limit else run
            if limit and len(keys) >= limit:
                break
        return keys

    def _runs(self, span: Span) -> Iterator[list[str]]:
        """Yields the keys of a span, one list for each chunk."""
        first, end = span
        start = bisect_left(self._lasts, first)
        for place in range(start, len(self._chunks)):
            chunk = self._chunks[place]
            low = bisect_left(chunk, first) if place == start else 0
            if end is not None and self._lasts[place] >= end:
                yield chunk[low : bisect_left(chunk, end, lo=low)]
                return
            yield chunk[low:]


V = TypeVar("V")

Keys = Callable[[Span, int], list[str]]
"""Returns the first `limit` keys (0: all) of a span, sorted."""

_revision = attrgetter("revision")

#: The minimum number of keys that a read at an old revision looks up at once, since some of them may not have existed.
_BATCH = 100


class Versions(Generic[V]):
    """Version chains of the keys of one bucket."""

    __slots__ = ("_gone", "_keys", "_undo", "heads")

    def __init__(self) -> None:
        self.heads: dict[str, Record[V]] = {}
        """The current record of every key."""
        self._keys = SortedKeys()
        self._gone = SortedKeys()
        self._undo: dict[str, list[Event[V]]] = {}

    def copy(self) -> Versions[V]:
        """Returns an independent copy."""
        twin = self.present()
        twin._gone = self._gone.copy()
        twin._undo = {key: events.copy() for key, events in self._undo.items()}
        return twin

    def present(self) -> Versions[V]:
        """Returns an independent copy without undo logs."""
        twin: Versions[V] = Versions()
        twin.heads = self.heads.copy()
        twin._keys = self._keys.copy()
        return twin

    def apply(self, event: Event[V]) -> None:
        """Makes the record of the event the head of its key."""
        key, record, previous = event.key, event.record, event.previous
        if record is None:
            del self.heads[key]
            self._keys.remove(key)
            self._gone.add(key)
        else:
            self.heads[key] = record
        undo = None
        if previous is not None:
            undo = self._undo.setdefault(key, [])
            undo.append(event)
        elif record is not None:
            self._keys.add(key)
            if key in self._undo:
                self._gone.remove(key)
        if len(self.heads) > VISITED:
            # The dicts are visited again after a new entry.
            untrack(event, undo, record, None if record is None else record.value, self.heads, self._undo)

    def forget(self, events: Iterable[Event[V]], revision: int) -> None:
        """Drops what only reads before `revision` need; `events` are the events up to it that were not dropped before."""
        for key in {event.key for event in events if event.previous is not None}:
            undo = self._undo.get(key, [])
            del undo[: bisect_right(undo, revision, key=_revision)]
            if not undo and self._undo.pop(key, None) is not None and key not in self.heads:
                self._gone.remove(key)

    def record_at(self, key: str, revision: int) -> Record[V] | None:
        """Returns the record of a key at a revision; None if it did not exist."""
        head = self.heads.get(key)
        return head if head is not None and head.revision <= revision else self._record_before(key, revision)

    def _record_before(self, key: str, revision: int) -> Record[V] | None:
        """Returns the record at a revision of a key that was written since; None if it did not exist."""
        undo = self._undo.get(key)
        if undo is not None:
            place = bisect_right(undo, revision, key=_revision)
            if place < len(undo):
                replaced = undo[place].previous
                if replaced is not None and replaced.revision <= revision:
                    return replaced
        return None

    def count(self, span: Span) -> int:
        """Returns the current number of keys in a span."""
        return self._keys.count(span)

    def current_records(self, span: Span, limit: int) -> list[Record[V]]:
        """Returns the first `limit` current records of a span (0: all)."""
        if not self.heads:
            return []
        return self.heads_of(self._keys.first_keys(span, limit))

    def heads_of(self, keys: Iterable[str]) -> list[Record[V]]:
        """Returns the current records of keys that exist."""
        return list(map(self.heads.__getitem__, keys))

    def records_at(self, span: Span, limit: int, revision: int, known: Keys | None = None) -> list[Record[V]]:
        """Returns the first `limit` records of a span (0: all) at a revision.

        `known` returns the candidate keys, by default all.
        """
        known = known or self._known_keys
        records: list[Record[V]] = []
        heads, (first, end) = self.heads, span
        batch = max(limit, _BATCH) if limit else 0
        while True:
            keys = known((first, end), batch)
            for key in keys:
                head = heads.get(key)
                record = head if head is not None and head.revision <= revision else self._record_before(key, revision)
                if record is not None:
                    records.append(record)
                    if len(records) == limit:
                        return records
            if not batch or len(keys) < batch:
                return records
            first = keys[-1] + "\0"

    def _known_keys(self, span: Span, limit: int) -> list[str]:
        """Returns the first `limit` keys of a span (0: all) that exist, or existed at a revision that is not compacted."""
        keys, gone = self._keys.first_keys(span, limit), self._gone.first_keys(span, limit)
        return sorted(keys + gone)[: limit or None] if gone else keys
