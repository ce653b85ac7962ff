"""Runs controllers: their watches, one queue, and the quiet that a test can wait for.

All controllers of a cluster share the watches and run in one thread, which sleeps until a watch has something or the
clock says that a retry is due. `settle` does the same work in the caller's thread until nothing is left: since watches
are cursors into the store's history, what a write has caused is visible at once, and "nothing left" is exact.

Invariant: `_working` is held while events are taken or a controller runs.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import orjson

from fakekube.client import ApiError, Client
from fakekube.clock import Clock, Timer
from fakekube.controllers.reconciler import Key, Reconciler
from fakekube.resources.registry import Resource
from fakekube.streams import Stream

__all__ = ["Manager"]

#: Seconds of the clock before a controller tries again what has failed.
RETRY_AFTER = 1.0

#: Objects that one `settle` looks at before it believes that controllers go in circles.
TOO_MANY = 100_000

_Work = tuple[Reconciler, Key]


class Manager:
    """The controllers of one cluster."""

    def __init__(self, client: Client, clock: Clock, controllers: Sequence[Reconciler]) -> None:
        self._client = client
        self._clock = clock
        self._controllers = controllers
        self._streams: dict[str, Stream] = {}
        self._queue: deque[_Work] = deque()
        self._queued: set[_Work] = set()
        self._retries: dict[_Work, Timer] = {}
        self._working = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._stopped = False
        self._watching: dict[str, set[Reconciler]] = {}
        for controller in controllers:
            controller.also_watch = partial(self._watch_more, controller)

    def start(self) -> None:
        """Watch, and work in a thread of one's own."""
        self._open()
        if self._controllers:
            self._thread = threading.Thread(target=self._run, name="fakekube-controllers", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End all work; a controller that is at work finishes its object."""
        self._stopped = True
        self._wake.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        with self._working:
            for timer in self._retries.values():
                timer.cancel()
            for stream in self._streams.values():
                stream.source.unsubscribe(self._wake.set)
                stream.close()
            self._streams.clear()

    def settle(self) -> None:
        """Work until the controllers have nothing left to do (but for what waits for the clock).

        Raises RuntimeError if they do not come to rest.
        """
        if not self._streams:
            self._open()
        done = 0
        while self._step():
            done += 1
            if done > TOO_MANY:
                raise RuntimeError("the controllers do not come to rest")

    def _open(self) -> None:
        for controller in self._controllers:
            for name in controller.watches:
                self._watching.setdefault(name, set()).add(controller)
        for name in self._watching:
            self._watch(name)

    def _watch_more(self, controller: Reconciler, resource: Resource) -> None:
        name = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
        self._watching.setdefault(name, set()).add(controller)
        if name not in self._streams:
            self._watch(name)

    def _watch(self, name: str) -> None:
        path = self._client.path(self._client.resource(name))
        stream = self._client.watch(path, {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"})
        self._streams[name] = stream
        stream.source.subscribe(self._wake.set)

    def _run(self) -> None:
        while not self._stopped:
            self._wake.clear()
            while not self._stopped and self._step():
                pass
            if not self._stopped:
                self._wake.wait()

    def _step(self) -> bool:
        """Take what the watches have and look at one object; False if there was nothing to do."""
        with self._working:
            if self._stopped:
                return False
            self._take_events()
            if not self._queue:
                return False
            work = self._queue.popleft()
            self._queued.discard(work)
            controller, key = work
            try:
                controller.reconcile(key)
            except ApiError as error:
                if error.code != 404:  # what is gone needs nothing more
                    self._retry_later(work)
            return True

    def _take_events(self) -> None:
        for name in list(self._streams):
            self._take_from(name)
            stream = self._streams[name]
            if stream.ended:  # timed out or fallen behind: begin anew
                stream.source.unsubscribe(self._wake.set)
                self._watch(name)
                self._take_from(name)

    def _take_from(self, name: str) -> None:
        while frames := self._streams[name].take():
            for frame in frames:
                self._dispatch(name, orjson.loads(frame))

    def _dispatch(self, name: str, event: dict[str, Any]) -> None:
        event_type, obj = event["type"], event["object"]
        if event_type not in ("ADDED", "MODIFIED", "DELETED"):
            return
        for controller in self._controllers:
            if controller in self._watching[name]:
                for key in controller.keys(name, event_type, obj):
                    self._enqueue((controller, key))

    def _enqueue(self, work: _Work) -> None:
        if work not in self._queued:
            self._queued.add(work)
            self._queue.append(work)

    def _retry_later(self, work: _Work) -> None:
        if work not in self._retries:
            self._retries[work] = self._clock.call_at(self._clock.monotonic() + RETRY_AFTER, self._retrying(work))

    def _retrying(self, work: _Work) -> Callable[[], None]:
        def retry() -> None:
            self._retries.pop(work, None)
            self._enqueue(work)
            self._wake.set()

        return retry
