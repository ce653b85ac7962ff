"""A collection of the store: compare-and-set writes, reads at any revision that is not compacted, cursors into its history.

Callers compute outside the lock: a write reads a record, computes the new value, and commits it on condition that the
record is still the current one. Under the lock a commit only assigns a revision, lets the caller make the value with it,
and links the record.

The contents of a bucket are one `Contents`, which forks and snapshots share: a write copies shared contents first. The
result of the last full read is cached until the next write, since many clients list the same collection.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from fakekube.store.history import Condition, History, Indexes
from fakekube.store.timeline import Timeline
from fakekube.store.values import Compacted, Conflict, Event, Page, Record, Selection
from fakekube.store.versions import Span, Versions

# --- The position of one watcher in the history; a slow watcher costs the store nothing ------------------------------
# A cursor whose next event has left the event window raises `Compacted`, as does one that starts before the window.


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

    def peek(self) -> Event[V] | None:
        """Returns the first event that `take` would return, without taking it. Raises Compacted."""
        while True:
            events, sequence, position = self._bucket.events(self._sequence, 1, cached=self._cached)
            if not events:
                self._position = max(self._position, position)
                return None
            if events[0].revision > self._position:
                return events[0]
            self._sequence = sequence  # the cursor started at a revision in the future

    def skip(self, count: int, revision: int) -> None:
        """Counts the next events as taken; the last one has this revision."""
        self._sequence += count
        self._position = max(self._position, revision)

    @property
    def pending(self) -> bool:
        """Whether `take` would return events or raise Compacted."""
        return self._bucket.end != self._sequence

    @property
    def position(self) -> int:
        """The revision up to which all events have been read; while the bucket is idle, the revision of the store."""
        self._position = max(self._position, self._bucket.idle_since(self._sequence) or 0)
        return self._position


_LAST_CHARACTER = "\U0010ffff"


_MOST_READINGS = 2
"""The full reads that are kept, with encodings that may be as large as the records: of a namespace, and of all."""


@dataclass(slots=True, frozen=True)
class _Reading(Generic[V]):
    """All records of a span, with the encodings that readers attached."""

    span: Span
    records: Sequence[Record[V]]
    encodings: dict[Any, Any]


@dataclass(slots=True)
class Contents(Generic[V]):
    """The contents of a bucket."""

    versions: Versions[V]
    history: History[V]
    shared: bool = False
    """Whether a fork or snapshot shares the contents; then they must not be changed."""
    readings: tuple[_Reading[V], ...] = ()
    """The latest full reads since the last write, the oldest first. Forks that share the contents may each replace them."""

    def copy(self) -> Contents[V]:
        """Returns an independent copy."""
        return Contents(self.versions.copy(), self.history.copy())


class Frozen(Generic[V]):
    """What a bucket held at one time, for snapshots: the bucket's own contents, until it is about to change them. Then this
    gets a copy of the present, without its past, so that thousands of snapshots of a busy bucket stay small.
    """

    __slots__ = ("__weakref__", "_contents", "_detached", "_lock")

    def __init__(self, contents: Contents[V], lock: threading.Lock) -> None:
        self._contents = contents
        self._lock = lock
        self._detached = False

    @property
    def versions(self) -> Versions[V]:
        """The keys with their records; only to be read after `detach`."""
        return self._contents.versions

    @property
    def history(self) -> History[V]:
        """The events that the copy has: none, once it is detached."""
        return self._contents.history

    def detach(self) -> None:
        """Makes it independent of the bucket, whose lock the caller does not hold."""
        if not self._detached:
            with self._lock:
                self.detach_locked()

    def detach_locked(self) -> None:
        """Does the same as `detach` for the bucket, which holds the lock and is about to change its contents."""
        if not self._detached:
            self._contents = Contents(self._contents.versions.present(), History(0))
            self._detached = True


class Bucket(Generic[V]):
    """A collection of keys with a history; a `streams.Source`. Thread-safe; made by `Store.bucket`."""

    __slots__ = ("__weakref__", "_contents", "_frozen", "_has_ended", "_indexes", "_timeline", "_wakes", "name")

    def __init__(self, name: str, timeline: Timeline, contents: Contents[V]) -> None:
        self.name = name
        self._timeline = timeline
        self._contents = contents
        self._frozen: weakref.ref[Frozen[V]] | None = None
        """What snapshots hold, if nothing was changed since."""
        self._indexes: Indexes[V] = Indexes()
        self._wakes: tuple[Callable[[], None], ...] = ()
        self._has_ended = False
        """Whether what the bucket is for, the resource of a definition, has ended."""

    # --- Reads --------------------------------------------------------------------------------------------------------

    def get(self, key: str, revision: int | None = None) -> Record[V] | None:
        """Returns the record of a key, now or at a revision; None if it does not exist.

        Raises Compacted or FutureRevision.
        """
        if revision is None:
            return self._contents.versions.heads.get(key)
        with self._timeline.lock:
            self._timeline.compact_if_due()
            self._timeline.check(revision)
            return self._contents.versions.record_at(key, revision)

    def page(self, prefix: str = "", *, start: str = "", limit: int = 0, revision: int | None = None) -> Page[V]:
        """Returns the records whose keys have `prefix` and are not before `start`, sorted by key.

        At most `limit` (0: all) records, now or at a revision. The next page starts at the last key followed by a NUL.
        Raises Compacted or FutureRevision.
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
            reading = self._read_whole(span)
            return Page(reading.records, False, 0, self._timeline.revision, reading.encodings)
        versions = self._contents.versions
        records = versions.current_records(span, limit)
        remaining = versions.count(span) - len(records)
        return Page(records, remaining > 0, remaining, self._timeline.revision, {})

    def _read_whole(self, span: Span) -> _Reading[V]:
        contents = self._contents
        for reading in contents.readings:
            if reading.span == span:
                return reading
        reading = _Reading(span, contents.versions.current_records(span, 0), {})
        contents.readings = (*contents.readings[1 - _MOST_READINGS :], reading)
        return reading

    def _page_then(self, span: Span, limit: int, revision: int) -> Page[V]:
        contents = self._contents
        records = contents.versions.records_at(span, limit, revision)
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
        """Returns like `page` a superset of the records that match all conditions.

        The cost is proportional to the number of records that match the most selective condition, at an old revision
        plus the number of writes since. Raises Compacted or FutureRevision.
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
            return Selection(versions.records_at(span, limit, revision, keys), revision)

    def count(self, prefix: str = "") -> int:
        """Returns the current number of keys with `prefix`."""
        with self._timeline.lock:
            return self._contents.versions.count((prefix, _end_of(prefix)))

    def has_keys(self) -> bool:
        """Reports whether there is any key."""
        return bool(self._contents.versions.heads)

    # --- Writes -------------------------------------------------------------------------------------------------------

    def commit(self, key: str, expected: int | None, make: Callable[[int], V] | None) -> Record[V]:
        """Writes one key by compare-and-set.

        `expected` is the revision of the record that was read, 0 if it must not exist, None for an unconditional write.
        `make` gets the revision of the write and returns the value; it is called under the lock, must be fast and must not
        use the store; if it raises, nothing is written. Without `make` the key is deleted.

        Returns the new record; for a deletion the deleted record with the revision of the deletion. Raises Conflict,
        also when the key to delete does not exist.
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
                result, record = Record(key, previous.value, previous.created, revision), None
            else:
                raise Conflict(None)
            contents = self._own_contents()
            contents.readings = ()
            event = Event(revision, key, record, previous, now, {})
            contents.versions.apply(event)
            contents.history.append(event, timeline.retention)
            timeline.take()
            if timeline.journal is not None:
                timeline.journal(self.name, event)
        self.wake(event)
        return result

    def forget(self, *, has_ended: bool = False) -> None:
        """Empties the window of cached cursors: new ones can start no earlier than now.

        The store drops a bucket that has ended, once it is empty and its past is compacted; `forget` also begins it again.
        """
        with self._timeline.lock:
            self._has_ended = has_ended
            self._own_contents().history.forget(self._timeline.revision)

    # --- Watches ------------------------------------------------------------------------------------------------------

    def cursor(self, after: int, *, cached: bool = True) -> Cursor[V]:
        """Returns a cursor over the events after a revision, which may be in the future.

        A cached cursor can start anywhere in the event window of the bucket, regardless of compactions; an uncached one at
        any revision that is not compacted. Raises Compacted if the revision is older.
        """
        with self._timeline.lock:
            self._timeline.compact_if_due()
            floor = self._floor(cached)
            if after < floor:
                raise Compacted(floor)
            return Cursor(self, self._contents.history.sequence_after(after), after, cached=cached)

    def subscribe(self, wake: Callable[[], None]) -> None:
        """Calls `wake` after every change, in the thread that made it, until `unsubscribe`. It must not raise."""
        with self._timeline.lock:
            self._wakes = (*self._wakes, wake)

    def unsubscribe(self, wake: Callable[[], None]) -> None:
        """Ends a subscription; does nothing if there is none."""
        with self._timeline.lock:
            wakes = list(self._wakes)
            if wake in wakes:
                wakes.remove(wake)
            self._wakes = tuple(wakes)

    def events_of(self, key: str, revision: int | None = None) -> list[Event[V]]:
        """Returns the events of one key that are still in the history, oldest first: all, or those of one revision."""
        with self._timeline.lock:
            history = self._contents.history
            events = history.all() if revision is None else history.events_at(revision)
            return [event for event in events if event.key == key]

    @property
    def newest(self) -> int:
        """The revision of the last change: the resourceVersion of a watch cache that gets no progress notifications."""
        return self._contents.history.newest

    def events(self, sequence: int, limit: int, *, cached: bool) -> tuple[list[Event[V]], int, int]:
        """For cursors: returns the events from a sequence number on, the next sequence number, and the revision that these
        events lead to.

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
        """For cursors: returns the revision of the store if there are no events from a sequence number on, else None."""
        with self._timeline.lock:
            return self._timeline.revision if sequence == self._contents.history.end else None

    @property
    def end(self) -> int:
        """The sequence number of the next event, for cursors."""
        return self._contents.history.end

    # --- For the store, which holds the lock --------------------------------------------------------------------------

    def share(self) -> Contents[V]:
        """Marks the contents as shared and returns them."""
        self._contents.shared = True
        return self._contents

    def freeze(self) -> Frozen[V]:
        """Returns what the bucket holds now, for a snapshot."""
        frozen = None if self._frozen is None else self._frozen()
        if frozen is None:
            frozen = Frozen(self._contents, self._timeline.lock)
            self._frozen = weakref.ref(frozen)
        return frozen

    def trim(self, revision: int) -> bool:
        """Drops what only reads before `revision` need. Reports whether the bucket has ended and nothing is left of it."""
        if self._contents.history.has_before(revision):
            contents = self._own_contents()
            contents.versions.forget(contents.history.compact(revision), revision)
        return self._has_ended and not (self._wakes or self._contents.versions.heads or self._contents.history.all())

    def replace(self, saved: Contents[V] | Frozen[V] | None, revision: int, since: int | None = None) -> None:
        """Replaces the contents by those of a snapshot: every cursor raises Compacted.

        With `since` the history of the snapshot from that revision on is kept, without it none.
        """
        first = self._contents.history.end + 1
        self._frozen = None  # the bucket does not change its contents any more
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

    def list_past(self) -> list[V]:
        """Returns the values that only the history has; drops what readers make again: full reads, encodings of events."""
        with self._timeline.lock:
            contents = self._contents
            contents.readings = ()
            found: dict[int, V] = {}
            for event in contents.history.all():
                event.encodings.clear()
                for record in (event.previous, event.record):
                    if record is not None:
                        found[id(record.value)] = record.value
            for record in contents.versions.heads.values():
                found.pop(id(record.value), None)
            return list(found.values())

    def all_events(self) -> tuple[Sequence[Event[V]], int]:
        """Returns all events of the history, oldest first, and the revision after which the cached window is complete."""
        with self._timeline.lock:
            history = self._contents.history
            return list(history.all()), history.floor

    def wake(self, event: Event[V] | None = None) -> None:
        """Calls the listeners of the store, then the subscribers, without the lock: a client that reacts to an event of its watch
        writes when the controllers know of that event."""
        for listener in self._timeline.listeners:
            listener(self.name, event)
        for wake in self._wakes:
            wake()

    def _floor(self, cached: bool) -> int:
        """Returns the oldest revision after which a cursor can start: a compaction keeps the event of its own revision."""
        return self._contents.history.floor if cached else max(self._timeline.compacted - 1, 0)

    def _own_contents(self) -> Contents[V]:
        """Returns the contents for a change; copies shared ones first."""
        if self._frozen is not None:
            frozen, self._frozen = self._frozen(), None
            if frozen is not None and not self._contents.shared:
                frozen.detach_locked()
        if self._contents.shared:
            self._contents = self._contents.copy()
        return self._contents


def _end_of(prefix: str) -> str | None:
    """Returns the exclusive end of the keys with a prefix; None if there is none."""
    stem = prefix.rstrip(_LAST_CHARACTER)
    return stem[:-1] + chr(ord(stem[-1]) + 1) if stem else None
