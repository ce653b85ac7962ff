"""Room for expressions that nest deeply.

An expression may nest 250 levels deep, and whatever walks over it takes a few calls for each level. Python allows a
thousand calls at first, of which the caller has used some. While somebody walks over a deep expression the allowance of
the process is raised; the last one who is done takes it back, so that nothing else depends on what was evaluated before.
"""

from __future__ import annotations

import sys
import threading
from contextlib import AbstractContextManager, nullcontext
from typing import Final

__all__ = ["is_deep", "room"]

_OPENING: Final = "([{?"
#: So many levels fit into what there is.
_SHALLOW: Final = 20
_ALLOWED: Final = 12_000


def is_deep(source: str) -> bool:
    """Does an expression need more room than there is?"""
    return sum(map(source.count, _OPENING)) + source.count(".") // 4 > _SHALLOW


class _Room(AbstractContextManager[None]):
    """The raised allowance, shared by all threads that need it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._walking = 0
        self._usual = 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._walking:
                self._usual = sys.getrecursionlimit()
                sys.setrecursionlimit(max(self._usual, _ALLOWED))
            self._walking += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._walking -= 1
            if not self._walking:
                sys.setrecursionlimit(self._usual)


_MORE, _AS_IT_IS = _Room(), nullcontext()


def room(deep: bool) -> AbstractContextManager[None]:
    """For a walk over an expression, deep or not."""
    return _MORE if deep else _AS_IT_IS
