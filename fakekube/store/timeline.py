"""The one global revision: allocation of the next one, and compaction of old ones.

All buckets of a store share a timeline and its lock, under which all changes are made. Besides explicit compactions there
are those of a real API server: every `compaction_interval` it writes a key of its own, which takes a revision, and compacts
to the revision that this write took the time before. So revisions younger than one interval can always be read, those
older than two never. Here a compaction happens on the first access after it was due: it needs no thread, and does not
happen while the clock is held.

Specified by: k8s.io/apiserver/pkg/storage/etcd3/compact.go and etcd's mvcc (ErrCompacted, ErrFutureRev).
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from fakekube.store.values import Compacted, FutureRevision


@dataclass(frozen=True, slots=True)
class Retention:
    """How much history a store keeps. The defaults are those of kube-apiserver."""

    compaction_interval: float | None = 300.0
    """Seconds between two compactions (--etcd-compaction-interval); None: only explicit ones and those by
    number of revisions.
    """
    compaction_revisions: int = 100_000
    """A compaction also happens after this number of revisions, to bound the memory while the clock is held.
    """
    window_minimum: int = 100
    """The number of events that stay in the window of cached cursors at any age (the lower bound of the
    capacity of the watch cache).
    """
    window_maximum: int = 102_400
    """The maximum number of events in the window of cached cursors (the upper bound of the capacity of the watch cache)."""
    window_age: float = 75.0
    """Seconds after which events above the minimum are dropped from the window (eventFreshDuration)."""


class Trimmed(Protocol):
    """What drops old versions after a compaction: the store."""

    def trim(self, revision: int) -> None:
        """Drops what only reads before `revision` need."""


class Timeline:
    """The revision, the compaction and the lock of one store. All methods but `wait` require the lock.

    Args:
        now: returns the time in seconds by which compactions are due.
        retention: how much history is kept.
        trimmed: returns the store, None if it is gone: a weak reference, since the store has the timeline.
    """

    __slots__ = (
        "_changed", "_marked", "_next_compaction", "_trimmed", "_waiting",
        "compacted", "journal", "listeners", "lock", "now", "retention", "revision",
    )  # fmt: skip

    def __init__(self, now: Callable[[], float], retention: Retention, trimmed: Callable[[], Trimmed | None]) -> None:
        self.lock = threading.Lock()
        self.listeners: tuple[Callable[[str, Any], None], ...] = ()
        """The listeners of all changes, see `Store.listen`."""
        self.journal: Callable[[str, Any], None] | None = None
        """Called with every change under the lock, see `Store.keep_journal`."""
        self.now = now
        self.retention = retention
        self.revision = 0
        self.compacted = 0
        self._trimmed = trimmed
        self._changed = threading.Condition(self.lock)
        self._waiting = 0
        self._marked = 0
        self._next_compaction = now() + _interval(retention)

    def begin(self, revision: int, compacted: int) -> None:
        """Sets the initial revision of a fork."""
        self.revision = self._marked = revision
        self.compacted = compacted

    def retain(self, retention: Retention) -> None:
        """Changes how much history is kept; the next compaction is due one interval from now."""
        self.retention = retention
        self._next_compaction = self.now() + _interval(retention)

    def take(self) -> int:
        """Takes the next revision and returns it."""
        self.revision += 1
        if self._waiting:
            self._changed.notify_all()
        return self.revision

    def skip(self, revision: int) -> None:
        """Advances to a later revision."""
        self.revision = self._marked = revision
        if self._waiting:
            self._changed.notify_all()

    def wait(self, revision: int, timeout: float) -> bool:
        """Blocks until `revision` is reached, at most `timeout` seconds of real time. Returns whether it was."""
        with self._changed:
            self._waiting += 1
            try:
                return self._changed.wait_for(lambda: self.revision >= revision, timeout)
            finally:
                self._waiting -= 1

    def check(self, revision: int) -> None:
        """Checks that the state at `revision` can be read. Raises Compacted or FutureRevision."""
        if revision > self.revision:
            raise FutureRevision(self.revision)
        if revision < self.compacted:
            raise Compacted(self.compacted)

    def compact(self, revision: int) -> None:
        """Compacts up to `revision`. Does nothing if it has been compacted. Raises FutureRevision."""
        if revision > self.revision:
            raise FutureRevision(self.revision)
        if revision > self.compacted:
            self.compacted = revision
            trimmed = self._trimmed()
            if trimmed is not None:
                trimmed.trim(revision)

    def compact_if_due(self) -> float:
        """Performs the compactions that are due by time or number of revisions. Returns the current time."""
        now = self.now()
        if now >= self._next_compaction:
            interval = _interval(self.retention)
            missed = math.floor((now - self._next_compaction) / interval) + 1
            self._next_compaction += missed * interval
            for _ in range(min(missed, 2)):  # further ones would only increase the revision
                self._compact_to_mark(self.take())
        elif self.revision - self._marked >= self.retention.compaction_revisions:
            self._compact_to_mark(self.revision)
        return now

    def _compact_to_mark(self, next_mark: int) -> None:
        marked, self._marked = self._marked, next_mark
        self.compact(marked)


def _interval(retention: Retention) -> float:
    return math.inf if retention.compaction_interval is None else retention.compaction_interval
