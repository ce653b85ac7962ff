"""The keys of one bucket and what they hold: now, and at every revision that can still be read.

The present is a dictionary of heads and a sorted set of their keys. The past is an undo log for each key: the
events that replaced something, oldest first. The state of a key at a revision is what the first later event
replaced, or the head if there is none. A deleted key stays in a second sorted set, `gone`, as long as its
undo log does.

So a page costs what it shows, at the head exactly, at an old revision plus the keys that came and went since
within it. Not thread-safe: `Bucket` holds the lock.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Generic, TypeVar

from fakekube.store.keys import SortedKeys, Span
from fakekube.store.values import Event, Record

__all__ = ["Keys", "Versions"]

V = TypeVar("V")

Keys = Callable[[Span, int], list[str]]
"""Which keys there are: the first so many (0: all) of a span, in their order."""

_revision = attrgetter("revision")

#: How many keys reads of the past look at in one go, at least: not all of them need have been there.
_BATCH = 100


class Versions(Generic[V]):
    """Version chains of the keys of one bucket."""

    __slots__ = ("_gone", "_keys", "_undo", "heads")

    def __init__(self) -> None:
        self.heads: dict[str, Record[V]] = {}
        """What every key holds now."""
        self._keys = SortedKeys()
        self._gone = SortedKeys()
        self._undo: dict[str, list[Event[V]]] = {}

    def copy(self) -> Versions[V]:
        """An independent twin."""
        twin = self.present()
        twin._gone = self._gone.copy()
        twin._undo = {key: events.copy() for key, events in self._undo.items()}
        return twin

    def present(self) -> Versions[V]:
        """An independent twin without a past."""
        twin: Versions[V] = Versions()
        twin.heads = self.heads.copy()
        twin._keys = self._keys.copy()
        return twin

    def apply(self, event: Event[V]) -> None:
        """Make the event's record the head of its key."""
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
        """Drop what only reads before `revision` need; `events` are those up to it that were not forgotten
        yet.
        """
        for key in {event.key for event in events if event.previous is not None}:
            undo = self._undo.get(key, [])
            del undo[: bisect_right(undo, revision, key=_revision)]
            if not undo and self._undo.pop(key, None) is not None and key not in self.heads:
                self._gone.remove(key)

    def at(self, key: str, revision: int) -> Record[V] | None:
        """What the key held at a revision."""
        head = self.heads.get(key)
        return head if head is not None and head.revision <= revision else self._before(key, revision)

    def _before(self, key: str, revision: int) -> Record[V] | None:
        """What a key that was written after a revision held at it."""
        undo = self._undo.get(key)
        if undo is not None:
            place = bisect_right(undo, revision, key=_revision)
            if place < len(undo):
                replaced = undo[place].previous
                if replaced is not None and replaced.revision <= revision:
                    return replaced
        return None

    def count(self, span: Span) -> int:
        """How many keys of the span hold something now."""
        return self._keys.count(span)

    def now(self, span: Span, limit: int) -> list[Record[V]]:
        """The first `limit` records of the span (0: all)."""
        if not self.heads:
            return []
        return self.heads_of(self._keys.first(span, limit))

    def heads_of(self, keys: Iterable[str]) -> list[Record[V]]:
        """What these keys hold now; all of them do."""
        return list(map(self.heads.__getitem__, keys))

    def then(self, span: Span, limit: int, revision: int, known: Keys | None = None) -> list[Record[V]]:
        """The first `limit` records of the span (0: all) as they stood at a revision.

        `known` tells the keys to look at, if not all of them.
        """
        known = known or self._known
        records: list[Record[V]] = []
        heads, (first, end) = self.heads, span
        batch = max(limit, _BATCH) if limit else 0
        while True:
            keys = known((first, end), batch)
            for key in keys:
                head = heads.get(key)
                record = head if head is not None and head.revision <= revision else self._before(key, revision)
                if record is not None:
                    records.append(record)
                    if len(records) == limit:
                        return records
            if not batch or len(keys) < batch:
                return records
            first = keys[-1] + "\0"

    def _known(self, span: Span, limit: int) -> list[str]:
        """The first `limit` keys of the span (0: all) that hold something now, or did in the readable past."""
        keys, gone = self._keys.first(span, limit), self._gone.first(span, limit)
        return sorted(keys + gone)[: limit or None] if gone else keys
