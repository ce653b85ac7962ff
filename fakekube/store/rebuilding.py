"""Makes the contents of a bucket from records and events that were written down.

Invariant: the contents are those of a bucket that held `records` and then had these events.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from fakekube.store.bucket import Contents
from fakekube.store.history import History
from fakekube.store.timeline import Retention
from fakekube.store.values import Event, Record
from fakekube.store.versions import Versions

V = TypeVar("V")

_EVERYTHING = Retention(compaction_interval=None, window_maximum=1 << 62, window_age=float("inf"))


def rebuilt(records: Iterable[Record[V]], changes: Iterable[tuple[Record[V], bool, float]] = (), floor: int = 0) -> Contents[V]:
    """Returns the contents of a bucket.

    Args:
        records: what it held before the changes.
        changes: in the order of their revisions: the record (of a deletion, the key and the revision of that), whether it
            was deleted, and when, in seconds of the store's `now`.
        floor: the revision after which cached cursors know every event.
    """
    versions: Versions[V] = Versions()
    history: History[V] = History(floor)
    for record in records:
        versions.apply(Event(record.revision, record.key, record, None, 0.0, {}))
    for record, deleted, time in changes:
        previous = versions.heads.get(record.key)
        event = Event(record.revision, record.key, None if deleted else record, previous, time, {})
        if deleted and previous is None:
            raise ValueError(f"{record.key} is deleted at revision {record.revision} and was not there")
        versions.apply(event)
        history.append(event, _EVERYTHING)
    return Contents(versions, history)
