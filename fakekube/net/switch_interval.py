"""Shortens the interpreter's thread switch interval while a server runs.

A thread waits for one switch interval before it requests the interpreter from a busy thread. With the default of 5 ms, a
response takes several times 5 ms if a thread of the test is busy. 0.1 ms costs 8 % more CPU with 16 busy connections, and
nothing measurable with four. The interval belongs to the process: the first server shortens it, and the last one restores it,
unless it was changed meanwhile.
"""

from __future__ import annotations

import sys
import threading

_SECONDS = 1e-4


class SwitchInterval:
    """Counts the running servers, and keeps the interval short while there are any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._servers = 0
        self._before = self._while_serving = 0.0

    def shorten(self) -> None:
        """Called when a server starts."""
        with self._lock:
            self._servers += 1
            if self._servers == 1:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(min(self._before, _SECONDS))
                self._while_serving = sys.getswitchinterval()  # the interpreter rounds the value

    def restore(self) -> None:
        """Called when a server stops."""
        with self._lock:
            self._servers -= 1
            if self._servers == 0 and sys.getswitchinterval() == self._while_serving:
                sys.setswitchinterval(self._before)


SWITCH_INTERVAL = SwitchInterval()
"""The switch interval of this process."""
