"""Keeps the last exchanges of a cluster in a ring.

Invariant: keeping an exchange takes no lock; whoever waits is told only if there is somebody.
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
    """See the module.

    Args:
        keep: how many exchanges are kept; 0 keeps none.
        resolve: makes the plural of a resource of any name that kubectl knows.
    """

    def __init__(self, keep: int, resolve: Callable[[str], str]) -> None:
        self.resolve = resolve
        self.keep_frames = False
        """Whether exchanges of watches keep all frames; off, because a test may watch for long."""
        self._ring: deque[Exchange] = deque(maxlen=keep)
        self.keep = self._ring.append
        """Puts an exchange into the ring."""
        self.next_number = itertools.count().__next__
        """Gives the number of a new exchange, which is put into the ring next."""
        self._cleared_at = -1
        """The number of the newest exchange when the ring was cleared."""
        self._changed = threading.Condition()
        self.waiting_views = 0
        """How many wait for an exchange to be answered."""
        self.changes = 0
        """Counts answers and opened watches, while somebody waits."""

    def notify(self) -> None:
        """A request is answered, or a watch is open."""
        if self.waiting_views:
            with self._changed:
                self.changes += 1
                self._changed.notify_all()

    @property
    def newest(self) -> int:
        """The number of the newest exchange; -1 if there is none."""
        try:
            return self._ring[-1].number
        except IndexError:
            return self._cleared_at

    def kept(self) -> list[Exchange]:
        """The exchanges in the ring, oldest first."""
        while True:
            try:
                return list(self._ring)
            except RuntimeError:  # another thread has put one in
                continue

    def clear(self) -> None:
        """Forget all exchanges."""
        self._cleared_at = self.newest
        self._ring.clear()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Have changes counted."""
        with self._changed:
            self.waiting_views += 1
        try:
            yield
        finally:
            with self._changed:
                self.waiting_views -= 1

    def wait_for_change(self, seen: int, timeout: float) -> bool:
        """Within `waiting`: wait until `changes` is another than `seen`; False after `timeout` real seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self.changes != seen, max(timeout, 0.0))
