"""Forks, snapshots and what a restored store tells its watchers."""

from __future__ import annotations

import pytest

from fakekube.store import Bucket, Compacted, Record, Store


def put(bucket: Bucket[int], *keys: str) -> None:
    for key in keys:
        bucket.commit(key, None, lambda revision: revision)


def keys(store: Store[int]) -> list[str]:
    return [record.key for record in store.bucket("things").page().records]


def test_revision_counter_is_shared_by_all_buckets() -> None:
    store: Store[int] = Store()
    put(store.bucket("a"), "x")
    put(store.bucket("b"), "x")
    assert store.advance() == 3
    assert store.bucket("a") is store.bucket("a")
    put(store.bucket("a"), "y")
    assert [record.revision for record in store.bucket("a").page().records] == [1, 4]


def test_fork_and_origin_are_independent() -> None:
    origin: Store[int] = Store()
    put(origin.bucket("things"), "a", "b")
    twin = origin.fork()
    put(origin.bucket("things"), "c")
    twin.bucket("things").commit("a", None, None)
    assert (keys(origin), keys(twin)) == (["a", "b", "c"], ["b"])
    assert (origin.revision, twin.revision) == (3, 3)
    grandchild = twin.fork()
    put(twin.bucket("things"), "z")
    assert (keys(twin), keys(grandchild)) == (["b", "z"], ["b"])


def test_fork_keeps_the_history_of_its_origin() -> None:
    origin: Store[int] = Store()
    put(origin.bucket("things"), "a", "a", "a")
    twin = origin.fork()
    origin.compact()
    assert twin.bucket("things").get("a", 2) == Record("a", 2, 1, 2)
    assert [event.revision for event in twin.bucket("things").cursor(1).take()] == [2, 3]


def test_write_in_a_fork_notifies_only_its_subscribers() -> None:
    origin: Store[int] = Store()
    woken: list[str] = []
    origin.bucket("things").subscribe(lambda: woken.append("origin"))
    twin = origin.fork()
    twin.bucket("things").subscribe(lambda: woken.append("twin"))
    put(twin.bucket("things"), "a")
    assert woken == ["twin"]


def test_restore_brings_back_records_with_a_new_revision() -> None:
    store: Store[int] = Store()
    put(store.bucket("things"), "a", "b")
    saved = store.snapshot()
    store.bucket("things").commit("a", None, None)
    put(store.bucket("things"), "b", "c")
    put(store.bucket("later"), "x")
    seen = store.revision
    store.restore(saved)
    assert list(store.bucket("things").page().records) == [Record("a", 1, 1, 1), Record("b", 2, 2, 2)]
    assert list(store.bucket("later").page().records) == []
    assert store.revision > seen
    with pytest.raises(Compacted):
        store.bucket("things").get("a", seen)


def test_snapshot_can_be_restored_repeatedly_and_in_other_stores() -> None:
    store: Store[int] = Store()
    put(store.bucket("things"), "a")
    saved = store.snapshot()
    other: Store[int] = Store()
    for target in (store, other, store):
        target.restore(saved)
        assert keys(target) == ["a"]
        put(target.bucket("things"), "b")
        assert keys(target) == ["a", "b"]
    assert other.revision > saved.revision


@pytest.mark.parametrize("cached", [True, False])
def test_restore_ends_every_cursor_with_compacted(cached: bool) -> None:
    store: Store[int] = Store()
    put(store.bucket("things"), "a")
    saved = store.snapshot()
    put(store.bucket("things"), "b")
    bucket, seen = store.bucket("things"), store.revision
    cursor = bucket.cursor(seen, cached=cached)
    woken: list[bool] = []
    bucket.subscribe(lambda: woken.append(True))
    store.restore(saved)
    assert woken == [True]
    with pytest.raises(Compacted):
        cursor.take()
    with pytest.raises(Compacted):
        bucket.cursor(seen, cached=cached)
    fresh = bucket.cursor(store.revision, cached=cached)
    put(bucket, "c")
    assert [event.key for event in fresh.take()] == ["c"]
    with pytest.raises(Compacted):
        cursor.take()


def test_cursor_of_a_new_bucket_cannot_start_before_a_restore() -> None:
    store: Store[int] = Store()
    put(store.bucket("things"), "a")
    store.restore(store.snapshot())
    for each in (store, store.fork()):
        with pytest.raises(Compacted):
            each.bucket("new").cursor(1)
        assert each.bucket("new").cursor(store.revision).take() == []


def test_a_bucket_that_has_ended_is_dropped_when_it_is_empty_and_its_past_is_compacted() -> None:
    store: Store[int] = Store()
    put(store.bucket("things"), "x")
    store.bucket("things").forget(has_ended=True)
    store.compact()
    assert keys(store) == ["x"]

    store.bucket("things").commit("x", None, None)
    store.bucket("things").forget(has_ended=True)
    store.compact()
    assert [bucket.name for bucket in store.buckets()] == ["things"]  # the event at the compacted revision can be read
    store.advance()
    store.compact()
    assert store.buckets() == []


def test_a_bucket_that_is_held_or_begins_again_is_not_dropped() -> None:
    """Otherwise a write to it would be lost."""
    store: Store[int] = Store()
    held = store.bucket("things")
    held.forget(has_ended=True)
    put(store.bucket("others"), "x")
    store.compact()
    put(held, "x")
    assert keys(store) == ["x"]

    held.commit("x", None, None)
    held.forget()
    del held
    put(store.bucket("others"), "y")
    store.compact()
    assert [bucket.name for bucket in store.buckets()] == ["others", "things"]


def test_who_watches_is_woken_when_the_listeners_know_of_the_change() -> None:
    """Otherwise the garbage collector would delete what a watcher creates for an object that its cache does not contain yet."""
    store: Store[int] = Store()
    told: list[str] = []
    store.bucket("things").subscribe(lambda: told.append("watcher"))
    store.listen(lambda bucket, event: told.append("controllers"))
    put(store.bucket("things"), "x")
    assert told == ["controllers", "watcher"]
