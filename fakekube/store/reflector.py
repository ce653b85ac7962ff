"""A local copy of the records of a bucket that follows its events: the cost depends on the changes, not on the size.

Invariant: after `catch_up`, `records` is what the bucket held at one revision, and every key that changed since the
previous call was returned.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Generic, TypeVar

from fakekube.store.bucket import Bucket
from fakekube.store.cursor import Cursor
from fakekube.store.values import Compacted, Record

V = TypeVar("V")


class Reflector(Generic[V]):
    """A local copy of a bucket. One owner at a time; empty before the first `catch_up`."""

    def __init__(self, bucket: Bucket[V]) -> None:
        self._bucket = bucket
        self._cursor: Cursor[V] | None = None
        self._records: dict[str, Record[V]] = {}

    @property
    def records(self) -> Mapping[str, Record[V]]:
        """The records by key."""
        return self._records

    def catch_up(self) -> list[str]:
        """Applies new events. Returns the keys that were created, changed or deleted, each once."""
        if self._cursor is not None:
            with suppress(Compacted):  # events were dropped, or a snapshot was restored: compare all records
                return self._follow(self._cursor) if self._cursor.pending else []
        return self._look()

    def _follow(self, cursor: Cursor[V]) -> list[str]:
        news = {event.key: event.record for event in cursor.take()}
        for key, record in news.items():
            if record is None:
                self._records.pop(key, None)
            else:
                self._records[key] = record
        return list(news)

    def _look(self) -> list[str]:
        page = self._bucket.page()
        self._cursor = None
        with suppress(Compacted):  # dropped meanwhile: the next call compares all records
            self._cursor = self._bucket.cursor(page.revision)
        before, self._records = self._records, {record.key: record for record in page.records}
        gone = [key for key in before if key not in self._records]
        return gone + [key for key, record in self._records.items() if before.get(key) is not record]
