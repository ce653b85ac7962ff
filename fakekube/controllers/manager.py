"""Runs the controllers of a cluster: wakes them, brings them the changes, and knows when all of them are quiet.

A controller sleeps until something that its row in the table names changes: then its module is imported, its watches are
opened at the revision at which the cluster was settled, and it hears of every change since. All controllers of a cluster
share one cache and one queue, and work in one thread, which the first change starts. `settle` does the same work in the
caller's thread: since informers are cursors into the store's history, what a write has caused is visible at once, and
"nothing left to do" is exact.

A clock that is advanced takes the controllers along: what is due now is done before it moves, and what becomes due on
the way is done at its own time, before the clock moves on.

Invariant: `_working` is held while informers are read or a controller runs.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

from fakekube.client import ApiError, Client
from fakekube.clock import Clock, Timer
from fakekube.controllers.informers import ADDED, Cache, Change, Informer
from fakekube.controllers.reconciler import Context, Key, Reconciler
from fakekube.controllers.recorder import Recorder
from fakekube.controllers.table import ANYTHING, Row
from fakekube.controllers.workqueue import WorkQueue
from fakekube.store import Event, Store
from fakekube.threads import WORKERS

if TYPE_CHECKING:
    from fakekube.codecs.document import Document

__all__ = ["Manager"]

_log = logging.getLogger(__name__)

#: A failed item that is tried again within so many seconds counts as work that is going on.
RETRY_HORIZON = 0.1
#: Conflicts in a row after which an item waits as after other failures.
CONFLICTS = 10
#: Real seconds that a moving clock waits for a controller that is at work in another thread.
PATIENCE = 1.0
#: Real seconds that the work of one moment may keep a moving clock.
LONGEST_CATCH_UP = 60.0
#: Real seconds between the first change and the thread's work.
PAUSE = 0.001

_Work = tuple[Reconciler, Key]


class Manager:
    """The controllers of one cluster.

    Args:
        client_for: makes a client of the cluster for a program and the name of a part of it.
        clock: of the cluster.
        store: of the cluster; tells of every change.
        rows: which controllers there are.
        context: what controllers are told of the cluster.
        settled_at: the revision at which they had nothing left to do, if that is known.
    """

    def __init__(
        self,
        client_for: Callable[[str, str], Client],
        clock: Clock,
        store: Store[Document],
        rows: Sequence[Row],
        context: Context,
        *,
        settled_at: int | None = None,
    ) -> None:
        self._client_for = client_for
        self._clock = clock
        self._store = store
        self._rows = _by_resource(tuple(rows))
        self._context = context
        self._settled_at = settled_at
        self._served = context.registry.state
        self._cache: Cache | None = None
        self._active: dict[Row, Reconciler] = {}
        self._waking: list[Row] = []
        self._listeners: dict[str, list[Reconciler]] = {}
        self._buckets: dict[str, list[Informer]] = {}
        self._dirty: set[str] = set()
        self._queue: WorkQueue[_Work] = WorkQueue()
        self._retries: set[_Work] = set()
        self._routine: set[_Work] = set()
        self._current: Reconciler | None = None
        self._worker: int | None = None
        self._timer: Timer | None = None
        self._working = threading.RLock()
        self._wake = threading.Event()
        self._stirred = threading.Event()
        self._starting = threading.Lock()
        self._started = self._running = self._stopped = self._awake = False
        self._thread = 0
        self._idle = threading.Event()
        if rows:
            store.listen(self._hear)
            if settled_at is None:
                self._look_around()

    # ------------------------------------------------------------ start and stop

    def start(self) -> None:
        """Work in a thread of the process whenever there is something to do."""
        self._started = True
        if self._waking or self._dirty or len(self._queue):
            self._notice()

    def stop(self) -> None:
        """End all work; a controller that is at work finishes its object."""
        with self._starting:
            self._stopped = True
        self._store.unlisten(self._hear)
        self._wake.set()
        self._stirred.set()
        if self._running and self._thread != threading.get_ident():
            self._idle.wait()
        with self._working:
            self._set_timer(None)

    def ask(self, name: str, key: Key, *, wake: bool = False) -> None:
        """Let a controller look at a key, from any thread: if it is awake, or is to be woken for that."""
        with self._working:
            for row in {row for rows in self._rows.values() for row in rows if wake and row.name == name}:
                self._activate(row)
            for controller in self._active.values():
                if controller.name == name:
                    self._queue.add((controller, key))
        self._notice()

    @property
    def works_elsewhere(self) -> bool:
        """Do the controllers work in another thread than the one that asks?"""
        return self._started and not self._stopped and self._worker != threading.get_ident()

    # ------------------------------------------------------------ quiet

    def settle(self, timeout: float = 10.0, horizon: float = 0.0) -> None:
        """Work until the controllers have nothing left to do now or within `horizon` seconds of the clock.

        A held clock is not waited for. Raises TimeoutError, which names who still works, after `timeout` real seconds.
        """
        end = time.monotonic() + timeout
        while True:
            self._stirred.clear()
            while self._step(end):
                if time.monotonic() > end:
                    raise TimeoutError(f"still at work after {timeout} s: {', '.join(self.working(horizon))}")
            if self._clock.held or not self.working(horizon) or self._stopped:
                return
            if not self._stirred.wait(max(end - time.monotonic(), 0.0)):
                raise TimeoutError(f"still at work after {timeout} s: {', '.join(self.working(horizon))}")

    def working(self, horizon: float = 0.0) -> list[str]:
        """The names of the controllers that have work now or within so many seconds of the clock."""
        now, current = self._clock.monotonic(), self._current
        names = {controller.name for controller, _ in self._queue}
        names |= {work[0].name for work in self._queue.due_until(now + horizon) if work not in self._routine}
        names |= {work[0].name for work in self._queue.due_until(now + RETRY_HORIZON) if work in self._retries}
        names |= {row.name for row in self._waking}
        return sorted(names if current is None else names | {current.name})

    # ------------------------------------------------------------ waking up

    def _look_around(self) -> None:
        """Nothing is known of the past: wake who has something to look at."""
        for name, rows in self._rows.items():
            if name != ANYTHING and not self._store.bucket(name).is_empty:
                self._waking += [row for row in rows if row not in self._waking]
        for row in self._rows.get(ANYTHING, ()):
            documents = (
                record.value.object
                for resource in self._context.registry
                if "list" in resource.verbs
                for record in self._store.bucket(resource.bucket).page().records
            )
            if any(row.concerns(obj) for obj in documents):
                self._waking.append(row)

    def _hear(self, bucket: str, event: Event[Document] | None) -> None:
        """Something has changed; called in the thread that changed it. Wakes who must look at it."""
        needed = False
        if event is None:  # another past was restored: what was settled is unknown
            self._settled_at = None
            obj = old = None
        else:
            previous = event.previous.value.object if event.previous is not None else None
            obj, old = (event.record.value.object, previous) if event.record is not None else (previous, previous)
        for row in (*self._rows.get(bucket, ()), *self._rows.get(ANYTHING, ())):
            if row not in self._active and row not in self._waking and (obj is None or row.concerns(obj)):
                self._waking.append(row)
                needed = True
        if bucket in self._buckets:
            self._dirty.add(bucket)
            needed = (
                needed
                or obj is None
                or any(controller.concerns(bucket, obj, old) for controller in self._listeners.get(bucket, ()))
            )
        if needed:
            self._notice()

    def _notice(self) -> None:
        """There is something to do: wake the thread, which the first change starts."""
        self._wake.set()
        self._stirred.set()
        if not self._awake:
            self._awake = True
            self._clock.before_advance(self._catch_up)
        if not self._running and self._started:
            with self._starting:
                if not self._running and not self._stopped:
                    WORKERS.run(self._run)
                    self._running = True

    def _run(self) -> None:
        self._thread = threading.get_ident()
        try:
            while not self._stopped:
                self._wake.clear()
                while not self._stopped and self._step():
                    pass
                if not self._stopped:
                    self._wake.wait()
                if not self._stopped:
                    time.sleep(PAUSE)  # a client that writes one object after another is not interrupted at each
        finally:
            self._idle.set()

    def _activate(self, row: Row) -> None:
        if row in self._active:
            return
        controller = row.load()
        controller.client = self._client_for(controller.program, controller.client_name or controller.name)
        controller.clock = self._clock
        if self._cache is None:
            self._cache = Cache(controller.client, self._store, self._opened)
        controller.cache = self._cache
        controller.recorder = Recorder(controller.client, self._clock, controller.component or controller.name)
        controller.context = self._context
        controller.enqueue = lambda key: self._queue.add((controller, key))
        controller.requeue_after = partial(self._requeue_after, controller)
        controller.requeue_routinely = partial(self._requeue_routinely, controller)
        controller.requeue_rate_limited = lambda key: self._retry_later((controller, key))
        controller.also_watch = partial(self._also_watch, controller)
        self._active[row] = controller
        controller.started()
        for name in controller.watches:
            self._also_watch(controller, name)

    def _also_watch(self, controller: Reconciler, name: str) -> None:
        """Bring a controller the changes of a resource, beginning with what is new since the cluster was settled."""
        listeners = self._listeners.setdefault(name, [])
        if controller in listeners:
            return
        listeners.append(controller)
        known = name in controller.cache
        informer = controller.cache.informer(name)
        if known:  # others follow it already
            self._tell(
                controller,
                name,
                [
                    Change(ADDED, obj, None)
                    for obj in informer.objects()
                    if self._settled_at is None or int(obj["metadata"]["resourceVersion"]) > self._settled_at
                ],
            )

    def _opened(self, informer: Informer) -> None:
        """A new informer: who listens hears of the changes since the cluster was settled."""
        self._buckets.setdefault(informer.resource.bucket, []).append(informer)
        self._dispatch(informer.name, informer.open(self._settled_at))

    # ------------------------------------------------------------ working

    def _step(self, end: float | None = None) -> bool:
        """Look at the changes and at one object; False if there was nothing to do."""
        if not self._working.acquire(timeout=-1 if end is None else max(end - time.monotonic(), 0.0)):
            return True
        before, self._worker = self._worker, threading.get_ident()
        try:
            if self._stopped or self._current is not None:  # or a controller waits for itself
                return False
            self._activate_woken()
            if self._served is not self._context.registry.state:
                self._served = self._context.registry.state
                for controller in list(self._active.values()):
                    controller.resources_changed()
            while self._dirty:
                self._catch_up_informers()
            self._queue.ripen(self._clock.monotonic())
            work = self._queue.take()
            if work is None:
                self._set_timer(self._queue.next_due)
                return False
            self._reconcile(work)
            return True
        finally:
            self._worker = before
            self._working.release()

    def _catch_up_informers(self) -> None:
        """Bring every informer up to date before any controller hears of a change.

        A controller that is told of one resource looks into its cache at others, which must not be older.
        """
        found: list[tuple[Informer, Sequence[Change]]] = []
        while self._dirty:
            found += [(informer, informer.catch_up()) for informer in self._buckets[self._dirty.pop()]]
        for informer, changes in found:
            self._wake_for(informer.resource.bucket, changes)
        for informer, changes in found:
            self._dispatch(informer.name, changes)

    def _activate_woken(self) -> None:
        while self._waking:
            try:
                self._activate(self._waking[0])
            except Exception:
                _log.exception("%s cannot start", self._waking[0].name)
            self._waking.pop(0)

    def _wake_for(self, bucket: str, changes: Sequence[Change]) -> None:
        """Wake up who must not miss these changes: the writer may not have come to `_hear` yet."""
        for row in (*self._rows.get(bucket, ()), *self._rows.get(ANYTHING, ())):
            if row not in self._active and any(row.concerns(change.obj) for change in changes):
                self._waking.append(row)
        self._activate_woken()

    def _dispatch(self, name: str, changes: Sequence[Change]) -> None:
        if changes:
            for controller in self._listeners.get(name, ()):
                self._tell(controller, name, changes)

    def _tell(self, controller: Reconciler, name: str, changes: Iterable[Change]) -> None:
        """Bring a controller changes. One that it cannot cope with does not keep others from theirs."""
        for change in changes:
            try:
                for key in controller.keys(name, change.type, change.obj, change.old):
                    self._queue.add((controller, key))
            except Exception:
                _log.exception("%s cannot cope with a change of %s", controller.name, name)

    def _reconcile(self, work: _Work) -> None:
        controller, key = self._current, _ = work
        self._retries.discard(work)
        try:
            controller.reconcile(key)
        except ApiError as error:
            if error.reason == "Conflict" and self._queue.failures(work) < CONFLICTS:
                self._queue.failed(work)
                self._queue.add(work)
            elif error.code != 404:  # what is gone needs nothing more
                self._retry_later(work)
        except Exception:
            _log.exception("%s failed at %s", controller.name, key)
            self._retry_later(work)
        else:
            if work not in self._retries:
                self._queue.succeeded(work)
        finally:
            self._current = None

    def _retry_later(self, work: _Work) -> None:
        self._retries.add(work)
        self._add_at(work, self._clock.monotonic() + self._queue.failed(work))

    def _requeue_after(self, controller: Reconciler, key: Key, seconds: float) -> None:
        self._routine.discard((controller, key))
        self._add_at((controller, key), self._clock.monotonic() + seconds)

    def _requeue_routinely(self, controller: Reconciler, key: Key, seconds: float) -> None:
        self._routine.add((controller, key))
        self._add_at((controller, key), self._clock.monotonic() + seconds)

    def _add_at(self, work: _Work, due: float) -> None:
        self._queue.add_at(work, due)
        if self._timer is None or due < self._timer.due:
            self._set_timer(due)

    # ------------------------------------------------------------ the clock

    def _set_timer(self, due: float | None) -> None:
        if self._timer is not None:
            if self._timer.due == due and not self._stopped:
                return
            self._timer.cancel()
            self._timer = None
        if due is not None and not self._stopped:
            self._timer = self._clock.call_at(due, self._ring)

    def _ring(self) -> None:
        """Something is due. A clock that is being moved waits until it is done."""
        self._timer = None
        if self._clock.held:
            self._catch_up()
        else:
            self._notice()

    def _catch_up(self) -> None:
        """Do what is to be done now, in the thread that moves the clock.

        A controller that is at work in another thread is waited for, but not for long: it may wait for the clock itself.
        """
        if not self._working.acquire(timeout=PATIENCE):
            self._notice()
            return
        try:
            end = time.monotonic() + LONGEST_CATCH_UP
            while self._step():
                if time.monotonic() > end:  # they keep each other busy
                    self._notice()
                    return
        finally:
            self._working.release()


@cache
def _by_resource(rows: tuple[Row, ...]) -> dict[str, list[Row]]:
    """Which controllers wake up when a resource changes."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        for name in row.wakes_on:
            found.setdefault(name, []).append(row)
    return found
