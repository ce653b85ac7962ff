"""Compaction by the clock and by the number of writes, and waiting for a revision."""

from __future__ import annotations

import threading

import pytest

from fakekube.store import Compacted, FutureRevision, Retention, Store


class Time:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def write(store: Store[int], times: int) -> None:
    for _ in range(times):
        store.bucket("things").commit("key", None, lambda revision: revision)


def test_compaction_interval_compacts_the_previous_revision() -> None:
    time = Time()
    store: Store[int] = Store(now=time, retention=Retention(compaction_interval=5.0))
    write(store, 3)
    time.now += 4.9
    assert (store.compacted, store.revision) == (0, 3)
    time.now += 0.1
    assert (store.compacted, store.revision) == (0, 4), "the first only notes its revision, which is one more"
    write(store, 1)
    time.now += 5.0
    assert (store.compacted, store.revision) == (4, 6)
    bucket = store.bucket("things")
    assert [record.value for record in bucket.page(revision=4).records] == [3]
    with pytest.raises(Compacted) as refused:
        bucket.page(revision=3)
    assert refused.value.revision == 4


@pytest.mark.parametrize("access", ["get", "page", "cursor", "commit", "advance"])
def test_due_compaction_happens_before_any_access(access: str) -> None:
    time = Time()
    store: Store[int] = Store(now=time, retention=Retention(compaction_interval=5.0))
    write(store, 3)
    bucket = store.bucket("things")
    time.now += 1000.0
    if access == "commit":
        assert bucket.commit("key", None, lambda revision: revision).revision == 6
    elif access == "advance":
        assert store.advance() == 6
    else:
        with pytest.raises(Compacted):
            {
                "get": lambda: bucket.get("key", 1),
                "page": lambda: bucket.page(revision=1),
                "cursor": lambda: bucket.cursor(1, cached=False),
            }[access]()
    assert store.compacted == 4


def test_no_compaction_interval_means_no_compaction_by_time() -> None:
    time = Time()
    store: Store[int] = Store(now=time, retention=Retention(compaction_interval=None))
    write(store, 3)
    time.now += 1e9
    assert (store.compacted, store.revision) == (0, 3)


def test_compaction_by_number_of_revisions() -> None:
    store: Store[int] = Store(retention=Retention(compaction_interval=None, compaction_revisions=10))
    write(store, 20)
    assert (store.compacted, store.revision) == (10, 20)
    write(store, 9)
    assert (store.compacted, store.revision) == (10, 29)


def test_new_retention_applies_from_when_it_is_set() -> None:
    time = Time()
    store: Store[int] = Store(now=time, retention=Retention(compaction_interval=None))
    write(store, 3)
    store.retention = Retention(compaction_interval=5.0)
    time.now += 10.0
    assert store.compacted == 4


def test_compacted_revision_never_decreases_nor_exceeds_the_current() -> None:
    store: Store[int] = Store()
    write(store, 5)
    store.compact(4)
    store.compact(2)
    assert store.compacted == 4
    with pytest.raises(FutureRevision) as refused:
        store.compact(6)
    assert refused.value.current == 5


def test_read_at_a_future_revision_raises_with_the_current_one() -> None:
    store: Store[int] = Store()
    write(store, 5)
    with pytest.raises(FutureRevision) as refused:
        store.bucket("things").get("key", 6)
    assert refused.value.current == 5


def test_wait_returns_when_the_revision_is_reached() -> None:
    store: Store[int] = Store()
    results: list[bool] = []
    waiter = threading.Thread(target=lambda: results.append(store.wait(2, timeout=60.0)))
    waiter.start()
    store.advance()
    write(store, 1)
    waiter.join(30.0)
    assert results == [True]
    assert store.wait(1, timeout=0.0)


def test_wait_returns_false_after_the_timeout() -> None:
    store: Store[int] = Store()
    assert not store.wait(1, timeout=0.001)
