"""Indexes records by attributes of their values: the cost of a selective read depends on its result.

An `Index` has the keys of a bucket by one attribute of their values, as it is now. It is made when it is first
asked for, and costs writes nothing: it is a cursor, which catches up with the history of the bucket before it
answers. When that has forgotten events it had not seen, it is made anew.

Of the past an index knows nothing. What met a condition at a revision meets it now, or its key was written
since; so the keys to look at are those of the index and those of all later events.

Not thread-safe: `Bucket` holds the lock.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Generic, NamedTuple, TypeVar

from fakekube.store.history import History
from fakekube.store.keys import EVERYTHING, SortedKeys, Span
from fakekube.store.values import Event
from fakekube.store.versions import Keys, Versions

__all__ = ["Condition", "Index", "Indexes"]

V = TypeVar("V")

#: So many attributes of a bucket are kept indexed.
_MAXIMUM = 16


Attribute = Callable[[V], str | None]
"""Reads an attribute of a value, None if it has none. Attributes that are equal are the same."""


class Condition(NamedTuple, Generic[V]):
    """An attribute of a value is one of some texts."""

    attribute: Attribute[V]
    admitted: Collection[str]
    """Each once."""


class Index(Generic[V]):
    """The keys of a bucket by one attribute."""

    __slots__ = ("_attribute", "_keys", "_sequence")

    def __init__(self, attribute: Attribute[V]) -> None:
        self._attribute = attribute
        self._keys: dict[str, SortedKeys] = {}
        self._sequence = -1
        """Of the first event in the bucket's history that is not in the index yet."""

    def catch_up(self, versions: Versions[V], history: History[V]) -> None:
        """Become what the bucket holds now."""
        events = history.kept_since(self._sequence)
        if events is None or len(events) > len(versions.heads):
            self._build(versions)
        else:
            for event in events:
                self._apply(event)
        self._sequence = history.end

    def _build(self, versions: Versions[V]) -> None:
        keys: dict[str, list[str]] = {}
        for record in versions.now(EVERYTHING, 0):
            text = self._attribute(record.value)
            if text is not None:
                keys.setdefault(text, []).append(record.key)
        self._keys = {text: SortedKeys(those) for text, those in keys.items()}

    def _apply(self, event: Event[V]) -> None:
        before = self._attribute(event.previous.value) if event.previous is not None else None
        now = self._attribute(event.record.value) if event.record is not None else None
        if before == now:
            return
        if before is not None:
            self._keys[before].remove(event.key)
            if not self._keys[before]:
                del self._keys[before]
        if now is not None:
            self._keys.setdefault(now, SortedKeys()).add(event.key)

    def count(self, admitted: Collection[str]) -> int:
        """How many keys have one of these texts."""
        return sum(len(self._keys[text]) for text in admitted if text in self._keys)

    def first(self, admitted: Collection[str], span: Span, limit: int) -> list[str]:
        """The first `limit` keys of a span (0: all) that have one of these texts."""
        runs = [self._keys[text].first(span, limit) for text in admitted if text in self._keys]
        if len(runs) == 1:
            return runs[0]
        return sorted(key for run in runs for key in run)[: limit or None]


class Indexes(Generic[V]):
    """The indexes of one bucket, by attribute; of many, those that were used last."""

    __slots__ = ("_indexes",)

    def __init__(self) -> None:
        self._indexes: dict[Attribute[V], Index[V]] = {}

    def keys(self, conditions: Sequence[Condition[V]], versions: Versions[V], history: History[V], revision: int | None) -> Keys:
        """Keys among which are all that meet some conditions, now (None) or at a revision that can be read.

        Now they are those that meet the condition which the fewest meet.
        """
        index, admitted = self._rarest(conditions, versions, history)
        if revision is None:
            return lambda span, limit: index.first(admitted, span, limit)
        then = revision

        def met_then(span: Span, limit: int) -> list[str]:
            return sorted({*index.first(admitted, span, limit), *history.keys_since(span, then)})[: limit or None]

        return met_then

    def _rarest(
        self, conditions: Sequence[Condition[V]], versions: Versions[V], history: History[V]
    ) -> tuple[Index[V], Collection[str]]:
        found = [(self._current(one.attribute, versions, history), one.admitted) for one in conditions]
        return min(found, key=lambda one: one[0].count(one[1]))

    def _current(self, attribute: Attribute[V], versions: Versions[V], history: History[V]) -> Index[V]:
        index = self._indexes.pop(attribute, None) or Index(attribute)
        index.catch_up(versions, history)
        self._indexes[attribute] = index
        if len(self._indexes) > _MAXIMUM:
            del self._indexes[next(iter(self._indexes))]
        return index
