"""Writes and reads of one bucket, by example; `test_store_model` does it at length."""

from __future__ import annotations

import pytest

from fakekube.store import Bucket, Conflict, Record, Store


@pytest.fixture
def bucket() -> Bucket[str]:
    store: Store[str] = Store()
    return store.bucket("things")


def put(bucket: Bucket[str], *keys: str) -> list[Record[str]]:
    return [bucket.commit(key, None, lambda revision: f"at {revision}") for key in keys]


def keys_of(records: object) -> list[str]:
    assert isinstance(records, list)
    return [record.key for record in records]


def test_a_value_is_made_of_the_revision_of_its_write(bucket: Bucket[str]) -> None:
    assert put(bucket, "a", "b", "a") == [Record("a", "at 1", 1, 1), Record("b", "at 2", 2, 2), Record("a", "at 3", 1, 3)]


def test_a_deletion_returns_what_it_removed_at_its_own_revision(bucket: Bucket[str]) -> None:
    put(bucket, "a")
    assert bucket.commit("a", 1, None) == Record("a", "at 1", 1, 2)
    assert bucket.get("a") is None


def test_a_key_that_comes_back_is_a_new_one(bucket: Bucket[str]) -> None:
    put(bucket, "a")
    bucket.commit("a", None, None)
    assert put(bucket, "a") == [Record("a", "at 3", 3, 3)]
    assert [bucket.get("a", revision) for revision in (1, 2, 3)] == [Record("a", "at 1", 1, 1), None, Record("a", "at 3", 3, 3)]


@pytest.mark.parametrize(("there", "expected"), [(False, 1), (True, 0), (True, 2)])
def test_a_write_of_another_version_is_refused_with_the_one_that_is_there(
    bucket: Bucket[str], there: bool, expected: int
) -> None:
    current = put(bucket, "a")[0] if there else None
    with pytest.raises(Conflict) as refused:
        bucket.commit("a", expected, lambda revision: "mine")
    assert refused.value.current == current
    assert bucket.get("a") == current


def test_there_is_nothing_to_delete(bucket: Bucket[str]) -> None:
    for expected in (0, None):
        with pytest.raises(Conflict) as refused:
            bucket.commit("a", expected, None)
        assert refused.value.current is None


def test_a_value_that_cannot_be_made_changes_nothing() -> None:
    store: Store[str] = Store()
    bucket = store.bucket("things")
    cursor, woken = bucket.cursor(0), []
    bucket.subscribe(lambda: woken.append(True))

    def fail(revision: int) -> str:
        raise LookupError

    with pytest.raises(LookupError):
        bucket.commit("a", 0, fail)
    assert (store.revision, bucket.get("a"), cursor.take(), woken) == (0, None, [], [])
    assert put(bucket, "a")[0].revision == 1


def test_pages_follow_each_other(bucket: Bucket[str]) -> None:
    put(bucket, "n/c", "n/a", "m/z", "n/b", "n0")
    first = bucket.page("n/", limit=2)
    assert (keys_of(first.records), first.more, first.remaining) == (["n/a", "n/b"], True, 1)
    second = bucket.page("n/", start="n/b\0", limit=2)
    assert (keys_of(second.records), second.more, second.remaining) == (["n/c"], False, 0)


def test_a_page_may_start_at_a_key_outside_of_its_prefix(bucket: Bucket[str]) -> None:
    put(bucket, "m/a", "n/a", "o/a")
    assert keys_of(bucket.page("n/", start="a").records) == ["n/a"]
    assert keys_of(bucket.page("n/", start="o").records) == []
    assert bucket.page("n/", start="o", limit=1).remaining == 0


def test_the_second_page_shows_the_state_of_the_first(bucket: Bucket[str]) -> None:
    put(bucket, "a", "b", "c", "d")
    first = bucket.page(limit=2)
    bucket.commit("c", None, None)
    put(bucket, "d", "e")
    second = bucket.page(start="b\0", limit=1, revision=first.revision)
    assert [*second.records] == [Record("c", "at 3", 3, 3)]
    assert (second.more, second.remaining, second.revision) == (True, 1, first.revision)
    assert [record.value for record in bucket.page(start="c\0", revision=first.revision).records] == ["at 4"]


def test_readers_of_the_same_whole_share_what_they_made_of_it(bucket: Bucket[str]) -> None:
    put(bucket, "m/a", "n/a", "n/b")
    bucket.page("n/").encodings["mine"] = "kept"
    assert bucket.page("n/").encodings == {"mine": "kept"}
    for other in (bucket.page("n/", limit=2), bucket.page("n/", start="n/b"), bucket.page("n/", revision=3), bucket.page("m/")):
        assert other.encodings == {}
    assert bucket.page("n/").encodings == {}, "only of the whole that was read last"


@pytest.mark.parametrize("written", ["n/c", "n/a", "m/a"])
def test_a_write_ends_what_is_shared(bucket: Bucket[str], written: str) -> None:
    put(bucket, "n/a", "n/b")
    before = bucket.page("n/")
    before.encodings["mine"] = "kept"
    put(bucket, written)
    after = bucket.page("n/")
    assert (after.encodings, after.revision) == ({}, 3)
    assert keys_of(after.records) == sorted({"n/a", "n/b"} | {written} - {"m/a"})
    assert keys_of(before.records) == ["n/a", "n/b"]


def test_writes_elsewhere_only_move_the_revision() -> None:
    store: Store[str] = Store()
    bucket = store.bucket("things")
    put(bucket, "a")
    bucket.page().encodings["mine"] = "kept"
    put(store.bucket("others"), "b")
    assert (bucket.page().encodings, bucket.page().revision) == ({"mine": "kept"}, 2)
    store.restore(store.snapshot())
    assert bucket.page().encodings == {}


def test_forks_share_it_until_they_write() -> None:
    store: Store[str] = Store()
    put(store.bucket("things"), "a")
    store.bucket("things").page().encodings["mine"] = "kept"
    twin = store.fork().bucket("things")
    assert twin.page().encodings == {"mine": "kept"}
    put(twin, "b")
    assert (keys_of(twin.page().records), twin.page().encodings) == (["a", "b"], {})
    assert (keys_of(store.bucket("things").page().records), store.bucket("things").page().encodings) == (["a"], {"mine": "kept"})


def test_subscribers_are_woken_once_a_change_and_no_longer_than_they_want(bucket: Bucket[str]) -> None:
    woken: list[str] = []

    def first() -> None:
        woken.append("first")

    def second() -> None:
        assert bucket.get("a") is not None, "woken before the change can be seen"
        woken.append("second")

    bucket.subscribe(first)
    bucket.subscribe(second)
    put(bucket, "a")
    bucket.unsubscribe(first)
    bucket.unsubscribe(first)
    put(bucket, "a")
    assert woken == ["first", "second", "second"]
