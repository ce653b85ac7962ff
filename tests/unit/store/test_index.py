"""What an index finds, by example and against a look at every record; `test_store_model` adds forks and restores."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.store import Bucket, Condition, Record, Retention, Store, history

Value = dict[str, str]


class Reader:
    """Reads one member of a value, and counts how often."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.reads = 0

    def __call__(self, value: Value) -> str | None:
        self.reads += 1
        return value.get(self.name)


def bucket_of(**values: Value) -> Bucket[Value]:
    bucket = Store[Value]().bucket("things")
    for key, value in values.items():
        put(bucket, key, value)
    return bucket


def put(bucket: Bucket[Value], key: str, value: Value) -> Record[Value]:
    return bucket.commit(key, None, lambda _: value)


def found(bucket: Bucket[Value], *conditions: Condition[Value], revision: int | None = None) -> list[str]:
    return [record.key for record in bucket.select(conditions, revision=revision).records]


def test_condition_matches_any_of_its_values() -> None:
    bucket = bucket_of(a={"app": "x"}, b={"app": "y"}, c={"app": "z"}, d={})
    assert found(bucket, Condition(Reader("app"), ["z", "x", "absent"])) == ["a", "c"]


def test_several_conditions_must_all_match() -> None:
    bucket = bucket_of(a={"app": "x", "tier": "1"}, b={"app": "x"}, c={"app": "x", "tier": "2"})
    conditions = [Condition(Reader("app"), ["x"]), Condition(Reader("tier"), ["2"])]
    assert found(bucket, *conditions) == found(bucket, *reversed(conditions)) == ["c"]


def test_selection_has_the_revision_of_its_read() -> None:
    bucket = bucket_of(a={"app": "x"}, b={"app": "y"})
    condition = Condition(Reader("app"), ["x"])
    assert bucket.select([condition]).revision == 2
    assert bucket.select([condition], revision=1).revision == 1


def test_index_is_updated_incrementally() -> None:
    values = {f"key-{number}": {"app": str(number % 10)} for number in range(100)}
    bucket, app = bucket_of(**values), Reader("app")
    assert len(found(bucket, Condition(app, ["3"]))) == 10
    app.reads = 0
    put(bucket, "key-0", {"app": "3"})
    assert len(found(bucket, Condition(app, ["3"]))) == 11
    assert app.reads == 2, "the old value and the new one"


def test_writes_do_not_evaluate_indexed_attributes() -> None:
    bucket, app = bucket_of(a={"app": "x"}), Reader("app")
    found(bucket, Condition(app, ["x"]))
    app.reads = 0
    put(bucket, "b", {"app": "x"})
    assert app.reads == 0


def test_index_is_rebuilt_after_lost_events() -> None:
    store = Store[Value](retention=Retention(compaction_interval=None))
    bucket = store.bucket("things")
    keys = [f"key-{number:03}" for number in range(300)]
    for key in keys:
        put(bucket, key, {"app": "x"})
    condition = Condition(Reader("app"), ["x"])
    assert found(bucket, condition) == keys
    for key in keys[:200]:
        put(bucket, key, {"app": "y"})
    store.compact()
    bucket.forget()
    assert found(bucket, condition) == keys[200:]


def test_many_conditions_build_few_indexes() -> None:
    bucket = bucket_of(a={"app": "x"}, b={})
    readers = [Reader("app"), *(Reader(f"other-{number}") for number in range(1000))]
    assert found(bucket, *(Condition(reader, ["x"]) for reader in readers)) == []
    assert sum(reader.reads > 1 for reader in readers) <= history._MAX_CONSIDERED


def test_least_recently_used_index_is_evicted() -> None:
    bucket = bucket_of(a={"app": "x"})
    often, seldom = Reader("app"), Reader("tier")
    found(bucket, Condition(seldom, ["x"]))
    for number in range(history._MAXIMUM):
        found(bucket, Condition(often, ["x"]))
        found(bucket, Condition(Reader(str(number)), ["x"]))
    often.reads = seldom.reads = 0
    assert found(bucket, Condition(often, ["x"])) == ["a"]
    assert found(bucket, Condition(seldom, ["x"])) == []
    assert (often.reads, seldom.reads) == (0, 1)


def read(name: str) -> Callable[[Value], str | None]:
    return lambda value: value.get(name)


APP, TIER = read("app"), read("tier")
TEXTS = st.sampled_from(["1", "2", "3"])
VALUES = st.dictionaries(st.sampled_from(["app", "tier"]), TEXTS)
CONDITIONS = st.lists(
    st.builds(Condition, st.sampled_from([APP, TIER]), st.lists(TEXTS, min_size=1, unique=True)), min_size=1, max_size=2
)
WRITES = st.lists(st.tuples(st.sampled_from("abcdefgh"), VALUES | st.none()), max_size=3)


@pytest.mark.parametrize("step", [0, 1, 3])
@given(rounds=st.lists(st.tuples(WRITES, CONDITIONS, st.integers(0, 5)), min_size=3, max_size=8))
def test_selection_equals_a_full_scan(
    step: int, rounds: list[tuple[list[tuple[str, Value | None]], list[Condition[Value]], int]]
) -> None:
    bucket = bucket_of(**{key: {"app": "1", "tier": "2"} for key in "abcdefgh"})
    states = {bucket.page().revision: {record.key: record.value for record in bucket.page().records}}
    for writes, conditions, back in rounds:
        for key, value in writes:
            state = dict(states[max(states)])
            if value is not None:
                states[put(bucket, key, value).revision] = state | {key: value}
            elif key in state:
                del state[key]
                states[bucket.commit(key, None, None).revision] = state
        newest = max(states)
        then = max(newest - back, min(states))
        assert selected(bucket, conditions, None, step) == matching(states[newest], conditions)
        assert selected(bucket, conditions, then, step) == matching(states[then], conditions)


def selected(
    bucket: Bucket[Value], conditions: list[Condition[Value]], revision: int | None, step: int
) -> list[tuple[str, Value]]:
    """What is selected in steps, less what meets only some of the conditions."""
    records: list[Record[Value]] = []
    start = ""
    while True:
        those = bucket.select(conditions, start=start, limit=step, revision=revision).records
        records += those
        if not step or len(those) < step:
            return matching({record.key: record.value for record in records}, conditions)
        start = those[-1].key + "\0"


def matching(state: dict[str, Value], conditions: list[Condition[Value]]) -> list[tuple[str, Value]]:
    return [
        (key, value) for key, value in sorted(state.items()) if all(one.attribute(value) in one.admitted for one in conditions)
    ]
