"""Serves the requests of many connections in turn, so that they do not compete for the interpreter.

A thread per connection is the quickest way to serve one client. With several busy ones, the threads take the interpreter from
each other several times a request, which costs more than the requests. Connections that notice this wait here instead: one
thread, the leader, waits for all of them and serves one after the other. If a request takes longer than `_TURN_SECONDS`,
because it computes or waits, a follower takes the lead, and the former leader only ends its request. A thread that knows that
it will wait gives up the lead itself (`yield_lead`).

While a server runs, the interpreter's thread switch interval is shorter, too: a thread waits for one interval before it requests
the interpreter from a busy thread. With the default of 5 ms, a response takes several times 5 ms if a thread of the test is busy.
0.1 ms costs 8 % more CPU with 16 busy connections, and nothing measurable with four. The interval belongs to the process: the
first server shortens it, and the last one restores it, unless it was changed meanwhile.

Invariants:

* One thread at a time waits for the descriptors, and a descriptor has at most one callback running.
* A descriptor is watched from `watch` to `forget`, or until its callback returns False, except while its callback runs.
* A descriptor is not watched any more once its `on_taken` is called: its owner decides who receives while the callback runs.
* A thread that waits refers to no callback: it would keep the server of a connection that has ended.
* Without a descriptor there is no thread, after a few seconds; before the first one there is no selector either.

Specified by: the pattern Leader/Followers (Schmidt et al., Pattern-Oriented Software Architecture 2).
"""

from __future__ import annotations

import logging
import os
import selectors
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from fakekube.base.threads import WORKERS
from fakekube.net.busy_poll import BusyPoll, busy_poll_if_allowed

_log = logging.getLogger(__name__)

_SECONDS = 1e-4


class SwitchInterval:
    """Counts the running servers, and keeps the interval short while there are any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._servers = 0
        self._before = self._while_serving = 0.0

    def shorten(self) -> None:
        """Called when a server starts."""
        with self._lock:
            self._servers += 1
            if self._servers == 1:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(min(self._before, _SECONDS))
                self._while_serving = sys.getswitchinterval()  # the interpreter rounds the value

    def restore(self) -> None:
        """Called when a server stops."""
        with self._lock:
            self._servers -= 1
            if self._servers == 0 and sys.getswitchinterval() == self._while_serving:
                sys.setswitchinterval(self._before)


SWITCH_INTERVAL = SwitchInterval()
"""The switch interval of this process."""


_TURN_SECONDS = 0.005
"""The time after which a follower takes the lead from a thread that is still in a callback."""
_ALERT_TURNS = 20
"""The number of times that the follower looks after the leader was last seen in a callback; then it sleeps until it is called."""
_PATIENCE = 5.0
"""Seconds after which a leader without descriptors, or a sleeping follower, ends."""

Callback = Callable[[], bool]
"""Called when a descriptor is readable; returns whether it is still to be watched."""


@dataclass(slots=True, eq=False, frozen=True)
class _Watch:
    """What was given to `watch`."""

    callback: Callback
    on_taken: Callable[[], None] | None = None


@dataclass(slots=True, eq=False)
class _Turn:
    """One callback that is running, or that a former leader is about to run.

    Attributes:
        fileno: its descriptor, which may be that of another connection once the callback has closed its own.
        watch: what is called.
        is_unregistered: whether the thread that took the lead stopped watching the descriptor.
    """

    fileno: int
    watch: _Watch
    is_unregistered: bool = False


class _Lead:
    """The time in which one thread leads. Only this thread changes it."""

    __slots__ = ("thread", "turn", "turns")

    def __init__(self) -> None:
        self.thread = 0
        self.turn: _Turn | None = None
        """What is running; None while the leader waits."""
        self.turns = 0
        """The number of callbacks so far."""


def _wait(selector: selectors.BaseSelector, busy_poll: BusyPoll | None) -> list[tuple[selectors.SelectorKey, int]]:
    """Returns the descriptors that are readable; none after `_PATIENCE`."""
    if busy_poll is None:
        return selector.select(_PATIENCE)
    if not (found := busy_poll.look(selector.select)):
        found = selector.select(_PATIENCE)
        busy_poll.end_sleep()
    return found


class LeaderFollowers:
    """The descriptors that are watched, the leader and the follower. All methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._selector: selectors.BaseSelector | None = None
        self._watches: dict[int, _Watch] = {}
        """What the selector waits for, by descriptor."""
        self._lead: _Lead | None = None
        self._has_follower = False
        self._alarm = threading.Lock()
        """Held while the follower sleeps; released to call it."""
        self._follower_sleeps = False

    def watch(self, fileno: int, callback: Callback, on_taken: Callable[[], None] | None = None) -> None:
        """Calls `callback` in the leader's thread whenever a descriptor is readable, until it returns False or `forget`.

        Args:
            fileno: the descriptor.
            callback: what is called.
            on_taken: called, in any thread, when the lead is taken from the thread in `callback`: the descriptor is not watched
                any more. By default it is watched again after `callback`.

        Raises:
            RuntimeError: the system cannot start a thread; the descriptor is not watched.
        """
        with self._lock:
            try:
                self._register(fileno, _Watch(callback, on_taken))
            except RuntimeError:
                self._unregister(fileno)
                raise

    def forget(self, fileno: int) -> None:
        """Stops watching a descriptor; must be called before it is closed or used by another loop."""
        with self._lock:
            self._unregister(fileno)

    def yield_lead(self) -> None:
        """Gives the lead to another thread, if the caller has it: called before the caller waits for something."""
        lead = self._lead
        if lead is None or lead.thread != threading.get_ident() or (turn := lead.turn) is None:
            return
        with self._lock:
            if self._lead is not lead:
                return
            was_watched = self._unregister_turn(turn)
            try:
                self._start_lead()
            except RuntimeError:  # no thread now; a follower takes the lead
                if was_watched:
                    self._register(turn.fileno, turn.watch)
                return
        if was_watched and turn.watch.on_taken is not None:
            turn.watch.on_taken()

    def _register(self, fileno: int, watch: _Watch) -> None:
        """Watches a descriptor unless it is watched already. The caller has the lock.

        Raises:
            RuntimeError: the system cannot start a thread; the next call makes one lead.
        """
        if self._selector is None:
            self._selector = selectors.DefaultSelector()
        if fileno not in self._watches:
            self._selector.register(fileno, selectors.EVENT_READ, watch)
            self._watches[fileno] = watch
        if self._lead is None:
            self._start_lead()

    def _unregister(self, fileno: int) -> None:
        if self._watches.pop(fileno, None) is not None:
            assert self._selector is not None
            self._selector.unregister(fileno)

    def _start_lead(self) -> None:
        """Makes another thread the leader. The caller has the lock.

        Raises:
            RuntimeError: the system cannot start a thread; the leader stays the same.
        """
        before = self._lead
        self._lead = lead = _Lead()  # before the thread runs: one that does not find its lead ends
        try:
            WORKERS.run(lambda: self._run_lead(lead))
        except RuntimeError:
            self._lead = before
            raise

    # --- In the leader's thread ---------------------------------------------------------------------------------------

    def _run_lead(self, lead: _Lead) -> None:
        """Waits for descriptors and runs their callbacks, until another thread leads or nothing is watched."""
        selector = self._selector
        assert selector is not None
        lead.thread, busy_poll = threading.get_ident(), busy_poll_if_allowed()
        while self._run_turns(lead, selector, busy_poll):
            pass

    def _run_turns(self, lead: _Lead, selector: selectors.BaseSelector, busy_poll: BusyPoll | None) -> bool:
        """Waits once, and runs the callbacks of what is found; returns False if the thread does not lead any more."""
        found, watches = _wait(selector, busy_poll), self._watches
        if not found:
            return not self._end_if_unused(lead)
        for key, _ in found:
            watch: _Watch = key.data
            if watches.get(key.fd) is not watch:
                continue  # an earlier callback has changed what is watched; what still happens is found again
            if not self._run_turn(lead, key.fd, watch):
                return False
        return True

    def _run_turn(self, lead: _Lead, fileno: int, watch: _Watch) -> bool:
        """Runs a callback; returns False if another thread has taken the lead meanwhile."""
        turn = lead.turn = _Turn(fileno, watch)
        lead.turns += 1
        # After the turn is set: a follower that falls asleep sets its flag, and then looks for a turn.
        if self._follower_sleeps or not self._has_follower:
            self._call_follower()
        if self._lead is not lead:
            with self._lock:
                if turn.is_unregistered and watch.on_taken is None:
                    # As if the callback were running, but it is left to the successor.
                    self._register(fileno, watch)
            return False
        try:
            watches = watch.callback()
        except Exception:
            _log.exception("Unexpected error in a server's thread")
            watches = False
        # Before the lead is compared: a successor that saw the turn has replaced the lead by now; then this thread registers.
        lead.turn = None
        if watches and self._lead is lead:
            return True
        with self._lock:
            leads = self._lead is lead
            if not watches:
                if leads:
                    self._unregister_turn(turn)
            elif not leads and watch.on_taken is None:
                self._register(fileno, watch)
            return leads

    def _unregister_turn(self, turn: _Turn) -> bool:
        """Removes the descriptor of a turn, unless it was closed and stands for another connection by now."""
        is_watched = self._watches.get(turn.fileno) is turn.watch
        if is_watched:
            self._unregister(turn.fileno)
        return is_watched

    def _end_if_unused(self, lead: _Lead) -> bool:
        """Ends the lead if nothing is watched. Returns False if it goes on."""
        with self._lock:
            if self._lead is not lead:  # taken between the end of the last callback and the wait
                return True
            if self._watches:
                return False
            assert self._selector is not None
            self._lead = None
            self._selector.close()
            self._selector = None
            return True

    def _call_follower(self) -> None:
        """Makes a follower look after the leader."""
        with self._lock:
            if self._follower_sleeps:
                self._follower_sleeps = False
                self._alarm.release()
            elif not self._has_follower:
                self._has_follower = True
                try:
                    WORKERS.run(self._follow)
                except RuntimeError:  # no thread now; called again with the next request
                    self._has_follower = False

    # --- In the follower's thread -------------------------------------------------------------------------------------

    def _follow(self) -> None:
        """Looks after the leader, and leads itself if a callback takes too long."""
        successor = self._look_after_leader()
        if successor is not None:
            self._run_lead(successor)

    def _look_after_leader(self) -> _Lead | None:
        """Returns the lead that this thread has taken; None if the follower is not needed any more."""
        quiet = 0
        while True:
            lead = self._lead
            turn, turns = (None, 0) if lead is None else (lead.turn, lead.turns)
            time.sleep(_TURN_SECONDS)
            if lead is not None and turn is not None and lead.turn is turn:
                if (successor := self._take_lead(lead, turn)) is not None:
                    return successor
            elif lead is self._lead and (lead is None or lead.turns == turns):
                quiet += 1
                if quiet >= _ALERT_TURNS:
                    if not self._sleep(lead, turns):
                        return None
                    quiet = 0
                continue
            quiet = 0

    def _take_lead(self, lead: _Lead, turn: _Turn) -> _Lead | None:
        """Returns a lead for this thread if the callback is still running; None if it has ended."""
        with self._lock:
            if self._lead is not lead or lead.turn is not turn:
                return None
            self._lead = successor = _Lead()
            self._has_follower = False
            if (current := lead.turn) is not None:  # it may have begun another one before it saw its successor
                current.is_unregistered = self._unregister_turn(current)
        if current is not None and current.is_unregistered and current.watch.on_taken is not None:
            current.watch.on_taken()
        return successor

    def _sleep(self, lead: _Lead | None, turns: int) -> bool:
        """Waits until the leader calls; returns False if the follower is not needed any more.

        Args:
            lead: the lead for which nothing was to be done.
            turns: how many turns it had then; after another one the follower stays awake.
        """
        with self._lock:
            self._alarm.acquire(blocking=False)
            self._follower_sleeps = True
            if self._lead is not lead or (lead is not None and (lead.turn is not None or lead.turns != turns)):
                self._follower_sleeps = False
                self._alarm.release()
                return True
        if self._alarm.acquire(timeout=_PATIENCE):
            self._alarm.release()
            return True
        with self._lock:
            if not self._follower_sleeps:  # called at the last moment
                return True
            self._follower_sleeps = self._has_follower = False
            self._alarm.release()
            return False

    def _reset(self) -> None:
        """Forgets everything in a forked process, which does not have the threads."""
        self.__init__()  # type: ignore[misc]


REQUEST_THREADS = LeaderFollowers()
"""The leader and follower of this process."""

os.register_at_fork(after_in_child=REQUEST_THREADS._reset)
