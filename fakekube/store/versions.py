"""The records of the keys of one bucket, now and at every revision that is not compacted.

The current state is a dictionary of heads and a sorted set of their keys. The past is an undo log for each key: the events
that replaced a record, oldest first. The record of a key at a revision is the one that the first later event replaced, or
the head if there is no later event. A deleted key stays in a second sorted set, `gone`, as long as it has an undo log.

So the cost of a page is proportional to its size; at an old revision, also to the number of keys in its range that were
created or deleted since. Not thread-safe: `Bucket` holds the lock.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Generic, TypeVar

from fakekube.store.keys import SortedKeys, Span
from fakekube.store.values import Event, Record

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
        if previous is not None:
            self._undo.setdefault(key, []).append(event)
        elif record is not None:
            self._keys.add(key)
            if key in self._undo:
                self._gone.remove(key)

    def forget(self, events: Iterable[Event[V]], revision: int) -> None:
        """Drops what only reads before `revision` need; `events` are the events up to it that were not dropped before."""
        for key in {event.key for event in events if event.previous is not None}:
            undo = self._undo.get(key, [])
            del undo[: bisect_right(undo, revision, key=_revision)]
            if not undo and self._undo.pop(key, None) is not None and key not in self.heads:
                self._gone.remove(key)

    def at(self, key: str, revision: int) -> Record[V] | None:
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

    def now(self, span: Span, limit: int) -> list[Record[V]]:
        """Returns the first `limit` current records of a span (0: all)."""
        if not self.heads:
            return []
        return self.heads_of(self._keys.first(span, limit))

    def heads_of(self, keys: Iterable[str]) -> list[Record[V]]:
        """Returns the current records of keys that exist."""
        return list(map(self.heads.__getitem__, keys))

    def then(self, span: Span, limit: int, revision: int, known: Keys | None = None) -> list[Record[V]]:
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
        keys, gone = self._keys.first(span, limit), self._gone.first(span, limit)
        return sorted(keys + gone)[: limit or None] if gone else keys
