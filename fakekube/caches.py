"""A cache of bounded size for what is cheap to make again.

Invariant: it never holds more entries than its maximum; a full cache is emptied, so that no reader pays for an order of use.
"""

from __future__ import annotations

from typing import TypeVar

__all__ = ["BoundedCache"]

K = TypeVar("K")
V = TypeVar("V")


class BoundedCache(dict[K, V]):
    """A dict for readers; `add` is the only way to put something in.

    Args:
        maximum: entries that it may hold.
    """

    __slots__ = ("_maximum",)

    def __init__(self, maximum: int) -> None:
        super().__init__()
        self._maximum = maximum

    def add(self, key: K, value: V) -> V:
        """Keep a value, and return it. A full cache is emptied first."""
        if len(self) >= self._maximum:
            self.clear()
        self[key] = value
        return value
