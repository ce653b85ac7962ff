"""How a scenario waits: in real time for a server behind a socket, by moving its clock for a cluster in this process.

A scenario runs in one thread and never sleeps by itself: it calls `sleep` or `until`, which go by the pace that the
player set for the thread with `paced_by`.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from fakekube.base.clock import Clock


class Pace(Protocol):
    """A way to wait."""

    growth: float
    """By how much one wait of `until` is longer than the one before."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary moment."""

    def sleep(self, seconds: float) -> None:
        """Let this many seconds pass."""


class RealTime:
    """Waits as long as it says."""

    growth = 1.0

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class ClusterTime:
    """Moves the held clock of a cluster, and gives threads and servers of the scenario a moment of real time."""

    growth = 1.5
    REAL, LONGEST = 0.03, 0.005
    """How much of a wait is real, in seconds a second, and at most."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def monotonic(self) -> float:
        return self.clock.monotonic()

    def sleep(self, seconds: float) -> None:
        self.clock.advance(seconds=seconds)
        time.sleep(min(seconds * self.REAL, self.LONGEST))


class _Thread(threading.local):
    pace: Pace = RealTime()


_thread = _Thread()


@contextlib.contextmanager
def paced_by(pace: Pace) -> Iterator[None]:
    """Let this thread wait by a pace for a while."""
    before, _thread.pace = _thread.pace, pace
    try:
        yield
    finally:
        _thread.pace = before


def monotonic() -> float:
    """Seconds by the pace of this thread."""
    return _thread.pace.monotonic()


def sleep(seconds: float) -> None:
    """Wait by the pace of this thread."""
    _thread.pace.sleep(seconds)


def until(probe: Callable[[], Any], seconds: float = 10) -> bool:
    """Wait for what a server does in its own time; False if it has not done it after so many seconds."""
    end, step = monotonic() + seconds, 0.05
    while monotonic() < end:
        if probe():
            return True
        sleep(step)
        step = min(1.0, step * _thread.pace.growth)
    return False
