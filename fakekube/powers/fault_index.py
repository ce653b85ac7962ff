"""An index of faults by the criteria that are compared for equality, so that thousands of faults cost a request little.

Invariant: `candidates` contains every fault in the index whose criteria the exchange meets. Not thread-safe: `Faults` holds
the lock.
"""

from __future__ import annotations

from itertools import chain, product
from operator import attrgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakekube.powers.exchange import Exchange
    from fakekube.powers.fault import Fault

__all__ = ["FaultIndex"]

_Key = tuple[str | None, str | None, str | None, str | None, str | None]
"""Verb, plural, and the criteria of `_NAMED`; None matches any value."""

#: Criteria that are only looked up if a fault has them, because reading a name may require decoding a body.
_NAMED = ("name", "namespace", "user")

_id = attrgetter("id")


class FaultIndex:
    """The faults by their keys; false if there are none."""

    __slots__ = ("_by_key", "_counts")

    def __init__(self) -> None:
        self._by_key: dict[_Key, dict[int, Fault]] = {}
        self._counts = dict.fromkeys(_NAMED, 0)
        """The number of faults with each of these criteria."""

    def __bool__(self) -> bool:
        return bool(self._by_key)

    def add(self, fault: Fault) -> None:
        """Adds a fault."""
        for key in _keys(fault):
            self._by_key.setdefault(key, {})[fault.id] = fault
        self._count(fault, 1)

    def discard(self, fault: Fault) -> None:
        """Removes a fault, if it is there."""
        found = False
        for key in _keys(fault):
            faults = self._by_key.get(key, {})
            found = faults.pop(fault.id, None) is not None or found
            if not faults:
                self._by_key.pop(key, None)
        if found:
            self._count(fault, -1)

    def _count(self, fault: Fault, number: int) -> None:
        for name in _NAMED:
            if getattr(fault.criteria, name) is not None:
                self._counts[name] += number

    def candidates(self, exchange: Exchange) -> list[Fault]:
        """Returns the faults whose criteria an exchange may meet, in the order in which they were armed."""
        named = ((getattr(exchange, name), None) if self._counts[name] else (None,) for name in _NAMED)
        keys = set(product((exchange.verb, None), (exchange.resource or None, None), *named))
        found = [faults for key in keys if (faults := self._by_key.get(key))]
        if len(found) == 1:
            return list(found[0].values())
        return sorted(chain.from_iterable(faults.values() for faults in found), key=_id)


def _keys(fault: Fault) -> list[_Key]:
    criteria = fault.criteria
    plural = criteria.resource.plural if criteria.resource is not None else None
    return [
        (verb, None if plural == "*" else plural, criteria.name, criteria.namespace, criteria.user)
        for verb in dict.fromkeys(criteria.verb or (None,))
    ]
