"""Ten thousand faults, records, snapshots and forks: seconds and mebibytes for each, and what a request costs meanwhile.

python tests/benchmarks/bounds_bench.py
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

from fakekube import Cluster

COUNT = 10_000
MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}}


def measured(name: str, act: Callable[[], Any]) -> Any:
    """Does something, and prints time and memory that stays; tracing makes everything about three times as slow."""
    gc.collect()
    tracemalloc.start()
    start = time.perf_counter()
    kept = act()
    seconds = time.perf_counter() - start
    gc.collect()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(f"{name:44} {seconds:7.2f} s {size / 2**20:8.1f} MiB {size / COUNT:9.0f} bytes each")
    return kept


def get_seconds(cluster: Cluster) -> float:
    """Of one GET in process, at best."""
    best = 1.0
    for _ in range(200):
        start = time.perf_counter()
        cluster.get("cm", "a")
        best = min(best, time.perf_counter() - start)
    return best


def arm(cluster: Cluster, verb: str, **criteria: str) -> None:
    for number in range(COUNT):
        cluster.faults.on(verb, "configmaps", **{name: f"{value}{number}" for name, value in criteria.items()}).status(500)


def main() -> None:
    with Cluster(profile="apiserver") as cluster:
        cluster.create(MAP)
        calm = get_seconds(cluster)
        measured("faults by name", lambda: arm(cluster, "get", name="n"))
        print(f"{'':44} a GET takes {get_seconds(cluster) / calm:.1f} times as long")
        measured("faults removed", cluster.faults.clear)
        measured("faults by user, of one verb and resource", lambda: arm(cluster, "get", user="u"))
        print(f"{'':44} a GET takes {get_seconds(cluster) / calm:.1f} times as long")
        cluster.faults.clear()
        measured("records (twice as many requests)", lambda: [cluster.get("cm", "a") for _ in range(2 * COUNT)] and None)
        measured("looks at all records", lambda: [cluster.requests.where(verb="get", own=True).mark() for _ in range(10)])
        kept = measured("snapshots, a write before each", lambda: [_changed(cluster, n).snapshot() for n in range(COUNT)])
        measured("snapshots restored (100)", lambda: [cluster.restore(one) for one in kept[:100]] and None)
        kept.clear()
        measured("forks", lambda: [cluster.fork() for _ in range(COUNT // 10)])


def _changed(cluster: Cluster, number: int) -> Cluster:
    cluster.patch("cm", "a", {"data": {"x": str(number)}})
    return cluster


if __name__ == "__main__":
    main()
