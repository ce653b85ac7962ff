"""Figures of the store alone: `python tests/benchmarks/store_bench.py`.

What one operation costs in collections of several sizes (microseconds, the best of several rounds), so that a
column that grows from left to right shows at once; what an event to many watchers costs; what a fork of a
base state costs; what one small object takes in memory besides its value.
"""

from __future__ import annotations

import timeit
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count

from fakekube.store import Bucket, Condition, Retention, Store

SIZES = (1_000, 5_000, 100_000)
PAGE = 500
SELECTED = 50
ROUNDS = 5
#: Nothing is compacted by itself while the figures are taken.
RETENTION = Retention(compaction_interval=None, compaction_revisions=10**9)


def value(revision: int) -> int:
    """What is stored matters only to indexes."""
    return revision


def _share(parts: int, number: int) -> str:
    """An attribute that one of so many values has in common."""
    return str(number % parts)


def filled(size: int) -> Bucket[int]:
    bucket: Bucket[int] = Store[int](retention=RETENTION).bucket("pods")
    for number in range(size):
        bucket.commit(f"default/pod-{number:07}", 0, value)
    return bucket


def cost(operation: Callable[[], object], times: int) -> float:
    """Microseconds that one call takes."""
    return min(timeit.repeat(operation, number=times, repeat=ROUNDS)) / times * 1e6


def operations(bucket: Bucket[int], size: int) -> Iterator[tuple[str, Callable[[], object]]]:
    """What is measured, by name; each is got ready when it is its turn."""
    middle = f"default/pod-{size // 2:07}"
    numbers, created, deleted = count(), count(), count()

    def new_key(number: int) -> str:
        return f"default/pod-{number * 7 % size:07}-new"

    yield "get", lambda: bucket.get(middle)
    yield "update", lambda: bucket.commit(middle, None, value)
    yield "create, anywhere", lambda: bucket.commit(new_key(next(created)), 0, value)
    yield "delete, anywhere", lambda: bucket.commit(new_key(next(deleted)), None, None)
    yield f"page of {PAGE}", lambda: bucket.page("default/", start=middle, limit=PAGE)
    yield "page of 1", lambda: bucket.page("default/", start=new_key(next(numbers)), limit=1)
    yield "count", lambda: bucket.count("default/")
    share = Condition(partial(_share, size // SELECTED), ["0"])
    yield f"select {SELECTED}", lambda: bucket.select([share], "default/")
    revision = bucket.page(limit=1).revision
    for _ in range(100):  # reads of the past have to look behind these
        bucket.commit(middle, None, value)
    yield (f"page of {PAGE}, of the past", lambda: bucket.page("default/", start=middle, limit=PAGE, revision=revision))
    cursor = bucket.cursor(bucket.page(limit=1).revision)
    yield "event to one cursor", lambda: (bucket.commit(middle, None, value), cursor.take())


def print_operations() -> None:
    columns = []
    for size in SIZES:
        bucket = filled(size)
        few, many = 100, min(size // 7 // ROUNDS, 1000)
        runs = operations(bucket, size)
        columns.append({name: cost(run, few if "page" in name else many) for name, run in runs})
    print(f"{'us, in a collection of':28}" + "".join(f"{size:>12,}" for size in SIZES))
    for name in columns[0]:
        print(f"{name:28}" + "".join(f"{column[name]:12.2f}" for column in columns))


def fan_out(watchers: int) -> tuple[float, float]:
    """What publishing an event costs, and that together with all watchers reading it."""
    bucket = filled(1000)
    key = "default/pod-0000000"
    cursors = [bucket.cursor(1000) for _ in range(watchers)]

    def publish() -> None:
        bucket.commit(key, None, value)

    def publish_and_read() -> None:
        publish()
        for cursor in cursors:
            cursor.take()

    both = cost(publish_and_read, 20)
    return cost(publish, 200), both


def print_fan_out() -> None:
    for watchers in (1, 100, 1000):
        publish, both = fan_out(watchers)
        print(f"event to {watchers:5,} watchers: published in {publish:.2f} us, read by all in {both:.1f} us")


def print_forks() -> None:
    base: Store[int] = Store()
    for number in range(250):
        base.bucket(f"bucket-{number % 60}").commit(f"key-{number}", None, value)

    def fork_and_write() -> None:
        base.fork().bucket("bucket-0").commit("mine", 0, value)

    bare, written = cost(base.fork, 500), cost(fork_and_write, 500)
    print(f"fork of 250 keys in 60 buckets: {bare:.1f} us, with a write of its own {written:.1f} us")


def print_memory() -> None:
    size = 20_000
    tracemalloc.start()
    bucket = filled(size)
    used, _ = tracemalloc.get_traced_memory()
    key = bucket.page(limit=1).records[0].key
    tracemalloc.stop()
    print(f"memory of an object and its event, with a key of {len(key)} characters: {used / size:.0f} bytes")


if __name__ == "__main__":
    print_operations()
    print_fan_out()
    print_forks()
    print_memory()
