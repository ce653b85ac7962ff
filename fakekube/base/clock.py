"""The clock of a cluster: real time by default; a test can hold and advance it.

A clock has two times: `now`, the time of day for timestamps in objects, and `monotonic`, the seconds for timers and
deadlines. Both stand still while the clock is held, and both move by the same amount when it is advanced; `monotonic`
never goes back. A released clock runs on from where it stands.

Timers of a held clock fire inside `advance`, in the caller's thread, in the order of their times, each at its own
time: timers that they start also fire, if they are due within the same advance. Timers of a running clock fire in one
daemon thread that all clocks of the process share; it exists only while a timer is pending. Code that waits in other
ways (a server with the deadlines of its streams) subscribes to be notified when the clock is held, advanced or
released.
"""

from __future__ import annotations

import math
import threading
import time
from bisect import bisect_left, insort
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any, NamedTuple

#: What the timer of the controllers is for; they have only one, and know themselves what is due.
CONTROLLERS = "the controllers"


class Reading(NamedTuple):
    """The state of a clock: offsets to the real clocks while running, fixed times while held."""

    held: bool
    monotonic: float
    now: datetime
    offset: timedelta
    factor: float = 1.0
    """How fast the clock runs. Another factor than one counts from `monotonic` and `now`, which it showed at `real`."""
    real: float = 0.0


_REAL = Reading(False, 0.0, datetime.min.replace(tzinfo=UTC), timedelta())


def time_of(reading: Reading, monotonic: float) -> datetime:
    """Returns what `Clock.now` was when it had this reading, at a time of `time.monotonic`."""
    if reading.held:
        return reading.now
    if reading.factor != 1.0:
        return reading.now + timedelta(seconds=(monotonic - reading.real) * reading.factor)
    return datetime.now(UTC) - timedelta(seconds=time.monotonic() - monotonic) + reading.offset


def monotonic_of(reading: Reading, monotonic: float) -> float:
    """Returns what `Clock.monotonic` was when it had this reading, at a time of `time.monotonic`."""
    if reading.held:
        return reading.monotonic
    if reading.factor != 1.0:
        return reading.monotonic + (monotonic - reading.real) * reading.factor
    return monotonic + reading.monotonic


class Timer:
    """A scheduled callback; made by `Clock.call_at`."""

    __slots__ = ("_clock", "callback", "due", "what")

    def __init__(self, clock: Clock, due: float, callback: Callable[[], None], what: str = "") -> None:
        self._clock = clock
        self.due = due
        """When, in seconds of the clock's `monotonic`."""
        self.callback = callback
        self.what = what
        """What it is for, to be shown to people."""

    def cancel(self) -> None:
        """Cancels the timer; has no effect if it has fired."""
        self._clock.cancel(self)


_due = attrgetter("due")


class Clock:
    """A clock that can be held and advanced. Thread-safe, and cheap to create: it has no thread of its own."""

    __slots__ = ("_before", "_closed", "_factor", "_lock", "_moving", "_subscribers", "_timers", "_waits", "reading")

    def __init__(self) -> None:
        self.reading = _REAL
        """The reading of this moment, which `time_of` converts to a time later: that is faster than `now`."""
        self._factor = 1.0
        self._waits = False
        """Whether it stands still until `begin`."""
        self._lock = threading.Lock()
        self._moving = threading.RLock()
        self._timers: list[Timer] = []
        self._subscribers: tuple[Callable[[], None], ...] = ()
        self._before: tuple[Callable[[], None], ...] = ()
        self._closed = False

    @classmethod
    def standing_at(cls, start: datetime) -> Clock:
        """Returns a clock that stands at a time of day until `begin`, `release` or `advance`, with `monotonic` from 0.

        A program that holds it before `begin` sees the same times in every run.
        """
        clock = cls()
        clock.reading, clock._waits = Reading(True, 0.0, start, timedelta()), True
        return clock

    def begin(self) -> None:
        """Lets a clock of `standing_at` run, unless it has been held, released or advanced."""
        if self._waits:
            self.release()

    # --- Reading the time ---------------------------------------------------------------------------------------------

    def now(self) -> datetime:
        """Returns the time of day, timezone-aware, in UTC."""
        reading = self.reading
        if reading is _REAL:
            return datetime.now(UTC)
        if reading.held:
            return reading.now
        if reading.factor != 1.0:
            return reading.now + timedelta(seconds=(time.monotonic() - reading.real) * reading.factor)
        return datetime.now(UTC) + reading.offset

    def monotonic(self) -> float:
        """Returns seconds since an arbitrary moment; never decreases."""
        reading = self.reading
        if reading.held:
            return reading.monotonic
        if reading.factor != 1.0:
            return reading.monotonic + (time.monotonic() - reading.real) * reading.factor
        return time.monotonic() + reading.monotonic

    @property
    def held(self) -> bool:
        """Whether the clock is held."""
        return self.reading.held

    # --- Hold, advance, release ---------------------------------------------------------------------------------------

    def hold(self) -> None:
        """Stops the clock until `release`; only `advance` moves a held clock."""
        with self._moving:
            self._waits = False
            self._stop()
        self._tell()

    def advance(self, **amount: float) -> None:
        """Moves the clock forward by the arguments of a `timedelta` (`hours=1`, `milliseconds=50`) at once.

        Timers that become due fire before this returns; if one raises, the clock stays at the time of that timer and
        the exception propagates. A running clock continues from its new time. Raises ValueError for negative
        arguments.
        """
        move = timedelta(**amount)
        if move < timedelta():
            raise ValueError("a clock cannot be moved back")
        self.begin()
        for callback in self._before:
            callback()
        try:
            with self._moving:
                held = self.held
                self._stop()
                try:
                    self._move(move)
                finally:
                    if not held:
                        self._run()
        finally:
            self._tell()

    def next(self) -> timedelta | None:
        """Advances a held clock to its next timer. Returns the difference; None if no timer is pending.

        Raises RuntimeError if the clock is not held.
        """
        if not self.held:
            raise RuntimeError("the clock is not held")
        for callback in self._before:
            callback()
        with self._lock:
            due = self._timers[0].due if self._timers else None
        if due is None:
            return None
        before = self.now()
        wait = max(0.0, due - self.monotonic())
        self.advance(microseconds=math.ceil(wait * 1e6))  # rounded up: a timedelta that is rounded down would not reach the timer
        return self.now() - before

    def scale(self, factor: float) -> None:
        """Sets the speed of the clock relative to real time, while it is not held. Raises ValueError unless it is positive."""
        if not 0.0 < factor < float("inf"):
            raise ValueError("a clock runs at a positive factor")
        with self._moving:
            held = self.held
            self._stop()
            self._factor = factor
            if not held:
                self._run()
        self._tell()

    def release(self) -> None:
        """Continues a held clock from its current time."""
        with self._moving:
            self._waits = False
            self._run()
        self._tell()

    def fork(self) -> Clock:
        """Returns an independent clock with the same time, held if this one is; timers are not copied."""
        twin = Clock()
        twin.reading, twin._factor, twin._waits = self.reading, self._factor, self._waits
        return twin

    def _stop(self) -> None:
        if not self.held:
            self.reading = Reading(True, self.monotonic(), self.now(), timedelta())
            self._set_alarm()

    def _run(self) -> None:
        monotonic, now = self.monotonic(), self.now()
        if self.held:
            if self._factor != 1.0:
                self.reading = Reading(False, monotonic, now, timedelta(), self._factor, time.monotonic())
            else:
                self.reading = Reading(False, monotonic - time.monotonic(), _REAL.now, now - datetime.now(UTC))
            self._set_alarm()

    def _move(self, move: timedelta) -> None:
        start = self.reading
        target = start._replace(monotonic=start.monotonic + move.total_seconds(), now=start.now + move)
        while (timer := self._pop_due(target.monotonic)) is not None:
            step = timedelta(seconds=max(0.0, timer.due - start.monotonic))
            self._show(start._replace(monotonic=max(start.monotonic, timer.due), now=start.now + step))
            timer.callback()
        self._show(target)

    def _show(self, reading: Reading) -> None:
        """Sets the time, unless a callback has advanced the clock further."""
        if reading.monotonic > self.reading.monotonic:
            self.reading = reading

    # --- Timers -------------------------------------------------------------------------------------------------------

    def call_at(self, monotonic: float, callback: Callable[[], None], *, what: str = "") -> Timer:
        """Calls `callback` once when `monotonic()` reaches a time; if that is past, soon, but not from this call.

        On a running clock it is called in a shared thread: it must be quick. On a closed clock it never fires.
        `what` says what it is for, for those who look at the pending timers.
        """
        timer = Timer(self, monotonic, callback, what)
        with self._lock:
            if not self._closed:
                insort(self._timers, timer, key=_due)
        self._set_alarm()
        return timer

    def pending(self) -> list[Timer]:
        """Returns the timers that have not fired, the next one first."""
        with self._lock:
            return list(self._timers)

    @property
    def factor(self) -> float:
        """How fast the clock runs when it is not held, relative to real time."""
        return self._factor

    def cancel(self, timer: Timer) -> None:
        """See `Timer.cancel`."""
        with self._lock:
            place = bisect_left(self._timers, timer.due, key=_due)
            while place < len(self._timers) and self._timers[place].due == timer.due:
                if self._timers[place] is timer:
                    del self._timers[place]
                    break
                place += 1
        self._set_alarm()

    def ring(self) -> None:
        """Fires due timers, for the alarm thread; an exception is passed to `threading.excepthook`, and the other
        timers still fire.
        """
        while not self.held and (timer := self._pop_due(self.monotonic())) is not None:
            try:
                timer.callback()
            except Exception as error:
                hook: Any = threading.ExceptHookArgs((type(error), error, error.__traceback__, None))
                threading.excepthook(hook)
        self._set_alarm()

    def _pop_due(self, monotonic: float) -> Timer | None:
        with self._lock:
            return self._timers.pop(0) if self._timers and self._timers[0].due <= monotonic else None

    def _set_alarm(self) -> None:
        with self._lock:
            reading = self.reading
            wanted = not reading.held and self._timers
            _alarm.set(self, reading.real + (self._timers[0].due - reading.monotonic) / reading.factor if wanted else None)

    # --- Subscriptions ------------------------------------------------------------------------------------------------

    def before_advance(self, callback: Callable[[], None]) -> None:
        """Calls `callback` before every `advance`, in the thread that advances, so that pending work is done before time moves.

        It is removed when the clock is closed.
        """
        with self._lock:
            self._before = (*self._before, callback)

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Calls `callback` after every hold, advance and release, in the thread that did it. It must not raise."""
        with self._lock:
            self._subscribers = (*self._subscribers, callback)

    def unsubscribe(self, callback: Callable[[], None]) -> None:
        """Ends a subscription; unknown ones are ignored."""
        with self._lock:
            subscribers = list(self._subscribers)
            if callback in subscribers:
                subscribers.remove(callback)
            self._subscribers = tuple(subscribers)

    def _tell(self) -> None:
        for callback in self._subscribers:
            callback()

    def close(self) -> None:
        """Cancels all timers; later ones never fire. The clock still runs."""
        with self._lock:
            self._closed = True
            self._timers.clear()
            self._subscribers = self._before = ()
        self._set_alarm()


class _Alarm:
    """The shared thread that fires the timers of running clocks."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._times: dict[Clock, float] = {}
        self._thread: threading.Thread | None = None

    def set(self, clock: Clock, when: float | None) -> None:
        """Sets the time of the real monotonic clock at which to call `ring` of a clock (None: never)."""
        if when is None and clock not in self._times:
            return
        with self._changed:
            if when is None:
                self._times.pop(clock, None)
            else:
                self._times[clock] = when
                if self._thread is None or not self._thread.is_alive():  # a forked process has no threads
                    self._thread = threading.Thread(target=self._serve, name="fakekube-timers", daemon=True)
                    self._thread.start()
            self._changed.notify()

    def _serve(self) -> None:
        while (clock := self._next()) is not None:
            clock.ring()

    def _next(self) -> Clock | None:
        """Waits for the next clock with due timers; None ends the thread, if no timers are pending."""
        with self._changed:
            while self._times:
                clock = min(self._times, key=self._times.__getitem__)
                wait = self._times[clock] - time.monotonic()
                if wait <= 0:
                    del self._times[clock]
                    return clock
                self._changed.wait(min(wait, threading.TIMEOUT_MAX))
            self._thread = None
            return None


_alarm = _Alarm()
