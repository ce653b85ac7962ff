"""The position of one watcher in the history of a bucket, which costs the store nothing, however slow the watcher is.

A cursor that falls out of its window has lost events and raises `Compacted`, as does one that starts before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from fakekube.store.values import Event

if TYPE_CHECKING:
    from fakekube.store.bucket import Bucket

__all__ = ["Cursor"]

V = TypeVar("V")


class Cursor(Generic[V]):
    """Reads the events of a bucket, each once and in order. One owner at a time; made by `Bucket.cursor`."""

    __slots__ = ("_bucket", "_cached", "_position", "_sequence")

    def __init__(self, bucket: Bucket[V], sequence: int, after: int, *, cached: bool) -> None:
        self._bucket = bucket
        self._sequence = sequence
        self._position = after
        self._cached = cached

    def take(self, limit: int = 0) -> list[Event[V]]:
        """The next events, at most `limit` (0: all there are); none if there are none yet. Never blocks.

        Raises Compacted if events were dropped that this cursor had not taken; from then on it always does.
        """
        events, self._sequence, position = self._bucket.events(self._sequence, limit, cached=self._cached)
        if events and events[0].revision <= self._position:  # begun in the future, which only now comes about
            events = [event for event in events if event.revision > self._position]
        self._position = max(self._position, position)
        return events

    @property
    def pending(self) -> bool:
        """Is there something to take (or to be told by Compacted)?"""
        return self._bucket.end != self._sequence

    @property
    def position(self) -> int:
        """Every event up to this revision has been taken; of an idle bucket it moves with the store's
        revision.
        """
        self._position = max(self._position, self._bucket.idle_since(self._sequence) or 0)
        return self._position
