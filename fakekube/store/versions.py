"""The keys of one bucket and what they hold: now, and at every revision that can still be read.

The present is a dictionary of heads and a sorted list of their keys. The past is an undo log for each key:
the events that replaced something, oldest first. The state of a key at a revision is what the first later
event replaced, or the head if there is none. A deleted key stays in a second sorted list, `gone`, as long as
its undo log does.

So a page costs what it shows, at the head exactly, at an old revision plus the keys that came and went since
within it. Not thread-safe: `Bucket` holds the lock.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from itertools import islice
from operator import attrgetter
from typing import Generic, TypeVar

from fakekube.store.values import Event, Record

__all__ = ["Span", "Versions"]

V = TypeVar("V")

_revision = attrgetter("revision")

#: Keys from the first (inclusive) to the second (exclusive; None: no end).
Span = tuple[str, str | None]


class Versions(Generic[V]):
    """Version chains of the keys of one bucket."""

    __slots__ = ("_gone", "_keys", "_undo", "heads")

    def __init__(self) -> None:
        self.heads: dict[str, Record[V]] = {}
        """What every key holds now."""
        self._keys: list[str] = []
        self._gone: list[str] = []
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
            _remove(self._keys, key)
            insort(self._gone, key)
        else:
            self.heads[key] = record
        if previous is not None:
            self._undo.setdefault(key, []).append(event)
        elif record is not None:
            insort(self._keys, key)
            if key in self._undo:
                _remove(self._gone, key)

    def forget(self, events: Iterable[Event[V]], revision: int) -> None:
        """Drop what only reads before `revision` need; `events` are those up to it that were not forgotten
        yet.
        """
        emptied = False
        for key in {event.key for event in events if event.previous is not None}:
            undo = self._undo.get(key, [])
            del undo[: bisect_right(undo, revision, key=_revision)]
            if not undo and self._undo.pop(key, None) is not None:
                emptied = True
        if emptied and self._gone:
            self._gone = [key for key in self._gone if key in self._undo]

    def at(self, key: str, revision: int) -> Record[V] | None:
        """What the key held at a revision."""
        head = self.heads.get(key)
        if head is not None and head.revision <= revision:
            return head
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
        return len(_positions(self._keys, span))

    def now(self, span: Span, limit: int) -> list[Record[V]]:
        """The first `limit` records of the span (0: all)."""
        positions = _positions(self._keys, span)
        end = min(positions.stop, positions.start + limit) if limit > 0 else positions.stop
        return list(map(self.heads.__getitem__, self._keys[positions.start : end]))

    def then(self, span: Span, limit: int, revision: int) -> list[Record[V]]:
        """The first `limit` records of the span (0: all) as they stood at a revision."""
        records = (record for key in self._known(span) if (record := self.at(key, revision)) is not None)
        return list(islice(records, limit) if limit > 0 else records)

    def _known(self, span: Span) -> Iterator[str]:
        """The keys of the span that hold something now, or did in the readable past, in order."""
        keys = map(self._keys.__getitem__, _positions(self._keys, span))
        gone = _positions(self._gone, span)
        return heapq.merge(keys, map(self._gone.__getitem__, gone)) if gone else keys


def _positions(keys: list[str], span: Span) -> range:
    first, end = span
    start = bisect_left(keys, first) if first else 0
    return range(start, len(keys) if end is None else bisect_left(keys, end, lo=start))


def _remove(keys: list[str], key: str) -> None:
    del keys[bisect_left(keys, key)]
