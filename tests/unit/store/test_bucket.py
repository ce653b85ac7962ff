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


def test_value_factory_gets_the_revision_of_the_write(bucket: Bucket[str]) -> None:
    assert put(bucket, "a", "b", "a") == [Record("a", "at 1", 1, 1), Record("b", "at 2", 2, 2), Record("a", "at 3", 1, 3)]


def test_delete_returns_the_removed_record_at_the_delete_revision(bucket: Bucket[str]) -> None:
    put(bucket, "a")
    assert bucket.commit("a", 1, None) == Record("a", "at 1", 1, 2)
    assert bucket.get("a") is None


def test_recreated_key_has_a_new_create_revision(bucket: Bucket[str]) -> None:
    put(bucket, "a")
    bucket.commit("a", None, None)
    assert put(bucket, "a") == [Record("a", "at 3", 3, 3)]
    assert [bucket.get("a", revision) for revision in (1, 2, 3)] == [Record("a", "at 1", 1, 1), None, Record("a", "at 3", 3, 3)]


@pytest.mark.parametrize(("there", "expected"), [(False, 1), (True, 0), (True, 2)])
def test_commit_with_wrong_expected_revision_raises_conflict_with_current(
    bucket: Bucket[str], there: bool, expected: int
) -> None:
    current = put(bucket, "a")[0] if there else None
    with pytest.raises(Conflict) as refused:
        bucket.commit("a", expected, lambda revision: "mine")
    assert refused.value.current == current
    assert bucket.get("a") == current


def test_delete_of_an_absent_key_raises_conflict(bucket: Bucket[str]) -> None:
    for expected in (0, None):
        with pytest.raises(Conflict) as refused:
            bucket.commit("a", expected, None)
        assert refused.value.current is None


def test_exception_in_the_value_factory_changes_nothing() -> None:
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


def test_pagination_by_start_key(bucket: Bucket[str]) -> None:
    put(bucket, "n/c", "n/a", "m/z", "n/b", "n0")
    first = bucket.page("n/", limit=2)
    assert (keys_of(first.records), first.more, first.remaining) == (["n/a", "n/b"], True, 1)
    second = bucket.page("n/", start="n/b\0", limit=2)
    assert (keys_of(second.records), second.more, second.remaining) == (["n/c"], False, 0)


def test_page_start_key_outside_of_the_prefix(bucket: Bucket[str]) -> None:
    put(bucket, "m/a", "n/a", "o/a")
    assert keys_of(bucket.page("n/", start="a").records) == ["n/a"]
    assert keys_of(bucket.page("n/", start="o").records) == []
    assert bucket.page("n/", start="o", limit=1).remaining == 0


def test_second_page_reads_at_the_revision_of_the_first(bucket: Bucket[str]) -> None:
    put(bucket, "a", "b", "c", "d")
    first = bucket.page(limit=2)
    bucket.commit("c", None, None)
    put(bucket, "d", "e")
    second = bucket.page(start="b\0", limit=1, revision=first.revision)
    assert [*second.records] == [Record("c", "at 3", 3, 3)]
    assert (second.more, second.remaining, second.revision) == (True, 1, first.revision)
    assert [record.value for record in bucket.page(start="c\0", revision=first.revision).records] == ["at 4"]


def test_equal_full_lists_share_cached_encodings(bucket: Bucket[str]) -> None:
    put(bucket, "m/a", "n/a", "n/b")
    bucket.page("n/").encodings["mine"] = "kept"
    assert bucket.page("n/").encodings == {"mine": "kept"}
    for other in (bucket.page("n/", limit=2), bucket.page("n/", start="n/b"), bucket.page("n/", revision=3), bucket.page("m/")):
        assert other.encodings == {}
    assert bucket.page("n/").encodings == {}, "only of the two wholes that were read last"


def test_a_full_list_and_one_of_a_part_both_keep_their_encodings(bucket: Bucket[str]) -> None:
    put(bucket, "m/a", "n/a")
    for prefix in ("", "n/"):
        bucket.page(prefix).encodings["mine"] = prefix
    assert [bucket.page(prefix).encodings for prefix in ("", "n/")] == [{"mine": ""}, {"mine": "n/"}]


@pytest.mark.parametrize("written", ["n/c", "n/a", "m/a"])
def test_write_invalidates_shared_encodings(bucket: Bucket[str], written: str) -> None:
    put(bucket, "n/a", "n/b")
    before = bucket.page("n/")
    before.encodings["mine"] = "kept"
    put(bucket, written)
    after = bucket.page("n/")
    assert (after.encodings, after.revision) == ({}, 3)
    assert keys_of(after.records) == sorted({"n/a", "n/b"} | {written} - {"m/a"})
    assert keys_of(before.records) == ["n/a", "n/b"]


def test_writes_to_other_buckets_keep_shared_encodings() -> None:
    store: Store[str] = Store()
    bucket = store.bucket("things")
    put(bucket, "a")
    bucket.page().encodings["mine"] = "kept"
    put(store.bucket("others"), "b")
    assert (bucket.page().encodings, bucket.page().revision) == ({"mine": "kept"}, 2)
    store.restore(store.snapshot())
    assert bucket.page().encodings == {}


def test_forks_share_encodings_until_they_write() -> None:
    store: Store[str] = Store()
    put(store.bucket("things"), "a")
    store.bucket("things").page().encodings["mine"] = "kept"
    twin = store.fork().bucket("things")
    assert twin.page().encodings == {"mine": "kept"}
    put(twin, "b")
    assert (keys_of(twin.page().records), twin.page().encodings) == (["a", "b"], {})
    assert (keys_of(store.bucket("things").page().records), store.bucket("things").page().encodings) == (["a"], {"mine": "kept"})


def test_subscribers_are_notified_after_each_change_until_unsubscribed(bucket: Bucket[str]) -> None:
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
