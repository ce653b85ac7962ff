"""Keeps the latest exchanges of a cluster in a ring buffer.

Invariant: keeping an exchange takes no lock, and notifying costs one comparison while no test waits.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fakekube.powers.exchange import Exchange

__all__ = ["Recorder"]


class Recorder:
    """The ring of exchanges of one cluster.

    Args:
        keep: the maximum number of exchanges; 0 keeps none.
        resolve: returns the plural of a resource for a name that kubectl accepts.
    """

    def __init__(self, keep: int, resolve: Callable[[str], str]) -> None:
        self.resolve = resolve
        self.keep_frames = False
        """Whether exchanges of watches keep all frames. Off by default, because watches may be long."""
        self.ring: deque[Exchange] = deque(maxlen=keep)
        """The exchanges, oldest first."""
        self.keep = self.ring.append
        """Adds an exchange to the ring."""
        self.next_number = itertools.count().__next__
        """Returns the number for the next exchange."""
        self._cleared_at = -1
        """The number of the newest exchange when the ring was cleared."""
        self._changed = threading.Condition()
        self.waiting_views = 0
        """The number of threads in `waiting`."""
        self.changes = 0
        """Counts responses and opened watches while there are threads in `waiting`."""

    def notify(self) -> None:
        """Wakes waiting threads: a request has got its response, or a watch is open."""
        if self.waiting_views:
            with self._changed:
                self.changes += 1
                self._changed.notify_all()

    @property
    def is_full(self) -> bool:
        """Reports whether exchanges may have been dropped."""
        return len(self.ring) == self.ring.maxlen

    @property
    def newest(self) -> int:
        """The number of the newest exchange; -1 before the first."""
        try:
            return self.ring[-1].number
        except IndexError:
            return self._cleared_at

    def kept(self) -> list[Exchange]:
        """Returns the exchanges in the ring, oldest first."""
        while True:
            try:
                return list(self.ring)
            except RuntimeError:  # another thread has added one
                continue

    def clear(self) -> None:
        """Removes all exchanges."""
        self._cleared_at = self.newest
        self.ring.clear()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Counts changes within the block."""
        with self._changed:
            self.waiting_views += 1
        try:
            yield
        finally:
            with self._changed:
                self.waiting_views -= 1

    def wait_for_change(self, seen: int, timeout: float) -> bool:
        """Waits, within `waiting`, until `changes` differs from `seen`; returns False after `timeout` real seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self.changes != seen, max(timeout, 0.0))
