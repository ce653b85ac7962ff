from __future__ import annotations

import functools
import logging
import socket
import threading
from collections.abc import Iterator

import pytest

from fakekube.server.loop import READ, WRITE, Loop

TIMEOUT = 10.0


@pytest.fixture
def loop() -> Iterator[Loop]:
    loop = Loop(lambda: None, lambda: None)
    loop.start()
    yield loop
    loop.stop()


def run(loop: Loop) -> None:
    """Wait until the loop has done all it was asked to."""
    done = threading.Event()
    assert loop.call(done.set)
    assert done.wait(TIMEOUT)


def test_calls_run_in_the_loop_s_thread_in_order(loop: Loop) -> None:
    numbers: list[int] = []
    threads: set[threading.Thread] = set()
    for number in range(3):
        loop.call(functools.partial(numbers.append, number))
        loop.call(lambda: threads.add(threading.current_thread()))
    run(loop)
    assert numbers == [0, 1, 2]
    assert threads == {loop._thread}


def test_sockets_are_watched_until_forgotten(loop: Loop) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        heard = threading.Event()

        def hear(events: int) -> None:
            assert events == READ
            ours.recv(1)
            heard.set()

        loop.call(lambda: loop.watch(ours.fileno(), READ, hear))
        theirs.send(b"a")
        assert heard.wait(TIMEOUT)
        heard.clear()
        writable = threading.Event()

        def write(events: int) -> None:
            loop.forget(ours.fileno())
            writable.set()

        loop.call(lambda: loop.watch(ours.fileno(), WRITE, write))
        assert writable.wait(TIMEOUT)
        theirs.send(b"b")
        run(loop)
        assert not heard.is_set()


def test_a_fault_does_not_end_the_loop(loop: Loop, caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    with caplog.at_level(logging.ERROR):
        loop.call(fail)
        run(loop)
    assert "ZeroDivisionError" in caplog.text


def test_before_wait_says_when_it_is_called_again() -> None:
    calls = threading.Semaphore(0)

    def before_wait() -> float:
        calls.release()
        return 0.001

    loop = Loop(before_wait, lambda: None)
    loop.start()
    for _ in range(5):
        assert calls.acquire(timeout=TIMEOUT)
    loop.stop()


def test_waking_has_before_wait_called() -> None:
    calls = threading.Semaphore(0)
    loop = Loop(calls.release, lambda: None)
    loop.start()
    assert calls.acquire(timeout=TIMEOUT)
    for _ in range(100):
        loop.wake()
        assert calls.acquire(timeout=TIMEOUT)
    loop.stop()


def test_what_was_asked_before_the_end_is_done_and_nothing_after_it() -> None:
    seen: list[str] = []
    release = threading.Event()
    loop = Loop(lambda: None, lambda: seen.append("end"))
    loop.start()

    def hold_up() -> None:
        release.wait(TIMEOUT)

    loop.call(hold_up)
    loop.call(lambda: seen.append("call"))
    stopper = threading.Thread(target=loop.stop)
    stopper.start()
    release.set()
    stopper.join(TIMEOUT)
    assert seen == ["call", "end"]
    assert not loop.call(lambda: seen.append("late"))
    loop.wake()
    loop.stop()
    assert seen == ["call", "end"]
