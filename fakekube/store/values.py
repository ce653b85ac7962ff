"""The values of the store's interface: records, events, pages and errors. All of them are immutable.

A full collection of Python's cyclic collector visits every container of the process, and all else stops meanwhile: with a hundred
thousand pods for 400 ms. What a store holds is in no cycle, so there is nothing to find. CPython has a function that takes an
object out of the collector's work (`PyObject_GC_UnTrack`), for types in C; `untrack` calls it through ctypes. Other
implementations of Python go on visiting all. An object that is taken out is freed like any other one when the last reference to
it is gone. A cycle through it would never be freed: values must not refer to the store, nor to what holds it.
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, TypeVar

V = TypeVar("V")


@dataclass(slots=True)  # named tuples take 1.6 times as long to make, and six times to read
class Record(Generic[V]):
    """One version of one key."""

    key: str
    value: V
    created: int
    """The revision at which the key was created."""
    revision: int
    """The revision of the write."""


@dataclass(slots=True)
class Event(Generic[V]):
    """A write to one key. All cursors share the object."""

    revision: int
    key: str
    record: Record[V] | None
    """The new record; None for a deletion."""
    previous: Record[V] | None
    """The replaced record; None for a creation."""
    time: float
    """The time of the write in seconds of the store's `now`."""
    encodings: dict[Any, Any]
    """A cache that readers share, such as for encodings of the event. The store clears it when the event is no longer recent."""


class Page(NamedTuple, Generic[V]):
    """Consecutive records at one revision, sorted by key."""

    records: Sequence[Record[V]]
    more: bool
    """Whether there is a record after the last one."""
    remaining: int
    """The number of records after the last one."""
    revision: int
    """The revision at which the page was read."""
    encodings: dict[Any, Any]
    """A cache that readers share, such as for encodings of the records. The store does not use it."""


class Selection(NamedTuple, Generic[V]):
    """A superset of the records that match some conditions, sorted by key."""

    records: Sequence[Record[V]]
    revision: int
    """The revision at which they were read."""


class StoreError(Exception):
    """An error of the store."""


class Conflict(StoreError):
    """A write expected another version than the current one."""

    def __init__(self, current: Record[Any] | None) -> None:
        super().__init__(f"found revision {current.revision}" if current else "found no record")
        self.current = current
        """The current record; None if the key does not exist."""


class Compacted(StoreError):
    """The requested revision has been compacted."""

    def __init__(self, revision: int) -> None:
        super().__init__(f"forgotten before revision {revision}")
        self.revision = revision
        """The oldest revision that is not compacted."""


class FutureRevision(StoreError):
    """The requested revision is in the future."""

    def __init__(self, current: int) -> None:
        super().__init__(f"the newest revision is {current}")
        self.current = current


# --- What the cyclic collector does not visit -------------------------------------------------------------------------

#: The number of objects up to which the collector may visit those of one kind, so that small stores have no work with this.
VISITED: Final = 256


def untrack(*found: object) -> None:
    """Takes objects out of the work of the collector; they must be in no cycle, now and later."""
    take_out = _find_function()
    if take_out is None:
        return
    for one in found:
        if gc.is_tracked(one):  # the function would read memory that others do not have
            take_out(one)


@functools.cache
def _find_function() -> Callable[[object], object] | None:
    """Returns the function of CPython; None in other implementations, which may not have `gc.is_tracked` either."""
    try:
        import ctypes

        prototype = ctypes.PYFUNCTYPE(None, ctypes.py_object)
        return prototype(("PyObject_GC_UnTrack", ctypes.pythonapi))
    except (ImportError, AttributeError):
        return None
