"""Cursors: start revisions, returned events, and when they raise Compacted."""

from __future__ import annotations

import pytest

from fakekube.store import Bucket, Compacted, Retention, Store


def store_with(events: int, retention: Retention | None = None) -> tuple[Store[str], Bucket[str]]:
    """A store whose bucket has events at the revisions 1 to `events`."""
    store: Store[str] = Store(now=lambda: 0.0, retention=retention)
    bucket = store.bucket("things")
    write(bucket, events)
    return store, bucket


def write(bucket: Bucket[str], times: int) -> None:
    for _ in range(times):
        bucket.commit("key", None, lambda revision: f"at {revision}")


def revisions(events: object) -> list[int]:
    assert isinstance(events, list)
    return [event.revision for event in events]


def test_cursor_returns_every_event_once_in_order() -> None:
    _, bucket = store_with(3)
    cursor = bucket.cursor(1)
    assert revisions(cursor.take(1)) == [2]
    write(bucket, 2)
    assert revisions(cursor.take(2)) == [3, 4]
    assert revisions(cursor.take()) == [5]
    assert cursor.take() == []


def test_cursors_share_event_objects() -> None:
    _, bucket = store_with(1)
    first, second = bucket.cursor(0), bucket.cursor(0)
    event = first.take()[0]
    event.encodings["json"] = b"{}"
    assert second.take()[0] is event


def test_event_has_the_previous_record() -> None:
    _, bucket = store_with(2)
    bucket.commit("key", None, None)
    created, changed, deleted = bucket.cursor(0).take()
    assert created.previous is None
    assert changed.previous is created.record
    assert deleted.previous is changed.record
    assert (deleted.record, deleted.revision) == (None, 3)


def test_position_of_an_idle_cursor_follows_the_store_revision() -> None:
    store, bucket = store_with(2)
    cursor = bucket.cursor(0)
    assert cursor.position == 0
    cursor.take(1)
    assert cursor.position == 1
    cursor.take()
    store.bucket("others").commit("key", None, lambda revision: "")
    assert cursor.position == store.revision == 3
    write(bucket, 1)
    assert cursor.pending
    assert cursor.position == 3, "an event that was not taken lies after the position"


def test_cursor_at_a_future_revision_skips_earlier_events() -> None:
    _, bucket = store_with(1)
    cursor = bucket.cursor(3)
    write(bucket, 1)
    assert (cursor.take(), cursor.position) == ([], 3)
    write(bucket, 3)
    assert revisions(cursor.take()) == [4, 5]


def test_cached_cursor_is_limited_by_the_window_not_by_compaction() -> None:
    store, bucket = store_with(10, Retention(window_minimum=4, window_maximum=4))
    store.compact()
    assert revisions(bucket.cursor(6).take()) == [7, 8, 9, 10]
    with pytest.raises(Compacted) as refused:
        bucket.cursor(5)
    assert refused.value.revision == 6


def test_uncached_cursor_is_limited_by_compaction_not_by_the_window() -> None:
    store, bucket = store_with(10, Retention(window_minimum=1, window_maximum=1))
    store.compact(5)
    assert revisions(bucket.cursor(4, cached=False).take()) == [5, 6, 7, 8, 9, 10]
    with pytest.raises(Compacted) as refused:
        bucket.cursor(3, cached=False)
    assert refused.value.revision == 4


def test_event_at_the_compacted_revision_is_still_available() -> None:
    store, bucket = store_with(10)
    store.compact()
    store.compact()
    assert revisions(bucket.cursor(9, cached=False).take()) == [10]


def test_compaction_applies_to_buckets_without_events() -> None:
    store, _ = store_with(10)
    quiet = store.bucket("quiet")
    store.compact()
    for bucket in (quiet, store.bucket("new")):
        with pytest.raises(Compacted):
            bucket.cursor(8, cached=False)
        assert bucket.cursor(9, cached=False).take() == []


def test_slow_cursor_raises_compacted_permanently() -> None:
    _, bucket = store_with(1, Retention(window_minimum=2, window_maximum=2))
    slow, quick = bucket.cursor(0), bucket.cursor(0)
    assert revisions(quick.take()) == [1]
    write(bucket, 2)
    assert revisions(quick.take()) == [2, 3]
    for _ in range(2):
        with pytest.raises(Compacted):
            slow.take()


def test_up_to_date_cursor_survives_compaction() -> None:
    store, bucket = store_with(5)
    cursor = bucket.cursor(0, cached=False)
    cursor.take()
    for _ in range(5):
        store.advance()
    store.compact()
    write(bucket, 1)
    assert revisions(cursor.take()) == [11]


def test_forget_restarts_the_window() -> None:
    _, bucket = store_with(3)
    lost, kept = bucket.cursor(0), bucket.cursor(3)
    bucket.forget()
    with pytest.raises(Compacted):
        bucket.cursor(2)
    with pytest.raises(Compacted):
        lost.take()
    write(bucket, 1)
    assert revisions(kept.take()) == revisions(bucket.cursor(3).take()) == [4]
    assert revisions(bucket.cursor(0, cached=False).take()) == [1, 2, 3, 4]


def test_events_are_looked_at_before_they_are_skipped() -> None:
    store, bucket = store_with(4)
    cursor = bucket.cursor(1)
    first = cursor.peek()
    assert first is not None
    assert (first.revision, cursor.position) == (2, 1)
    assert cursor.peek() is first
    cursor.skip(2, 3)
    assert (cursor.position, cursor.pending) == (3, True)
    assert revisions(cursor.take()) == [4]
    assert cursor.peek() is None
    later = bucket.cursor(6)
    write(bucket, 3)
    found = later.peek()
    assert found is not None
    assert found.revision == 7
    store.compact(7)
    bucket.forget()
    with pytest.raises(Compacted):
        later.peek()
