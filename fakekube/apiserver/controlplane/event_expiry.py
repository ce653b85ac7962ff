"""Deletes events some time after their last write, as the leases of etcd with which kube-apiserver writes them do.

Writes of the same second expire together.

Invariant: there is a timer only while there are events that were written since the start.

Specified by: --event-ttl of kube-apiserver; pkg/registry/core/event/storage (TTLFunc).
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from contextlib import suppress
from functools import partial
from math import ceil
from typing import Final

from fakekube.apimachinery.codecs.document import Document
from fakekube.base.clock import Clock
from fakekube.net.streams import subscribe_weakly
from fakekube.store import Conflict, Store

_BUCKET: Final = "events"


class EventExpiry:
    """Expires the events of one cluster.

    Args:
        store, clock: of the cluster.
        ttl: seconds after the last write of an event; 0 for no limit.
    """

    def __init__(self, store: Store[Document], clock: Clock, ttl: float) -> None:
        self._bucket, self._clock, self._ttl = store.bucket(_BUCKET), clock, ttl
        self._lock = threading.Lock()
        self._written: deque[tuple[float, int]] = deque()
        """When what was written up to a revision expires, the earliest first."""
        if ttl:
            subscribe_weakly(self, EventExpiry._note_write, (self._bucket,))

    def _note_write(self) -> None:
        if not self._written and not self._bucket.has_keys():
            return  # another state was restored, which has no events
        with self._lock:  # and read within it, so that writes at the same time are noted in their order
            due, newest = ceil(self._clock.monotonic()) + self._ttl, self._bucket.newest
            idle = not self._written
            if idle or self._written[-1][0] != due:
                self._written.append((due, newest))
            else:
                self._written[-1] = due, newest
        if idle:
            self._set_timer(due)

    def _set_timer(self, due: float) -> None:
        self._clock.call_at(due, partial(_expire, weakref.ref(self)), what="the expiry of events")

    def expire(self) -> None:
        """Deletes the events whose time is over, and waits for the next ones."""
        now, last = self._clock.monotonic(), 0
        with self._lock:
            while self._written and self._written[0][0] <= now:
                last = self._written.popleft()[1]
            if not self._written:
                self._written.append((now + self._ttl, last))  # otherwise the deletions below would set a timer
        for record in self._bucket.page().records:
            if record.revision <= last:
                with suppress(Conflict):  # it was written meanwhile
                    self._bucket.commit(record.key, record.revision, None)
        with self._lock:
            if not self._bucket.has_keys():
                self._written.clear()
                return
            due = self._written[0][0]
        self._set_timer(due)


def _expire(reference: weakref.ref[EventExpiry]) -> None:
    """Expires events if the cluster still exists: its clock must not keep it."""
    expiry = reference()
    if expiry is not None:
        expiry.expire()
