"""How the cost of requests grows with the number of objects: `python -m tests.benchmarks.scale_bench [SIZE …]`.

For each number of pods, in a cluster of its own: the CPU of single requests and of whole lists through the WSGI application, without
a socket; the longest pause of the cyclic collector since the first create; the memory that a pod takes. The last column is the slope
between the logarithms of size and cost of the first and the last size: 0 for a cost that does not depend on the size, 1 for one that
is proportional to it.
"""

from __future__ import annotations

import argparse
import gc
import io
import json
import math
import multiprocessing
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fakekube import Cluster
from tests.benchmarks.against_oracle import MERGE_PATCH, pod
from tests.benchmarks.formats_bench import METADATA, PROTOBUF, TABLE

SIZES = (1000, 4000, 16000)
BATCH = 200
"""The number of single requests that are measured."""
PODS = "/api/v1/namespaces/default/pods"
JSON = "application/json"


def main() -> None:
    """Measures each size in a process of its own, and prints the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="*", type=int, default=SIZES)
    sizes = parser.parse_args().sizes
    results = []
    for size in sizes:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            results.append(pool.apply(measure, (size,)))
    print("| | unit |", *[f"{size:,} |" for size in sizes], "slope |")
    print("|---" * (len(sizes) + 3) + "|")
    for name in results[0]:
        figures = [result[name] for result in results]
        what, unit = name.rsplit(", ", 1)
        print(f"| {what} | {unit} |", *[f"{figure:,.2f} |" for figure in figures], f"{_slope(sizes, figures)} |")


def _slope(sizes: Sequence[int], figures: Sequence[float]) -> str:
    if len(sizes) == 1:
        return ""
    return f"{math.log(max(figures[-1], 1e-9) / max(figures[0], 1e-9)) / math.log(sizes[-1] / sizes[0]):.2f}"


def measure(size: int) -> dict[str, float]:
    """Returns the figures of a cluster with so many pods."""
    pauses = _Pauses()
    gc.callbacks.append(pauses)
    with Cluster(profile="apiserver") as cluster:
        bench = _Bench(cluster)
        bench.send("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        before = _resident()
        for number in range(size - BATCH):
            bench.send("POST", PODS, pod(f"pod-{number}", number))
        rest = range(size - BATCH, size)
        found = {"create, us": bench.each(rest, lambda n: bench.send("POST", PODS, pod(f"pod-{n}", n)))}
        found["memory of a pod, KiB"] = (_resident() - before) / size
        every = range(0, size, size // BATCH)
        found["get, us"] = bench.each(every, lambda n: bench.send("GET", f"{PODS}/pod-{n}"))
        change = {"metadata": {"labels": {"changed": "1"}}}
        found["merge patch, us"] = bench.each(every, lambda n: bench.send("PATCH", f"{PODS}/pod-{n}", change, MERGE_PATCH))
        found["page of 100, us"] = bench.each(range(20), lambda _: bench.send("GET", PODS, query="limit=100"))
        for name, accept in (("JSON", JSON), ("Table", TABLE), ("Protobuf", PROTOBUF), ("metadata", METADATA)):
            found[f"first list as {name}, ms"] = (
                bench.each([0], lambda _, accept=accept: bench.send("GET", PODS, accept=accept)) / 1000
            )
        found["longest pause of the collector, ms"] = pauses.longest * 1000
        found["deletion of the collection, ms"] = bench.each([0], lambda _: bench.delete_all()) / 1000
    return found


class _Bench:
    """Sends requests to the application of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._application = cluster.application

    def send(
        self, method: str, path: str, body: Any = None, content_type: str = JSON, *, query: str = "", accept: str = JSON
    ) -> None:
        """Sends a request, which must succeed."""
        status = self.status(method, path, body, content_type, query=query, accept=accept)
        assert status[0] == "2", status

    def delete_all(self) -> None:
        """Deletes all pods. A request ends with 410 when the deletions are more than the history holds, and is repeated."""
        while (status := self.status("DELETE", PODS)) != "200 OK":
            assert status == "410 Gone", status

    def status(
        self, method: str, path: str, body: Any = None, content_type: str = JSON, *, query: str = "", accept: str = JSON
    ) -> str:
        """Sends a request, and returns its status."""
        data = b"" if body is None else json.dumps(body).encode()
        environ = {
            "REQUEST_METHOD": method,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": content_type,
            "CONTENT_LENGTH": str(len(data)),
            "wsgi.input": io.BytesIO(data),
            "wsgi.url_scheme": "http",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "HTTP_ACCEPT": accept,
        }
        codes: list[str] = []
        for _ in self._application(environ, lambda status, headers: codes.append(status)):
            pass
        return codes[0]

    def each(self, items: Any, step: Callable[[int], None]) -> float:
        """Returns the CPU of a step in microseconds."""
        begin = time.thread_time()
        for item in items:
            step(item)
        return (time.thread_time() - begin) / len(items) * 1e6


class _Pauses:
    """Measures the collections of the cyclic collector, by CPU."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._began = 0.0

    def __call__(self, phase: str, _info: object) -> None:
        if phase == "start":
            self._began = time.thread_time()
        else:
            self.longest = max(self.longest, time.thread_time() - self._began)


def _resident() -> float:
    """Returns the resident memory of this process in KiB (Linux)."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return float(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")))


if __name__ == "__main__":
    main()
