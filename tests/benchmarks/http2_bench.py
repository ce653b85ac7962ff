"""HTTP/2 beside HTTP/1.1, and both beside the real server: `python -m tests.benchmarks.http2_bench [--oracle URL …]`.

Reads of one ConfigMap on one connection, of eight clients with a connection each (every client is a process of its own), and eight
at a time on one connection; aggregated discovery; an event to 100 watches, which HTTP/2 has on one connection. For the options see
`against_oracle`.
"""

from __future__ import annotations

import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Any

from tests.benchmarks.against_oracle import Bench, Row, common_parser, in_turns, report
from tests.benchmarks.wire import Connection
from tests.benchmarks.wire_http2 import MultiplexedConnection

CLIENTS = 8
WATCHES = 100
TURNS = 5
DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def main() -> None:
    """Measure, and print the table row by row."""
    report(common_parser(__doc__, rounds=400).parse_args(), measurements)


def measurements(benches: list[Bench], options: Any) -> Iterator[Row]:
    """All rows; the name says which protocol."""
    for bench in benches:
        bench.connection.request("POST", bench.path("configmaps"), {"metadata": {"name": "a"}, "data": {"b": "x" * 400}})
    with ExitStack() as stack:

        def multiplexed() -> dict[int, MultiplexedConnection]:
            sides = {id(bench): bench.side for bench in benches}
            return {key: stack.enter_context(MultiplexedConnection(side.url, side.token)) for key, side in sides.items()}

        wide = multiplexed()

        def timed(
            path: Callable[[Bench], str], *, accept: str = "application/json", times: int = 1
        ) -> Callable[[Bench, int], float]:
            def step(bench: Bench, _: int) -> float:
                connection = wide[id(bench)]
                requests = [connection.prepare(path(bench), accept)] * times
                begin = time.perf_counter()
                connection.exchange(*requests)
                return (time.perf_counter() - begin) / times

            return step

        def one(bench: Bench) -> str:
            return bench.path("configmaps/a")

        def plainly(bench: Bench, _: int) -> float:
            request = bench.connection.prepare("GET", "/apis", accept=DISCOVERY)
            begin = time.perf_counter()
            bench.connection.exchange(request)
            return time.perf_counter() - begin

        rounds = options.rounds
        yield Row("get, HTTP/1.1", "ms", in_turns(benches, rounds, lambda bench, _: bench.time("GET", "configmaps/a")))
        yield Row("get, HTTP/2", "ms", in_turns(benches, rounds, timed(one)))
        yield Row(f"{CLIENTS} gets at once, HTTP/2, each", "ms", in_turns(benches, rounds, timed(one, times=CLIENTS)))
        for protocol, function in (("HTTP/1.1", gets_plainly), ("HTTP/2", gets_multiplexed)):
            taken = [[of_clients(bench, function, rounds) for bench in benches] for _ in range(TURNS)]
            for name, unit, place in ((f"get, {CLIENTS} clients", "ms", 0), (f"CPU of a get, {CLIENTS} clients", "us", 1)):
                figures = tuple(median_of_known(one[place] for one in of_side) for of_side in zip(*taken, strict=True))
                yield Row(f"{name}, {protocol}", unit, figures)
        wide.update(multiplexed())  # they were idle for long
        for bench in benches:
            bench.connection.renew()
        yield Row("aggregated discovery, HTTP/1.1", "ms", in_turns(benches, rounds // 8, plainly))
        discovery = timed(lambda _: "/apis", accept=DISCOVERY)
        yield Row("aggregated discovery, HTTP/2", "ms", in_turns(benches, rounds // 8, discovery))
        yield Row(f"event to {WATCHES} connections", "ms", medians(benches, events_plainly))
        yield Row(f"event to {WATCHES} watches of one", "ms", medians(benches, events_multiplexed))


def medians(benches: list[Bench], measure: Callable[[Bench], float]) -> tuple[float, ...]:
    """The median of some measurements of each side; the sides take turns."""
    turns = [[measure(bench) for bench in benches] for _ in range(TURNS)]
    return tuple(statistics.median(figures) for figures in zip(*turns, strict=True))


# ---------------------------------------------------------------- several clients


def gets_plainly(url: str, token: str, path: str, count: int, ready: Any) -> None:
    """A client with HTTP/1.1, which waits for the others at the beginning and at the end."""
    with Connection(url, token) as connection:
        request = connection.prepare("GET", path)
        ready.wait()
        for _ in range(count):
            connection.exchange(request)
        ready.wait()


def gets_multiplexed(url: str, token: str, path: str, count: int, ready: Any) -> None:
    """A client with HTTP/2; see `gets_plainly`."""
    with MultiplexedConnection(url, token) as connection:
        request = connection.prepare(path)
        ready.wait()
        for _ in range(count):
            connection.exchange(request)
        ready.wait()


def median_of_known(figures: Iterable[float | None]) -> float | None:
    """The median of the figures that are known."""
    known = [figure for figure in figures if figure is not None]
    return statistics.median(known) if known else None


def of_clients(bench: Bench, function: Callable[..., None], count: int) -> tuple[float, float | None]:
    """Milliseconds for a request, of as many as the clients make together, and microseconds of CPU of the server; without the start
    and the end of their processes."""
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(CLIENTS + 1)
    arguments = (bench.side.url, bench.side.token, bench.path("configmaps/a"), count, ready)
    clients = [context.Process(target=function, args=arguments) for _ in range(CLIENTS)]
    for client in clients:
        client.start()
    ready.wait()
    began, cpu_before = time.perf_counter(), bench.side.cpu()
    ready.wait()
    took, cpu = time.perf_counter() - began, bench.side.cpu()
    for client in clients:
        client.join()
    requests = count * CLIENTS
    return took * 1000 / requests, None if cpu is None or cpu_before is None else (cpu - cpu_before) * 1e6 / requests


# ---------------------------------------------------------------- watches


def events_plainly(bench: Bench) -> float:
    """Milliseconds from a change until all connections have it."""
    version = bench.connection.request("GET", bench.path("configmaps"))["metadata"]["resourceVersion"]
    with ExitStack() as stack:
        watchers = [stack.enter_context(bench.side.connect()) for _ in range(WATCHES)]
        for watcher in watchers:
            watcher.watch(bench.path(f"configmaps?watch=1&resourceVersion={version}"))

        def received(_: int) -> None:
            for watcher in watchers:
                watcher.receive_until(b"}\n")

        return median_of_events(bench, received)


def events_multiplexed(bench: Bench) -> float:
    """Milliseconds from a change until all watches of one connection have it."""
    with MultiplexedConnection(bench.side.url, bench.side.token) as connection:
        version = bench.connection.request("GET", bench.path("configmaps"))["metadata"]["resourceVersion"]
        path = bench.path(f"configmaps?watch=1&resourceVersion={version}")
        connection.watch(*[connection.prepare(path)] * WATCHES)
        return median_of_events(bench, lambda size: connection.receive(WATCHES * size))


def median_of_events(bench: Bench, received: Callable[[int], None]) -> float:
    """Change the object again and again."""
    times = []
    for number in range(30):
        change = {"data": {"number": f"{number:08}"}}
        begin = time.perf_counter()
        changed = bench.connection.exchange(
            bench.connection.prepare("PATCH", bench.path("configmaps/a"), change, "application/merge-patch+json")
        )
        received(changed - 1 + len(b'{"type":"MODIFIED","object":}\n'))
        times.append(time.perf_counter() - begin)
    return sorted(times)[len(times) // 2] * 1000


if __name__ == "__main__":
    main()
