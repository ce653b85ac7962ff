"""fakekube against the real server, on the same machine in one run, as ratios of medians (ours / theirs).

    python -m tests.benchmarks.against_oracle                                   # only ours
    python -m tests.benchmarks.against_oracle --oracle URL --token TOKEN        # one that runs
    python -m tests.benchmarks.against_oracle --oracle-command 'oracle serve --dir {dir} --port {port}'

With the last form the start and the memory of the reference server are compared, too, and it is as fresh as ours. Both
sides speak TLS. The two take turns within each measurement, so that what else the machine does falls on both; a turn is
several requests, since a server that a suite talks to is not one that slept since the last one. Nothing is asserted: the
targets stand beside the figures.
"""

from __future__ import annotations

import argparse
import statistics
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from tests.benchmarks.fanout import events_per_second
from tests.benchmarks.sides import Side, ours, running, theirs
from tests.benchmarks.wire import Connection

FEW = 100
"""Pods in the small collection."""
TURNS = 100
"""One of so many pods is chosen by the label selector."""
BLOCK = 25
"""Requests to one side before it is the other's turn."""
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: a figure of each side, in order, and what their ratio ought to be."""

    name: str
    unit: str
    figures: tuple[float | None, ...]
    target: str = ""

    def __str__(self) -> str:
        shown = "".join(f"{'-' if figure is None else format(figure, '.2f'):>14}" for figure in self.figures)
        match self.figures:
            case (float(our), float(their)):
                shown += f"{our / their:>9.2f}"
            case _:
                shown += f"{'':>9}"
        return f"{self.name:<42}{self.unit:<10}{shown}  {self.target}"


class Bench:
    """One client of one side, with a namespace of its own."""

    def __init__(self, side: Side, connection: Connection) -> None:
        self.side, self.connection = side, connection
        self.namespace = f"benchmark-{uuid.uuid4().hex[:8]}"
        connection.request("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})

    def path(self, rest: str, group: str = "api/v1") -> str:
        return f"/{group}/namespaces/{self.namespace}/{rest}"

    def time(
        self, method: str, rest: str, body: Any = None, content_type: str = "application/json", *, group: str = "api/v1"
    ) -> float:
        """Seconds from the first byte of the request to the last of the answer."""
        request = self.connection.prepare(method, self.path(rest, group), body, content_type)
        begin = time.perf_counter()
        self.connection.exchange(request)
        return time.perf_counter() - begin


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the table row by row."""
    parser = common_parser(__doc__, rounds=200)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--watchers", type=int, default=500)
    report(parser.parse_args(arguments), measurements)


def report(
    options: argparse.Namespace, measurements: Callable[[list[Bench], argparse.Namespace], Iterator[Row]], *flags: str
) -> None:
    """Start or find the sides, ours with some flags, and print what is measured."""
    with ExitStack() as stack:
        sides = [stack.enter_context(ours(*flags))]
        if options.oracle_command:
            sides.append(stack.enter_context(theirs(options.oracle_command, options.token)))
        elif options.oracle:
            sides.append(running(options.oracle, options.token))
        benches = [Bench(side, stack.enter_context(side.connect())) for side in sides]
        print(f"{'':<52}{''.join(f'{side.name:>14}' for side in sides)}    ratio  target")
        for row in measurements(benches, options):
            print(row, flush=True)
        for bench in benches:
            bench.connection.request("DELETE", f"/api/v1/namespaces/{bench.namespace}")


def common_parser(description: str | None, *, rounds: int) -> argparse.ArgumentParser:
    """For what all benchmarks against a reference can be told."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--oracle", metavar="URL", help="a reference server that runs")
    parser.add_argument("--oracle-command", metavar="COMMAND", help="starts a reference server at {port}, with {dir}")
    parser.add_argument("--token", default="admin-token", help="an administrator's at the reference server")
    parser.add_argument("--rounds", type=int, default=rounds, help="repetitions of a small request")
    return parser


def measurements(benches: list[Bench], options: argparse.Namespace) -> Iterator[Row]:
    """All rows, in an order in which the earlier ones do not disturb the later ones."""
    rounds, pods = options.rounds, options.pods
    yield Row("cold start to ready", "s", tuple(bench.side.ready for bench in benches), "0.2")
    yield from small_requests(benches, rounds)
    yield from applies(benches, rounds)
    before = resident(benches)
    load_all(benches, 0, FEW)
    few = independent_of_size(benches, rounds)
    load_all(benches, FEW, pods)
    yield Row("memory before the pods", "MiB", before)
    yield Row(f"memory with {pods} pods", "MiB", resident(benches), "0.4")
    yield from lists(benches)
    yield Row("memory after lists of them", "MiB", resident(benches), "0.4")
    many = independent_of_size(benches, rounds)
    for name, figures in many.items():
        yield Row(f"{name}, with {FEW} pods", "ms", few[name])
        yield Row(f"{name}, with {pods} pods", "ms", figures)
        growth = tuple(large / small for large, small in zip(figures, few[name], strict=True))
        yield Row("  growth", "times", growth, "ours about 1")
    rates = tuple(events_per_second(bench.side, bench.namespace, watchers=options.watchers) for bench in benches)
    yield Row(f"events to {options.watchers} watchers", "1/s", rates, "at least 2")
    yield Row("a fresh cluster, as the fixture makes it", "ms", (fresh_cluster(),), "2 ms")


def small_requests(benches: list[Bench], rounds: int) -> Iterator[Row]:
    """Single writes and reads of configmaps."""

    def body(number: int, value: str) -> dict[str, Any]:
        return {"metadata": {"name": f"one-{number}", "labels": {"app": "a"}}, "data": {"a": value, "b": "x" * 400}}

    patch = {"data": {"a": "third"}}
    steps: dict[str, Callable[[Bench, int], float]] = {
        "create": lambda bench, n: bench.time("POST", "configmaps", body(n, "first")),
        "get": lambda bench, n: bench.time("GET", f"configmaps/one-{n}"),
        "update": lambda bench, n: bench.time("PUT", f"configmaps/one-{n}", body(n, "second")),
        "merge patch": lambda bench, n: bench.time("PATCH", f"configmaps/one-{n}", patch, MERGE_PATCH),
        "delete": lambda bench, n: bench.time("DELETE", f"configmaps/one-{n}"),
    }
    for name, step in steps.items():
        yield Row(name, "ms", in_turns(benches, rounds, step), "0.4")


def applies(benches: list[Bench], rounds: int) -> Iterator[Row]:
    """Server-side apply and strategic merge patches of deployments."""

    def apply(bench: Bench, number: int, image: str) -> float:
        target = f"deployments/web-{number}?fieldManager=benchmark"
        return bench.time("PATCH", target, deployment(f"web-{number}", image), APPLY, group="apis/apps/v1")

    def patch(bench: Bench, number: int) -> float:
        change = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "nginx:1.29"}]}}}}
        return bench.time("PATCH", f"deployments/web-{number}", change, STRATEGIC_MERGE_PATCH, group="apis/apps/v1")

    steps: dict[str, tuple[str, Callable[[Bench, int], float]]] = {
        "apply that creates": ("0.4", lambda bench, n: apply(bench, n, "nginx:1.27")),
        "apply that changes": ("0.4", lambda bench, n: apply(bench, n, "nginx:1.28")),
        "apply without change": ("0.3", lambda bench, n: apply(bench, n, "nginx:1.28")),
        "strategic merge patch": ("0.4", patch),
    }
    for name, (target, step) in steps.items():
        yield Row(name, "ms", in_turns(benches, rounds, step), target)


def lists(benches: list[Bench]) -> Iterator[Row]:
    """Lists of all pods, and of those with one label."""
    everything = in_turns(benches, 15, lambda bench, _: bench.time("GET", "pods"))
    yield Row("list of all pods", "ms", everything, "0.1")
    some = in_turns(benches, 30, lambda bench, n: bench.time("GET", f"pods?labelSelector=turn%3D{n}"))
    yield Row(f"label-selected list (1 of {TURNS})", "ms", some, "0.3")


def independent_of_size(benches: list[Bench], rounds: int) -> dict[str, tuple[float, ...]]:
    """Milliseconds for what must not cost more in a large collection; leaves the collection as it was."""
    figures = {
        "create": in_turns(benches, rounds, lambda bench, n: bench.time("POST", "pods", pod(f"more-{n}", n))),
        "get": in_turns(benches, rounds, lambda bench, n: bench.time("GET", f"pods/more-{n}")),
        "page of 100": in_turns(benches, 30, lambda bench, _: bench.time("GET", "pods?limit=100")),
    }
    with ExitStack() as stack:
        watches = {bench.namespace: stack.enter_context(bench.side.connect()) for bench in benches}
        for bench in benches:
            watches[bench.namespace].watch(bench.path("pods?watch=1&fieldSelector=metadata.name%3Dmore-0"))
            watches[bench.namespace].receive_until(b"}\n")
        figures["patch and its event"] = in_turns(
            benches, rounds, lambda bench, n: patch_and_event(bench, watches[bench.namespace], n)
        )
    in_turns(benches, rounds, lambda bench, n: bench.time("DELETE", f"pods/more-{n}"))
    return figures


def patch_and_event(bench: Bench, watch: Connection, number: int) -> float:
    """Seconds from a write to its event at a watcher."""
    begin = time.perf_counter()
    bench.time("PATCH", "pods/more-0", {"metadata": {"labels": {"turn": f"t{number}"}}}, MERGE_PATCH)
    watch.receive_until(b"}\n")
    return time.perf_counter() - begin


def fresh_cluster(rounds: int = 50) -> float:
    """Milliseconds to make and start a cluster where there was one before in the process: the median."""
    from fakekube import Cluster

    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        cluster = Cluster().start()
        times.append(time.perf_counter() - begin)
        cluster.stop()
    return statistics.median(times) * 1000


# ---------------------------------------------------------------- helpers


def in_turns(benches: list[Bench], rounds: int, step: Callable[[Bench, int], float]) -> tuple[float, ...]:
    """The median of each side in milliseconds; the sides take turns."""
    times: list[list[float]] = [[] for _ in benches]
    for begin in range(0, rounds, BLOCK):
        for bench, taken in zip(benches, times, strict=True):
            taken.extend(step(bench, number) for number in range(begin, min(begin + BLOCK, rounds)))
    return tuple(statistics.median(taken) * 1000 for taken in times)


def in_all(benches: list[Bench], action: Callable[[Bench], None]) -> None:
    for bench in benches:
        action(bench)


def resident(benches: list[Bench]) -> tuple[float | None, ...]:
    return tuple(bench.side.resident() for bench in benches)


def load(bench: Bench, first: int, last: int, connections: int = 4) -> None:
    """Create the pods of these numbers, over several connections."""

    def create(numbers: range) -> None:
        with bench.side.connect() as connection:
            for number in numbers:
                connection.exchange(connection.prepare("POST", bench.path("pods"), pod(f"pod-{number}", number)))

    with ThreadPoolExecutor(connections) as pool:
        list(pool.map(create, [range(first + offset, last, connections) for offset in range(connections)]))


def load_all(benches: list[Bench], first: int, last: int) -> None:
    """The same on each side; nothing is said on the connections of the benches meanwhile."""
    in_all(benches, lambda bench: load(bench, first, last))
    in_all(benches, lambda bench: bench.connection.renew())


def deployment(name: str, image: str) -> dict[str, Any]:
    """A deployment of pods of the usual size, as it is applied."""
    labels = {"app": "a"}
    template = {"metadata": {"labels": labels}, "spec": pod(name, 0)["spec"]}
    template["spec"]["containers"][0]["image"] = image
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "labels": labels}, "spec": spec}


def pod(name: str, number: int) -> dict[str, Any]:
    """A pod of the usual size."""
    container = {
        "name": "main",
        "image": "nginx:1.27",
        "ports": [{"containerPort": 80}],
        "env": [{"name": "A", "value": "1"}],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
    }
    return {"metadata": {"name": name, "labels": {"app": "a", "turn": str(number % TURNS)}}, "spec": {"containers": [container]}}


if __name__ == "__main__":
    main()
