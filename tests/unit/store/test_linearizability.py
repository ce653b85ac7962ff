"""Concurrent operations on one store are linearizable.

The revisions name the order, so the search that such a check usually needs is none: writes happen at their
revision, a page at the one that it tells. What is left to check is that this order keeps to the clock (what
ended before something else began comes before it) and that replaying the writes in it gives what every read
saw.
"""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

import pytest

from fakekube.store import Bucket, Compacted, Conflict, Cursor, Event, Record, Retention, Store

KEYS = ("a", "b", "c", "d")
THREADS = 4
OPERATIONS = 1000

State = dict[str, Record[int]]


@dataclass
class Operation:
    """One call: when it began and ended, by a counter that all share, and the revision it happened at."""

    began: int
    ended: int
    revision: int


@dataclass
class Write(Operation):
    key: str
    record: Record[int] | None


@dataclass
class Get(Operation):
    key: str
    record: Record[int] | None


@dataclass
class Read(Operation):
    records: list[Record[int]]


@pytest.fixture
def quick_switches() -> Iterator[None]:
    """Threads that take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def run(*works: Callable[[], None]) -> None:
    """Run all at once; what one raises comes out here."""
    failures: list[BaseException] = []
    start = threading.Barrier(len(works))

    def guarded(work: Callable[[], None]) -> None:
        try:
            start.wait(60.0)
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
    assert not any(thread.is_alive() for thread in threads)
    if failures:
        raise failures[0]


class Client:
    """One thread's random operations, and the history of them."""

    def __init__(self, bucket: Bucket[int], ticks: Iterator[int], seed: int) -> None:
        self.bucket = bucket
        self.ticks = ticks
        self.random = random.Random(seed)
        self.history: list[Operation] = []

    def __call__(self) -> None:
        for _ in range(OPERATIONS):
            self.random.choice((self.write, self.write, self.write, self.get, self.read))()

    def write(self) -> None:
        """Compare and set, or delete, what was just read."""
        key = self.random.choice(KEYS)
        current = self.bucket.get(key)
        delete = current is not None and self.random.random() < 0.3
        began = next(self.ticks)
        try:
            record = self.bucket.commit(key, current.revision if current else 0, None if delete else lambda revision: revision)
        except Conflict:
            return
        operation = Write(began, next(self.ticks), record.revision, key, None if delete else record)
        self.history.append(operation)

    def get(self) -> None:
        key = self.random.choice(KEYS)
        began = next(self.ticks)
        record = self.bucket.get(key)
        self.history.append(Get(began, next(self.ticks), record.revision if record else 0, key, record))

    def read(self) -> None:
        began = next(self.ticks)
        page = self.bucket.page()
        self.history.append(Read(began, next(self.ticks), page.revision, list(page.records)))


def replayed(writes: list[Write]) -> dict[int, State]:
    """The state after each revision."""
    states: dict[int, State] = {0: {}}
    for revision, write in enumerate(sorted(writes, key=lambda one: one.revision), start=1):
        assert write.revision == revision, "every revision is given once"
        state = dict(states[revision - 1])
        if write.record is None:
            del state[write.key]
        else:
            state[write.key] = write.record
        states[revision] = state
    return states


def assert_in_time(operations: list[Operation]) -> None:
    """Nothing happens before what had ended when it began."""
    by_end = sorted(operations, key=lambda one: one.ended)
    latest, place = 0, 0
    for operation in sorted(operations, key=lambda one: one.began):
        while by_end[place].ended < operation.began:
            latest = max(latest, by_end[place].revision)
            place += 1
        assert operation.revision >= latest


def assert_could_be_seen(get: Get, states: dict[int, State], operations: list[Operation]) -> None:
    """A get tells no revision: what it saw was there at some moment between its beginning and its end."""
    earliest = max((one.revision for one in operations if one.ended < get.began), default=0)
    latest = min((one.revision for one in operations if one.began > get.ended), default=len(states) - 1)
    assert any(states[revision].get(get.key) == get.record for revision in range(earliest, latest + 1))


@pytest.mark.usefixtures("quick_switches")
def test_concurrent_operations_are_linearizable() -> None:
    store: Store[int] = Store()
    ticks = count()
    clients = [Client(store.bucket("things"), ticks, seed) for seed in range(THREADS)]
    run(*clients)
    operations = [operation for client in clients for operation in client.history]
    states = replayed([one for one in operations if isinstance(one, Write)])
    ordered = [one for one in operations if not isinstance(one, Get)]
    assert_in_time(ordered)
    for operation in operations:
        if isinstance(operation, Read):
            state = states[operation.revision]
            assert operation.records == [state[key] for key in sorted(state)]
        elif isinstance(operation, Get):
            assert_could_be_seen(operation, states, ordered)


@pytest.mark.usefixtures("quick_switches")
def test_optimistic_increments_are_not_lost() -> None:
    store: Store[int] = Store()
    bucket = store.bucket("counters")
    bucket.commit("key", 0, lambda revision: 0)

    def increment() -> None:
        done = 0
        while done < OPERATIONS:
            current = bucket.get("key")
            assert current is not None
            following = current.value + 1
            try:
                bucket.commit("key", current.revision, lambda revision: following)  # noqa: B023
            except Conflict:
                continue
            done += 1

    run(*[increment] * THREADS)
    final = bucket.get("key")
    assert final is not None
    assert final.value == THREADS * OPERATIONS
    assert store.revision == THREADS * OPERATIONS + 1


@pytest.mark.usefixtures("quick_switches")
def test_watches_forks_and_compactions_are_consistent_during_writes() -> None:
    window = 2 * OPERATIONS  # so that only compactions make a watcher lose events, and only an uncached one
    store: Store[int] = Store(retention=Retention(window_minimum=window, window_maximum=window))
    bucket = store.bucket("things")
    ticks = count()
    writers = [Client(bucket, ticks, seed) for seed in range(2)]
    writing = threading.Event()
    seen: list[Event[int]] = []
    seen_uncached: list[Event[int]] = []
    forks: list[Store[int]] = []

    def write() -> None:
        run(*writers)
        writing.set()

    def watch() -> None:
        cursor: Cursor[int] = bucket.cursor(0)
        while not (writing.is_set() and not cursor.pending):
            seen.extend(cursor.take(7))

    def watch_uncached() -> None:
        cursor: Cursor[int] | None = None
        while not (writing.is_set() and cursor is not None and not cursor.pending):
            try:
                cursor = cursor or bucket.cursor(store.revision, cached=False)
                seen_uncached.extend(cursor.take(7))
            except Compacted:  # begin anew, as a client does; that may be too late again
                cursor = None

    def fork() -> None:
        while not writing.is_set():
            forks.append(store.fork())
            forks[-1].bucket("things").commit("mine", 0, lambda revision: -1)

    def compact() -> None:
        while not writing.is_set():
            store.compact()

    run(write, watch, watch_uncached, fork, compact)
    writes = [one for client in writers for one in client.history if isinstance(one, Write)]
    states = replayed(writes)
    by_revision = {write.revision: write for write in writes}
    assert [event.revision for event in seen] == sorted(by_revision)
    for watched in (seen, seen_uncached):
        assert [event.revision for event in watched] == sorted({event.revision for event in watched})
        for event in watched:
            assert event.record == by_revision[event.revision].record
            assert event.previous == states[event.revision - 1].get(event.key)
    assert forks
    for twin in forks:
        state = states[twin.revision - 1]
        records = {record.key: record for record in twin.bucket("things").page().records}
        assert records.pop("mine").value == -1
        assert records == state
