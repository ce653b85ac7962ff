"""Runs the programs of a container: coroutines that give up their thread whenever they wait.

A `Scheduler` runs the tasks of one session, one at a time, in a thread of the process that it borrows while there is
something to run. A task that waits for a pipe, a time or another task costs no thread.

A scheduler has a time of its own. It is the clock's, except that a task which sleeps wakes exactly when it asked for,
even if the clock has moved further meanwhile: what a program does every second it does once for each second, also when
nobody ran it at that time. A scheduler that is not `eager` runs only when somebody calls `catch_up`, or writes to it.

Invariant: one thread at a time runs tasks of a scheduler; `time` never decreases and never passes the clock.
"""

from __future__ import annotations

import heapq
import logging
import threading
import types
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from fakekube.clock import Clock, Timer
from fakekube.streams import Notifier, Source
from fakekube.threads import WORKERS

__all__ = [
    "SIGHUP",
    "SIGINT",
    "SIGKILL",
    "SIGPIPE",
    "SIGTERM",
    "Killed",
    "Scheduler",
    "Task",
    "checkpoint",
    "current",
    "sleep",
    "until",
]

_log = logging.getLogger(__name__)

T = TypeVar("T")

SIGHUP: Final = 1
SIGINT: Final = 2
SIGKILL: Final = 9
SIGPIPE: Final = 13
SIGTERM: Final = 15

#: Steps that are run in the thread of a caller, who waits for the answer; the rest is left to a worker.
_INLINE_STEPS: Final = 2_000
#: Sleeps that are made up for in one go; of a longer past only the end is lived through.
_MADE_UP: Final = 5_000

_CHECKPOINT: Final = object()
_PARK: Final = object()


class Killed(BaseException):
    """A signal ends the task; raised where it waits."""

    def __init__(self, signal: int) -> None:
        super().__init__(signal)
        self.signal = signal


_local = threading.local()


def current() -> Task:
    """Returns the task that runs in this thread."""
    task: Task = _local.task
    return task


@types.coroutine
def _give(what: object) -> Generator[object]:
    yield what


async def checkpoint() -> None:
    """Lets other tasks run; loops that may not end otherwise call it."""
    await _give(_CHECKPOINT)


async def until(condition: Callable[[], T | None], *sources: Source) -> T:
    """Waits until `condition` returns something else than None, and returns that; it is asked again after each change of
    the sources."""
    value = condition()
    if value is not None:
        return value
    wake = current().wake
    for source in sources:
        source.subscribe(wake)
    try:
        while (value := condition()) is None:
            await _give(_PARK)
        return value
    finally:
        for source in sources:
            source.unsubscribe(wake)


async def sleep(seconds: float) -> None:
    """Waits for a number of seconds of the cluster's clock."""
    task = current()
    await task.scheduler.sleep_until(task.scheduler.time + max(seconds, 0.0))


class Task:
    """A program that runs."""

    __slots__ = ("_notifier", "children", "coroutine", "exit_code", "name", "parked", "pid", "scheduler", "signal", "woken")

    def __init__(self, scheduler: Scheduler, coroutine: Coroutine[Any, Any, int], name: str, pid: int) -> None:
        self.scheduler = scheduler
        self.coroutine = coroutine
        self.name = name
        self.pid = pid
        self.children: list[Task] = []
        self.exit_code: int | None = None
        """None while it runs."""
        self.signal: int | None = None
        """A signal that it has not been told of yet."""
        self.parked = False
        """Not to be run before it is woken."""
        self.woken = False
        """It has been woken since its last step began."""
        self._notifier = Notifier()

    def wake(self) -> None:
        """Lets the task look again at what it waits for; from any thread."""
        self.scheduler.resume(self)

    def kill(self, signal: int = SIGKILL) -> None:
        """Sends a signal to the task and its children; from any thread."""
        for child in self.children:
            child.kill(signal)
        if self.exit_code is None:
            self.signal = signal
            self.wake()

    def subscribe(self, wake: Callable[[], None]) -> None:
        """Calls `wake` at the end of the task."""
        self._notifier.subscribe(wake)

    def unsubscribe(self, wake: Callable[[], None]) -> None:
        """Ends a subscription."""
        self._notifier.unsubscribe(wake)

    async def join(self) -> int:
        """Waits for the end of the task and returns its exit code."""
        return await until(lambda: self.exit_code, self)

    def step(self) -> object:
        """Runs the task to where it waits next. Returns what it waits for; None at its end."""
        self.woken = False
        before, _local.task = getattr(_local, "task", None), self
        try:
            if self.signal is not None:
                signal, self.signal = self.signal, None
                return self.coroutine.throw(Killed(signal))
            return self.coroutine.send(None)
        except StopIteration as end:
            self._end(end.value)
        except Killed as killed:
            self._end(128 + killed.signal)
        except BrokenPipeError:
            self._end(128 + SIGPIPE)
        except Exception:
            _log.exception("%s failed", self.name)
            self._end(1)
        finally:
            _local.task = before
        return None

    def _end(self, code: int) -> None:
        self.exit_code = code
        self._notifier.notify()


class Scheduler:
    """Runs tasks that belong together.

    Args:
        clock: of the cluster.
        started: the time, in seconds of the clock's `monotonic`, at which the first task starts; by default now.
        eager: run as soon as a sleeping task is due; else only in `catch_up`.
    """

    def __init__(self, clock: Clock, *, started: float | None = None, eager: bool = True) -> None:
        self._clock = clock
        self.time = clock.monotonic() if started is None else started
        """Seconds of the clock's `monotonic`."""
        self._eager = eager
        self._lock = threading.Lock()
        self._ready: deque[Task] = deque()
        self._resumed: deque[Task] = deque()
        """Woken by somebody else than a task."""
        self._sleepers: list[tuple[float, int, Task]] = []
        self._number = 0
        self._runner: int | None = None
        self._timer: Timer | None = None
        self._limit: float | None = None
        """The time up to which it runs; None for the clock's."""
        self._idle = threading.Condition(self._lock)

    def now(self) -> datetime:
        """Returns the time of day."""
        return self._clock.now() - timedelta(seconds=max(self._clock.monotonic() - self.time, 0.0))

    # ------------------------------------------------------------ tasks

    def start(self, coroutine: Coroutine[Any, Any, int], name: str, pid: int, parent: Task | None = None) -> Task:
        """Adds a task; it runs when the scheduler does."""
        task = Task(self, coroutine, name, pid)
        if parent is not None:
            parent.children = [*(child for child in parent.children if child.exit_code is None), task]
        with self._lock:
            self._ready.append(task)
        return task

    def resume(self, task: Task) -> None:
        """Lets a task run again if it is parked, or when it would be; from any thread."""
        with self._lock:
            task.woken = True
            if not task.parked:
                return
            task.parked = False
            if self._runner == threading.get_ident():
                self._ready.append(task)
                return
            self._resumed.append(task)
        self._stir()

    async def sleep_until(self, due: float) -> None:
        """Parks the running task until a time of this scheduler."""
        task = current()
        self._number += 1
        heapq.heappush(self._sleepers, (due, self._number, task))
        while self.time < due:
            await _give(_PARK)

    # ------------------------------------------------------------ running

    @property
    def eager(self) -> bool:
        """Whether it runs as soon as something is due."""
        return self._eager

    @eager.setter
    def eager(self, eager: bool) -> None:
        self._eager = eager
        self._set_timer()

    def run(self) -> None:
        """Runs in the caller's thread what can run now; a long piece of work continues in another one."""
        if self._claim():
            self._run_here(_INLINE_STEPS)

    def catch_up(self, limit: float | None = None) -> None:
        """Returns when everything has run that is due now, or at another time of the clock's `monotonic`."""
        while not self._claim():
            with self._idle:
                if self._runner == threading.get_ident():
                    return
                self._idle.wait_for(lambda: self._runner is None, 1.0)
        self._limit = limit
        self._run_here(_INLINE_STEPS * 50)

    def _run_here(self, steps: int) -> None:
        if not self._run(steps):
            WORKERS.run(self._work)

    def _work(self) -> None:
        self._run()

    def _claim(self) -> bool:
        with self._lock:
            if self._runner is not None:
                return False
            self._runner = -1
            return True

    def _stir(self) -> None:
        """There is something to run: a worker runs it."""
        if self._claim():
            WORKERS.run(self._work)

    def _run(self, steps: int = -1) -> bool:
        """Runs tasks until none can run, at most so many steps; False if there are more.

        The caller has claimed the scheduler, which is free afterwards unless this returns False with `steps`.
        """
        self._runner = threading.get_ident()
        made_up = 0
        while steps:
            task = self._next(made_up < _MADE_UP)
            if task is None:
                self._set_timer()
                return True
            made_up += 1
            steps -= 1
            waits_for = task.step()
            if waits_for is not None:
                with self._lock:
                    if waits_for is _CHECKPOINT or task.woken:
                        self._ready.append(task)
                    else:
                        task.parked = True
        return False

    def _next(self, one_by_one: bool) -> Task | None:
        """Returns the task to run; None, and the scheduler is free, if there is none."""
        with self._lock:
            if self._ready:
                return self._ready.popleft()
            now = self._clock.monotonic() if self._limit is None else self._limit
            while self._sleepers and self._sleepers[0][0] <= now:
                due, _, task = heapq.heappop(self._sleepers)
                self.time = max(self.time, due if one_by_one else now)
                if task.exit_code is None and task.parked:
                    task.parked = False
                    return task
            if self._resumed:
                self.time = max(self.time, now)
                return self._resumed.popleft()
            self._runner = self._limit = None
            self._idle.notify_all()
            return None

    def _set_timer(self) -> None:
        """Runs again when the next sleeper is due."""
        with self._lock:
            timer, self._timer = self._timer, None
            due = self._sleepers[0][0] if self._sleepers and self._eager else None
        if timer is not None:
            timer.cancel()
        if due is not None:
            self._timer = self._clock.call_at(due, self._due)

    def _due(self) -> None:
        """A sleeper is due: it runs in the thread that moves a held clock, so that it has run when the clock has moved."""
        if self._clock.held:
            self.run()
        else:
            self._stir()
