"""A cache of bounded size for values that are cheap to compute again.

Invariant: it never holds more entries than its maximum; a full cache is cleared, so that readers need not maintain
the order of use.
"""

from __future__ import annotations

from typing import TypeVar

__all__ = ["BoundedCache"]

K = TypeVar("K")
V = TypeVar("V")


class BoundedCache(dict[K, V]):
    """A dict whose entries are set by `add` only.

    Args:
        maximum: The maximal number of entries.
    """

    __slots__ = ("_maximum",)

    def __init__(self, maximum: int) -> None:
        super().__init__()
        self._maximum = maximum

    def add(self, key: K, value: V) -> V:
        """Adds a value and returns it. A full cache is cleared first."""
        if len(self) >= self._maximum:
            self.clear()
        self[key] = value
        return value
