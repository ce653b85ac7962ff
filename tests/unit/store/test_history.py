"""Limits of the cached window by count and by age."""

from __future__ import annotations

import pytest

from fakekube.store import Bucket, Compacted, Retention, Store


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def write(bucket: Bucket[int], times: int) -> None:
    for _ in range(times):
        bucket.commit("key", None, lambda revision: revision)


def oldest(bucket: Bucket[int]) -> int:
    """The oldest revision that a cached cursor can begin after."""
    try:
        bucket.cursor(0)
    except Compacted as refused:
        bucket.cursor(refused.revision)
        return refused.revision
    return 0


@pytest.mark.parametrize(
    ("pause", "kept"),
    [
        (0.0, 8),  # all are young: up to the maximum
        (60.0, 8),  # as old as they may be
        (60.5, 4),  # the rest is too old: down to the minimum, and no further
    ],
)
def test_window_keeps_young_events_to_the_maximum_and_old_ones_to_the_minimum(pause: float, kept: int) -> None:
    time = Time()
    store: Store[int] = Store(now=time, retention=Retention(window_minimum=4, window_maximum=8, window_age=60.0))
    bucket = store.bucket("things")
    write(bucket, 20)
    time.now += pause
    write(bucket, 1)
    assert oldest(bucket) == 21 - kept


def test_events_outside_of_the_window_have_no_encodings() -> None:
    bucket = Store[int](retention=Retention(window_minimum=2, window_maximum=2)).bucket("things")
    write(bucket, 2)
    events = bucket.cursor(0, cached=False).take()
    for event in events:
        event.encodings["json"] = b"{}"
    write(bucket, 1)
    assert [event.encodings for event in events] == [{}, {"json": b"{}"}]


def test_window_is_per_bucket() -> None:
    store: Store[int] = Store(retention=Retention(window_minimum=2, window_maximum=2))
    quiet, busy = store.bucket("quiet"), store.bucket("busy")
    write(quiet, 2)
    write(busy, 1000)
    assert (oldest(quiet), oldest(busy)) == (0, 1000)


def test_compacted_events_outside_the_window_are_dropped() -> None:
    store: Store[int] = Store(retention=Retention(window_minimum=2, window_maximum=2))
    bucket = store.bucket("things")
    write(bucket, 1000)
    assert len(bucket.cursor(0, cached=False).take()) == 1000
    store.compact()
    with pytest.raises(Compacted):
        bucket.cursor(0, cached=False)
    write(bucket, 1)
    assert len(bucket.cursor(999, cached=False).take()) == 2
