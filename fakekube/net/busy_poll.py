"""Looks for what a thread waits for again and again, for a moment, before the thread sleeps.

A processor without work halts, and to wake a virtual one takes as long as half a get: a client on another processor that sends
one request after the other pays for it each time. A thread whose last wait was short looks for what is next before it sleeps,
unless it looked in vain a short while ago. It does not let others have the processor in between: on a busy machine they would
keep it for milliseconds.

This is for processes that only serve (`allow`). In one that has its clients in it, as that of a test, the thread that looks would
take the interpreter from them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

SECONDS = 5e-5
"""How long a thread looks. One that waited longer the last time does not look at all."""
PAUSE = 20
"""The number of short waits without a look after one in vain: the client needs this processor, or others do."""

_Found = TypeVar("_Found")
_is_allowed = False


def allow() -> None:
    """Lets the connections and threads of this process that begin from now on look before they sleep.

    It has no effect with one processor, where the client could not run meanwhile, or where the system does not tell the number.
    """
    global _is_allowed  # noqa: PLW0603
    _is_allowed = hasattr(os, "sched_getaffinity") and len(os.sched_getaffinity(0)) > 1


def busy_poll_if_allowed() -> BusyPoll | None:
    """Returns what a connection, or a thread, needs to look before it sleeps; None if it may not."""
    return BusyPoll() if _is_allowed else None


class BusyPoll:
    """The waits of one connection or thread: `look` and, if it finds nothing, a sleep and `end_sleep`."""

    __slots__ = ("_began", "_pause")

    def __init__(self) -> None:
        self._began = 0.0
        self._pause = 1
        """The number of short waits until the next look."""

    def look(self, look: Callable[[int], _Found]) -> _Found | None:
        """Calls `look(0)`, which does not wait, until it finds something; returns None if the thread should sleep."""
        self._began = now = time.monotonic()
        if not self._pause:
            while now - self._began < SECONDS:
                if found := look(0):
                    return found
                now = time.monotonic()
            self._pause = PAUSE
        return None

    def end_sleep(self) -> None:
        """Called when the thread has slept."""
        if time.monotonic() - self._began < SECONDS:  # then it has not looked
            self._pause -= 1
