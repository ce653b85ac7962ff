"""What the API server itself keeps written, as the objects that it follows from come and go.

The real server has controllers for that, which take a moment; here the work is done in the thread that wrote something,
right after the write, so that a client that has its answer can count on it.

Invariant: one thread at a time is at work; what its own writes call for, it does itself.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from fakekube.depth import deepening
from fakekube.streams import Source

__all__ = ["ControlLoop"]


class ControlLoop:
    """Something that is put in order after every change of its sources. `close` is not needed: it lives as long as they do."""

    def __init__(self, sources: Iterable[Source]) -> None:
        self._working = threading.RLock()
        self._busy = False
        for source in sources:
            source.subscribe(self.refresh)

    @deepening
    def refresh(self) -> None:
        """Put everything in order."""
        with self._working:
            if self._busy:  # our own write woke us: the loop below sees it
                return
            self._busy = True
            try:
                while self.step():
                    pass
            finally:
                self._busy = False

    def step(self) -> bool:
        """Do what there is to do; was there anything?"""
        raise NotImplementedError
