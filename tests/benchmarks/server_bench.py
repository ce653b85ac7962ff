"""Figures of the bundled server alone: `python tests/benchmarks/server_bench.py [--tls]`.

Server in this process, clients in another, as in a test of a client in any language: a 2 KB GET by
http.client and over raw sockets, an 800-byte event to 500 open streams, what starting and stopping costs.
With `wrk` installed, its figures too.
"""

from __future__ import annotations

import argparse
import functools
import http.client
import json
import multiprocessing
import selectors
import shutil
import socket
import ssl
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from typing import Any

from fakekube.net import Server

BODY = b"x" * 2048
EVENT = b"e" * 799 + b"\n"


class Clock:
    """Real time."""

    factor = 1.0

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def subscribe(self, callback: Callable[[], None]) -> None:
        pass

    def unsubscribe(self, callback: Callable[[], None]) -> None:
        pass


class Topic:
    """A source whose events are an ever longer list."""

    def __init__(self) -> None:
        self.events: list[bytes] = []
        self.wakes: list[Callable[[], None]] = []
        self.streams = 0

    def subscribe(self, wake: Callable[[], None]) -> None:
        self.wakes.append(wake)

    def unsubscribe(self, wake: Callable[[], None]) -> None:
        self.wakes.remove(wake)

    def publish(self, event: bytes) -> None:
        self.events.append(event)
        for wake in self.wakes:
            wake()


class Stream:
    """A cursor into a topic."""

    ended = False
    deadline = None

    def __init__(self, source: Topic) -> None:
        self.source = source
        self.position = len(source.events)
        source.streams += 1

    def take(self) -> list[bytes]:
        taken = self.source.events[self.position :]
        self.position += len(taken)
        return taken

    def close(self) -> None:
        self.source.streams -= 1

    def __iter__(self) -> Iterator[bytes]:
        raise NotImplementedError


TOPIC = Topic()


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    start_response("200 OK", [("Audit-Id", "0"), ("Cache-Control", "private"), ("Content-Type", "application/json")])
    if environ["PATH_INFO"] == "/watch":
        return Stream(TOPIC)
    environ["wsgi.input"].read()
    return [BODY]


def connect(port: int, tls: bool) -> socket.socket:
    connected = socket.create_connection(("127.0.0.1", port))
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if tls:
        return client_context().wrap_socket(connected)
    return connected


@functools.cache
def client_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def get_by_http_client(port: int, tls: bool, count: int) -> dict[str, float]:
    if tls:
        client: http.client.HTTPConnection = http.client.HTTPSConnection("127.0.0.1", port, context=client_context())
    else:
        client = http.client.HTTPConnection("127.0.0.1", port)
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        client.request("GET", "/pod")
        client.getresponse().read()
        times.append(time.perf_counter() - begin)
    client.close()
    return {"GET p50 us (http.client)": statistics.median(times) * 1e6}


def get_on_new_connections(port: int, tls: bool, count: int) -> dict[str, float]:
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        with connect(port, tls) as connected:
            connected.sendall(b"GET /pod HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            while connected.recv(65536):
                pass
        times.append(time.perf_counter() - begin)
    return {"connect, GET, close p50 us": statistics.median(times) * 1e6}


def get_by_threads(port: int, tls: bool, threads: int, seconds: float) -> dict[str, float]:
    done = [0] * threads
    end = time.perf_counter() + seconds

    def client(number: int) -> None:
        with connect(port, tls) as connected:
            while time.perf_counter() < end:
                connected.sendall(b"GET /pod HTTP/1.1\r\nHost: x\r\nAccept: application/json\r\n\r\n")
                received = 0
                while received < len(BODY):
                    received += len(connected.recv(65536))
                done[number] += 1

    workers = [threading.Thread(target=client, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return {f"GET/s, {threads} connections (raw sockets)": sum(done) / seconds}


def receive_events(port: int, tls: bool, streams: int, channel: Connection) -> None:
    """Open streams, then tell for each event when every stream had all of it."""
    selector = selectors.DefaultSelector()
    for _ in range(streams):
        connected = connect(port, tls)
        connected.sendall(b"GET /watch HTTP/1.1\r\nHost: x\r\n\r\n")
        while not connected.recv(65536).endswith(b"\r\n\r\n"):
            pass
        connected.setblocking(False)
        selector.register(connected, selectors.EVENT_READ)
    channel.send("ready")
    frame = len(b"%x\r\n%b\r\n" % (len(EVENT), EVENT))
    while (burst := channel.recv()) is not None:
        missing = dict.fromkeys((key.fd for key in selector.get_map().values()), frame * burst)
        arrivals = []
        while missing:
            for key, _ in selector.select():
                try:
                    missing[key.fd] -= len(key.fileobj.recv(1 << 20))  # type: ignore[union-attr]
                except ssl.SSLWantReadError:
                    continue
                if not missing[key.fd]:
                    del missing[key.fd]
                    arrivals.append(time.monotonic())
        channel.send(arrivals)
    for key in list(selector.get_map().values()):
        key.fileobj.close()  # type: ignore[union-attr]


def events_to_streams(port: int, tls: bool, streams: int) -> dict[str, float]:
    ours, theirs = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    client = context.Process(target=receive_events, args=(port, tls, streams, theirs))
    client.start()
    ours.recv()
    while len(TOPIC.wakes) < 1:
        time.sleep(0.01)
    medians, worst, rates = [], [], []
    for burst, rounds in ((1, 100), (100, 5)):
        for _ in range(rounds):
            ours.send(burst)
            time.sleep(0.005)
            begin = time.monotonic()
            for _ in range(burst):
                TOPIC.publish(EVENT)
            arrivals = [arrival - begin for arrival in ours.recv()]
            if burst == 1:
                medians.append(statistics.median(arrivals))
                worst.append(max(arrivals))
            else:
                rates.append(burst * streams / max(arrivals))
    threads = threading.active_count()
    ours.send(None)
    client.join()
    while TOPIC.streams:
        time.sleep(0.001)
    return {
        f"event to {streams} streams, p50 ms": statistics.median(medians) * 1e3,
        f"event to {streams} streams, last ms": statistics.median(worst) * 1e3,
        f"events/s delivered to {streams} streams in bursts of 100": statistics.median(rates),
        f"threads with {streams} streams": threads,
    }


def wrk(port: int, tls: bool, connections: int) -> dict[str, float]:
    if not shutil.which("wrk"):
        return {}
    url = f"http{'s' if tls else ''}://127.0.0.1:{port}/pod"
    output = subprocess.run(["wrk", "-t1", f"-c{connections}", "-d2s", url], capture_output=True, text=True, check=True).stdout
    rate = next(line for line in output.splitlines() if line.startswith("Requests/sec"))
    return {f"wrk c{connections} GET/s": float(rate.split()[1])}


def starts_and_stops(tls: ssl.SSLContext | None, count: int) -> dict[str, float]:
    starts, stops = [], []
    for _ in range(count):
        begin = time.perf_counter()
        server = Server(application, clock=Clock(), tls=tls)
        server.start()
        started = time.perf_counter()
        server.stop()
        starts.append(started - begin)
        stops.append(time.perf_counter() - started)
    return {"start p50 ms": statistics.median(starts) * 1e3, "stop p50 ms": statistics.median(stops) * 1e3}


def in_another_process(function: Callable[..., dict[str, float]], *arguments: Any) -> dict[str, float]:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tls", action="store_true", help="serve HTTPS")
    parser.add_argument("--streams", type=int, default=500)
    options = parser.parse_args()
    tls = None
    if options.tls:
        from fakekube.net.certificates import credentials

        tls = credentials().context
    figures = starts_and_stops(tls, 50)
    with Server(application, clock=Clock(), tls=tls) as server:
        port = server.port
        figures |= in_another_process(get_by_http_client, port, options.tls, 5000)
        figures |= in_another_process(get_on_new_connections, port, options.tls, 1000)
        for threads in (1, 8):
            figures |= in_another_process(get_by_threads, port, options.tls, threads, 2.0)
            figures |= wrk(port, options.tls, threads)
        figures |= events_to_streams(port, options.tls, options.streams)
    print(json.dumps({name: round(value, 2) for name, value in figures.items()}, indent=2))


if __name__ == "__main__":
    main()
