"""Many watchers that lose their connections while the history is compacted: `python -m tests.soak.watchers [--watchers 1000]`.

Writers create, change and delete objects and write down the revision of each change. Watchers are cut off by chance and resume from
the last revision that they saw; after 410 Gone they list again. At the end the events of each span that a watcher saw without a
list must be exactly the changes in it: nothing lost, doubled or out of order.
"""

from __future__ import annotations

import argparse
import bisect
import json
import random
import selectors
import socket
import threading
import time
from dataclasses import dataclass, field

from tests.soak.serving import CONFIGMAPS, JsonConnection, ServedCluster

_NAMES = 40


@dataclass(slots=True)
class Span:
    """What one watcher saw between a list and the next one.

    Attributes:
        start: the revision of the list.
        seen: the events, each a revision, a type and a name.
    """

    start: int
    seen: list[tuple[int, str, str]] = field(default_factory=list)

    @property
    def end(self) -> int:
        return self.seen[-1][0] if self.seen else self.start


@dataclass(slots=True)
class Figures:
    watchers: int = 0
    changes: int = 0
    events: int = 0
    drops: int = 0
    expired: int = 0


class Watcher:
    """One watch, over as many connections as it takes."""

    def __init__(self, server: ServedCluster, lister: JsonConnection) -> None:
        self._server, self._lister = server, lister
        self.spans: list[Span] = []
        self.list()
        self.connect()

    def list(self) -> None:
        _, body = self._lister.request("GET", CONFIGMAPS)
        self.spans.append(Span(int(body["metadata"]["resourceVersion"])))

    def connect(self) -> None:
        path = f"{CONFIGMAPS}?watch=1&resourceVersion={self.spans[-1].end}"
        self.socket = socket.create_connection((self._server.host, self._server.port))
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: {self._server.host}\r\n\r\n".encode())
        self._buffer = bytearray()
        self._has_head = False

    def receive(self) -> bool:
        """Takes what has arrived; returns whether the revision is too old, or the stream has ended."""
        data = self.socket.recv(1 << 16)
        self._buffer += data
        if not self._has_head:
            head, end, rest = bytes(self._buffer).partition(b"\r\n\r\n")
            if not end:
                return not data
            self._has_head, self._buffer = True, bytearray(rest)
            if b" 200 " not in head.partition(b"\r\n")[0]:
                return True
        return self._take_chunks() or not data

    def _take_chunks(self) -> bool:
        while True:
            line, end, _ = bytes(self._buffer[:32]).partition(b"\r\n")
            if not end:
                return False
            size, begin = int(line, 16), len(line) + 2
            if len(self._buffer) < begin + size + 2:
                return False
            chunk = bytes(self._buffer[begin : begin + size])
            del self._buffer[: begin + size + 2]
            if not size:
                return True
            for text in chunk.splitlines():
                event = json.loads(text)
                if event["type"] == "ERROR":
                    return True
                meta = event["object"]["metadata"]
                self.spans[-1].seen.append((int(meta["resourceVersion"]), event["type"], meta["name"]))


def _write(server: ServedCluster, number: int, ended: threading.Event, changes: list[tuple[int, str, str]], seed: int) -> None:
    """Creates, changes and deletes objects that no other writer has."""
    chance, connection = random.Random(f"{seed}-{number}"), JsonConnection(server)
    existing: set[str] = set()
    while not ended.is_set():
        name = f"w{number}-{chance.randrange(_NAMES)}"
        if name not in existing:
            _, body = connection.request("POST", CONFIGMAPS, {"metadata": {"name": name}})
            kind = "ADDED"
            existing.add(name)
        elif chance.random() < 0.3:
            # Only a watch tells the revision of a deletion.
            connection.request("DELETE", f"{CONFIGMAPS}/{name}")
            existing.remove(name)
            continue
        else:
            data = {"data": {"n": str(chance.random())}}
            _, body = connection.request("PATCH", f"{CONFIGMAPS}/{name}", data, "application/merge-patch+json")
            kind = "MODIFIED"
        changes.append((int(body["metadata"]["resourceVersion"]), kind, name))
    connection.close()


def _compact(server: ServedCluster, ended: threading.Event, seconds: float) -> None:
    connection = JsonConnection(server)
    while not ended.wait(seconds):
        connection.request("POST", "/fakekube/v1/compact", {})
    connection.close()


#: The seconds after which a server that answers too little is given up.
_PATIENCE = 60.0


def play(watchers: int, seconds: float, seed: int = 0, least: int = 0) -> tuple[Figures, list[str]]:
    """Returns the figures, and what is wrong with the events of the watchers. It goes on until there were `least` changes."""
    chance, figures, changes = random.Random(seed), Figures(watchers), list[tuple[int, str, str]]()
    with ServedCluster() as server:
        lister, ended = JsonConnection(server), threading.Event()
        threads = [threading.Thread(target=_write, args=(server, i, ended, changes, seed)) for i in range(3)]
        threads.append(threading.Thread(target=_compact, args=(server, ended, max(seconds / 8, 0.2))))
        everyone = [Watcher(server, lister) for _ in range(watchers)]
        selector = selectors.DefaultSelector()
        for watcher in everyone:
            selector.register(watcher.socket, selectors.EVENT_READ, watcher)
        for thread in threads:
            thread.start()
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end or ((len(changes) < least or not figures.drops) and now < end + _PATIENCE):
            _take(selector, chance, figures)
        ended.set()
        for thread in threads:
            thread.join()
        last = max(revision for revision, _, _ in changes)
        end = time.monotonic() + 30
        while time.monotonic() < end and any(watcher.spans[-1].end < last for watcher in everyone):
            if _take(selector, None, figures):
                end = time.monotonic() + 30  # as long as something comes
        for watcher in everyone:
            watcher.socket.close()
        lister.close()
    figures.changes, figures.events = len(changes), sum(len(span.seen) for watcher in everyone for span in watcher.spans)
    return figures, _compare(everyone, changes, last)


def _compare(everyone: list[Watcher], changes: list[tuple[int, str, str]], last: int) -> list[str]:
    """Each span has the changes that the writers made in it, and the deletions that any watcher saw in it."""
    deletions = {event for watcher in everyone for span in watcher.spans for event in span.seen if event[1] == "DELETED"}
    truth = sorted({*changes, *deletions})
    revisions = [revision for revision, _, _ in truth]
    wrong = [] if len(set(revisions)) == len(revisions) else ["two changes have one revision"]
    for number, watcher in enumerate(everyone):
        if watcher.spans[-1].end < last:
            wrong.append(f"watcher {number} saw {watcher.spans[-1].end} as its last revision, not {last}")
        wrong += [
            f"watcher {number}: the events after {span.start} up to {span.end} are not the changes in between"
            for span in watcher.spans
            if span.seen != truth[bisect.bisect_right(revisions, span.start) : bisect.bisect_right(revisions, span.end)]
        ]
    return wrong


def _take(selector: selectors.DefaultSelector, chance: random.Random | None, figures: Figures) -> bool:
    """Lets the watchers take what has come; some are cut off. Returns whether something came."""
    found = selector.select(0.1)
    for key, _ in found:
        watcher: Watcher = key.data
        is_over = watcher.receive()
        is_cut = chance is not None and chance.random() < 0.02
        if not is_over and not is_cut:
            continue
        selector.unregister(watcher.socket)
        watcher.socket.close()
        figures.drops += is_cut
        if is_over and not is_cut:
            figures.expired += 1
            watcher.list()
        watcher.connect()
        selector.register(watcher.socket, selectors.EVENT_READ, watcher)
    return bool(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--watchers", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    figures, wrong = play(options.watchers, options.seconds, options.seed)
    print(
        f"{figures.watchers} watchers, {figures.changes} changes, {figures.events} events, {figures.drops} cut off, {figures.expired} listed again"
    )
    print("\n".join(wrong[:20]) or "nothing was lost, doubled or out of order")
    return bool(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
