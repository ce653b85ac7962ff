"""The one global revision: allocation of the next one, and compaction of old ones.

All buckets of a store share a timeline and its lock; nothing of the store changes without holding it. Besides
explicit compaction there is the one that a real API server does for its etcd: every `compaction_interval` it
writes a key of its own, which takes a revision, and compacts to the revision that it took the time before. So
what is younger than one interval can always be read, what is older than two never. Here this happens on the
first access after it was due: no thread, and a clock that is held holds it too.

Specified by: k8s.io/apiserver/pkg/storage/etcd3/compact.go and etcd's mvcc (ErrCompacted, ErrFutureRev).
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fakekube.store.values import Compacted, FutureRevision

__all__ = ["Retention", "Timeline"]


@dataclass(frozen=True, slots=True)
class Retention:
    """How much of the past a store keeps. The defaults are those of kube-apiserver."""

    compaction_interval: float | None = 300.0
    """Seconds between two compactions (--etcd-compaction-interval); None: only explicit ones and those by
    count.
    """
    compaction_revisions: int = 100_000
    """A compaction also happens after as many revisions, so that memory stays bounded when time is short or
    held.
    """
    window_minimum: int = 100
    """Events of a bucket that cached cursors can go back by, whatever their age (the watch cache's lower
    bound).
    """
    window_maximum: int = 102_400
    """Events that are kept at most for cached cursors (the watch cache's upper bound)."""
    window_age: float = 75.0
    """Seconds after which events above the minimum are dropped from the window (eventFreshDuration)."""


class Timeline:
    """Revision, compaction and the lock of one store. Methods other than `wait` are called with the lock
    held.
    """

    __slots__ = (
        "_changed", "_marked", "_next_compaction", "_trim", "_waiting",
        "compacted", "listeners", "lock", "now", "retention", "revision",
    )  # fmt: skip

    def __init__(self, now: Callable[[], float], retention: Retention, trim: Callable[[int], None]) -> None:
        self.lock = threading.Lock()
        self.listeners: tuple[Callable[[str, Any], None], ...] = ()
        """Who hears of every change of every bucket: see `Store.listen`."""
        self.now = now
        self.retention = retention
        self.revision = 0
        self.compacted = 0
        self._trim = trim
        self._changed = threading.Condition(self.lock)
        self._waiting = 0
        self._marked = 0
        self._next_compaction = now() + _interval(retention)

    def begin(self, revision: int, compacted: int) -> None:
        """Begin at a revision, as a fork."""
        self.revision = self._marked = revision
        self.compacted = compacted

    def retain(self, retention: Retention) -> None:
        """Change how much is kept; the next compaction is due one interval from now."""
        self.retention = retention
        self._next_compaction = self.now() + _interval(retention)

    def take(self) -> int:
        """Take the next revision."""
        self.revision += 1
        if self._waiting:
            self._changed.notify_all()
        return self.revision

    def skip(self, revision: int) -> None:
        """Go to a revision that is ahead."""
        self.revision = self._marked = revision
        if self._waiting:
            self._changed.notify_all()

    def wait(self, revision: int, timeout: float) -> bool:
        """Block until `revision` is reached, at most `timeout` real seconds; was it?"""
        with self._changed:
            self._waiting += 1
            try:
                return self._changed.wait_for(lambda: self.revision >= revision, timeout)
            finally:
                self._waiting -= 1

    def check(self, revision: int) -> None:
        """Can the state at `revision` be read? Raises Compacted or FutureRevision."""
        if revision > self.revision:
            raise FutureRevision(self.revision)
        if revision < self.compacted:
            raise Compacted(self.compacted)

    def compact(self, revision: int) -> None:
        """Forget what only reads before `revision` need. Raises FutureRevision; an older floor stays."""
        if revision > self.revision:
            raise FutureRevision(self.revision)
        if revision > self.compacted:
            self.compacted = revision
            self._trim(revision)

    def compact_if_due(self) -> float:
        """Do the compactions that time or number of writes have made due; returns the time."""
        now = self.now()
        if now >= self._next_compaction:
            interval = _interval(self.retention)
            missed = math.floor((now - self._next_compaction) / interval) + 1
            self._next_compaction += missed * interval
            for _ in range(min(missed, 2)):  # more would only count the revision up
                self._compact_to_mark(self.take())
        elif self.revision - self._marked >= self.retention.compaction_revisions:
            self._compact_to_mark(self.revision)
        return now

    def _compact_to_mark(self, next_mark: int) -> None:
        marked, self._marked = self._marked, next_mark
        self.compact(marked)


def _interval(retention: Retention) -> float:
    return math.inf if retention.compaction_interval is None else retention.compaction_interval
