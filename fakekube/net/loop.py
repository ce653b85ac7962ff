"""The event loop that all servers of a process share: a selector and its thread.

The thread waits for sockets, and runs functions of other threads (`call`). All callbacks run in this thread, so that they need no
locks. If the selector allows it, other threads add and remove descriptors without waking the thread (`is_concurrent`). Waking it
sends one byte through a socket pair, unless a byte is pending. A server joins the loop when it starts and leaves it when it
stops; a loop without members ends after some seconds, and the next server starts another one.
"""

from __future__ import annotations

import logging
import os
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

READ = selectors.EVENT_READ
WRITE = selectors.EVENT_WRITE

_log = logging.getLogger(__name__)

_PORTION_SECONDS = 0.002
"""The time after which events, or calls, wait until the members were called again."""
_PATIENCE = 5.0
"""Seconds after which a loop without members ends."""

_CONCURRENT = tuple(
    found for name in ("EpollSelector", "KqueueSelector") if (found := getattr(selectors, name, None)) is not None
)
"""The selectors that apply changes of other threads during a wait."""

Member = Callable[[], "float | None"]
"""Called before every wait: does what is due, and returns the seconds until it must be called again (None: not before an
event)."""


class Loop:
    """A selector and its thread."""

    def __init__(self, patience: float = _PATIENCE) -> None:
        """
        Args:
            patience: seconds after which a loop without members ends.
        """
        self._patience = patience
        self._members: tuple[Member, ...] = ()
        self._selector = selectors.DefaultSelector()
        self._wake_receiver, self._wake_sender = socket.socketpair()
        self._wake_receiver.setblocking(False)
        self._wake_sender.setblocking(False)
        self._awake = False
        self._calls: deque[Callable[[], None]] = deque()
        self._found: deque[tuple[selectors.SelectorKey, int]] = deque()
        """The events that are not reported yet."""
        self._lock = threading.Lock()
        self._ending = False
        self._selector.register(self._wake_receiver, READ, self._drain_wakes)
        self._thread = threading.Thread(target=self._run, name="fakekube-server", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread, and waits for it unless it is the caller. May be called twice."""
        with self._lock:
            self._ending = True
        self.wake()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def join(self, member: Member) -> bool:
        """Adds a member, to be called before every later wait; returns False if the loop is ending. From any thread."""
        with self._lock:
            if self._ending:
                return False
            self._members += (member,)
        return True

    def leave(self, member: Member) -> None:
        """Removes a member. From any thread."""
        with self._lock:
            self._members = tuple(one for one in self._members if one != member)

    @property
    def is_current(self) -> bool:
        """Whether the caller is in the loop's thread."""
        return self._thread is threading.current_thread()

    def call(self, callback: Callable[[], None]) -> bool:
        """Makes the thread run `callback`; returns False if it will not, because it is ending. From any thread."""
        with self._lock:
            if self._ending:
                return False
            self._calls.append(callback)
        if not self.is_current:  # the thread itself looks at the calls before it waits
            self.wake()
        return True

    def wake(self) -> None:
        """Makes the thread call its members. Cheap, does not block, from any thread."""
        if not self._awake:
            self._awake = True
            with suppress(OSError):  # full: it will wake; closed: it has ended
                self._wake_sender.send(b"\0")

    @property
    def is_concurrent(self) -> bool:
        """Whether other threads may call `watch` and `forget` during a wait; earlier events may still be reported."""
        return isinstance(self._selector, _CONCURRENT)

    def watch(self, fileno: int, events: int, callback: Callable[[int], None]) -> None:
        """Calls `callback` with those of `events` that occur on a descriptor; replaces an earlier call for the descriptor."""
        try:
            self._selector.modify(fileno, events, callback)
        except KeyError:  # it was not watched
            self._selector.register(fileno, events, callback)

    def forget(self, fileno: int) -> None:
        """Stops watching a descriptor. Must be called before it is closed."""
        with suppress(KeyError):
            self._selector.unregister(fileno)

    def _drain_wakes(self, _events: int) -> None:
        with suppress(BlockingIOError):
            self._wake_receiver.recv(4096)

    def _run(self) -> None:
        try:
            while not self._ending:
                self._run_once()
        finally:
            while self._calls:
                self._run_calls()
            self._selector.close()
            self._wake_receiver.close()
            self._wake_sender.close()

    def _run_once(self) -> None:
        """Waits, and runs what is due. Only this call refers to the callbacks, so that no server that has ended is kept."""
        wait = self._before_wait()
        waits = not (self._found or self._calls)
        if not self._found:
            self._found.extend(self._selector.select(wait if waits else 0))
        is_idle = waits and not self._found
        self._report_events()
        # Cleared before the calls are run, so that a later `call` wakes the loop again.
        self._awake = False
        self._run_calls()
        if is_idle:
            self._end_if_unused()

    def _report_events(self) -> None:
        """Reports events for a portion of time, and leaves the others for the next call."""
        found, watched = self._found, self._selector.get_map()
        end = time.monotonic() + _PORTION_SECONDS if found else 0.0
        while found:
            key, events = found.popleft()
            if watched.get(key.fd) is not key:
                continue  # an earlier callback has changed what is watched; what still happens is found again
            self._guard(key.data, events)
            del key
            if time.monotonic() >= end:
                return

    def _before_wait(self) -> float | None:
        if not self._members:
            return self._patience
        waits = [wait for member in self._members if (wait := self._call_member(member)) is not None]
        return min(waits, default=None)

    def _call_member(self, member: Member) -> float | None:
        try:
            return member()
        except Exception:
            _log.exception("Unexpected error in the server's thread")
            return None

    def _end_if_unused(self) -> None:
        with self._lock:
            self._ending = self._ending or (not self._members and not self._calls)

    def _run_calls(self) -> None:
        """Runs calls for a portion of time, and leaves the others for the next call."""
        calls = self._calls
        end = time.monotonic() + _PORTION_SECONDS if calls else 0.0
        while calls:
            self._guard(calls.popleft())
            if time.monotonic() >= end:
                return

    def _guard(self, callback: Callable[..., None], *arguments: int) -> None:
        """Calls a callback; logs its exception, because the thread must continue for the others."""
        try:
            callback(*arguments)
        except Exception:
            _log.exception("Unexpected error in the server's thread")


_sharing = threading.Lock()
_shared: Loop | None = None


def joined_loop(member: Member) -> Loop:
    """Adds a member to the loop of this process, which is started if necessary, and returns the loop."""
    global _shared  # noqa: PLW0603
    with _sharing:
        if _shared is None or not _shared.join(member):
            _shared = Loop()
            _shared.join(member)
            _shared.start()
        return _shared


def _after_fork() -> None:
    """Resets the loop in a forked process, which does not have the thread."""
    global _sharing, _shared
    _sharing, _shared = threading.Lock(), None


os.register_at_fork(after_in_child=_after_fork)
