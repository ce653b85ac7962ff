"""Runs controllers: their watches, one queue, and the quiet that a test can wait for.

All controllers of a cluster share the watches and run in one thread, which sleeps until a watch has something or the
clock says that a retry is due. `settle` does the same work in the caller's thread until nothing is left: since watches
are cursors into the store's history, what a write has caused is visible at once, and "nothing left" is exact.

Where there is nothing to do, nothing is done: a cluster that begins with what controllers have left (`settled_at`) has
neither thread nor watches before something changes that they look at.

Invariant: `_working` is held while watches are opened, events are taken, or a controller runs.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from fakekube.client import ApiError, Client
from fakekube.clock import Clock, Timer
from fakekube.codecs import json
from fakekube.controllers.reconciler import Key, Reconciler
from fakekube.registry.resource import Resource
from fakekube.store import Store
from fakekube.streams import Source, Stream

__all__ = ["Manager"]

#: Seconds of the clock before a controller tries again what has failed.
RETRY_AFTER = 1.0

#: Objects that one `settle` looks at before it believes that controllers go in circles.
TOO_MANY = 100_000

_Work = tuple[Reconciler, Key]


#: The options of a watch that begins with the present state.
_FROM_STATE = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}


class Manager:
    """The controllers of one cluster.

    Args:
        client: of the cluster.
        clock: of the cluster.
        store: of the cluster; tells when there may be something to do.
        controllers: who works.
        settled_at: the revision at which they had nothing left to do, if that is known.
    """

    def __init__(
        self, client: Client, clock: Clock, store: Store[Any], controllers: Sequence[Reconciler],
        *, settled_at: int | None = None,
    ) -> None:
        self._client = client
        self._clock = clock
        self._store = store
        self._controllers = controllers
        self._settled_at = settled_at
        self._sources: dict[str, Source] = {}
        self._streams: dict[str, Stream] = {}
        self._queue: deque[_Work] = deque()
        self._queued: set[_Work] = set()
        self._retries: dict[_Work, Timer] = {}
        self._working = threading.Lock()
        self._wake = threading.Event()
        self._starting = threading.Lock()
        self._started = False
        self._thread: threading.Thread | None = None
        self._stopped = False
        self._watching: dict[str, set[Reconciler]] = {}
        for controller in controllers:
            controller.also_watch = partial(self._watch_more, controller)
            for name in controller.watches:
                self._watching.setdefault(name, set()).add(controller)

    def start(self) -> None:
        """Work in a thread of one's own whenever there is something to do."""
        if not self._controllers:
            return
        self._started = True
        for name in self._watching:
            self._subscribe(name)
        if self._store.revision != self._settled_at:
            self._notice()

    def stop(self) -> None:
        """End all work; a controller that is at work finishes its object."""
        with self._starting:
            self._stopped = True
        self._wake.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        with self._working:
            for timer in self._retries.values():
                timer.cancel()
            for source in self._sources.values():
                source.unsubscribe(self._notice)
            for stream in self._streams.values():
                stream.close()
            self._streams.clear()

    def settle(self) -> None:
        """Work until the controllers have nothing left to do (but for what waits for the clock).

        Raises RuntimeError if they do not come to rest.
        """
        done = 0
        while self._step():
            done += 1
            if done > TOO_MANY:
                raise RuntimeError("the controllers do not come to rest")

    def _subscribe(self, name: str) -> None:
        """Hear of the changes of a resource."""
        if name not in self._sources:
            source = self._sources[name] = self._store.bucket(self._client.resource(name).bucket)
            source.subscribe(self._notice)

    def _notice(self) -> None:
        """Something may have changed: wake the thread, which the first change starts."""
        self._wake.set()
        if self._thread is None and self._started:
            with self._starting:
                if self._thread is None and not self._stopped:
                    self._thread = threading.Thread(target=self._run, name="fakekube-controllers", daemon=True)
                    self._thread.start()

    def _open(self) -> None:
        """The first watches: of what has changed since the controllers were settled, or of everything."""
        options = _FROM_STATE if self._settled_at is None else {"resourceVersion": str(self._settled_at)}
        for name in self._watching:
            self._watch(name, options)

    def _watch_more(self, controller: Reconciler, resource: Resource) -> None:
        name = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
        self._watching.setdefault(name, set()).add(controller)
        if name not in self._streams:
            self._watch(name, _FROM_STATE)

    def _watch(self, name: str, options: Mapping[str, str]) -> None:
        self._subscribe(name)
        self._streams[name] = self._client.watch(self._client.path(self._client.resource(name)), options)

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
            if not self._streams:
                self._open()
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
                self._watch(name, _FROM_STATE)
                self._take_from(name)

    def _take_from(self, name: str) -> None:
        while frames := self._streams[name].take():
            for frame in frames:
                self._dispatch(name, json.reread(frame))

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
            self._notice()

        return retry
