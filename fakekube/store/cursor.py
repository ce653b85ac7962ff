"""The position of one watcher in the history of a bucket; a slow watcher costs the store nothing.

A cursor whose next event has left the event window raises `Compacted`, as does one that starts before the window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from fakekube.store.values import Event

if TYPE_CHECKING:
    from fakekube.store.bucket import Bucket


V = TypeVar("V")


class Cursor(Generic[V]):
    """Reads the events of a bucket, each once and in order. Not thread-safe; made by `Bucket.cursor`."""

    __slots__ = ("_bucket", "_cached", "_position", "_sequence")

    def __init__(self, bucket: Bucket[V], sequence: int, after: int, *, cached: bool) -> None:
        self._bucket = bucket
        self._sequence = sequence
        self._position = after
        self._cached = cached

    def take(self, limit: int = 0) -> list[Event[V]]:
        """Returns the next events, at most `limit` (0: all); an empty list if there are none yet. Never blocks.

        Raises Compacted, now and on every later call, if events that this cursor has not read were dropped.
        """
        events, self._sequence, position = self._bucket.events(self._sequence, limit, cached=self._cached)
        if events and events[0].revision <= self._position:  # the cursor started at a revision in the future
            events = [event for event in events if event.revision > self._position]
        self._position = max(self._position, position)
        return events

    @property
    def pending(self) -> bool:
        """Whether `take` would return events or raise Compacted."""
        return self._bucket.end != self._sequence

    @property
    def position(self) -> int:
        """The revision up to which all events have been read; while the bucket is idle, the revision of the store."""
        self._position = max(self._position, self._bucket.idle_since(self._sequence) or 0)
        return self._position
