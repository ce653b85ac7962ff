"""Counts the writes of a client by what they write, so that a provocation meets each kind of write and not only the first one.

Invariant: a write is told from others by its verb, its object and the shape of its body, and never by its values.
"""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fakekube.powers.exchange import Exchange

#: How deep the fields of a body are looked at.
_DEPTH = 3


class Budget:
    """Allows something a number of times for each key."""

    def __init__(self, times: int, most: int = 1000) -> None:
        """`most`: for all keys together."""
        self._times, self._most = times, most
        self._taken: Counter[object] = Counter()
        self._lock = threading.Lock()

    def take(self, key: object) -> bool:
        """Reports whether something may happen to a key once more, and counts it."""
        with self._lock:
            if self._taken[key] >= self._times or self._taken.total() >= self._most:
                return False
            self._taken[key] += 1
            return True

    @property
    def taken(self) -> int:
        """How many times something has happened."""
        return self._taken.total()


class EachWrite(Budget):
    """Allows something a number of times for each kind of write."""

    def take_write(self, exchange: Exchange) -> bool:
        """Reports whether something may happen to a write once more, and counts it."""
        return self.take(kind_of(exchange))


def kind_of(exchange: Exchange) -> object:
    """Returns a value that is equal for writes of the same verb, object and shape."""
    body = exchange.body
    name = exchange.name or (str((body.get("metadata") or {}).get("generateName")) if isinstance(body, dict) else "")
    return (exchange.verb, exchange.resource, exchange.subresource, exchange.namespace, name, shape_of(body))


def shape_of(body: Any) -> tuple[object, ...]:
    """Returns the fields of a body without their values; for a JSON patch the operations and paths."""
    if isinstance(body, list):
        return tuple((one.get("op"), one.get("path")) for one in body if isinstance(one, dict))
    return tuple(sorted(_fields(body, _DEPTH)))


def _fields(value: Any, depth: int) -> set[str]:
    if not isinstance(value, dict) or not depth:
        return set()
    found = set(value)
    for key, inner in value.items():
        found |= {f"{key}.{field}" for field in _fields(inner, depth - 1)}
    return found
