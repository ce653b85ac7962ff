"""Many clusters in one process: `python -m tests.soak.clusters [--clusters 1000]`.

Half of them are alive at once, each with its server; then all are stopped. What they held (memory, threads, open files) must be given
back: a test suite starts thousands of clusters in a process.
"""

from __future__ import annotations

import argparse
import gc
import os
import time
import urllib.request
from dataclasses import dataclass

import fakekube


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process holds.

    Attributes:
        memory: resident, MiB.
        threads, files: how many.
    """

    memory: float
    threads: int
    files: int


def usage_of(pid: int) -> Usage:
    """Returns what a process holds."""
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        pages = int(file.read().split()[1])
    memory = pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
    return Usage(memory, len(os.listdir(f"/proc/{pid}/task")), len(os.listdir(f"/proc/{pid}/fd")))


def usage() -> Usage:
    """Returns what this process holds."""
    gc.collect()
    return usage_of(os.getpid())


def _use(cluster: fakekube.Cluster, number: int) -> None:
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{number}"}})
    with urllib.request.urlopen(f"{cluster.url}/api/v1/namespaces/default/configmaps/c{number}") as response:
        assert response.status == 200


def play(clusters: int) -> tuple[Usage, Usage, Usage]:
    """Returns the usage before, with half of the clusters alive, and after all are stopped."""
    with fakekube.Cluster(profile="apiserver") as first:  # what the first one imports and caches is no leak
        _use(first, 0)
    before = usage()
    alive = [fakekube.Cluster(profile="apiserver").start() for _ in range(clusters // 2)]
    for number, cluster in enumerate(alive):
        _use(cluster, number)
    meanwhile = usage()
    for cluster in alive:
        cluster.stop()
    alive.clear()
    del cluster
    for number in range(clusters - clusters // 2):
        with fakekube.Cluster(profile="apiserver") as one:
            _use(one, number)
    del one
    end = time.monotonic() + 30
    while usage_of(os.getpid()).threads > before.threads and time.monotonic() < end:
        time.sleep(0.1)  # threads of the pool end after some idle seconds
    return before, meanwhile, usage()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=1000)
    options = parser.parse_args()
    began = time.perf_counter()
    before, meanwhile, after = play(options.clusters)
    print(f"{options.clusters} clusters in {time.perf_counter() - began:.1f} s")
    _, _, again = play(options.clusters)
    for name, one in (("before", before), ("with half of them", meanwhile), ("after", after), ("after as many again", again)):
        print(f"{name}: {one.memory:.0f} MiB, {one.threads} threads, {one.files} files")
    # The allocator of the process keeps some of what it once had: what counts is that it does not grow.
    kept = again.threads > before.threads or again.files > before.files or again.memory > 1.1 * after.memory
    print("something was kept" if kept else "all was given back")
    return kept


if __name__ == "__main__":
    raise SystemExit(main())
