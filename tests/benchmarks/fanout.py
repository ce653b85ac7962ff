"""Watchers of one busy collection: how many events a second reach them.

The watchers are sockets of one process of their own; writers change a few objects of the collection as fast as they are
let. What counts is the time from the first write until every watcher has every event. The events are counted
by their line ends, which is as little as a client can do with them; its cost is the same for both sides. No longer text is looked
for: a server that is behind may divide an event among chunks.
"""

from __future__ import annotations

import multiprocessing
import selectors
import threading
import time
from contextlib import suppress
from multiprocessing.connection import Connection as Channel

from tests.benchmarks.sides import Side
from tests.benchmarks.wire import RECORD, Connection

__all__ = ["events_per_second"]

_MERGE_PATCH = "application/merge-patch+json"
_TEXT = "x" * 400
_EVENT_END = b"}\n"
_BEGUN = len(_EVENT_END) - 1
"""How many bytes of an end may have come without its last one."""


def events_per_second(side: Side, namespace: str, *, watchers: int, writers: int = 4, writes: int = 50) -> float:
    """Events delivered a second to `watchers` watches, while `writers` connections make `writes` changes each."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    with side.connect() as connection:
        for number in range(writers):
            connection.request("POST", path, {"metadata": {"name": f"busy-{number}"}, "data": {"text": _TEXT}})
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

    def __init__(self, connection: Connection, missing: int, room: bytearray) -> None:
        """`room`: for the bytes that were received last, and those that are received now."""
        self._connection = connection
        self.missing = missing
        self._room = room
        self._begun = bytes(_BEGUN)

    def read(self) -> None:
        """Take what is there now. Raises ConnectionError when the watch ended."""
        room, receive = self._room, self._connection.socket.recv_into
        with memoryview(room)[_BEGUN:] as view, suppress(BlockingIOError):
            while True:
                room[:_BEGUN] = self._begun
                count = receive(view)
                if not count:
                    raise ConnectionError("the server ended a watch")
                self.missing -= room.count(_EVENT_END, 0, _BEGUN + count)
                self._begun = room[count : _BEGUN + count]


def _receive(side: Side, path: str, watchers: int, events: int, channel: Channel) -> None:
    """In the watchers' process: open the watches, say so, and tell when every one has all its events."""
    selector, room = selectors.DefaultSelector(), bytearray(_BEGUN + RECORD)
    for _ in range(watchers):
        connection = side.connect()
        connection.watch(path)
        connection.socket.setblocking(False)
        selector.register(connection.socket, selectors.EVENT_READ, _Watcher(connection, events, room))
    channel.send("ready")
    while selector.get_map():
        for key, _ in selector.select():
            watcher: _Watcher = key.data
            watcher.read()
            if watcher.missing <= 0:
                selector.unregister(key.fileobj)
    channel.send(time.monotonic())
