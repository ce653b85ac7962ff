"""A reflector mirrors a bucket and reports changed keys, across dropped events and restores."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fakekube.store import Bucket, Reflector, Retention, Store

KEYS = st.sampled_from("abc")


def present(bucket: Bucket[str]) -> dict[str, str]:
    return {record.key: record.value for record in bucket.page().records}


def values(mirror: Reflector[str]) -> dict[str, str]:
    return {key: record.value for key, record in mirror.records.items()}


def write(bucket: Bucket[str], key: str) -> None:
    bucket.commit(key, None, lambda revision: f"{key}{revision}")


def test_catch_up_returns_changed_keys() -> None:
    bucket: Bucket[str] = Store[str]().bucket("things")
    write(bucket, "a")
    mirror = Reflector(bucket)
    assert (mirror.catch_up(), mirror.catch_up()) == (["a"], [])
    write(bucket, "b")
    write(bucket, "b")
    bucket.commit("a", None, None)
    assert (sorted(mirror.catch_up()), mirror.catch_up()) == (["a", "b"], [])


@given(st.lists(st.one_of(KEYS, KEYS.map(str.upper), st.sampled_from(["catch up", "forget", "restore"])), max_size=30))
def test_mirror_equals_the_bucket_after_catch_up(steps: list[str]) -> None:
    """Small letters write, capital ones delete; no more than two events are kept."""
    store: Store[str] = Store(retention=Retention(window_minimum=1, window_maximum=2))
    bucket = store.bucket("things")
    mirror, snapshot = Reflector(bucket), store.snapshot()
    for step in [*steps, "catch up"]:
        if step == "catch up":
            before = values(mirror)
            changed = mirror.catch_up()
            now = present(bucket)
            assert values(mirror) == now
            assert {key for key in {**before, **now} if before.get(key) != now.get(key)} <= set(changed)
        elif step == "forget":
            bucket.forget()
        elif step == "restore":
            store.restore(snapshot)
        elif step.islower():
            write(bucket, step)
        elif bucket.get(step.lower()) is not None:
            bucket.commit(step.lower(), None, None)
