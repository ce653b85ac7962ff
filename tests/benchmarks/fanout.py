"""Watchers of one busy collection: how many events a second reach them.

The watchers are sockets of one process of their own; writers change a few objects of the collection as fast as they are
let. What counts is the time from the first write until every watcher has every event. The events are counted
by their line ends, which is as little as a client can do with them; its cost is the same for both sides.
"""

from __future__ import annotations

import multiprocessing
import selectors
import ssl
import threading
import time
from multiprocessing.connection import Connection as Channel

from tests.benchmarks.sides import Side
from tests.benchmarks.wire import Connection

__all__ = ["events_per_second"]

_MERGE_PATCH = "application/merge-patch+json"
_EVENT_END = b"}\n"


def events_per_second(side: Side, namespace: str, *, watchers: int, writers: int = 4, writes: int = 50) -> float:
    """Events delivered a second to `watchers` watches, while `writers` connections make `writes` changes each."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    with side.connect() as connection:
        for number in range(writers):
            connection.request("POST", path, {"metadata": {"name": f"busy-{number}"}, "data": {"text": "x" * 400}})
        revision = connection.request("GET", path + "?limit=1")["metadata"]["resourceVersion"]
    channel, far_end = multiprocessing.Pipe()
    arguments = (side, f"{path}?watch=1&resourceVersion={revision}", watchers, writers * writes, far_end)
    process = multiprocessing.get_context("spawn").Process(target=_receive, args=arguments)
    process.start()
    channel.recv()
    threads = [threading.Thread(target=_write, args=(side, f"{path}/busy-{n}", writes)) for n in range(writers)]
    begin = time.monotonic()
    for thread in threads:
        thread.start()
    end: float = channel.recv()
    for thread in threads:
        thread.join()
    process.join()
    return watchers * writers * writes / (end - begin)


def _write(side: Side, path: str, writes: int) -> None:
    with side.connect() as connection:
        for number in range(writes):
            body = {"metadata": {"labels": {"turn": str(number)}}}
            connection.exchange(connection.prepare("PATCH", path, body, _MERGE_PATCH))


class _Watcher:
    """A watch, and what it still waits for."""

    def __init__(self, connection: Connection, missing: int) -> None:
        self.connection = connection
        self.missing = missing
        self._last = b""

    def read(self) -> None:
        """Take what is there now. Raises ConnectionError when the watch ended."""
        while True:
            try:
                received = self.connection.socket.recv(1 << 18)
            except (ssl.SSLWantReadError, BlockingIOError):
                return
            if not received:
                raise ConnectionError("the server ended a watch")
            self.missing -= received.count(_EVENT_END) + ((self._last + received[:1]) == _EVENT_END)
            self._last = received[-1:]


def _receive(side: Side, path: str, watchers: int, events: int, channel: Channel) -> None:
    """In the watchers' process: open the watches, say so, and tell when every one has all its events."""
    selector = selectors.DefaultSelector()
    for _ in range(watchers):
        connection = side.connect()
        connection.watch(path)
        connection.socket.setblocking(False)
        selector.register(connection.socket, selectors.EVENT_READ, _Watcher(connection, events))
    channel.send("ready")
    while selector.get_map():
        for key, _ in selector.select():
            watcher: _Watcher = key.data
            watcher.read()
            if watcher.missing <= 0:
                selector.unregister(key.fileobj)
    channel.send(time.monotonic())
