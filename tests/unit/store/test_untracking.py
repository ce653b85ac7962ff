"""What a large store holds is not visited by the cyclic collector, and is freed without it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from fakekube.store import Bucket, Store, values
from fakekube.store.values import VISITED, untrack

LARGE = 2 * VISITED


class Value:
    """A container that the collector visits."""

    def __init__(self) -> None:
        self.part: list[int] = []


@pytest.fixture
def bucket() -> Bucket[Value]:
    store: Store[Value] = Store()
    return store.bucket("things")


def held(bucket: Bucket[Value]) -> Iterator[tuple[object, ...]]:
    """Yields the event, the record and the value of each change."""
    events, _ = bucket.all_events()
    for event in events:
        assert event.record is not None
        yield event, event.record, event.record.value


def test_changes_of_a_large_bucket_are_not_visited(bucket: Bucket[Value]) -> None:
    for turn in range(2):
        for number in range(LARGE):
            bucket.commit(f"{number}", None, lambda _: Value())
        visited = sum(any(map(gc.is_tracked, one)) for one in held(bucket))
        assert visited == VISITED, turn
        contents = bucket._contents
        assert not any(map(gc.is_tracked, (contents.history.all(), contents.versions.heads))), turn


def test_what_is_not_visited_is_freed_with_its_last_reference() -> None:
    store: Store[Value] = Store()
    bucket = store.bucket("things")
    for number in range(LARGE):
        bucket.commit(f"{number}", None, lambda _: Value())
    values = [weakref.ref(value) for _, _, value in held(bucket)]
    gc.disable()
    try:
        del store, bucket
        assert {one() for one in values} == {None}
    finally:
        gc.enable()


def test_objects_that_no_collector_knows_are_left_alone() -> None:
    untrack(1, "text", None, b"", ())


def test_nothing_is_taken_out_where_the_function_does_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "_find_function", lambda: None)
    monkeypatch.delattr(gc, "is_tracked")
    untrack([])
