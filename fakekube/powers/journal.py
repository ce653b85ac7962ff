"""The journal of a cluster: its changes in the order of their revisions, each with its cause; and its marks.

From the beginning of a cluster only the causes are noted; changes are read from the history of the store, which is as long as
that of a real cluster. From `open` on, which the page, a trace file and `fakekube serve` call, the journal also keeps the changes
themselves: the latest with their objects, and rows of older ones. So it reaches further back than the compaction.

The cause of a change is the request that is in progress in the thread, which `Observer` sets for the time of its processing;
requests nest, as that of a fault within the request to which it happens. Work that changes the store directly (a load, a replay)
names its reason by `because`.

A mark is what a person, a test or the cluster did outside of the Kubernetes API: faults that were armed, a clock that was moved,
snapshots, restarts, the phases of a test, and the texts of `Cluster.mark`.

Invariants: changes are in the order of their revisions. Memory is bounded by the numbers of `KEPT_ROWS` and `KEPT_EVENTS`, and
by `KEPT_BYTES` of objects; the latest `KEPT_MARKS` marks are kept, with texts of at most `MAX_MARK_TEXT` characters. Setting and
reading a cause takes no lock.
"""

from __future__ import annotations

import itertools
import threading
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from fakekube.base.objects import Object, StoredObject
from fakekube.powers.columns import Table, revision_value
from fakekube.powers.exchange import Cause, Exchange
from fakekube.store.values import VISITED, Event, Record, untrack

if TYPE_CHECKING:
    from fakekube.apimachinery.codecs.document import Document
    from fakekube.base.clock import Reading
    from fakekube.powers.packs import Pack
    from fakekube.store import Store


#: The request in progress in this thread, or the reason of changes without one.
CURRENT: ContextVar[Exchange | Cause | None] = ContextVar("fakekube-cause", default=None)

_CLUSTER = Cause(-1, reason="cluster")


@contextmanager
def because(reason: str) -> Iterator[None]:
    """Gives the changes of a block, in this thread, a reason."""
    token = CURRENT.set(Cause(-1, reason=reason))
    try:
        yield
    finally:
        CURRENT.reset(token)


def current_cause(bucket: str, key: str, revision: int) -> Cause:
    """Returns the cause of a change that this thread makes, and notes the revision in its request."""
    current = CURRENT.get()
    if current is None:
        return _CLUSTER
    if isinstance(current, Cause):
        return current
    cause = current.cause
    if cause is None:
        current.wrote = [revision]
        current.cause = cause = cause_of(current, f"{bucket} {key}")
    else:
        current.wrote.append(revision)
    return cause


def cause_of(exchange: Exchange, key: str = "") -> Cause:
    """Returns what is kept of a request."""
    outer = exchange.within
    fault = (outer.fault or "") if outer is not None and exchange.of_fault else ""
    return Cause(exchange.number, exchange.info, exchange.agent, exchange.user, exchange.own, key, fault)


T = TypeVar("T")

#: The number of latest changes whose causes, and after `open` whose rows, are kept.
KEPT_ROWS: Final = 100_000
#: The number of latest changes that are kept with their objects.
KEPT_EVENTS: Final = 10_000
#: The bytes of objects, as JSON, of the changes that are kept with their objects.
KEPT_BYTES: Final = 32 << 20
#: After so many changes the bytes are counted.
_COUNT_INTERVAL: Final = 1_000

_INITIAL: Final = Cause(-1, reason="initial")
_UNKNOWN: Final = Cause(-1, reason="unknown")
_ADDED, _MODIFIED, _DELETED = "ADDED", "MODIFIED", "DELETED"


class Change(NamedTuple):
    """One committed version of one object."""

    revision: int
    bucket: str
    key: str
    type: str
    """ADDED, MODIFIED or DELETED."""
    time: float
    """In seconds of the monotonic clock of the cluster."""
    uid: str
    after: int
    """The number of the newest request at the time of the change; -1 if there was none."""
    cause: Cause
    heartbeat: bool
    """Whether it only shows that something lives: a lease, an event, the status of a node without a changed condition."""
    event: Event[Document] | None
    """The change with its objects; None if they are not kept any more."""

    @property
    def before(self) -> Object | None:
        """The object before the change, as stored; None if it was created, or is not kept."""
        return None if self.event is None or self.event.previous is None else self.event.previous.value.object

    @property
    def object(self) -> Object | None:
        """The object after the change; None if it was deleted, or is not kept."""
        return None if self.event is None or self.event.record is None else self.event.record.value.object


class Journal:
    """The journal of one cluster.

    Args:
        ring: of the recorder, for the number of the newest request.
        initial: the revision of the cluster now; earlier changes have the reason `initial`.
    """

    def __init__(self, ring: Sequence[Exchange], initial: int = 0) -> None:
        self._ring = ring
        self.initial = initial
        self._noted: deque[tuple[int, int, Cause]] = deque(maxlen=KEPT_ROWS)
        """Revision, newest request and cause of changes, while the journal is not open."""
        self._new: deque[tuple[str, Event[Document], int, Cause]] = deque()
        """Changes that nobody has read yet: bucket, event, newest request and cause."""
        self._shed: deque[Change] = deque(maxlen=KEPT_ROWS)
        """Changes whose objects were dropped before anybody has read them; all are older than those in `_new`."""
        self._handover = threading.Lock()
        """Held by whoever changes `_new` and `_shed`: the committing thread, and a reader that takes them."""
        self._changes: deque[Change] = deque()
        """The latest changes, with their objects."""
        self._rows: deque[Change] = deque(maxlen=KEPT_ROWS - KEPT_EVENTS)
        """Older changes, without their objects."""
        self._packs: Sequence[Pack[Change]] = ()
        """The older changes of both, packed: since then nobody has read them."""
        self._reading = threading.RLock()
        self.is_open = False
        self.floor = 0
        """The oldest revision to which changes can be undone: that of the last replacement of the objects or compaction."""
        self.written = 0
        """The number of changes since the journal is open, which tells readers whether there are new ones."""
        self._counted = 0
        """The number of changes when the bytes of those that were read were counted."""

    def note(self, bucket: str, event: Event[Document]) -> None:
        """Notes a change: `Store.keep_journal` calls it under the lock of the store."""
        revision = event.revision
        cause = current_cause(bucket, event.key, revision)
        ring = self._ring
        try:
            after = ring[-1].number
        except IndexError:
            after = -1
        if not self.is_open:
            noted = (revision, after, cause)
            self._noted.append(noted)
            if len(self._noted) > VISITED:
                untrack(noted, cause)
            return
        with self._handover:
            self._new.append((bucket, event, after, cause))
            self.written += 1
            if len(self._new) > KEPT_EVENTS:
                self._shed.append(_without_objects(*self._new.popleft()))
            if self.written % _COUNT_INTERVAL == 0:
                self._shed_large_objects()

    def _shed_large_objects(self) -> None:
        """Drops the objects of the oldest changes that nobody has read yet, if those of all are too large."""
        kept = _count_within_bytes([event for _, event, _, _ in self._new])
        while len(self._new) > kept:
            self._shed.append(_without_objects(*self._new.popleft()))

    def _take_new_changes(self) -> None:
        """Takes what was committed since the last reading, and makes the packed changes again."""
        with self._reading:
            self._unpack()
            with self._handover:
                shed, self._shed = self._shed, deque(maxlen=KEPT_ROWS)
                new, self._new = self._new, deque()
            if shed:  # what was read before is older
                self._drop_objects(len(self._changes))
                self._rows.extend(shed)
            self._changes.extend(_change(*one) for one in new)
            kept = KEPT_EVENTS
            if self.written - self._counted >= _COUNT_INTERVAL:
                self._counted = self.written
                kept = min(kept, _count_within_bytes([one.event for one in self._changes if one.event is not None]))
            self._drop_objects(len(self._changes) - kept)

    def _drop_objects(self, count: int) -> None:
        """Drops the objects of so many changes, the oldest first."""
        for _ in range(count):
            change = self._changes.popleft()._replace(event=None)
            untrack(change, change.cause)
            self._rows.append(change)

    # --- Opening ------------------------------------------------------------------------------------------------------

    def open(self, store: Store[Document]) -> None:
        """Keeps changes from now on, and takes those that the store still has. Does nothing if it is open."""
        with self._reading:
            if self.is_open:
                return
            self.is_open = True
            self.floor = max(self.floor, store.compacted)
            self._merge(self._read_history(store))
            self._noted.clear()

    def resume(self, store: Store[Document], reason: str) -> None:
        """Takes the history that a restored state has brought, if the journal is open.

        Args:
            store: of the cluster.
            reason: the cause of the changes in it.
        """
        with self._reading:
            self.floor = store.compacted
            if self.is_open:
                cause = Cause(-1, reason=reason)
                newest = max((change.revision for change in self.changes()), default=0)
                self._merge([change._replace(cause=cause) for change in self._read_history(store) if change.revision > newest])

    def _read_history(self, store: Store[Document]) -> list[Change]:
        events = [(bucket.name, event) for bucket in store.buckets() for event in bucket.all_events()[0]]
        noted = {revision: (after, cause) for revision, after, cause in _snapshot(self._noted)}
        found = []
        for bucket, event in events:
            after, cause = noted.get(event.revision, (-1, _INITIAL if event.revision <= self.initial else _UNKNOWN))
            found.append(_change(bucket, event, after, cause))
        return found

    def _merge(self, past: list[Change]) -> None:
        """Adds the changes of a history that the journal does not have; other threads may have added later ones meanwhile."""
        self._take_new_changes()
        present = [*self._rows, *self._changes]
        known = {change.revision for change in present}
        missing = [change for change in past if change.revision not in known]
        self._changes = deque(sorted([*present, *missing], key=_revision))
        self._rows.clear()
        self._drop_objects(len(self._changes) - KEPT_EVENTS)
        with self._handover:
            self.written += len(missing)

    def records(self) -> list[tuple[str, Record[Document]]]:
        """Returns the versions before and after each change that is kept with its objects, with the names of their buckets."""
        with self._reading:
            self._take_new_changes()
            found = [(one.bucket, one.event) for one in self._changes if one.event is not None]
        return [(bucket, one) for bucket, event in found for one in (event.previous, event.record) if one is not None]

    def pack(self) -> None:
        """Packs the changes: they take a part of their memory until somebody reads them."""
        from fakekube.powers.packs import make_packs

        with self._reading:
            self._take_new_changes()
            self._packs = make_packs([*self._rows, *self._changes])
            self._rows.clear()
            self._changes.clear()

    def _unpack(self) -> None:
        for pack in self._packs:
            for change in pack.unpack():
                if change.event is None:
                    untrack(change, change.cause)
                    self._rows.append(change)
                else:
                    self._changes.append(change)
        self._packs = ()

    # --- Reading ------------------------------------------------------------------------------------------------------

    def changes(self) -> list[Change]:
        """Returns all changes that are kept, in the order of their revisions. The journal must be open."""
        with self._reading:
            self._take_new_changes()
            return [*self._rows, *self._changes]

    def since(self, revision: int, limit: int) -> list[Change]:
        """Returns at most `limit` changes after a revision."""
        with self._reading:
            self._take_new_changes()
            found: list[Change] = []
            for change in reversed(self._changes):  # mostly only the last few are wanted
                if change.revision <= revision:
                    return found[::-1][:limit]
                found.append(change)
        every = self.changes()
        start = bisect_right(every, revision, key=_revision)
        return every[start : start + limit]

    def find(self, revision: int) -> Change | None:
        """Returns the change of a revision; None if there is none, or it is not kept."""
        every = self.changes()
        place = bisect_right(every, revision, key=_revision) - 1
        return every[place] if place >= 0 and every[place].revision == revision else None


def _count_within_bytes(events: Sequence[Event[Document]]) -> int:
    """Returns how many of the latest events have objects of at most `KEPT_BYTES`."""
    total = 0
    for count, event in enumerate(reversed(events)):
        total += 0 if event.record is None else event.record.value.size
        if total > KEPT_BYTES:
            return count
    return len(events)


def _snapshot(found: deque[T]) -> list[T]:
    """Returns the items of a deque to which another thread may append without a lock."""
    while True:
        try:
            return list(found)
        except RuntimeError:  # another thread has added one
            continue


def _revision(change: Change) -> int:
    return change.revision


def _change(bucket: str, event: Event[Document], after: int, cause: Cause) -> Change:
    record, previous = event.record, event.previous
    shown = record or previous
    obj: StoredObject = {} if shown is None else shown.value.tree  # of many changes, which may be old
    type_ = _DELETED if record is None else _ADDED if previous is None else _MODIFIED
    uid = (obj.get("metadata") or {}).get("uid", "")
    return Change(event.revision, bucket, event.key, type_, event.time, uid, after, cause, _is_heartbeat(bucket, event), event)


def _without_objects(bucket: str, event: Event[Document], after: int, cause: Cause) -> Change:
    """Returns a change without its objects, as cheaply as possible: it is called for every write."""
    type_ = _DELETED if event.record is None else _ADDED if event.previous is None else _MODIFIED
    change = Change(event.revision, bucket, event.key, type_, event.time, "", after, cause, bucket in _HEARTBEATS, None)
    untrack(change, cause)
    return change


#: Buckets of objects that only record the past, or show that something lives.
_HEARTBEATS: Final = frozenset({"events", "leases.coordination.k8s.io"})


def _is_heartbeat(bucket: str, event: Event[Document]) -> bool:
    """Reports whether a change has `Change.heartbeat`."""
    if bucket in _HEARTBEATS:
        return True
    if bucket != "nodes" or event.record is None or event.previous is None:
        return False
    return _without_report(event.record.value.tree) == _without_report(event.previous.value.tree)


def _without_report(node: StoredObject) -> Object:
    """Returns a node without what every report of its kubelet changes."""
    status = node.get("status") or {}
    conditions = [
        {name: value for name, value in condition.items() if name != "lastHeartbeatTime"}
        for condition in status.get("conditions") or ()
        if isinstance(condition, dict)
    ]
    metadata = {name: value for name, value in node["metadata"].items() if name not in ("resourceVersion", "managedFields")}
    return {**node, "metadata": metadata, "status": {**status, "conditions": conditions}}


# --- The marks of a cluster -------------------------------------------------------------------------------------------


#: The number of latest marks that are kept.
KEPT_MARKS: Final = 10_000
#: The maximum number of characters of a mark's text.
MAX_MARK_TEXT: Final = 1_000

#: The columns of `Marks.rows`.
_MARK_COLUMNS: Final = ("number", "after", "revision", "began", "time", "kind*", "text*")


class Mark(NamedTuple):
    """One mark."""

    number: int
    after: int
    """The number of the newest request; -1 if there was none."""
    revision: int
    """Of the cluster."""
    began: float
    """Real seconds, as `time.monotonic`."""
    time: float
    """Seconds since the epoch by the clock of the cluster."""
    kind: str
    """`mark`, `phase`, `fault`, `clock`, `snapshot`, `restore`, `reset`, `load`, `compaction`, `restart` or `outage`."""
    text: str


class Marks:
    """The marks of one cluster.

    Args:
        now: returns the number of the newest request, the revision, and the time of the clock in seconds since the epoch.
    """

    def __init__(self, now: Callable[[], tuple[int, int, float]]) -> None:
        self._now = now
        self._marks: deque[Mark] = deque(maxlen=KEPT_MARKS)
        self._next = itertools.count(1).__next__
        self.newest = 0
        """The number of the latest mark; 0 if there was none."""

    def add(self, kind: str, text: str) -> Mark:
        """Adds a mark at the present place."""
        after, revision, now = self._now()
        mark = Mark(self._next(), after, revision, time.monotonic(), now, kind, text[:MAX_MARK_TEXT])
        self._marks.append(mark)
        self.newest = mark.number
        return mark

    def since(self, number: int = 0) -> list[Mark]:
        """Returns the marks after a number, oldest first."""
        return [mark for mark in _snapshot(self._marks) if mark.number > number]

    def rows(self, since: int = 0, start: float = 0.0) -> dict[str, Any]:
        """Returns the marks after a number as columns; `start` is the time from which `began` counts."""
        table, found = Table(_MARK_COLUMNS), self.since(since)
        for mark in found:
            began = round((mark.began - start) * 1000, 1)
            table.add(mark.number, mark.after, revision_value(mark.revision), began, round(mark.time, 3), mark.kind, mark.text)
        kept = self.since()
        return table.data(
            next=found[-1].number if found else since, more=False, oldest=kept[0].number if kept else self.newest + 1
        )


def describe_move(before: Reading, after: Reading) -> str:
    """Returns what was done to a clock, from its readings; "" if nothing was."""
    if before.held is not after.held:
        return "held" if after.held else "released"
    if before.factor != after.factor:
        return f"runs {after.factor:g} times as fast"
    moved = (after.now - before.now if after.held else after.offset - before.offset).total_seconds()
    return f"advanced by {format_duration(moved)}" if abs(moved) >= _ROUNDING else ""


#: Seconds; a smaller difference is one of the arithmetic of floats.
_ROUNDING: Final = 0.0005
_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "m"))


def format_duration(seconds: float) -> str:
    """Returns a duration as people read it: `1h 30m`, `12.5s`."""
    parts, rest = [], round(seconds, 3)
    for size, unit in _UNITS:
        if rest >= size:
            parts.append(f"{int(rest // size)}{unit}")
            rest = round(rest % size, 3)
    if rest or not parts:
        parts.append(f"{rest:g}s")
    return " ".join(parts)
