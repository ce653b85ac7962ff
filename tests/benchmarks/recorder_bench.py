"""What the recorder costs a request that nobody looks at: a GET in process, with and without it, in turns.

python tests/benchmarks/recorder_bench.py
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from fakekube import Cluster

ROUNDS, REQUESTS = 61, 1000
PATH = "/api/v1/namespaces/default/configmaps/a"


def environ() -> dict[str, Any]:
    return {
        "REQUEST_METHOD": "GET",
        "PATH_INFO": PATH,
        "QUERY_STRING": "",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "wsgi.url_scheme": "http",
        "HTTP_ACCEPT": "application/json",
        "HTTP_USER_AGENT": "bench",
    }


def seconds(cluster: Cluster) -> float:
    application, given = cluster.application, environ()
    start = time.perf_counter()
    for _ in range(REQUESTS):
        application(dict(given), lambda line, headers, error=None: None)
    return (time.perf_counter() - start) / REQUESTS


def main() -> None:
    sides = {"without": Cluster(profile="apiserver", keep_requests=0), "with": Cluster(profile="apiserver")}
    armed = sides["with a fault elsewhere"] = Cluster(profile="apiserver")
    for cluster in sides.values():
        cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    armed.faults.on("delete", "secrets").status(500)
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(ROUNDS):
        for name, cluster in sides.items():
            times[name].append(seconds(cluster))
    base = min(times["without"])
    for name, found in times.items():
        ratio = statistics.median(mine / other for mine, other in zip(found, times["without"], strict=True))
        print(f"{name:24} {min(found) * 1e6:6.2f} µs at best, {(min(found) - base) * 1e6:+.2f} µs; {ratio:.2f} times")


if __name__ == "__main__":
    main()
