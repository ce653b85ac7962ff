"""The values of the store's interface: records, events, pages and errors. All of them are immutable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, TypeVar

__all__ = ["Compacted", "Conflict", "Event", "FutureRevision", "Page", "Record", "Selection", "StoreError"]

V = TypeVar("V")


class Record(NamedTuple, Generic[V]):
    """One version of one key."""

    key: str
    value: V
    created: int
    """The revision at which the key came into being (the first one since it was last absent)."""
    revision: int
    """The revision of the write that made this version."""


class Event(NamedTuple, Generic[V]):
    """One write to one key. One object shared by all cursors."""

    revision: int
    key: str
    record: Record[V] | None
    """What the key holds since; None if it was deleted."""
    previous: Record[V] | None
    """What the key held before; None if it was absent."""
    time: float
    """When, in seconds of the store's `now`."""
    encodings: dict[Any, Any]
    """For readers: what they made of the event, kept for each other. The store does not look into it."""


class Page(NamedTuple, Generic[V]):
    """A run of records in the order of their keys, as they stood at one revision."""

    records: Sequence[Record[V]]
    more: bool
    """Is there a record after the last one?"""
    remaining: int
    """How many there are after the last one."""
    revision: int
    """The revision that the page shows."""
    encodings: dict[Any, Any]
    """For readers: what they made of the records, kept for each other. The store does not look into it."""


class Selection(NamedTuple, Generic[V]):
    """Records in the order of their keys, among which are all that meet some conditions."""

    records: Sequence[Record[V]]
    revision: int
    """The revision that they show."""


class StoreError(Exception):
    """An error of the store."""


class Conflict(StoreError):
    """A write expected another version than the current one."""

    def __init__(self, current: Record[Any] | None) -> None:
        super().__init__(f"found revision {current.revision}" if current else "found no record")
        self.current = current
        """What is there; None if the key is absent."""


class Compacted(StoreError):
    """The requested revision has been compacted."""

    def __init__(self, revision: int) -> None:
        super().__init__(f"forgotten before revision {revision}")
        self.revision = revision
        """The oldest revision that could have been asked for."""


class FutureRevision(StoreError):
    """The requested revision is in the future."""

    def __init__(self, current: int) -> None:
        super().__init__(f"the newest revision is {current}")
        self.current = current
