"""Runs the controllers of a cluster: in a thread, in `settle`, and while the clock is advanced.

All controllers of a cluster share one work queue and run in one thread of the process, which the first change starts.
`settle` does the same work in the caller's thread. Informers are cursors into the store's history, so that the consequences
of a write are visible as soon as it returns, and "no controller has work left" is exact.

When the clock is advanced, what is due now is reconciled before it moves, and what becomes due on the way is reconciled at
its own time, before the clock moves on.

Invariant: `_lock` is held while informers are read and while a controller runs.

Specified by: cmd/kube-controller-manager/app/controllermanager.go (Run); k8s.io/client-go/util/workqueue for retries;
k8s.io/apimachinery/pkg/util/wait (Until, one second) and util/runtime (HandleCrash) for the thread.
"""

from __future__ import annotations

import logging
import math
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from fakekube.base.clock import CONTROLLERS, Clock, Timer
from fakekube.base.threads import WORKERS
from fakekube.controllers.client import ApiError, Client
from fakekube.controllers.controller_descriptors import ControllerDescriptor
from fakekube.controllers.dispatcher import Dispatcher, Watch, WorkQueue
from fakekube.controllers.reconciler import Context, Key, Reconciler
from fakekube.controllers.recorder import Recorder
from fakekube.store import Event, Store

if TYPE_CHECKING:
    from fakekube.apimachinery.codecs.document import Document


_log = logging.getLogger(__name__)

#: Seconds: a failed item that is retried within this time counts as work in progress.
RETRY_HORIZON: Final = 0.1
#: The number of conflicts in a row that are retried at once; after further ones the item waits, as after other errors.
CONFLICTS: Final = 10
#: Real seconds for which advancing the clock waits for a controller that is running in another thread.
LOCK_TIMEOUT: Final = 1.0
#: Real seconds that reconciling may take at one moment of a clock that is being advanced.
CATCH_UP_TIMEOUT: Final = 60.0
#: Real seconds within which controllers come to rest while a cluster is prepared: a busy machine takes long.
PREPARATION_TIMEOUT: Final = 60.0
#: Real seconds between the first change and the thread's work.
PAUSE: Final = 0.001
#: Real seconds after which the thread continues when something outside of a controller's `reconcile` has raised.
RESTART_PERIOD: Final = 1.0

_Item = tuple[Reconciler, Key]

#: Real seconds for which a fork waits for a controller that is running.
IDLE_TIMEOUT: Final = 0.1
#: The maximum number of delayed items that a fork takes over; with more its controllers begin anew.
MAX_DELAYED: Final = 200


class Idle(NamedTuple):
    """What the controllers of a cluster that have no work now leave to those of a fork."""

    revision: int
    """The revision at which they had nothing to do."""
    delayed: tuple[tuple[float, str, Key, bool], ...] = ()
    """What is due later: the time of the clock, the name of the controller, its key, and whether it is periodic."""
    watches: Sequence[Watch] = ()
    """The watches of the controllers."""


class Manager:
    """The controllers of one cluster.

    Args:
        client_for: makes a client of the cluster, from the name of a program and the name of one of its components.
        clock: the clock of the cluster.
        store: the store of the cluster.
        descriptors: the controllers that are switched on.
        context: what controllers know of the cluster beside its API.
        idle: when the controllers had nothing to do, and what is due later; None if that is not known.
    """

    def __init__(
        self,
        client_for: Callable[[str, str], Client],
        clock: Clock,
        store: Store[Document],
        descriptors: Sequence[ControllerDescriptor],
        context: Context,
        *,
        idle: Idle | None = None,
    ) -> None:
        self._client_for = client_for
        self._clock = clock
        self._store = store
        self._context = context
        self._queue: WorkQueue[_Item] = WorkQueue()
        self._retries: set[_Item] = set()
        self._periodic: set[_Item] = set()
        self._awaited: set[_Item] = set()
        me = weakref.proxy(self)  # no cycles: see `apiserver.server`
        self._dispatcher = Dispatcher(
            store,
            context.registry,
            descriptors,
            None if idle is None else idle.revision,
            watches=() if idle is None else idle.watches,
            prepare=partial(Manager._prepare_controller, me),
            enqueue=partial(Manager._enqueue_key, me),
        )
        self._requests: deque[tuple[str, Key, bool]] = deque()
        """The arguments of `enqueue` that no thread has read yet."""
        self._current: Reconciler | None = None
        self._reconciled = 0
        """The number of objects that controllers have come to the end of."""
        self._lock = threading.RLock()
        self._lock_owner: int | None = None
        self._timer: Timer | None = None
        self._follows_clock = False
        self._started = self._stopped = self._thread_running = False
        self._thread_start = threading.Lock()
        self._thread = 0
        self._thread_ended = threading.Event()
        self._work_for_thread = threading.Event()
        self._work_for_settle = threading.Event()
        self._inherited = () if idle is None else idle.delayed
        """Delayed items of the cluster that this one is a fork of, until the first work."""
        self._told = store.revision
        """The revision of the latest change that the dispatcher knows."""
        if descriptors:
            store.listen(self._on_store_event)
        if self._inherited:
            self._follow_clock()
            self._set_timer(min(due for due, _, _, _ in self._inherited))

    # --- Start and stop -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Lets the controllers run in a thread of the process whenever they have work."""
        self._started = True
        if self._dispatcher.pending or len(self._queue) or self._requests:
            self._notify_worker()

    def stop(self) -> None:
        """Ends all work. A running controller finishes its present object."""
        with self._thread_start:
            self._stopped = True
        self._store.unlisten(self._on_store_event)
        self._work_for_thread.set()
        self._work_for_settle.set()
        if self._thread_running and self._thread != threading.get_ident():
            self._thread_ended.wait()
        with self._lock:
            self._set_timer(None)

    def enqueue(self, name: str, key: Key, *, start: bool = False) -> None:
        """Adds a key for a controller, from any thread. Does not wait for a running controller, which may wait for the caller.

        Args:
            name: the name of the controller. Nothing happens if it has not started.
            key: the key to reconcile.
            start: starts the controller first.
        """
        self._requests.append((name, key, start))
        self._notify_worker()

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Lets no controller begin with an object while the block runs, so that none sees half of what is written there."""
        with self._lock:
            before, self._lock_owner = self._lock_owner, threading.get_ident()
            try:
                yield
            finally:
                self._lock_owner = before
        self._notify_worker()

    @property
    def runs_in_another_thread(self) -> bool:
        """Whether the controllers run in another thread than the caller's."""
        return self._started and not self._stopped and self._lock_owner != threading.get_ident()

    # --- Settle -------------------------------------------------------------------------------------------------------

    def settle(self, timeout: float = 10.0, horizon: float = 0.0) -> None:
        """Runs controllers until none of them has work now or due within `horizon` seconds of the clock.

        Timers of a held clock are not waited for.

        Args:
            timeout: real seconds.
            horizon: seconds of the cluster's clock.

        Raises:
            TimeoutError: controllers have still work after `timeout`; the message names them.
        """
        end = time.monotonic() + timeout
        while True:
            self._work_for_settle.clear()
            while self._process_next_item(end):
                if time.monotonic() > end:
                    raise TimeoutError(f"still at work after {timeout} s: {', '.join(self.working(horizon))}")
            if self._clock.held or not self.working(horizon) or self._stopped:
                return
            if not self._work_for_settle.wait(max(end - time.monotonic(), 0.0)):
                raise TimeoutError(f"still at work after {timeout} s: {', '.join(self.working(horizon))}")

    def rest(self, patience: float, timeout: float) -> None:
        """Runs controllers until none of them has work now, or gives up.

        Args:
            patience: real seconds in which none has come to the end of an object: one of them may wait for the caller.
            timeout: real seconds in all.
        """
        end = time.monotonic() + timeout
        while True:
            before = self._reconciled
            with suppress(TimeoutError):
                self.settle(patience)
                return
            if self._reconciled == before or time.monotonic() > end:
                return

    def working(self, horizon: float = 0.0) -> list[str]:
        """Returns the names of the controllers that have work now or due within `horizon` seconds of the clock."""
        now, current = self._clock.monotonic(), self._current
        names = {controller.name for controller, _ in self._queue}
        names |= {item[0].name for item in self._queue.due_until(now + horizon) if item not in self._periodic}
        names |= {item[0].name for item in self._queue.due_until(now + RETRY_HORIZON) if item in self._retries}
        if self._awaited and not self._clock.held:  # the clock comes to them only if it runs
            names |= {item[0].name for item in self._queue.due_until(math.inf) if item in self._awaited}
        names |= {name for due, name, _, periodic in self._inherited if due <= now + horizon and not periodic}
        names |= {*self._dispatcher.starting, *(name for name, _, _ in list(self._requests))}
        return sorted(names if current is None else names | {current.name})

    def waiting(self) -> list[tuple[float, str]]:
        """Returns what is due later, the next one first: the time of the clock, and the controller with its key."""
        return [(due, f"{name} {'/'.join(part for part in key if part)}".rstrip()) for due, name, key, _ in self._list_delayed()]

    def _list_delayed(self) -> list[tuple[float, str, Key, bool]]:
        own = [(due, item[0].name, item[1], item in self._periodic) for due, item in self._queue.waiting()]
        return sorted((*own, *self._inherited), key=lambda one: one[0]) if self._inherited else own

    def idle(self) -> Idle | None:
        """Returns what a fork needs to know so that its controllers need not begin anew; None if a controller has work now."""
        revision = self._told
        if not self._lock.acquire(timeout=IDLE_TIMEOUT):  # a controller runs
            return None
        try:
            busy = self._current is not None or self._dispatcher.starting or self._requests or len(self._queue)
            unsettled = self._retries or self._awaited
            delayed = () if busy or unsettled else tuple(self._list_delayed())
            now = self._clock.monotonic()
            if busy or unsettled or len(delayed) > MAX_DELAYED or any(due <= now for due, _, _, _ in delayed):
                return None
            return Idle(revision, delayed, self._dispatcher.watches())
        finally:
            self._lock.release()

    # --- The thread ---------------------------------------------------------------------------------------------------

    def _on_store_event(self, bucket: str, event: Event[Document] | None) -> None:
        self._told = self._store.revision if event is None else max(self._told, event.revision)
        try:
            urgent = self._dispatcher.on_store_event(bucket, event)
        except Exception:  # of a controller; the write has happened, and does not fail
            _log.exception("the controllers cannot handle an event of %s", bucket)
            urgent = True
        if urgent:
            self._notify_worker()

    def _notify_worker(self) -> None:
        """Wakes the thread and `settle`; the first call starts the thread and follows the clock."""
        self._work_for_thread.set()
        self._work_for_settle.set()
        self._follow_clock()
        if not self._thread_running and self._started:
            with self._thread_start:
                if not self._thread_running and not self._stopped:
                    WORKERS.run(self._run_worker)
                    self._thread_running = True

    def _follow_clock(self) -> None:
        if not self._follows_clock:
            self._follows_clock = True
            self._clock.before_advance(self._catch_up)

    def _run_worker(self) -> None:
        self._thread = threading.get_ident()
        try:
            while not self._stopped:
                self._work_for_thread.clear()
                try:
                    while not self._stopped and self._process_next_item():
                        pass
                except Exception:
                    _log.exception("the controllers continue in %s s", RESTART_PERIOD)
                    self._await_restart()
                    continue
                if not self._stopped:
                    self._work_for_thread.wait()
                if not self._stopped:
                    time.sleep(PAUSE)  # so that a client that writes many objects in a row is not interrupted at each
        finally:
            self._thread_ended.set()

    def _await_restart(self) -> None:
        """Waits for RESTART_PERIOD or until `stop`, regardless of new work."""
        end = time.monotonic() + RESTART_PERIOD
        while (left := end - time.monotonic()) > 0:
            self._work_for_thread.clear()
            if self._stopped:  # read after `clear`: `stop` sets it before the event
                return
            self._work_for_thread.wait(left)

    # --- Reconciling --------------------------------------------------------------------------------------------------

    def _prepare_controller(self, controller: Reconciler) -> None:
        controller.client = self._client_for(controller.program, controller.client_name or controller.name)
        controller.clock = self._clock
        controller.recorder = Recorder(
            controller.client, self._clock, controller.component or controller.name, self._context.event_numbers
        )
        controller.context = self._context
        controller.enqueue = lambda key: self._enqueue_key(controller, key)
        controller.requeue_after = lambda key, seconds: self._requeue_after((controller, key), seconds, periodic=False)
        controller.requeue_periodically = lambda key, seconds: self._requeue_after((controller, key), seconds, periodic=True)
        controller.requeue_within_settle = lambda key, seconds: self._requeue_within_settle((controller, key), seconds)
        controller.requeue_rate_limited = lambda key: self._requeue_rate_limited((controller, key))

    def _enqueue_key(self, controller: Reconciler, key: Key) -> None:
        self._queue.add((controller, key))

    def _process_next_item(self, end: float | None = None) -> bool:
        """Reads changes and reconciles one item. Returns False if there was none.

        Args:
            end: the time (`time.monotonic`) until which to wait for a controller in another thread; None for ever.
        """
        if not self._lock.acquire(timeout=-1 if end is None else max(end - time.monotonic(), 0.0)):
            return True
        before, self._lock_owner = self._lock_owner, threading.get_ident()
        try:
            if self._stopped or self._current is not None:  # the latter: a controller has called settle or moved the clock
                return False
            self._dispatcher.dispatch()
            if self._inherited:
                self._take_over_delayed()
            while self._requests:
                name, key, start = self._requests.popleft()
                self._dispatcher.enqueue_for(name, key, start=start)
            self._queue.add_due(self._clock.monotonic())
            item = self._queue.get()
            if item is None:
                self._set_timer(self._queue.next_due)
                return False
            self._reconcile_item(item)
            return True
        finally:
            self._lock_owner = before
            self._lock.release()

    def _take_over_delayed(self) -> None:
        """Starts the controllers of delayed items that a fork has inherited, and queues the items at their times."""
        delayed, self._inherited = self._inherited, ()
        for due, name, key, periodic in delayed:
            for controller in self._dispatcher.start(name):
                item = (controller, key)
                if periodic:
                    self._periodic.add(item)
                self._queue.add_at(item, due)

    def _reconcile_item(self, item: _Item) -> None:
        controller, key = self._current, _ = item
        self._retries.discard(item)
        self._awaited.discard(item)
        try:
            controller.reconcile(key)
        except ApiError as error:
            if error.reason == "Conflict" and self._queue.num_requeues(item) < CONFLICTS:
                self._queue.when(item)
                self._queue.add(item)
            elif error.code != 404:  # an object that is gone needs no reconciliation
                self._requeue_rate_limited(item)
        except Exception:
            _log.exception("%s failed to reconcile %s", controller.name, key)
            self._requeue_rate_limited(item)
        else:
            if item not in self._retries:
                self._queue.forget(item)
        finally:
            self._current = None
            self._reconciled += 1

    def _requeue_rate_limited(self, item: _Item) -> None:
        self._retries.add(item)
        self._add_at(item, self._clock.monotonic() + self._queue.when(item))

    def _requeue_after(self, item: _Item, seconds: float, *, periodic: bool) -> None:
        (self._periodic.add if periodic else self._periodic.discard)(item)
        self._add_at(item, self._clock.monotonic() + seconds)

    def _requeue_within_settle(self, item: _Item, seconds: float) -> None:
        self._awaited.add(item)
        self._requeue_after(item, seconds, periodic=False)

    def _add_at(self, item: _Item, due: float) -> None:
        self._queue.add_at(item, due)
        if self._timer is None or due < self._timer.due:
            self._set_timer(due)

    # --- The clock ----------------------------------------------------------------------------------------------------

    def _set_timer(self, due: float | None) -> None:
        if self._timer is not None:
            if self._timer.due == due and not self._stopped:
                return
            self._timer.cancel()
            self._timer = None
        if due is not None and not self._stopped:
            self._timer = self._clock.call_at(due, self._on_timer, what=CONTROLLERS)

    def _on_timer(self) -> None:
        """An item is due. If the clock is being advanced, it waits here until the item is reconciled."""
        self._timer = None
        if self._clock.held:
            self._catch_up()
        else:
            self._notify_worker()

    def _catch_up(self) -> None:
        """Reconciles all that is due, in the thread that advances the clock.

        Waits for a controller in another thread for LOCK_TIMEOUT only, since that controller may wait for the clock.
        """
        if not self._lock.acquire(timeout=LOCK_TIMEOUT):
            self._notify_worker()
            return
        try:
            end = time.monotonic() + CATCH_UP_TIMEOUT
            while self._process_next_item():
                if time.monotonic() > end:  # controllers that enqueue each other without end
                    self._notify_worker()
                    return
        finally:
            self._lock.release()
