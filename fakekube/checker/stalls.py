"""Measures for how long this process stood still, because the machine or the interpreter was busy.

While it does, the cluster answers nothing, so that the timeouts of correct clients pass, and what the trace shows as delivered
was not sent yet. A thread sleeps and notices how much longer than intended it slept.

Invariant: a stall is known when it has ended, at the latest one interval later.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The interval between two measurements, and the shortest stall that is remembered, in seconds.
_INTERVAL, _SHORTEST = 0.1, 0.5


class Stalls:
    """The stalls of this process while it is `measuring`."""

    def __init__(self) -> None:
        self._found: list[tuple[float, float]] = []
        self._stopped = threading.Event()

    @contextmanager
    def measuring(self) -> Iterator[None]:
        """Measures within the context."""
        thread = threading.Thread(target=self._measure, name="fakekube-check-stalls", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            thread.join()

    def _measure(self) -> None:
        while not self._stopped.is_set():
            begun = time.monotonic()
            self._stopped.wait(_INTERVAL)
            self.observe(begun, time.monotonic())

    def observe(self, begun: float, ended: float) -> None:
        """Records a sleep that was intended to take an interval, with times of `time.monotonic()`."""
        if ended - begun - _INTERVAL >= _SHORTEST:
            self._found.append((ended, ended - begun - _INTERVAL))

    def longest(self, since: float) -> float:
        """Returns the seconds of the longest stall that ended after a time of `time.monotonic()`; 0 if there was none."""
        return max((seconds for ended, seconds in list(self._found) if ended >= since), default=0.0)
