"""Caches of bounded size for values that can be computed again.

Invariant: a `BoundedCache` never holds more entries than its maximum; a full cache is cleared, so that readers need not maintain
the order of use. A `cached_bytes` function keeps the latest results up to a number of bytes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedCache(dict[K, V]):
    """A dict whose entries are set by `add` only.

    Args:
        maximum: the maximal number of entries.
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


def cached_bytes(maximum: int) -> Callable[[Callable[[bytes], bytes]], Callable[[bytes], bytes]]:
    """Returns a decorator that keeps the results of a function from bytes to bytes.

    Args:
        maximum: the maximal number of bytes of all kept arguments and results; what was not used longest is forgotten first.
    """

    def decorate(function: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
        kept: dict[bytes, bytes] = {}
        lock = threading.Lock()
        size = 0

        @wraps(function)
        def cached(argument: bytes) -> bytes:
            nonlocal size
            with lock:
                found = kept.pop(argument, None)
                if found is not None:
                    kept[argument] = found
                    return found
            made = function(argument)
            with lock:
                if argument not in kept:
                    kept[argument] = made
                    size += len(argument) + len(made)
                while size > maximum:
                    oldest = next(iter(kept))
                    size -= len(oldest) + len(kept.pop(oldest))
            return made

        return cached

    return decorate
