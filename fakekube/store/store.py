"""A set of buckets under one revision: snapshots and forks.

Forks and snapshots are copy-on-write: making one costs a flag for each bucket, and the first write to a shared bucket copies
its dictionary of heads and its list of keys, but not the values.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

from fakekube.store.bucket import Bucket, Contents, Cursor, Frozen
from fakekube.store.history import History
from fakekube.store.timeline import Retention, Timeline
from fakekube.store.values import Compacted, Event, Record
from fakekube.store.versions import Versions

# --- The contents of a bucket from records and events that were written down -----------------------------------------
# Invariant: the contents are those of a bucket that held `records` and then had these events.


V = TypeVar("V")

_EVERYTHING = Retention(compaction_interval=None, window_maximum=1 << 62, window_age=float("inf"))


def rebuilt(records: Iterable[Record[V]], changes: Iterable[tuple[Record[V], bool, float]] = (), floor: int = 0) -> Contents[V]:
    """Returns the contents of a bucket.

    Args:
        records: what it held before the changes.
        changes: in the order of their revisions: the record (of a deletion, the key and the revision of that), whether it
            was deleted, and when, in seconds of the store's `now`.
        floor: the revision after which cached cursors know every event.
    """
    versions: Versions[V] = Versions()
    history: History[V] = History(floor)
    for record in records:
        versions.apply(Event(record.revision, record.key, record, None, 0.0, {}))
    for record, deleted, when in changes:
        previous = versions.heads.get(record.key)
        event = Event(record.revision, record.key, None if deleted else record, previous, when, {})
        if deleted and previous is None:
            raise ValueError(f"{record.key} is deleted at revision {record.revision} and was not there")
        versions.apply(event)
        history.append(event, _EVERYTHING)
    return Contents(versions, history)


# --- A local copy of the records of a bucket that follows its events: the cost depends on the changes, not on the size ---
# Invariant: after `catch_up`, `records` is what the bucket held at one revision, and every key that changed since the
# previous call was returned.


class Reflector(Generic[V]):
    """A local copy of a bucket. One owner at a time; empty before the first `catch_up`."""

    def __init__(self, bucket: Bucket[V]) -> None:
        self._bucket = bucket
        self._cursor: Cursor[V] | None = None
        self._records: dict[str, Record[V]] = {}

    @property
    def records(self) -> Mapping[str, Record[V]]:
        """The records by key."""
        return self._records

    def catch_up(self) -> list[str]:
        """Applies new events. Returns the keys that were created, changed or deleted, each once."""
        if self._cursor is not None:
            with suppress(Compacted):  # events were dropped, or a snapshot was restored: compare all records
                return self._follow(self._cursor) if self._cursor.pending else []
        return self._look()

    def _follow(self, cursor: Cursor[V]) -> list[str]:
        news = {event.key: event.record for event in cursor.take()}
        for key, record in news.items():
            if record is None:
                self._records.pop(key, None)
            else:
                self._records[key] = record
        return list(news)

    def _look(self) -> list[str]:
        page = self._bucket.page()
        self._cursor = None
        with suppress(Compacted):  # dropped meanwhile: the next call compares all records
            self._cursor = self._bucket.cursor(page.revision)
        before, self._records = self._records, {record.key: record for record in page.records}
        gone = [key for key in before if key not in self._records]
        return gone + [key for key, record in self._records.items() if before.get(key) is not record]


@dataclass(frozen=True, slots=True)
class Snapshot(Generic[V]):
    """The state of a store at one revision. A value: it can be restored many times, into any store."""

    revision: int
    contents: Mapping[str, Contents[V] | Frozen[V]]


@dataclass(frozen=True, slots=True)
class _Forked(Generic[V]):
    """What forks of one revision share."""

    revision: int
    contents: Mapping[str, Contents[V]]


class Store(Generic[V]):
    """A multi-version store. Thread-safe.

    Args:
        now: returns monotonic seconds, for the age of events.
        retention: how much history is kept.
    """

    __slots__ = ("__weakref__", "_buckets", "_floor", "_forked", "_timeline", "_unopened")

    def __init__(self, *, now: Callable[[], float] = time.monotonic, retention: Retention | None = None) -> None:
        self._buckets: dict[str, Bucket[V]] = {}
        self._unopened: dict[str, Contents[V]] = {}
        """The contents of the buckets of a snapshot or fork that have not been used yet."""
        self._floor = 0
        """The oldest revision at which cursors of a new bucket can start."""
        self._forked: _Forked[V] | None = None
        """The snapshot of the last fork, which later forks reuse while the store does not change."""
        self._timeline = Timeline(now, retention or Retention(), weakref.ref(self))

    @property
    def revision(self) -> int:
        """The revision of the last write; 0 before the first."""
        return self._timeline.revision

    @property
    def compacted(self) -> int:
        """The oldest revision that can be read; 0 if nothing was compacted."""
        with self._timeline.lock:
            self._timeline.compact_if_due()
            return self._timeline.compacted

    @property
    def retention(self) -> Retention:
        """How much history is kept. If it is set, the next compaction is due one interval later."""
        return self._timeline.retention

    @retention.setter
    def retention(self, retention: Retention) -> None:
        with self._timeline.lock:
            self._timeline.retain(retention)

    def bucket(self, name: str) -> Bucket[V]:
        """Returns the bucket with a name; creates it on first use."""
        bucket = self._buckets.get(name)
        if bucket is None:
            with self._timeline.lock:
                bucket = self._bucket(name)
        return bucket

    def _bucket(self, name: str) -> Bucket[V]:
        bucket = self._buckets.get(name)
        if bucket is None:
            forked = self._unopened.pop(name, None)
            bucket = Bucket(name, self._timeline, forked or Contents(Versions(), History(self._floor)))
            if forked is not None:
                bucket.trim(self._timeline.compacted)
            self._buckets[name] = bucket
        return bucket

    def listen(self, listener: Callable[[str, Event[V] | None], None]) -> None:
        """Calls `listener` with the name of the bucket and the event after every change, in the thread that made it.

        The event is None when a bucket was replaced (`restore`). The listener must be fast and must not raise.
        """
        with self._timeline.lock:
            self._timeline.listeners = (*self._timeline.listeners, listener)

    def unlisten(self, listener: Callable[[str, Event[V] | None], None]) -> None:
        """Removes a listener; does nothing if there is none."""
        with self._timeline.lock:
            self._timeline.listeners = tuple(other for other in self._timeline.listeners if other != listener)

    def keep_journal(self, journal: Callable[[str, Event[V]], None] | None) -> None:
        """Calls `journal` with the name of the bucket and the event of every change, in the order of the revisions.

        It is called under the lock, in the thread that makes the change: it must be fast, not raise, and not use the store.
        There is at most one journal; None removes it.
        """
        with self._timeline.lock:
            self._timeline.journal = journal

    def buckets(self) -> list[Bucket[V]]:
        """Returns all buckets, by name."""
        with self._timeline.lock:
            return [self._bucket(name) for name in sorted({*self._buckets, *self._unopened})]

    def skip(self, revision: int) -> None:
        """Advances to a later revision; does nothing if it has been reached."""
        with self._timeline.lock:
            if revision > self._timeline.revision:
                self._timeline.skip(revision)

    def advance(self) -> int:
        """Takes a revision without a change, as other clients of an etcd would, and returns it."""
        with self._timeline.lock:
            self._timeline.compact_if_due()
            return self._timeline.take()

    def wait(self, revision: int, timeout: float) -> bool:
        """Blocks until `revision` is reached, at most `timeout` seconds of real time. Returns whether it was."""
        return self.revision >= revision or self._timeline.wait(revision, timeout)

    def compact(self, revision: int | None = None) -> None:
        """Compacts up to `revision` (None: the current one). Does nothing if it has been compacted.

        The windows of cached cursors stay: see `Bucket.forget`. Raises FutureRevision.
        """
        with self._timeline.lock:
            self._timeline.compact(self._timeline.revision if revision is None else revision)

    def snapshot(self) -> Snapshot[V]:
        """Returns a snapshot of the current state; the cost does not depend on its size."""
        with self._timeline.lock:
            frozen = {name: bucket.freeze() for name, bucket in self._buckets.items()}
            return Snapshot(self._timeline.revision, {**self._unopened, **frozen})

    def restore(self, snapshot: Snapshot[V], *, since: int | None = None) -> None:
        """Restores a snapshot; its records keep their revisions.

        With `since`, the history of the snapshot from that revision on is restored, too, except for revisions that this
        store has reached: its own history was different.

        No revision is used twice: the store advances to a new one, later than any that this store had, and compacts up to
        it. All cursors raise Compacted, so that no watcher keeps a stale state (as when an etcd is restored with
        --bump-revision and --mark-compacted).
        """
        with self._timeline.lock:
            # Two revisions, because an uncached cursor may start one before the floor, which must be one that no client has seen.
            revision = max(self._timeline.revision, snapshot.revision) + 2
            here = max(self._timeline.revision, self._timeline.compacted)
            since = None if since is None or here > snapshot.revision else max(since, here)
            self._timeline.skip(revision)
            self._timeline.compact(revision if since is None else since)
            self._floor = revision if since is None else since
            for name in (*snapshot.contents, *self._unopened):
                self._bucket(name)
            buckets = list(self._buckets.values())
            for bucket in buckets:
                bucket.replace(snapshot.contents.get(bucket.name), revision, since)
        for bucket in buckets:
            bucket.wake()

    def fork(self, *, now: Callable[[], float] | None = None, retention: Retention | None = None) -> Store[V]:
        """Returns an independent store with the same revision and history; clock and retention may differ."""
        timeline = self._timeline
        twin: Store[V] = Store(now=now or timeline.now, retention=retention or timeline.retention)
        with timeline.lock:
            snapshot = self._forked
            if snapshot is None or snapshot.revision != timeline.revision:
                shared = {name: bucket.share() for name, bucket in self._buckets.items()}
                snapshot = self._forked = _Forked(timeline.revision, {**self._unopened, **shared})
            twin._floor = self._floor
            twin._timeline.begin(snapshot.revision, timeline.compacted)
        twin._unopened = dict(snapshot.contents)
        return twin

    def trim(self, revision: int) -> None:
        """For the timeline, which holds the lock: drops what only reads before `revision` need, and buckets that have ended."""
        for name in [name for name, bucket in self._buckets.items() if bucket.trim(revision)]:
            self._drop(name)

    def _drop(self, name: str) -> None:
        """Drops a bucket, unless somebody holds it and may write to it."""
        held = weakref.ref(self._buckets.pop(name))()
        if held is not None:
            self._buckets[name] = held
