"""The store against a naive one, which keeps a whole copy of every revision: every rule compares the two."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fakekube.store import (
    Compacted,
    Condition,
    Conflict,
    Cursor,
    Event,
    FutureRevision,
    Record,
    Retention,
    Snapshot,
    Store,
    versions,
)

RETENTION = Retention(compaction_interval=None, window_minimum=3, window_maximum=6, window_age=10.0)
BUCKETS = st.sampled_from(["a", "a", "a", "b", "c"])
KEYS = st.sampled_from(["n/a", "n/b", "n/\U0010ffff", "n0/a", "z", "n", "\U0010ffffx"])
PREFIXES = ("", "n/", "n", "q", "\U0010ffff")
PICKS = st.integers(0, 3)
BACK = st.integers(-3, 12)
"""How far before the newest revision; what is negative lies in the future."""


def parity(value: object) -> str | None:
    """An attribute that every value has."""
    assert isinstance(value, int)
    return ("even", "odd")[value % 2]


def third(value: object) -> str | None:
    """An attribute that some values do not have."""
    assert isinstance(value, int)
    return str(value % 3) if value % 3 else None


CONDITIONS = st.lists(
    st.builds(Condition, st.just(parity), st.sampled_from([["even"], ["odd"], ["odd", "even"], ["none"]]))
    | st.builds(Condition, st.just(third), st.sampled_from([["1"], ["2"], ["1", "2", "3"]])),
    min_size=1,
    max_size=3,
)

Heads = dict[str, dict[str, tuple[object, int, int]]]
"""Bucket → key → (value, created, revision)."""


@dataclass
class ModelEvent:
    revision: int
    key: str
    record: tuple[object, int, int] | None
    previous: tuple[object, int, int] | None
    time: float


@dataclass
class ModelHistory:
    """All events of one bucket, and where its cached window begins."""

    floor: int
    events: list[ModelEvent] = field(default_factory=list)
    cached: int = 0
    generation: int = 0
    """Counts restorations: cursors of an earlier one are lost."""

    def append(self, event: ModelEvent, retention: Retention) -> None:
        self.events.append(event)
        while True:
            window = self.events[self.cached :]
            if len(window) <= retention.window_minimum:
                break
            young = event.time - window[0].time <= retention.window_age
            if len(window) <= retention.window_maximum and young:
                break
            self.cached += 1
            self.floor = self.events[self.cached].revision - 1


class Model:
    """What a `Store` should do, without any thought of cost."""

    def __init__(self, retention: Retention) -> None:
        self.retention = retention
        self.revision = 0
        self.compacted = 0
        self.floor = 0
        self.now = 0.0
        self.states: dict[int, Heads] = {0: {}}
        self.histories: dict[str, ModelHistory] = {}

    def heads(self, bucket: str, revision: int | None = None) -> dict[str, tuple[object, int, int]]:
        return self.states[self.revision if revision is None else revision].get(bucket, {})

    def history(self, bucket: str) -> ModelHistory:
        return self.histories.setdefault(bucket, ModelHistory(self.floor))

    def advance(self) -> int:
        self.states[self.revision + 1] = self.states[self.revision]
        self.revision += 1
        return self.revision

    def write(self, bucket: str, key: str, value: object | None) -> None:
        previous = self.heads(bucket).get(key)
        state = {name: dict(heads) for name, heads in self.states[self.revision].items()}
        self.advance()
        heads = state.setdefault(bucket, {})
        if value is None:
            del heads[key]
        else:
            heads[key] = (value, previous[1] if previous else self.revision, self.revision)
        self.states[self.revision] = state
        event = ModelEvent(self.revision, key, heads.get(key), previous, self.now)
        self.history(bucket).append(event, self.retention)

    def compact(self, revision: int) -> None:
        self.compacted = max(self.compacted, revision)

    def forget(self, bucket: str) -> None:
        history = self.history(bucket)
        history.cached, history.floor = len(history.events), self.revision

    def lost(self, bucket: str, place: int, *, cached: bool) -> bool:
        """Is a cursor at that place of the events before its window?"""
        history = self.history(bucket)
        if cached:
            return place < history.cached
        return any(event.revision < self.compacted for event in history.events[place:])

    def too_old(self, bucket: str, after: int, *, cached: bool) -> bool:
        """Can no cursor begin there?"""
        return after < (self.history(bucket).floor if cached else self.compacted - 1)

    def restore(self, heads: Heads, revision: int) -> None:
        target = max(self.revision, revision) + 2
        while self.revision < target:
            self.advance()
        self.states[self.revision] = heads
        self.floor = self.revision
        self.compact(self.revision)
        for history in self.histories.values():
            history.events.clear()
            history.cached, history.floor = 0, self.revision
            history.generation += 1

    def fork(self) -> Model:
        return copy.deepcopy(self)


@dataclass
class Watched:
    """A cursor, and what it should see next."""

    cursor: Cursor[object]
    bucket: str
    cached: bool
    place: int
    after: int
    generation: int


class Twin:
    """A store, its model, and the cursors over it."""

    def __init__(self, store: Store[object], model: Model) -> None:
        self.store = store
        self.model = model
        self.watched: list[Watched] = []


def triple(record: Record[object] | None) -> tuple[object, int, int] | None:
    return None if record is None else (record.value, record.created, record.revision)


@pytest.fixture(autouse=True, scope="module")
def small_portions() -> Iterator[None]:
    """Few keys are enough to fill a chunk, and a batch of a read of the past."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(versions, "_MAXIMUM", 2)
        patch.setattr(versions, "_BATCH", 1)
        yield


class StoreMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.time = 0.0
        self.values = 0
        store: Store[object] = Store(now=lambda: self.time, retention=RETENTION)
        self.twins = [Twin(store, Model(RETENTION))]
        self.snapshots: list[tuple[Snapshot[object], Heads]] = []

    def twin(self, which: int) -> Twin:
        return self.twins[which % len(self.twins)]

    def revision(self, twin: Twin, back: int) -> int:
        return max(0, twin.model.revision - back)

    # ---------------------------------------------------------------- writes

    @rule(
        which=PICKS,
        bucket=BUCKETS,
        writes=st.lists(st.tuples(KEYS, st.integers(0, 3).map(bool)), min_size=1, max_size=6),
        blind=st.booleans(),
    )
    def commit(self, which: int, bucket: str, writes: list[tuple[str, bool]], blind: bool) -> None:
        twin = self.twin(which)
        writer = twin.store.bucket(bucket)
        twin.model.now = self.time
        for key, keep in writes:
            current = twin.model.heads(bucket).get(key)
            expected = None if blind else current[2] if current else 0
            if not keep and current is None:
                with pytest.raises(Conflict):
                    writer.commit(key, expected, None)
                continue
            self.values += 1
            value = self.values if keep else None
            record = writer.commit(key, expected, (lambda revision: self.values) if keep else None)
            twin.model.write(bucket, key, value)
            after = twin.model.heads(bucket).get(key)
            if after is None:
                assert current is not None
                after = (current[0], current[1], twin.model.revision)
            assert triple(record) == after

    @rule(which=PICKS, bucket=BUCKETS, key=KEYS, off=st.sampled_from([-1, 1]), delete=st.booleans())
    def conflict(self, which: int, bucket: str, key: str, off: int, delete: bool) -> None:
        twin = self.twin(which)
        current = twin.model.heads(bucket).get(key)
        expected = (current[2] if current else 0) + off
        with pytest.raises(Conflict) as refused:
            twin.store.bucket(bucket).commit(key, expected, None if delete else lambda revision: 0)
        assert triple(refused.value.current) == current

    @rule(which=PICKS, bucket=BUCKETS, key=KEYS)
    def fail_to_commit(self, which: int, bucket: str, key: str) -> None:
        def fail(revision: int) -> object:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            self.twin(which).store.bucket(bucket).commit(key, None, fail)

    @rule(which=PICKS)
    def advance(self, which: int) -> None:
        twin = self.twin(which)
        assert twin.store.advance() == twin.model.advance()

    @rule(seconds=st.sampled_from([1.0, 6.0]))
    def wait(self, seconds: float) -> None:
        self.time += seconds

    # ---------------------------------------------------------------- the past

    @rule(which=PICKS, back=BACK)
    def compact(self, which: int, back: int) -> None:
        twin = self.twin(which)
        revision = self.revision(twin, back)
        if revision > twin.model.revision:
            with pytest.raises(FutureRevision):
                twin.store.compact(revision)
            return
        twin.store.compact(revision)
        twin.model.compact(revision)

    @rule(which=PICKS, bucket=BUCKETS)
    def forget(self, which: int, bucket: str) -> None:
        twin = self.twin(which)
        twin.store.bucket(bucket).forget()
        twin.model.forget(bucket)

    @precondition(lambda self: len(self.twins) < 4)
    @rule(which=PICKS)
    def fork(self, which: int) -> None:
        twin = self.twin(which)
        self.twins.append(Twin(twin.store.fork(), twin.model.fork()))

    @rule(which=PICKS)
    def snapshot(self, which: int) -> None:
        twin = self.twin(which)
        taken = twin.store.snapshot()
        assert taken.revision == twin.model.revision
        self.snapshots.append((taken, twin.model.states[twin.model.revision]))

    @precondition(lambda self: self.snapshots)
    @rule(which=PICKS, pick=PICKS)
    def restore(self, which: int, pick: int) -> None:
        twin = self.twin(which)
        taken, heads = self.snapshots[pick % len(self.snapshots)]
        twin.store.restore(taken)
        twin.model.restore(heads, taken.revision)

    # ---------------------------------------------------------------- reads

    @rule(which=PICKS, bucket=BUCKETS, back=BACK)
    def read(self, which: int, bucket: str, back: int) -> None:
        twin = self.twin(which)
        revision = self.revision(twin, back)
        if twin.model.compacted <= revision <= twin.model.revision:
            read_everything(twin, bucket, revision)
            return
        refusal = FutureRevision if revision > twin.model.revision else Compacted
        with pytest.raises(refusal):
            twin.store.bucket(bucket).page(revision=revision)
        with pytest.raises(refusal):
            twin.store.bucket(bucket).get("n/a", revision)

    @rule(which=PICKS, bucket=BUCKETS, conditions=CONDITIONS, prefix=st.sampled_from(PREFIXES), back=BACK | st.none())
    def select(self, which: int, bucket: str, conditions: list[Condition[object]], prefix: str, back: int | None) -> None:
        twin = self.twin(which)
        revision = None if back is None else self.revision(twin, back)
        if revision is None or twin.model.compacted <= revision <= twin.model.revision:
            select(twin, bucket, conditions, prefix, revision)
            return
        with pytest.raises(FutureRevision if revision > twin.model.revision else Compacted):
            twin.store.bucket(bucket).select(conditions, prefix, revision=revision)

    def teardown(self) -> None:
        for twin in self.twins:
            for bucket in "abc":
                read_everything(twin, bucket, None)
                for revision in range(twin.model.compacted, twin.model.revision + 1):
                    read_everything(twin, bucket, revision)
            for watched in twin.watched:
                take(twin, watched, 0)

    # ---------------------------------------------------------------- cursors

    @rule(which=PICKS, bucket=BUCKETS, cached=st.booleans(), back=BACK)
    def open(self, which: int, bucket: str, cached: bool, back: int) -> None:
        twin = self.twin(which)
        after = self.revision(twin, back)
        if twin.model.too_old(bucket, after, cached=cached):
            with pytest.raises(Compacted):
                twin.store.bucket(bucket).cursor(after, cached=cached)
            return
        cursor = twin.store.bucket(bucket).cursor(after, cached=cached)
        history = twin.model.history(bucket)
        place = sum(event.revision <= after for event in history.events)
        twin.watched.append(Watched(cursor, bucket, cached, place, after, history.generation))

    @rule(which=PICKS, pick=PICKS, limit=st.integers(0, 3))
    def take(self, which: int, pick: int, limit: int) -> None:
        twin = self.twin(which)
        if twin.watched:
            take(twin, twin.watched[pick % len(twin.watched)], limit)

    @invariant()
    def agree(self) -> None:
        for twin in self.twins:
            assert twin.store.revision == twin.model.revision
            assert twin.store.compacted == twin.model.compacted


def read_everything(twin: Twin, bucket: str, revision: int | None) -> None:
    """Every prefix, in pages of two, and every key, at one readable revision."""
    reads = twin.store.bucket(bucket)
    heads = twin.model.heads(bucket, revision)
    for prefix in PREFIXES:
        expected = [(key, heads[key]) for key in sorted(heads) if key.startswith(prefix)]
        found: list[Record[object]] = []
        more, start = True, ""
        while more:
            page = reads.page(prefix, start=start, limit=2, revision=revision)
            found += page.records
            assert page.revision == (twin.model.revision if revision is None else revision)
            assert page.remaining == len(expected) - len(found)
            assert page.more is (page.remaining > 0)
            if page.more:
                assert len(page.records) == 2
                start = page.records[-1].key + "\0"
            more = page.more
        assert [(record.key, triple(record)) for record in found] == expected
        assert list(reads.page(prefix, revision=revision).records) == found
        if revision is None:
            assert reads.count(prefix) == len(expected)
    for key in ("n/a", "n/b", "z", "absent"):
        assert triple(reads.get(key, revision)) == heads.get(key)


def select(twin: Twin, bucket: str, conditions: list[Condition[object]], prefix: str, revision: int | None) -> None:
    """What meets some conditions, in steps of two: nothing is missing, and now nothing else is there."""
    heads = {key: one for key, one in twin.model.heads(bucket, revision).items() if key.startswith(prefix)}
    meeting = [{key for key, (value, _, _) in heads.items() if one.attribute(value) in one.admitted} for one in conditions]
    reads = twin.store.bucket(bucket)
    found: list[Record[object]] = []
    start, step = "", 2
    while True:
        selection = reads.select(conditions, prefix, start=start, limit=step, revision=revision)
        assert selection.revision == (twin.model.revision if revision is None else revision)
        found += selection.records
        if len(selection.records) < step:
            break
        start = selection.records[-1].key + "\0"
    assert list(reads.select(conditions, prefix, revision=revision).records) == found
    versions = [record.key for record in found]
    assert versions == sorted(set(versions))
    assert {record.key: triple(record) for record in found}.items() <= heads.items()
    assert set.intersection(*meeting) <= set(versions)
    if revision is None:
        assert set(versions) in meeting


def take(twin: Twin, watched: Watched, limit: int) -> None:
    """What a cursor gives, or that it is lost."""
    history = twin.model.history(watched.bucket)
    lost = watched.generation != history.generation or twin.model.lost(watched.bucket, watched.place, cached=watched.cached)
    if lost:
        assert watched.cursor.pending
        with pytest.raises(Compacted):
            watched.cursor.take(limit)
        return
    rest = history.events[watched.place :]
    assert watched.cursor.pending is bool(rest)
    taken = rest[:limit] if limit else rest
    assert [seen(event) for event in watched.cursor.take(limit)] == [
        (event.revision, event.key, event.record, event.previous) for event in taken if event.revision > watched.after
    ]
    watched.place += len(taken)
    idle = watched.place == len(history.events)
    reached = twin.model.revision if idle else taken[-1].revision
    assert watched.cursor.position == max(reached, watched.after)


def seen(event: Event[object]) -> tuple[object, ...]:
    return event.revision, event.key, triple(event.record), triple(event.previous)


StoreMachine.TestCase.settings = settings(stateful_step_count=30)
TestStore = StoreMachine.TestCase
