"""What the page costs: writes with nobody looking, with the journal open, and with an open page; and rows at full size.

python tests/benchmarks/page_bench.py
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable

from fakekube import Cluster

OBJECT = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}, "data": {"x": "0"}}
PATH = "/api/v1/namespaces/default/configmaps/a"
WRITES, ROUNDS = 500, 8


def write(cluster: Cluster, number: int) -> float:
    """Returns the real seconds of some writes."""
    begun = time.perf_counter()
    for place in range(number):
        cluster.request("PATCH", PATH, {"data": {"x": str(place)}}, headers={"Content-Type": "application/merge-patch+json"})
    return (time.perf_counter() - begun) / number


def nobody(cluster: Cluster) -> None:
    """The causes are noted."""


def unnoted(cluster: Cluster) -> None:
    cluster._machinery.backend.store.keep_journal(None)


def journal(cluster: Cluster) -> None:
    cluster.keep_changes()


def page(cluster: Cluster) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", cluster.port)
    connection.request("GET", f"/fakekube/v1/live?changes={cluster.rows.revision}")
    answer = connection.getresponse()

    def read() -> None:
        while answer.read1(1 << 16):
            pass

    threading.Thread(target=read, daemon=True).start()


def measure(prepare: Callable[[Cluster], None], cluster: Cluster) -> float:
    prepare(cluster)
    return min(write(cluster, WRITES) for _ in range(2))


def main() -> None:
    kinds = (unnoted, nobody, journal, page)
    best = dict.fromkeys(kinds, 1.0)
    for _ in range(ROUNDS):
        for kind in kinds:
            with Cluster(profile="apiserver") as cluster:
                cluster.create(OBJECT)
                write(cluster, WRITES)
                best[kind] = min(best[kind], measure(kind, cluster))
    for kind in kinds:
        print(f"{kind.__name__:<10}{best[kind] * 1e6:8.1f} us a write  {100 * (best[kind] / best[unnoted] - 1):+5.1f} %")
    with Cluster(profile="apiserver") as cluster:
        cluster.keep_changes()
        cluster.create(OBJECT)
        write(cluster, 10_000)
        for name, make in (
            ("5,000 requests", lambda: cluster.rows.requests(limit=5_000)),
            ("5,000 changes", lambda: cluster.rows.changes(limit=5_000)),
            ("findings", cluster.findings),
            ("findings again", cluster.findings),
            ("a trace", cluster.trace_html),
        ):
            begun = time.perf_counter()
            make()
            print(f"{name:<16}{(time.perf_counter() - begun) * 1e3:8.1f} ms")


if __name__ == "__main__":
    main()
