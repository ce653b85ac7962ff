from __future__ import annotations

import functools
import logging
import socket
import threading
from collections.abc import Iterator

import pytest

from fakekube.net.loop import READ, WRITE, Loop, joined_loop

TIMEOUT = 60.0


@pytest.fixture
def loop() -> Iterator[Loop]:
    loop = Loop()
    loop.start()
    yield loop
    loop.stop()


def run(loop: Loop) -> None:
    """Wait until the loop has done all it was asked to."""
    done = threading.Event()
    assert loop.call(done.set)
    assert done.wait(TIMEOUT)


def test_calls_run_in_order_in_the_loop_thread(loop: Loop) -> None:
    numbers: list[int] = []
    threads: set[threading.Thread] = set()
    for number in range(3):
        loop.call(functools.partial(numbers.append, number))
        loop.call(lambda: threads.add(threading.current_thread()))
    run(loop)
    assert numbers == [0, 1, 2]
    assert threads == {loop._thread}


def test_watched_socket_calls_back_until_forgotten(loop: Loop) -> None:
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


def test_exception_in_a_call_is_logged_and_the_loop_continues(loop: Loop, caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    with caplog.at_level(logging.ERROR):
        loop.call(fail)
        run(loop)
    assert "ZeroDivisionError" in caplog.text


def test_member_returns_the_delay_until_its_next_call(loop: Loop) -> None:
    calls = threading.Semaphore(0)

    def member() -> float:
        calls.release()
        return 0.001

    assert loop.join(member)
    loop.wake()  # which waits for as long as a loop without members does
    for _ in range(5):
        assert calls.acquire(timeout=TIMEOUT)


def test_wake_calls_every_member_until_it_leaves(loop: Loop) -> None:
    one, other = threading.Semaphore(0), threading.Semaphore(0)
    stay, go = one.release, other.release
    loop.join(stay)
    loop.join(go)
    run(loop)
    loop.leave(go)
    run(loop)
    while other.acquire(blocking=False):
        pass
    for _ in range(100):
        loop.wake()
        assert one.acquire(timeout=TIMEOUT)
    run(loop)
    assert not other.acquire(blocking=False)


def test_calls_of_the_loop_thread_itself_are_run_without_a_wake(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    wakes: list[threading.Thread] = []
    wake = loop.wake

    def noted_wake() -> None:
        wakes.append(threading.current_thread())
        wake()

    monkeypatch.setattr(loop, "wake", noted_wake)
    inner, outer = threading.Event(), threading.Event()
    calls = [outer.set, lambda: loop.call(inner.set)]

    def member() -> None:
        if calls:
            loop.call(calls.pop())

    loop.join(member)
    loop.wake()
    assert inner.wait(TIMEOUT)
    assert outer.wait(TIMEOUT)
    assert loop._thread not in wakes


def test_loop_that_has_called_itself_is_not_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(patience=0.0)
    monkeypatch.setattr(loop, "_thread", threading.current_thread())
    calls: list[int] = []
    loop.call(functools.partial(calls.append, 1))
    loop._run_once()
    assert calls == [1]
    assert loop.call(functools.partial(calls.append, 2)), "it ends without having waited"
    loop._run_once()
    loop._run_once()
    assert not loop.call(functools.partial(calls.append, 3))
    loop._run()  # closes what it holds


def test_exception_in_a_member_does_not_affect_other_members(loop: Loop, caplog: pytest.LogCaptureFixture) -> None:
    called = threading.Event()
    loop.join(lambda: 1 / 0)
    loop.join(called.set)
    loop.wake()
    assert called.wait(TIMEOUT)
    run(loop)
    assert "ZeroDivisionError" in caplog.text


def test_loop_without_members_ends_and_rejects_joins() -> None:
    loop = Loop(patience=0.001)
    assert loop.join(int)
    loop.start()
    loop.leave(int)
    loop.wake()
    loop._thread.join(TIMEOUT)
    assert not loop._thread.is_alive()
    assert not loop.join(int)
    assert not loop.call(lambda: None)


def test_one_loop_per_process() -> None:
    one, other = joined_loop(int), joined_loop(float)
    assert one is other
    one.leave(int)
    one.leave(float)


def test_stop_runs_pending_calls_and_rejects_later_ones() -> None:
    seen: list[str] = []
    release = threading.Event()
    loop = Loop()
    loop.start()

    def hold_up() -> None:
        release.wait(TIMEOUT)

    loop.call(hold_up)
    loop.call(lambda: seen.append("call"))
    stopper = threading.Thread(target=loop.stop)
    stopper.start()
    release.set()
    stopper.join(TIMEOUT)
    assert seen == ["call"]
    assert not loop.call(lambda: seen.append("late"))
    loop.wake()
    loop.stop()
    assert seen == ["call"]
