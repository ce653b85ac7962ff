"""Concurrent histories are linearizable: `python -m tests.soak.linearizability [--http2] [--seconds 20]`.

Clients create, replace, patch, delete, read and list a few objects at once and write down when each request began and ended and what
it was told. The revisions that the server gives are the order that it claims. The check: each change has a revision of its own and
lies, in that order, between the beginning and the end of its request; a conditional update succeeds only on the version it names; a
read tells a version that was the current one at some moment of the request; a list is the state at its revision.
"""

from __future__ import annotations

import argparse
import bisect
import itertools
import json
import random
import socket
import threading
import time
import urllib.request
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Protocol

import h2.config
import h2.connection
import h2.events

from tests.soak.serving import CONFIGMAPS, JsonConnection, ServedCluster, untrusting_context

_NAMES = ("a", "b", "c", "d")


class Connection(Protocol):
    """What a client of the test needs."""

    def request(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> tuple[int, Any]: ...
    def close(self) -> None: ...


class Http2Connection:
    """One HTTP/2 connection by the library h2, one request at a time."""

    def __init__(self, server: ServedCluster) -> None:
        context = untrusting_context()
        self._authority = f"{server.host}:{server.port}"
        self._socket = context.wrap_socket(socket.create_connection((server.host, server.port), 120))
        self._state = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
        self._state.initiate_connection()
        self._socket.sendall(self._state.data_to_send())

    def request(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> tuple[int, Any]:
        stream = self._state.get_next_available_stream_id()
        head = [(":method", method), (":path", path), (":scheme", "https"), (":authority", self._authority)]
        head.append(("authorization", "Bearer admin-token"))
        data = b"" if body is None else json.dumps(body).encode()
        if data:
            head += [("content-type", content_type), ("content-length", str(len(data)))]
        self._state.send_headers(stream, head, end_stream=not data)
        if data:
            self._state.send_data(stream, data, end_stream=True)
        status, text = 0, bytearray()
        while True:
            self._socket.sendall(self._state.data_to_send())
            received = self._socket.recv(1 << 16)
            if not received:
                raise ConnectionError("the server closed the connection")
            for event in self._state.receive_data(received):
                if isinstance(event, h2.events.ResponseReceived):
                    status = int(dict(event.headers)[b":status"])
                elif isinstance(event, h2.events.DataReceived):
                    text += event.data
                    self._state.acknowledge_received_data(event.flow_controlled_length, stream)
                elif isinstance(event, h2.events.StreamEnded):
                    self._socket.sendall(self._state.data_to_send())
                    return status, json.loads(text)

    def close(self) -> None:
        self._socket.close()


@dataclass(frozen=True, slots=True)
class Operation:
    """One request.

    Attributes:
        kind: write, delete, read or list.
        began, ended: real time, seconds.
        name: of the object; "" for a list.
        revision: of the object, or of the list; 0 for a deletion and for a read that did not find the object.
        value: what was written or read; None if there was no object. Of a list, all values by name.
        expected: the revision that an update named; 0 if it named none.
    """

    kind: str
    began: float
    ended: float
    name: str
    revision: int
    value: Any
    expected: int = 0


def _act(connection: Connection, chance: random.Random, values: itertools.count[int], worker: int) -> Operation | None:
    """Makes a request by chance; None if it was refused."""
    name, value = chance.choice(_NAMES), f"{worker}-{next(values)}"
    path, made = f"{CONFIGMAPS}/{name}", {"metadata": {"name": name}, "data": {"v": value}}
    choice, expected, began = chance.random(), 0, time.perf_counter()
    if choice < 0.35:
        status, body = connection.request("GET", path)
        found = status == 200
        return Operation(
            "read", began, time.perf_counter(), name, _revision(body) if found else 0, body["data"]["v"] if found else None
        )
    if choice < 0.45:
        status, body = connection.request("GET", CONFIGMAPS)
        items = {item["metadata"]["name"]: item["data"]["v"] for item in body["items"] if item["metadata"]["name"] in _NAMES}
        return Operation("list", began, time.perf_counter(), "", _revision(body), items)
    if choice < 0.55:
        status, _ = connection.request("DELETE", path)
        return Operation("delete", began, time.perf_counter(), name, 0, None) if status == 200 else None
    if choice < 0.7:
        status, body = connection.request("POST", CONFIGMAPS, made)
    elif choice < 0.85:
        status, body = connection.request("PATCH", path, {"data": {"v": value}}, "application/merge-patch+json")
    else:
        status, body = connection.request("GET", path)
        if status != 200:
            return None
        expected, began = _revision(body), time.perf_counter()
        made["metadata"]["resourceVersion"] = str(expected)
        status, body = connection.request("PUT", path, made)
    if status >= 300:
        return None
    return Operation("write", began, time.perf_counter(), name, _revision(body), value, expected)


def _revision(body: Any) -> int:
    return int(body["metadata"]["resourceVersion"])


#: The seconds after which a server that answers too little is given up.
_PATIENCE = 60.0


def record(server: ServedCluster, *, http2: bool, clients: int, seconds: float, seed: int, least: int = 0) -> list[Operation]:
    """Returns what some clients did at once, in some seconds and until they did `least` things."""
    operations: list[Operation] = []
    end = time.perf_counter() + seconds
    hopeless = end + _PATIENCE

    def work(worker: int) -> None:
        connection: Connection = Http2Connection(server) if http2 else JsonConnection(server)
        chance, values = random.Random(f"{seed}-{worker}"), itertools.count()
        while (now := time.perf_counter()) < end or (len(operations) < least and now < hopeless):
            operation = _act(connection, chance, values, worker)
            if operation is not None:
                operations.append(operation)
        connection.close()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return operations


def deletions(server: ServedCluster, start: int, scheme: str) -> dict[str, list[int]]:
    """The revisions of all deletions since a revision, by name, as a watch tells them."""
    query = f"watch=1&resourceVersion={start}&timeoutSeconds=1"
    context = untrusting_context() if scheme == "https" else None
    if context is not None:
        context.set_alpn_protocols(["http/1.1"])
    request = urllib.request.Request(f"{scheme}://{server.host}:{server.port}{CONFIGMAPS}?{query}")
    request.add_header("Authorization", "Bearer admin-token")
    found: dict[str, list[int]] = defaultdict(list)
    with urllib.request.urlopen(request, context=context) as response:
        for event in map(json.loads, response):
            if event["type"] == "DELETED":
                found[event["object"]["metadata"]["name"]].append(_revision(event["object"]))
    return found


def check(operations: list[Operation], deleted: dict[str, list[int]]) -> list[str]:
    """Returns what contradicts linearizability."""
    wrong: list[str] = []
    writes = sorted((o for o in operations if o.kind == "write"), key=lambda o: o.revision)
    if len({o.revision for o in writes}) != len(writes):
        wrong.append("two changes have one revision")
    earliest_end = float("inf")
    for one in reversed(writes):  # from the last revision to the first
        if earliest_end < one.began:
            wrong.append(f"{one} has an earlier revision than a change that ended before it began")
        earliest_end = min(earliest_end, one.ended)
    versions: dict[str, list[tuple[int, Any, float, float]]] = defaultdict(list)
    for o in writes:
        versions[o.name].append((o.revision, o.value, o.began, o.ended))
    for name, revisions in deleted.items():
        versions[name] += [(revision, None, 0.0, float("inf")) for revision in revisions]
        versions[name].sort(key=lambda v: v[0])
    ends = {name: _earliest_ends(them) for name, them in versions.items()}
    for o in operations:
        if o.kind == "write" and o.expected:
            place = bisect.bisect_left(versions[o.name], o.revision, key=lambda v: v[0])
            if not place or versions[o.name][place - 1][0] != o.expected:
                wrong.append(f"{o} succeeded, but the version before is {versions[o.name][max(place - 1, 0)]}")
        elif o.kind == "read" and o.value is not None:
            wrong += _check_read(o, versions[o.name], ends[o.name])
        elif o.kind == "list":
            for name in _NAMES:
                place = bisect.bisect_right(versions[name], o.revision, key=lambda v: v[0])
                value = versions[name][place - 1][1] if place else None
                if o.value.get(name) != value:
                    wrong.append(f"the list at {o.revision} has {name} = {o.value.get(name)}, not {value}")
    return wrong


def _earliest_ends(versions: list[tuple[int, Any, float, float]]) -> list[float]:
    """For each version, when the earliest of the changes after it ended."""
    found = [float("inf")]
    for _, _, _, ended in reversed(versions[1:]):
        found.append(min(found[-1], ended))
    return found[::-1]


def _check_read(read: Operation, versions: list[tuple[int, Any, float, float]], ends: list[float]) -> list[str]:
    """A read tells a version that was written before the read ended, and not replaced before it began."""
    place = bisect.bisect_left(versions, read.revision, key=lambda v: v[0])
    if place == len(versions) or versions[place][0] != read.revision:
        return [f"{read} tells a version that nobody wrote"]
    _, value, began, _ = versions[place]
    wrong = [] if value == read.value else [f"{read} has another value than its version, {value}"]
    if began > read.ended:
        wrong.append(f"{read} tells a version of the future")
    if ends[place] < read.began:
        wrong.append(f"{read} tells a version that was replaced before it began")
    return wrong


def play(*, http2: bool = False, clients: int = 6, seconds: float = 20, seed: int = 0, least: int = 0) -> tuple[int, list[str]]:
    """Returns how many requests succeeded, `least` on however busy a machine, and what contradicts linearizability."""
    with ServedCluster(*(["--tls"] if http2 else [])) as server:
        connection: Connection = Http2Connection(server) if http2 else JsonConnection(server)
        _, before = connection.request("GET", CONFIGMAPS)
        connection.close()
        operations = record(server, http2=http2, clients=clients, seconds=seconds, seed=seed, least=least)
        deleted = deletions(server, _revision(before), "https" if http2 else "http")
    return len(operations), check(operations, deleted)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--http2", action="store_true")
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    count, wrong = play(http2=options.http2, clients=options.clients, seconds=options.seconds, seed=options.seed)
    print(f"{count} requests of {options.clients} clients over HTTP/{2 if options.http2 else 1.1}")
    print("\n".join(wrong[:20]) or "the history is linearizable")
    return bool(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
