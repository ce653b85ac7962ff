"""Schedulers of programs: what is left of programs that have ended."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator

import pytest

from fakekube.base.clock import Clock, Timer
from fakekube.nodes.runtime.scheduling import SIGKILL, Killed, Scheduler, Task, sleep


@pytest.fixture
def clock() -> Iterator[Clock]:
    made = Clock()
    yield made
    made.close()


async def sleep_long() -> int:
    await sleep(1e6)
    return 0


def start(scheduler: Scheduler, *others: Task) -> Task:
    """Starts a program that kills the others."""

    async def kill() -> int:
        for one in others:
            one.kill(SIGKILL)
        return 0

    return scheduler.start(kill(), "kill", 1)


def test_a_sleep_that_a_signal_ends_leaves_no_timer(clock: Clock) -> None:
    """A timer would keep the programs of a deleted pod in memory until their sleeps are due."""
    scheduler = Scheduler(clock)
    sleepers = [scheduler.start(sleep_long(), "sleep", number) for number in range(3)]
    scheduler.run()
    assert len(clock.pending()) == 1
    start(scheduler, *sleepers[:2])
    scheduler.run()
    assert (len(clock.pending()), scheduler.is_sleeping) == (1, True)
    start(scheduler, *sleepers[2:])
    scheduler.run()
    assert ([one.exit_code for one in sleepers], clock.pending(), scheduler.is_sleeping) == ([137] * 3, [], False)


def test_an_ended_scheduler_is_forgotten(clock: Clock) -> None:
    scheduler = Scheduler(clock)
    sleeper = scheduler.start(sleep_long(), "sleep", 1)
    scheduler.run()
    start(scheduler, sleeper)
    scheduler.run()
    reference = weakref.ref(scheduler)
    del scheduler, sleeper
    gc.collect()
    assert reference() is None


def test_a_program_that_catches_a_signal_sleeps_again(clock: Clock) -> None:
    async def catch() -> int:
        try:
            await sleep(1e6)
        except Killed:
            await sleep(10)
        return 7

    clock.hold()
    scheduler = Scheduler(clock)
    sleeper = scheduler.start(catch(), "trap", 1)
    scheduler.run()
    start(scheduler, sleeper)
    scheduler.run()
    assert clock.next() is not None
    assert (sleeper.exit_code, clock.pending(), scheduler.is_sleeping) == (7, [], False)


def test_two_threads_that_set_the_timer_leave_one() -> None:
    class SlowClock(Clock):
        """A clock whose first timer is only there after another thread has set the timer, if it can."""

        others: list[threading.Thread] = []  # noqa: RUF012

        def call_at(self, monotonic: float, callback: Callable[[], None], *, what: str = "") -> Timer:
            if not self.others:
                self.others.append(threading.Thread(target=scheduler.catch_up))
                self.others[0].start()
                self.others[0].join(0.2)
            return super().call_at(monotonic, callback, what=what)

    clock = SlowClock()
    scheduler = Scheduler(clock)
    scheduler.start(sleep_long(), "sleep", 1)
    scheduler.run()
    clock.others[0].join()
    assert len(clock.pending()) == 1
    clock.close()
