"""Shortens the interpreter's thread switch interval while a server runs.

A thread that waits for its turn asks for it after the interpreter's switch interval. With the default of 5 ms every
answer waits that long, several times, for a test's busy thread. 0.1 ms costs 8 % more CPU at 16
connections that are all busy, and nothing measurable at four. The interval is the process's, so the first server
shortens it and the last one gives it back, unless somebody has set another one meanwhile.
"""

from __future__ import annotations

import sys
import threading

__all__ = ["QUICKLY", "Switching"]

_SECONDS = 1e-4


class Switching:
    """Counts the servers that run, and keeps the interval short while there are some."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._servers = 0
        self._before = self._while_serving = 0.0

    def begin(self) -> None:
        """A server starts."""
        with self._lock:
            self._servers += 1
            if self._servers == 1:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(min(self._before, _SECONDS))
                self._while_serving = sys.getswitchinterval()  # which rounds

    def end(self) -> None:
        """A server that has begun stops."""
        with self._lock:
            self._servers -= 1
            if self._servers == 0 and sys.getswitchinterval() == self._while_serving:
                sys.setswitchinterval(self._before)


QUICKLY = Switching()
"""Of this process."""
