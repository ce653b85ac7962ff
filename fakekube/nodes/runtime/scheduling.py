"""Runs the programs of a container as coroutines, which release their thread whenever they wait.

A `Scheduler` runs the tasks of one session, one at a time, in a worker thread of the process, which it only uses while a task can
run. A task that waits for a pipe, a time or another task uses no thread.

A scheduler has a time of its own. It follows the clock, but a sleeping task wakes at exactly its time, even if the clock has
moved further meanwhile: a program that acts every second acts once for each second, also if the scheduler did not run at that
time. A scheduler that is not `eager` only runs in `catch_up`, and after a task is woken.

Invariant: one thread at a time runs tasks of a scheduler; `time` never decreases and never passes the clock.
"""

from __future__ import annotations

import heapq
import logging
import os
import threading
import types
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from time import monotonic, thread_time
from time import sleep as sleep_seconds
from typing import Any, Final, TypeVar

from fakekube.base.clock import Clock, Timer
from fakekube.base.threads import WORKERS
from fakekube.net.streams import Notifier, Source

_log = logging.getLogger(__name__)

T = TypeVar("T")

SIGHUP: Final = 1
SIGINT: Final = 2
SIGQUIT: Final = 3
SIGKILL: Final = 9
SIGSEGV: Final = 11
SIGPIPE: Final = 13
SIGTERM: Final = 15
#: The names of the signals by their numbers, without SIG; EXIT stands for the end of a shell.
SIGNAL_NAMES: Final = (
    *("EXIT", "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM"),
    *("STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "POLL", "PWR"),
    "SYS",
)
SIGNALS: Final = {name: number for number, name in enumerate(SIGNAL_NAMES)}
#: The signals without an effect on a program that does not handle them; those that would stop it are among them, since no
#: process is stopped here.
_IGNORED: Final = frozenset(SIGNALS[name] for name in ("CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "WINCH"))

#: The maximum number of steps in the thread of the caller; a worker continues.
_INLINE_STEPS: Final = 2_000
#: The maximum number of past sleeps that are run one by one; after them, the time jumps to the present.
_MAX_REPLAYED: Final = 5_000

#: The memory of a container without a limit, in bytes.
DEFAULT_MEMORY: Final = 64 * 1024 * 1024
#: The real seconds that a task runs before another one does.
_SLICE: Final = 0.005
#: The maximum computing time in the thread of the caller, in seconds; the pool of busy schedulers continues.
_INLINE_SECONDS: Final = 0.5

_CHECKPOINT: Final = object()
_PARK: Final = object()


class Killed(BaseException):
    """A signal ends the task; raised at the point where the task waits."""

    def __init__(self, signal: int) -> None:
        super().__init__(signal)
        self.signal = signal


class OutOfMemory(Killed):
    """The kernel kills the program, because its container has no more memory."""

    def __init__(self) -> None:
        super().__init__(SIGKILL)


_local = threading.local()


def current() -> Task:
    """Returns the task that runs in this thread."""
    task: Task = _local.task
    return task


def running() -> Task | None:
    """Returns the task that runs in this thread; None if none does."""
    return getattr(_local, "task", None)


@types.coroutine
def _yield(what: object) -> Generator[object]:
    yield what


async def checkpoint() -> None:
    """Lets other tasks run. Loops that may run for long call it."""
    await _yield(_CHECKPOINT)


async def breathe() -> None:
    """Lets other tasks run if this one has run for a slice. Loops that may run for long call it at each turn."""
    if monotonic() >= getattr(_local, "slice_end", 0.0):
        await _yield(_CHECKPOINT)


class Memory:
    """What the processes of a container keep together; the kernel counts it in their cgroup.

    Args:
        limit: in bytes.
    """

    __slots__ = ("_lock", "_used", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._used = 0
        self._lock = threading.Lock()

    def take(self, size: int) -> None:
        """Adds bytes of a process. Raises OutOfMemory if the container may not have so many."""
        with self._lock:
            if self._used + size > self.limit:
                raise OutOfMemory
            self._used += size

    def give_back(self, size: int) -> None:
        """Removes the bytes of a process that has ended."""
        with self._lock:
            self._used -= size


def check_memory(size: int) -> None:
    """Kills the running program, as the kernel does, if its container may not have so many bytes for it. Raises OutOfMemory.

    The largest size of a program counts until it ends: programs do not tell what they drop.
    """
    task: Task | None = getattr(_local, "task", None)
    if task is not None:
        task.need_memory(size)
    elif size > DEFAULT_MEMORY:
        raise OutOfMemory


async def wait_until(condition: Callable[[], T | None], *sources: Source) -> T:
    """Waits until `condition` returns a value other than None, and returns it. It is called again after each notification of
    the sources."""
    value = condition()
    if value is not None:
        return value
    wake = current().wake
    for source in sources:
        source.subscribe(wake)
    try:
        while (value := condition()) is None:
            await _yield(_PARK)
        return value
    finally:
        for source in sources:
            source.unsubscribe(wake)


async def wait_for_ever() -> int:
    """Waits until the task is killed."""
    return await wait_until(lambda: None)


async def sleep(seconds: float) -> None:
    """Waits for a number of seconds of the cluster's clock."""
    task = current()
    await task.scheduler.sleep_until(task.scheduler.time + max(seconds, 0.0))


#: The signals at which a server stops.
_STOPS: Final = frozenset({SIGINT, SIGQUIT, SIGTERM})


async def serve() -> int:
    """Waits as a server does, until a signal stops it. Returns its exit code, 0."""
    current().caught = _STOPS
    try:
        await wait_for_ever()
    except Killed as killed:
        if killed.signal not in _STOPS:
            raise
    return 0


class Task:
    """A process: a program in execution."""

    __slots__ = (
        "_notifier",
        "caught",
        "children",
        "coroutine",
        "exit_code",
        "ignored",
        "memory",
        "memory_of_callers",
        "name",
        "parked",
        "pid",
        "scheduler",
        "signal",
        "woken",
    )

    def __init__(self, scheduler: Scheduler, coroutine: Coroutine[Any, Any, int], name: str, pid: int) -> None:
        self.scheduler = scheduler
        self.coroutine = coroutine
        self.name = name
        self.pid = pid
        self.children: list[Task] = []
        self.exit_code: int | None = None
        """The exit code; None while the task runs."""
        self.signal: int | None = None
        """A pending signal."""
        self.parked = False
        """Whether the task waits to be woken."""
        self.woken = False
        """Whether the task was woken since the beginning of its last step."""
        self.memory = 0
        """The bytes that are counted in the memory of the container."""
        self.memory_of_callers = 0
        """Those of them that are of the programs which wait for the one that runs, as a shell does."""
        self.caught: frozenset[int] = frozenset()
        """The signals that the program handles. The end of one that handles SIGTERM is waited for."""
        self.ignored: frozenset[int] = frozenset()
        """Those of them that it ignores, as the processes do that it starts."""
        self._notifier = Notifier()

    def wake(self) -> None:
        """Makes the task check its condition again; from any thread."""
        self.scheduler.resume(self)

    def kill(self, signal: int = SIGKILL) -> None:
        """Sends a signal to the task and its children; from any thread."""
        for child in self.children:
            child.kill(signal)
        self.deliver(signal)

    def deliver(self, signal: int) -> None:
        """Sends a signal to the task alone; from any thread."""
        if self.exit_code is None and signal not in self.ignored and (signal not in _IGNORED or signal in self.caught):
            self.signal = signal
            self.wake()

    def subscribe(self, wake: Callable[[], None]) -> None:
        """Calls `wake` at the end of the task."""
        self._notifier.subscribe(wake)

    def unsubscribe(self, wake: Callable[[], None]) -> None:
        """Ends a subscription."""
        self._notifier.unsubscribe(wake)

    def need_memory(self, size: int) -> None:
        """Counts the bytes of the program that runs. Raises OutOfMemory."""
        more = self.memory_of_callers + size - self.memory
        if more > 0:
            self.scheduler.memory.take(more)
            self.memory += more

    @contextmanager
    def another_program(self) -> Iterator[None]:
        """Counts the memory of a program that the task runs for its present one."""
        before, self.memory_of_callers = self.memory_of_callers, self.memory
        try:
            yield
        finally:
            self.scheduler.memory.give_back(self.memory - self.memory_of_callers)
            self.memory, self.memory_of_callers = self.memory_of_callers, before

    async def join(self) -> int:
        """Waits for the end of the task and returns its exit code."""
        return await wait_until(lambda: self.exit_code, self)

    def step(self) -> object:
        """Runs the task until it waits. Returns the kind of the wait; None at its end."""
        self.woken = False
        before, _local.task = getattr(_local, "task", None), self
        _local.slice_end = monotonic() + _SLICE
        try:
            if self.scheduler.stopped:
                return self.coroutine.throw(Killed(SIGKILL))
            if self.signal is not None:
                signal, self.signal = self.signal, None
                return self.coroutine.throw(Killed(signal))
            return self.coroutine.send(None)
        except StopIteration as end:
            self._set_exit_code(end.value)
        except Killed as killed:
            self._set_exit_code(128 + killed.signal)
        except Exception as failure:
            self._set_exit_code(code_of_failure(failure, self.name))
        finally:
            _local.task = before
        return None

    def _set_exit_code(self, code: int) -> None:
        self.exit_code = code
        self.scheduler.memory.give_back(self.memory)
        self.memory = 0
        self._notifier.notify()


def code_of_failure(failure: Exception, name: str) -> int:
    """Returns the exit code of a program that ended with an exception; a defect of the program is logged."""
    match failure:
        case BrokenPipeError():
            return 128 + SIGPIPE
        case RecursionError():
            return 128 + SIGSEGV
    _log.error("%s failed", name, exc_info=failure)
    return 1


class Scheduler:
    """Runs the tasks of one session.

    Args:
        clock: of the cluster.
        started: the time, in seconds of the clock's `monotonic`, at which the first task starts; by default now.
        eager: whether to run sleeping tasks as soon as they are due; else they run in `catch_up` only.
        memory: of the container; by default one without a limit of its own.
    """

    def __init__(self, clock: Clock, *, started: float | None = None, eager: bool = True, memory: Memory | None = None) -> None:
        self._clock = clock
        self.time = clock.monotonic() if started is None else started
        """The time of the scheduler, in seconds of the clock's `monotonic`."""
        self.memory = memory or Memory(DEFAULT_MEMORY)
        self.stopped = False
        """Whether tasks are killed instead of run; set when the cluster stops."""
        self._eager = eager
        self._lock = threading.Lock()
        self._ready: deque[Task] = deque()
        self._resumed: deque[Task] = deque()
        """Tasks that were woken from outside of the scheduler."""
        self._sleepers: list[tuple[float, int, Task]] = []
        """The due times, numbers and tasks of sleeps, as a heap."""
        self._interrupted: set[int] = set()
        """The numbers of sleeps that a signal has ended; they are still among the sleepers."""
        self._number = 0
        self._runner: int | None = None
        self._timer: Timer | None = None
        self._setting_timer = threading.Lock()
        self._busy = False
        """Whether the last run left tasks that can run."""
        self._limit: float | None = None
        """The time up to which it runs; None for the present."""
        self._idle = threading.Condition(self._lock)

    def now(self) -> datetime:
        """Returns the time of the scheduler as a date."""
        return self._clock.now() - timedelta(seconds=max(self._clock.monotonic() - self.time, 0.0))

    # --- Tasks --------------------------------------------------------------------------------------------------------

    def start(self, coroutine: Coroutine[Any, Any, int], name: str, pid: int, parent: Task | None = None) -> Task:
        """Adds a task; it is run by `run` or `catch_up`.

        Args:
            coroutine: the program; returns the exit code.
            name, pid: as ps shows them.
            parent: the task whose signals it also gets.
        """
        task = Task(self, coroutine, name, pid)
        if parent is not None:
            parent.children = [*(child for child in parent.children if child.exit_code is None), task]
            task.ignored = parent.ignored
        with self._lock:
            self._ready.append(task)
        return task

    def resume(self, task: Task) -> None:
        """Makes a waiting task run again; from any thread."""
        with self._lock:
            task.woken = True
            if not task.parked:
                return
            task.parked = False
            if self._runner == threading.get_ident():
                self._ready.append(task)
                return
            self._resumed.append(task)
        self._run_in_worker()

    async def sleep_until(self, due: float) -> None:
        """Parks the running task until a time of this scheduler."""
        task = current()
        self._number += 1
        number = self._number
        heapq.heappush(self._sleepers, (due, number, task))
        try:
            while self.time < due:
                await _yield(_PARK)
        except BaseException:
            self._interrupted.add(number)
            raise

    # --- Running ------------------------------------------------------------------------------------------------------

    @property
    def is_sleeping(self) -> bool:
        """Whether a task waits for a later time."""
        return bool(self._sleepers)

    @property
    def eager(self) -> bool:
        """Whether sleeping tasks run as soon as they are due."""
        return self._eager

    @eager.setter
    def eager(self, eager: bool) -> None:
        self._eager = eager
        self._set_timer()

    def run(self) -> None:
        """Runs tasks in the caller's thread; after many steps a worker continues."""
        if self._claim():
            self._run_here(_INLINE_STEPS)

    def catch_up(self, limit: float | None = None) -> None:
        """Runs all tasks that are due now, or at the time `limit` of the clock's `monotonic`, and returns.

        Programs that did not come to an end the last time get one slice, so that nobody waits for those that never wait.
        """
        while not self._claim():
            with self._idle:
                if self._runner == threading.get_ident():
                    return
                self._idle.wait_for(lambda: self._runner is None, 1.0)
        self._limit = limit
        self._run_here(_INLINE_STEPS * 50)

    def _run_here(self, steps: int) -> None:
        """Runs tasks in this thread, which has claimed the scheduler; the pool of busy schedulers continues."""
        if not self._run_tasks(steps, _SLICE if self._busy else _INLINE_SECONDS):
            self._release()
            _BUSY.add(self)

    def _work(self) -> None:
        if not self._run_tasks(_INLINE_STEPS, _SLICE):
            self._release()
            _BUSY.add(self)

    def _release(self) -> None:
        """Ends the claim of this thread; tasks that can run are left."""
        with self._lock:
            self._runner = None
            self._idle.notify_all()

    def run_slice(self) -> bool:
        """Runs tasks for a slice of time; returns False if there are more. Another thread may run them instead."""
        if not self._claim():
            return True
        if self._run_tasks(_INLINE_STEPS, _SLICE):
            return True
        self._release()
        return False

    def _claim(self) -> bool:
        """Claims the scheduler for this thread; returns False if another one has it."""
        with self._lock:
            if self._runner is not None:
                return False
            self._runner = -1
            return True

    def _run_in_worker(self) -> None:
        """Makes a worker run tasks, if no thread does."""
        if self._claim():
            WORKERS.run(self._work)

    def _run_tasks(self, steps: int, seconds: float) -> bool:
        """Runs tasks until none can run, for at most `steps` steps and seconds of computing; returns False if there are more.

        The caller must have claimed the scheduler; it is released, unless this returns False.
        """
        self._runner = threading.get_ident()
        replayed, end = 0, thread_time() + seconds
        while steps and thread_time() < end:
            task = self._take_next_task(replayed < _MAX_REPLAYED)
            if task is None:
                self._busy = False
                self._set_timer()
                return True
            replayed += 1
            steps -= 1
            waits_for = task.step()
            if waits_for is not None:
                with self._lock:
                    if waits_for is _CHECKPOINT or task.woken:
                        self._ready.append(task)
                    else:
                        task.parked = True
        self._busy = True
        return False

    def _take_next_task(self, one_by_one: bool) -> Task | None:
        """Returns the next task to run; releases the scheduler and returns None if there is none."""
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
            self._forget_interrupted()
            self._runner = self._limit = None
            self._idle.notify_all()
            return None

    def _forget_interrupted(self) -> None:
        """Removes interrupted sleeps: a timer for one of them would keep the ended task in memory until it is due."""
        if self._interrupted:
            self._sleepers = [one for one in self._sleepers if one[1] not in self._interrupted]
            heapq.heapify(self._sleepers)
            self._interrupted.clear()

    def _set_timer(self) -> None:
        """Sets the timer for the next sleeping task. Threads do this one after the other, or the timer of one would be forgotten
        without being cancelled."""
        with self._setting_timer:
            with self._lock:
                due = self._sleepers[0][0] if self._sleepers and self._eager else None
            if self._timer is not None:
                self._timer.cancel()
            self._timer = None if due is None else self._clock.call_at(due, self._on_due, what="a program in a container")

    def _on_due(self) -> None:
        """Runs a sleeping task that is due: with a held clock in the thread that moves it, so that it has run when the clock has
        moved; else in a worker."""
        if self._clock.held:
            self.run()
        else:
            self._run_in_worker()


class _BusySchedulers:
    """Runs the schedulers that have more to do than a slice, in turn and in one thread, which rests as long as it works.

    So programs that never wait, in any number of containers, leave at least half of the time to the server.
    """

    def __init__(self) -> None:
        self._waiting: deque[Scheduler] = deque()
        self._lock = threading.Lock()
        self._running = False

    def forget(self) -> None:
        """Resets the queue after a fork: the thread belongs to the parent."""
        self.__init__()  # type: ignore[misc]

    def add(self, scheduler: Scheduler) -> None:
        """Adds a scheduler; from any thread."""
        with self._lock:
            if scheduler not in self._waiting:
                self._waiting.append(scheduler)
            if self._running:
                return
            self._running = True
        WORKERS.run(self._work)

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._running = False
                    return
                scheduler = self._waiting.popleft()
            started = monotonic()
            if not scheduler.run_slice():
                self.add(scheduler)
                sleep_seconds(min(monotonic() - started, _MAX_REST))


#: The maximum rest of the thread of busy schedulers after a slice, in real seconds.
_MAX_REST: Final = 0.05
_BUSY: Final = _BusySchedulers()
os.register_at_fork(after_in_child=_BUSY.forget)
