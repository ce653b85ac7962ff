"""Indexes records by attributes of their values: the cost of a selective read depends on its result.

An `Index` maps the current values of one attribute to keys. It is built on first use and costs writes nothing: like a
cursor, it reads the events of the bucket before each query. When events that it has not read were dropped, it is rebuilt.

An index has no history. A key that matched a condition at a revision still matches it or was written since; so the
candidates at an old revision are the keys of the index and those of all later events.

Not thread-safe: `Bucket` holds the lock.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Generic, NamedTuple, TypeVar

from fakekube.store.history import History
from fakekube.store.values import Event
from fakekube.store.versions import EVERYTHING, Keys, SortedKeys, Span, Versions

V = TypeVar("V")

#: The maximum number of indexes of a bucket.
_MAXIMUM = 16
#: How many of the conditions of a selection are compared to find the most selective one; each may need an index that is built.
_MAX_CONSIDERED = 8


Attribute = Callable[[V], str | None]
"""Returns an attribute of a value, None if it has none. Equal attributes share an index."""


class Condition(NamedTuple, Generic[V]):
    """Matches the values whose attribute is one of some strings."""

    attribute: Attribute[V]
    admitted: Collection[str]
    """The strings, without duplicates."""


class Index(Generic[V]):
    """The keys of a bucket by one attribute."""

    __slots__ = ("_attribute", "_keys", "_sequence")

    def __init__(self, attribute: Attribute[V]) -> None:
        self._attribute = attribute
        self._keys: dict[str, SortedKeys] = {}
        self._sequence = -1
        """The sequence number of the first event that is not in the index yet."""

    def catch_up(self, versions: Versions[V], history: History[V]) -> None:
        """Applies the new events, or rebuilds the index."""
        events = history.kept_since(self._sequence)
        if events is None or len(events) > len(versions.heads):
            self._build(versions)
        else:
            for event in events:
                self._apply(event)
        self._sequence = history.end

    def _build(self, versions: Versions[V]) -> None:
        keys: dict[str, list[str]] = {}
        for record in versions.current_records(EVERYTHING, 0):
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
        """Returns the number of keys with one of these strings."""
        return sum(len(self._keys[text]) for text in admitted if text in self._keys)

    def first_keys(self, admitted: Collection[str], span: Span, limit: int) -> list[str]:
        """Returns the first `limit` keys of a span (0: all) with one of these strings."""
        runs = [self._keys[text].first_keys(span, limit) for text in admitted if text in self._keys]
        if len(runs) == 1:
            return runs[0]
        return sorted(key for run in runs for key in run)[: limit or None]


class Indexes(Generic[V]):
    """The indexes of one bucket by attribute; only the most recently used ones are kept."""

    __slots__ = ("_indexes",)

    def __init__(self) -> None:
        self._indexes: dict[Attribute[V], Index[V]] = {}

    def keys(self, conditions: Sequence[Condition[V]], versions: Versions[V], history: History[V], revision: int | None) -> Keys:
        """Returns a superset of the keys that match the conditions, now (None) or at a revision that is not compacted.

        Now these are the keys that match the most selective condition.
        """
        index, admitted = self._rarest(conditions, versions, history)
        if revision is None:
            return lambda span, limit: index.first_keys(admitted, span, limit)
        then = revision

        def met_then(span: Span, limit: int) -> list[str]:
            return sorted({*index.first_keys(admitted, span, limit), *history.keys_since(span, then)})[: limit or None]

        return met_then

    def _rarest(
        self, conditions: Sequence[Condition[V]], versions: Versions[V], history: History[V]
    ) -> tuple[Index[V], Collection[str]]:
        considered = conditions[:_MAX_CONSIDERED]
        found = [(self._current(one.attribute, versions, history), one.admitted) for one in considered]
        return min(found, key=lambda one: one[0].count(one[1]))

    def _current(self, attribute: Attribute[V], versions: Versions[V], history: History[V]) -> Index[V]:
        index = self._indexes.pop(attribute, None) or Index(attribute)
        index.catch_up(versions, history)
        self._indexes[attribute] = index
        if len(self._indexes) > _MAXIMUM:
            del self._indexes[next(iter(self._indexes))]
        return index
