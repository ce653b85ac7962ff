"""The clock: hold, advance and release, timers and subscribers."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from fakekube.base.clock import Clock

SOON = 30.0
"""How long a test waits, in seconds, for what should happen at once."""


@pytest.fixture
def clock() -> Iterator[Clock]:
    clock = Clock()
    yield clock
    clock.close()


@pytest.fixture
def held(clock: Clock) -> Clock:
    clock.hold()
    return clock


def timer_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "fakekube-timers"]


# -------------------------------------------------------------------- time


def test_running_clock_shows_the_real_time(clock: Clock) -> None:
    before, after = datetime.now(UTC), time.monotonic()
    now, monotonic = clock.now(), clock.monotonic()
    assert before <= now <= datetime.now(UTC)
    assert after <= monotonic <= time.monotonic()
    assert now.tzinfo is UTC
    assert not clock.held


def test_held_clock_does_not_move(held: Clock) -> None:
    now, monotonic = held.now(), held.monotonic()
    assert held.held
    real = time.monotonic()
    while time.monotonic() == real:
        pass
    assert (held.now(), held.monotonic()) == (now, monotonic)
    held.hold()
    assert (held.now(), held.monotonic()) == (now, monotonic)


def test_advance_moves_now_and_monotonic_equally(held: Clock) -> None:
    now, monotonic = held.now(), held.monotonic()
    held.advance(hours=1, milliseconds=500)
    assert held.now() - now == timedelta(hours=1, milliseconds=500)
    assert held.monotonic() - monotonic == pytest.approx(3600.5)


def test_released_clock_continues_from_its_held_time(held: Clock) -> None:
    held.advance(days=1)
    now, monotonic = held.now(), held.monotonic()
    held.release()
    assert held.now() >= now
    assert held.monotonic() >= monotonic
    assert held.now() >= datetime.now(UTC) + timedelta(hours=23)
    real = time.monotonic()
    while time.monotonic() == real:
        pass
    assert held.monotonic() > monotonic
    held.release()
    assert held.monotonic() > monotonic


def test_running_clock_can_be_advanced(clock: Clock) -> None:
    before = clock.now()
    clock.advance(hours=1)
    assert clock.now() - before >= timedelta(hours=1)
    assert not clock.held


def test_advance_by_a_negative_duration_is_rejected(held: Clock) -> None:
    now = held.now()
    with pytest.raises(ValueError, match="cannot be moved back"):
        held.advance(seconds=-1)
    assert held.now() == now


def test_fork_has_the_same_time_and_is_independent(held: Clock) -> None:
    held.advance(hours=1)
    fired: list[str] = []
    held.call_at(held.monotonic() + 1, lambda: fired.append("origin"))
    twin = held.fork()
    assert (twin.now(), twin.monotonic(), twin.held) == (held.now(), held.monotonic(), True)
    twin.advance(hours=1)
    assert twin.now() - held.now() == timedelta(hours=1)
    assert fired == []


# -------------------------------------------------------------------- timers of a held clock


def test_timers_fire_in_order_at_their_due_times(held: Clock) -> None:
    start, began = held.monotonic(), held.now()
    fired: list[tuple[str, float, timedelta]] = []

    def note(name: str) -> None:
        fired.append((name, held.monotonic() - start, held.now() - began))

    for name, seconds in (("late", 20), ("early", 10), ("same", 20), ("never", 31)):
        held.call_at(start + seconds, lambda name=name: note(name))  # type: ignore[misc]
    held.advance(seconds=30)
    assert [(name, pytest.approx(at)) for name, at, _ in fired] == [("early", 10), ("late", 20), ("same", 20)]
    assert [round(now.total_seconds(), 3) for _, _, now in fired] == [10, 20, 20]
    assert held.monotonic() - start == pytest.approx(30)
    held.advance(seconds=1)
    assert fired[-1][0] == "never"


def test_timer_started_by_a_timer_fires_in_the_same_advance(held: Clock) -> None:
    start = held.monotonic()
    fired: list[float] = []

    def again() -> None:
        fired.append(round(held.monotonic() - start))
        held.call_at(held.monotonic() + 10, again)

    held.call_at(start + 10, again)
    held.advance(seconds=35)
    assert fired == [10, 20, 30]


def test_timer_can_advance_the_clock(held: Clock) -> None:
    start = held.monotonic()
    held.call_at(start + 1, lambda: held.advance(seconds=10))
    held.advance(seconds=2)
    assert held.monotonic() - start == pytest.approx(11)


def test_a_cancelled_timer_does_not_fire(held: Clock) -> None:
    fired: list[str] = []
    due = held.monotonic() + 1
    timers = [held.call_at(due, lambda name=name: fired.append(name)) for name in "abc"]  # type: ignore[misc]
    timers[1].cancel()
    timers[1].cancel()
    held.advance(seconds=1)
    timers[0].cancel()
    assert fired == ["a", "c"]


def test_overdue_timer_fires_with_the_next_advance(held: Clock) -> None:
    fired: list[float] = []
    held.call_at(held.monotonic() - 5, lambda: fired.append(held.monotonic()))
    now = held.monotonic()
    assert fired == []
    held.advance()
    assert fired == [now]


def test_failing_timer_stops_the_advance_and_the_next_advance_continues(held: Clock) -> None:
    start = held.monotonic()
    fired: list[bool] = []

    def fail() -> None:
        raise ZeroDivisionError

    held.call_at(start + 1, fail)
    held.call_at(start + 2, lambda: fired.append(True))
    with pytest.raises(ZeroDivisionError):
        held.advance(seconds=10)
    assert held.monotonic() - start == pytest.approx(1)
    assert fired == []
    held.advance(seconds=1)
    assert fired == [True]


def test_closed_clock_fires_no_timers(held: Clock) -> None:
    fired: list[str] = []
    held.call_at(held.monotonic() + 1, lambda: fired.append("before"))
    held.subscribe(lambda: fired.append("jump"))
    held.close()
    held.call_at(held.monotonic() + 1, lambda: fired.append("after")).cancel()
    held.advance(seconds=5)
    held.close()
    assert fired == []


# -------------------------------------------------------------------- timers of a running clock


def test_timers_of_a_running_clock_fire_in_order_and_leave_no_thread(clock: Clock) -> None:
    done = threading.Event()
    fired: list[str] = []
    now = clock.monotonic()
    clock.call_at(now + 0.02, done.set)
    clock.call_at(now + 0.01, lambda: fired.append("second"))
    clock.call_at(now - 1.0, lambda: fired.append("first"))
    threads = timer_threads()
    assert len(threads) == 1
    assert done.wait(SOON)
    assert fired == ["first", "second"]
    threads[0].join(SOON)
    assert timer_threads() == []


def test_timer_thread_starts_with_a_timer_and_ends_when_it_is_cancelled(clock: Clock) -> None:
    assert timer_threads() == []
    timer = clock.call_at(clock.monotonic() + 3600, lambda: None)
    threads = timer_threads()
    assert len(threads) == 1
    timer.cancel()
    threads[0].join(SOON)
    assert timer_threads() == []


def test_hold_stops_timers_and_release_starts_them(clock: Clock) -> None:
    done = threading.Event()
    clock.hold()
    clock.call_at(clock.monotonic() + 0.001, done.set)
    assert timer_threads() == []
    assert not done.is_set()
    clock.release()
    assert done.wait(SOON)


def test_advance_of_a_running_clock_fires_due_timers_before_it_returns(clock: Clock) -> None:
    fired: list[threading.Thread] = []
    clock.call_at(clock.monotonic() + 3600, lambda: fired.append(threading.current_thread()))
    clock.advance(hours=2)
    assert fired == [threading.current_thread()]


def test_remaining_timers_fire_at_the_advanced_time(clock: Clock) -> None:
    done = threading.Event()
    clock.call_at(clock.monotonic() + 3600.01, done.set)
    clock.advance(hours=1)
    assert done.wait(SOON)


def test_clocks_share_one_timer_thread(clock: Clock) -> None:
    others = [Clock() for _ in range(10)]
    done = [threading.Event() for _ in others]
    for other, event in zip(others, done, strict=True):
        other.call_at(other.monotonic() + 0.01, event.set)
    clock.call_at(clock.monotonic() + 3600, lambda: None)
    assert len(timer_threads()) == 1
    assert all(event.wait(SOON) for event in done)


def test_failing_timer_is_reported_and_other_timers_fire(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[type[BaseException]] = []
    monkeypatch.setattr(threading, "excepthook", lambda failure: reported.append(failure.exc_type))
    done = threading.Event()

    def fail() -> None:
        raise ZeroDivisionError

    due = clock.monotonic()
    clock.call_at(due, fail)
    clock.call_at(due, done.set)
    assert done.wait(SOON)
    assert reported == [ZeroDivisionError]


# -------------------------------------------------------------------- jumps


def test_subscribers_are_notified_after_every_jump(clock: Clock) -> None:
    heard: list[tuple[bool, datetime]] = []

    def listen() -> None:
        heard.append((clock.held, clock.now()))

    clock.subscribe(listen)
    clock.hold()
    start = clock.now()
    clock.advance(hours=1)
    clock.release()
    clock.unsubscribe(listen)
    clock.unsubscribe(listen)
    clock.advance(hours=1)
    assert [held for held, _ in heard] == [True, True, False]
    assert heard[0][1] == start
    assert heard[1][1] - start == timedelta(hours=1)


def test_subscribers_are_notified_of_a_failed_advance(held: Clock) -> None:
    heard: list[float] = []
    held.subscribe(lambda: heard.append(held.monotonic()))

    def fail() -> None:
        raise ZeroDivisionError

    due = held.monotonic() + 1
    held.call_at(due, fail)
    with pytest.raises(ZeroDivisionError):
        held.advance(seconds=2)
    assert heard == [due]


def test_clock_is_advanced_by_many_threads(held: Clock) -> None:
    start = held.monotonic()
    fired: list[float] = []
    for second in range(1, 101):
        held.call_at(start + second, lambda: fired.append(held.monotonic()))

    def move() -> None:
        for _ in range(25):
            held.advance(seconds=1)

    threads = [threading.Thread(target=move) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON)
    assert held.monotonic() - start == pytest.approx(100)
    assert fired == sorted(fired)
    assert len(fired) == 100


def test_next_reaches_a_timer_that_is_due_between_two_microseconds(held: Clock) -> None:
    fired: list[float] = []
    due = held.monotonic() + 1.0000002
    held.call_at(due, lambda: fired.append(held.monotonic()))
    held.next()
    assert fired == [due]
