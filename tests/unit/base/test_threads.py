from __future__ import annotations

import threading

import pytest

from fakekube.base import threads as module
from fakekube.base.threads import Workers

TIMEOUT = 60.0


def names_of(workers: Workers, count: int) -> set[threading.Thread]:
    """The threads that run `count` tasks at the same time."""
    together = threading.Barrier(count + 1)
    threads: set[threading.Thread] = set()

    def task() -> None:
        threads.add(threading.current_thread())
        together.wait(TIMEOUT)

    for _ in range(count):
        workers.run(task)
    together.wait(TIMEOUT)
    return threads


def wait_until_idle(workers: Workers, count: int) -> None:
    waiting = threading.Event()
    while len(workers._waiting) < count:
        waiting.wait(0.001)


def test_every_task_has_a_thread_and_idle_threads_are_reused() -> None:
    workers = Workers()
    first = names_of(workers, 5)
    assert len(first) == 5
    wait_until_idle(workers, 5)
    assert names_of(workers, 5) == first


def test_forgotten_threads_are_not_reused() -> None:
    workers = Workers()
    first = names_of(workers, 2)
    wait_until_idle(workers, 2)
    workers.forget()
    assert not names_of(workers, 2) & first


def test_idle_threads_end_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE", 0.001)
    workers = Workers()
    (thread,) = names_of(workers, 1)
    thread.join(TIMEOUT)
    assert not thread.is_alive()
    assert workers._waiting == []


def test_number_of_idle_threads_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_WAITING", 2)
    workers = Workers()
    threads = names_of(workers, 5)
    wait_until_idle(workers, 2)
    while sum(thread.is_alive() for thread in threads) > 2:
        next(thread for thread in threads if thread.is_alive()).join(0.001)
    assert len(workers._waiting) == 2
