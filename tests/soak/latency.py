"""How long a new client waits for its first answer while watchers are busy: `python -m tests.soak.latency [--watchers 1000]`.

Starts `fakekube serve`, opens the watches in a process of its own, and changes an object all the time; meanwhile new connections
ask for /version, one at a time. Prints the median and the 99th percentile of the time from connect to the whole answer.
"""

from __future__ import annotations

import argparse
import http.client
import json
import multiprocessing
import selectors
import socket
import threading
import time

from tests.soak.serving import CONFIGMAPS, ServedCluster


def _watch(host: str, port: int, count: int, opened: object, seen: object) -> None:
    """Opens watches and reads their events for ever."""
    selector = selectors.DefaultSelector()
    for _ in range(count):
        connection = socket.create_connection((host, port))
        connection.sendall(f"GET {CONFIGMAPS}?watch=1&resourceVersion=0 HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        connection.setblocking(False)
        selector.register(connection, selectors.EVENT_READ)
    opened.set()  # type: ignore[attr-defined]
    while True:
        for key, _ in selector.select():
            data = key.fileobj.recv(1 << 16)  # type: ignore[union-attr]
            if not data:
                selector.unregister(key.fileobj)
            seen.value += data.count(b"MODIFIED")  # type: ignore[attr-defined]


def _write(host: str, port: int, ended: threading.Event, counts: list[int]) -> None:
    """Changes an object as fast as possible."""
    connection = http.client.HTTPConnection(host, port)
    headers = {"Content-Type": "application/merge-patch+json"}
    number = 0
    while not ended.is_set():
        number += 1
        connection.request("PATCH", f"{CONFIGMAPS}/busy", json.dumps({"data": {"n": str(number)}}), headers)
        connection.getresponse().read()
    counts.append(number)


def measure(host: str, port: int, watchers: int, connections: int) -> tuple[list[float], float]:
    """Returns the seconds that new connections waited for their first answer, and the events per second that watchers got."""
    first = http.client.HTTPConnection(host, port)
    first.request("POST", CONFIGMAPS, json.dumps({"metadata": {"name": "busy"}}), {"Content-Type": "application/json"})
    first.getresponse().read()
    opened, seen = multiprocessing.Event(), multiprocessing.Value("q", 0, lock=False)
    process = multiprocessing.Process(target=_watch, args=(host, port, watchers, opened, seen), daemon=True)
    process.start()
    opened.wait()
    ended, counts = threading.Event(), list[int]()
    writer = threading.Thread(target=_write, args=(host, port, ended, counts))
    writer.start()
    waits = []
    began = time.perf_counter()
    for _ in range(connections):
        started = time.perf_counter()
        connection = http.client.HTTPConnection(host, port, timeout=120)
        connection.request("GET", "/version")
        assert connection.getresponse().read()
        waits.append(time.perf_counter() - started)
        connection.close()
    rate = seen.value / (time.perf_counter() - began)
    ended.set()
    writer.join()
    process.kill()
    return sorted(waits), rate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--watchers", type=int, default=1000)
    parser.add_argument("--connections", type=int, default=200)
    options = parser.parse_args()
    with ServedCluster() as server:
        waits, rate = measure(server.host, server.port, options.watchers, options.connections)
    middle, late = waits[len(waits) // 2], waits[int(len(waits) * 0.99)]
    print(f"{options.watchers} watchers: median {middle * 1000:.1f} ms, p99 {late * 1000:.1f} ms, {rate:.0f} events/s")


if __name__ == "__main__":
    main()
