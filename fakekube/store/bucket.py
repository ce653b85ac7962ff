"""One collection of the store: compare-and-set writes, reads at any kept revision, cursors into its history.

Work is done outside the lock, by the callers: a write reads a record, computes, and commits on condition that
the record is still there. Under the lock a commit only takes a revision, lets the caller stamp it, and links
the result.

A bucket's contents are one `Contents`, which forks and snapshots share until somebody writes: who writes
copies first. What was read as a whole last is kept until the next write, since many clients list the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from fakekube.store.cursor import Cursor
from fakekube.store.history import History
from fakekube.store.index import Condition, Indexes
from fakekube.store.keys import Span
from fakekube.store.timeline import Timeline
from fakekube.store.values import Compacted, Conflict, Event, Page, Record, Selection
from fakekube.store.versions import Versions

__all__ = ["Bucket", "Contents"]

V = TypeVar("V")

_LAST_CHARACTER = "\U0010ffff"


@dataclass(slots=True, frozen=True)
class _Reading(Generic[V]):
    """All records of a span, and what readers made of them."""

    span: Span
    records: Sequence[Record[V]]
    encodings: dict[Any, Any]


@dataclass(slots=True)
class Contents(Generic[V]):
    """All that a bucket holds."""

    versions: Versions[V]
    history: History[V]
    shared: bool = False
    """Somebody else reads this too: it must not be changed any more."""
    last_reading: _Reading[V] | None = None
    """Of the last span that was read as a whole since the last write."""

    def copy(self) -> Contents[V]:
        """An independent twin."""
        return Contents(self.versions.copy(), self.history.copy())


class Bucket(Generic[V]):
    """A collection of keys with a history; a `streams.Source`. Thread-safe; made by `Store.bucket`."""

    __slots__ = ("_contents", "_indexes", "_timeline", "_wakes", "name")

    def __init__(self, name: str, timeline: Timeline, contents: Contents[V]) -> None:
        self.name = name
        self._timeline = timeline
        self._contents = contents
        self._indexes: Indexes[V] = Indexes()
        self._wakes: tuple[Callable[[], None], ...] = ()

    # ------------------------------------------------------------ reads

    def get(self, key: str, revision: int | None = None) -> Record[V] | None:
        """What a key holds, or held at a revision; None if nothing.

        Raises Compacted or FutureRevision.
        """
        if revision is None:
            return self._contents.versions.heads.get(key)
        with self._timeline.lock:
            self._timeline.compact_if_due()
            self._timeline.check(revision)
            return self._contents.versions.at(key, revision)

    def page(self, prefix: str = "", *, start: str = "", limit: int = 0, revision: int | None = None) -> Page[V]:
        """The records whose keys begin with `prefix` and are not before `start`, in the order of their keys.

        At most `limit` (0: all), as they stand now or stood at a revision. The next page starts at the last
        key with a NUL after it. Raises Compacted or FutureRevision.
        """
        span = (max(prefix, start), _end_of(prefix))
        with self._timeline.lock:
            if revision is None:
                return self._page_now(span, limit)
            self._timeline.compact_if_due()
            self._timeline.check(revision)
            return self._page_then(span, limit, revision)

    def _page_now(self, span: Span, limit: int) -> Page[V]:
        if not limit:
            reading = self._whole(span)
            return Page(reading.records, False, 0, self._timeline.revision, reading.encodings)
        versions = self._contents.versions
        records = versions.now(span, limit)
        remaining = versions.count(span) - len(records)
        return Page(records, remaining > 0, remaining, self._timeline.revision, {})

    def _whole(self, span: Span) -> _Reading[V]:
        contents = self._contents
        reading = contents.last_reading
        if reading is None or reading.span != span:
            reading = contents.last_reading = _Reading(span, contents.versions.now(span, 0), {})
        return reading

    def _page_then(self, span: Span, limit: int, revision: int) -> Page[V]:
        contents = self._contents
        records = contents.versions.then(span, limit, revision)
        if not limit or len(records) < limit:
            return Page(records, False, 0, revision, {})
        rest = (records[-1].key + "\0", span[1])
        remaining = contents.versions.count(rest) - contents.history.growth(rest, revision)
        return Page(records, remaining > 0, remaining, revision, {})

    def select(
        self,
        conditions: Sequence[Condition[V]],
        prefix: str = "",
        *,
        start: str = "",
        limit: int = 0,
        revision: int | None = None,
    ) -> Selection[V]:
        """As `page`, of the records that meet all conditions; there may be others among them.

        The cost follows from how many records meet the rarest condition, of the past also from how many
        writes there were since. Raises Compacted or FutureRevision.
        """
        span = (max(prefix, start), _end_of(prefix))
        with self._timeline.lock:
            if revision is not None:
                self._timeline.compact_if_due()
                self._timeline.check(revision)
            versions = self._contents.versions
            keys = self._indexes.keys(conditions, versions, self._contents.history, revision)
            if revision is None:
                return Selection(versions.heads_of(keys(span, limit)), self._timeline.revision)
            return Selection(versions.then(span, limit, revision, keys), revision)

    def count(self, prefix: str = "") -> int:
        """How many keys begin with `prefix` now."""
        with self._timeline.lock:
            return self._contents.versions.count((prefix, _end_of(prefix)))

    @property
    def is_empty(self) -> bool:
        """Is there no key now?"""
        return not self._contents.versions.heads

    # ------------------------------------------------------------ writes

    def commit(self, key: str, expected: int | None, make: Callable[[int], V] | None) -> Record[V]:
        """Write one key, if it is still what the caller has seen.

        `expected` is the revision of the record that was read, 0 for none, None for whatever is there. `make`
        gets the revision of the write and returns the value; it is called under the lock, must be quick and
        must not touch the store; if it raises, nothing has happened. Without `make` the key is deleted.

        Returns the new record, of a deletion the deleted one at the revision of the deletion. Raises
        Conflict, also when there is nothing to delete.
        """
        timeline = self._timeline
        with timeline.lock:
            now = timeline.compact_if_due()
            previous = self._contents.versions.heads.get(key)
            if expected is not None and expected != (0 if previous is None else previous.revision):
                raise Conflict(previous)
            revision = timeline.revision + 1
            if make is not None:
                created = revision if previous is None else previous.created
                result = record = Record(key, make(revision), created, revision)
            elif previous is not None:
                result, record = previous._replace(revision=revision), None
            else:
                raise Conflict(None)
            contents = self._own()
            contents.last_reading = None
            event = Event(revision, key, record, previous, now, {})
            contents.versions.apply(event)
            contents.history.append(event, timeline.retention)
            timeline.take()
        self.wake(event)
        return result

    def forget(self) -> None:
        """Begin the window of cached cursors anew: they can go back no further than to now."""
        with self._timeline.lock:
            self._own().history.forget(self._timeline.revision)

    # ------------------------------------------------------------ watches

    def cursor(self, after: int, *, cached: bool = True) -> Cursor[V]:
        """A cursor over the events after a revision, which may lie in the future.

        A cached one can go back as far as the bucket's own window of events, whatever has been compacted; an
        uncached one as far as the compaction. Raises Compacted if that is not far enough.
        """
        with self._timeline.lock:
            self._timeline.compact_if_due()
            floor = self._floor(cached)
            if after < floor:
                raise Compacted(floor)
            return Cursor(self, self._contents.history.sequence_after(after), after, cached=cached)

    def subscribe(self, wake: Callable[[], None]) -> None:
        """Call `wake` after every change, from the thread that made it, until unsubscribed. It must not
        raise.
        """
        with self._timeline.lock:
            self._wakes = (*self._wakes, wake)

    def unsubscribe(self, wake: Callable[[], None]) -> None:
        """End a subscription; unknown ones are ignored."""
        with self._timeline.lock:
            wakes = list(self._wakes)
            if wake in wakes:
                wakes.remove(wake)
            self._wakes = tuple(wakes)

    def events_of(self, key: str) -> list[Event[V]]:
        """The changes of one key that are still kept, oldest first."""
        with self._timeline.lock:
            return [event for event in self._contents.history.all() if event.key == key]

    @property
    def newest(self) -> int:
        """The revision of the last change, which is what a watch cache of this bucket knows of by itself."""
        return self._contents.history.newest

    def events(self, sequence: int, limit: int, *, cached: bool) -> tuple[list[Event[V]], int, int]:
        """For cursors: events from a sequence number on, the next number, and the revision that this leads up
        to.

        Raises Compacted.
        """
        with self._timeline.lock:
            history = self._contents.history
            events = history.since(sequence, limit, cached=cached)
            if events is None:
                raise Compacted(self._floor(cached))
            sequence += len(events)
            idle = sequence == history.end
            return events, sequence, self._timeline.revision if idle else events[-1].revision

    def idle_since(self, sequence: int) -> int | None:
        """For cursors: the store's revision if there is no event from a sequence number on, else None."""
        with self._timeline.lock:
            return self._timeline.revision if sequence == self._contents.history.end else None

    @property
    def end(self) -> int:
        """For cursors: the sequence number of the next event."""
        return self._contents.history.end

    # ------------------------------------------------------------ for the store, which holds the lock

    def share(self) -> Contents[V]:
        """The contents, never to be changed again by anybody."""
        self._contents.shared = True
        return self._contents

    def trim(self, revision: int) -> None:
        """Forget what only reads before `revision` need."""
        if self._contents.history.has_before(revision):
            contents = self._own()
            contents.versions.forget(contents.history.compact(revision), revision)

    def replace(self, saved: Contents[V] | None, revision: int, since: int | None = None) -> None:
        """Become what a snapshot holds; every cursor is lost.

        `since`: keep the snapshot's past from that revision on; None: keep none.
        """
        first = self._contents.history.end + 1
        if saved is None or since is None:
            versions: Versions[V] = Versions() if saved is None else saved.versions.present()
            self._contents = Contents(versions, History(revision if since is None else since, first))
            return
        events = saved.history.all()
        versions = saved.versions.copy()
        versions.forget([event for event in events if event.revision <= since], since)
        history: History[V] = History(max(saved.history.floor, since), first)
        for event in events:
            if event.revision > since:
                history.append(event, self._timeline.retention)
        self._contents = Contents(versions, history)

    def past(self) -> tuple[Sequence[Event[V]], int]:
        """All events that are kept, oldest first, and the revision after which cached cursors know every one."""
        with self._timeline.lock:
            history = self._contents.history
            return list(history.all()), history.floor

    def wake(self, event: Event[V] | None = None) -> None:
        """Tell the subscribers and the store's listeners (without the lock)."""
        for wake in self._wakes:
            wake()
        for listener in self._timeline.listeners:
            listener(self.name, event)

    def _floor(self, cached: bool) -> int:
        """The oldest revision after which a cursor can begin: a compaction keeps the event of its own
        revision."""
        return self._contents.history.floor if cached else max(self._timeline.compacted - 1, 0)

    def _own(self) -> Contents[V]:
        """The contents, to be changed."""
        if self._contents.shared:
            self._contents = self._contents.copy()
        return self._contents


def _end_of(prefix: str) -> str | None:
    """The first key after all that begin with a prefix; None if there is none."""
    stem = prefix.rstrip(_LAST_CHARACTER)
    return stem[:-1] + chr(ord(stem[-1]) + 1) if stem else None
