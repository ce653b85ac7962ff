"""A sorted set of keys with fast writes, searches and counts at any size.

The keys are in chunks of bounded size, so that an insertion moves only the rest of one chunk. `_lasts` has the last key of
each chunk: a bisection of it finds the chunk, a bisection of the chunk the position. No chunk is empty. Counts use the
cumulative sizes of the chunks, which are computed on the first count after a change.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final

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

    def first(self, span: Span, limit: int) -> list[str]:
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
