"""A set of buckets under one revision: compaction, snapshots and forks.

Forks and snapshots are copy-on-write by the bucket: taking one costs a flag for each bucket, and whoever
writes a shared bucket first copies its dictionary of heads and its list of keys, never the values.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from fakekube.store.bucket import Bucket, Contents
from fakekube.store.history import History
from fakekube.store.timeline import Retention, Timeline
from fakekube.store.values import Event
from fakekube.store.versions import Versions

__all__ = ["Snapshot", "Store"]

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Snapshot(Generic[V]):
    """The state of a store at one revision. A value: it can be restored many times, into any store."""

    revision: int
    contents: Mapping[str, Contents[V]]


class Store(Generic[V]):
    """A multi-version store. Thread-safe.

    `now` gives seconds (monotonic) by which history ages; `retention` says how much of it is kept.
    """

    __slots__ = ("_buckets", "_floor", "_forked", "_timeline", "_unopened")

    def __init__(self, *, now: Callable[[], float] = time.monotonic, retention: Retention | None = None) -> None:
        self._buckets: dict[str, Bucket[V]] = {}
        self._unopened: dict[str, Contents[V]] = {}
        """What a fork has of its origin and nobody has asked for yet; shared, so never changed."""
        self._floor = 0
        """The oldest revision that cursors of a new bucket can go back to."""
        self._forked: Snapshot[V] | None = None
        """What the last fork began with: an origin of many forks is the same for all of them."""
        self._timeline = Timeline(now, retention or Retention(), self._trim)

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
        """How much of the past is kept. May be set: counted from then on."""
        return self._timeline.retention

    @retention.setter
    def retention(self, retention: Retention) -> None:
        with self._timeline.lock:
            self._timeline.retain(retention)

    def bucket(self, name: str) -> Bucket[V]:
        """The bucket of that name, made on first use."""
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
        """Call `listener` with the bucket's name and the event after every change, from the thread that made it.

        The event is None when a bucket was replaced (`restore`). The listener must be quick and must not raise.
        """
        with self._timeline.lock:
            self._timeline.listeners = (*self._timeline.listeners, listener)

    def unlisten(self, listener: Callable[[str, Event[V] | None], None]) -> None:
        """End what `listen` began; unknown listeners are ignored."""
        with self._timeline.lock:
            self._timeline.listeners = tuple(other for other in self._timeline.listeners if other != listener)

    def buckets(self) -> list[Bucket[V]]:
        """All buckets, by name."""
        with self._timeline.lock:
            return [self._bucket(name) for name in sorted({*self._buckets, *self._unopened})]

    def skip(self, revision: int) -> None:
        """Go on from a later revision; one that was reached already is ignored."""
        with self._timeline.lock:
            if revision > self._timeline.revision:
                self._timeline.skip(revision)

    def advance(self) -> int:
        """Take a revision with no change in it, as other users of a real etcd would; returns it."""
        with self._timeline.lock:
            self._timeline.compact_if_due()
            return self._timeline.take()

    def wait(self, revision: int, timeout: float) -> bool:
        """Block until `revision` is reached, at most `timeout` real seconds; was it?"""
        return self.revision >= revision or self._timeline.wait(revision, timeout)

    def compact(self, revision: int | None = None) -> None:
        """Forget what only reads before `revision` (None: the present) need. An older floor stays.

        Cached cursors keep their windows: see `Bucket.forget`. Raises FutureRevision.
        """
        with self._timeline.lock:
            self._timeline.compact(self._timeline.revision if revision is None else revision)

    def snapshot(self) -> Snapshot[V]:
        """What the store holds now, at a cost that does not depend on how much that is."""
        with self._timeline.lock:
            return self._snapshot()

    def _snapshot(self) -> Snapshot[V]:
        contents = {**self._unopened, **{name: bucket.share() for name, bucket in self._buckets.items()}}
        return Snapshot(self._timeline.revision, contents)

    def restore(self, snapshot: Snapshot[V], *, since: int | None = None) -> None:
        """Hold again what a snapshot holds, the records at the revisions that they had.

        `since`: also hold its past, from that revision on, but nothing of revisions that were reached here already,
        which would be another past than that of this store.

        No revision is used again: the store goes to a new one, later than any that was ever seen here, and
        the past is compacted up to it. Cursors of both kinds raise Compacted, so no watcher believes in a
        state that is no more (as when an etcd is restored with its revision bumped and marked compacted).
        """
        with self._timeline.lock:
            # Two steps: an uncached cursor may start one revision before the floor: nobody must have seen it.
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
        """An independent twin with the same revision and history; its clock and retention may be others."""
        timeline = self._timeline
        twin: Store[V] = Store(now=now or timeline.now, retention=retention or timeline.retention)
        with timeline.lock:
            snapshot = self._forked
            if snapshot is None or snapshot.revision != timeline.revision:
                snapshot = self._forked = self._snapshot()
            twin._floor = self._floor
            twin._timeline.begin(snapshot.revision, timeline.compacted)
        twin._unopened = dict(snapshot.contents)
        return twin

    def _trim(self, revision: int) -> None:
        for bucket in self._buckets.values():
            bucket.trim(revision)
