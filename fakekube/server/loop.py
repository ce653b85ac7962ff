"""The selector thread that all servers of a process share, and the interface for other threads.

The thread waits for sockets, runs what other threads have asked it to run, and otherwise does nothing: no
polling. Everything that is registered here is called from this thread only, so what is driven by it needs no
locks. Where the selector allows it, other threads add and remove descriptors without waking it (`is_concurrent`).
Waking it costs the waker one byte down a socket pair, and nothing while an earlier byte has not been
noticed. A server joins the loop when it starts and leaves it when it stops; a loop that nobody has used for some
seconds ends, and the next server starts another one.
"""

from __future__ import annotations

import logging
import os
import selectors
import socket
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress

__all__ = ["READ", "WRITE", "Loop", "joined_loop"]

READ = selectors.EVENT_READ
WRITE = selectors.EVENT_WRITE

_logger = logging.getLogger(__name__)

_PATIENCE = 5.0
"""Seconds that a loop without members waits for the next one."""

_CONCURRENT = tuple(
    found for name in ("EpollSelector", "KqueueSelector") if (found := getattr(selectors, name, None)) is not None
)
"""The selectors whose descriptors other threads may change."""

Member = Callable[[], "float | None"]
"""Called before every wait: does what is due and says in how many seconds it wants to be called again (None: not before
something else happens)."""


class Loop:
    """A selector and its thread."""

    def __init__(self, patience: float = _PATIENCE) -> None:
        """
        Args:
            patience: seconds after which a loop that all members have left ends
        """
        self._patience = patience
        self._members: tuple[Member, ...] = ()
        self._selector = selectors.DefaultSelector()
        self._ear, self._mouth = socket.socketpair()
        self._ear.setblocking(False)
        self._mouth.setblocking(False)
        self._awake = False
        self._calls: deque[Callable[[], None]] = deque()
        self._lock = threading.Lock()
        self._ending = False
        self._selector.register(self._ear, READ, self._hear)
        self._thread = threading.Thread(target=self._run, name="fakekube-server", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread, and wait for it unless it is the caller. May be called twice."""
        with self._lock:
            self._ending = True
        self.wake()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def join(self, member: Member) -> bool:
        """Have `member` called before every wait that begins from now on; false if the loop is ending. From any thread."""
        with self._lock:
            if self._ending:
                return False
            self._members += (member,)
        return True

    def leave(self, member: Member) -> None:
        """Do not call `member` any more. From any thread."""
        with self._lock:
            self._members = tuple(one for one in self._members if one != member)

    @property
    def is_current(self) -> bool:
        """Is the caller in the loop's thread?"""
        return self._thread is threading.current_thread()

    def call(self, callback: Callable[[], None]) -> bool:
        """Have the thread run `callback`; false if it will not, for it is ending. From any thread."""
        with self._lock:
            if self._ending:
                return False
            self._calls.append(callback)
        self.wake()
        return True

    def wake(self) -> None:
        """Have the thread call `before_wait`. Cheap, never blocks, from any thread."""
        if not self._awake:
            self._awake = True
            with suppress(OSError):  # full: it will wake; closed: it has ended
                self._mouth.send(b"\0")

    @property
    def is_concurrent(self) -> bool:
        """Do `watch` and `forget` take effect from other threads, during a wait? What had happened before may still be told."""
        return isinstance(self._selector, _CONCURRENT)

    def watch(self, fileno: int, events: int, callback: Callable[[int], None]) -> None:
        """Call `callback` with what happens to a descriptor, in place of what was watched for before."""
        if fileno in self._selector.get_map():
            self._selector.modify(fileno, events, callback)
        else:
            self._selector.register(fileno, events, callback)

    def forget(self, fileno: int) -> None:
        """Stop watching a descriptor; must come before it is closed."""
        if fileno in self._selector.get_map():
            self._selector.unregister(fileno)

    def _hear(self, _events: int) -> None:
        with suppress(BlockingIOError):
            self._ear.recv(4096)

    def _run(self) -> None:
        try:
            while not self._ending:
                found = self._selector.select(self._before_wait())
                for key, events in found:
                    self._guard(key.data, events)
                # Cleared before the work is looked at: whoever adds to it later wakes the loop anew.
                self._awake = False
                self._run_calls()
                if not found:
                    self._end_if_unused()
        finally:
            self._run_calls()
            self._selector.close()
            self._ear.close()
            self._mouth.close()

    def _before_wait(self) -> float | None:
        if not self._members:
            return self._patience
        waits = [wait for member in self._members if (wait := self._asked(member)) is not None]
        return min(waits, default=None)

    def _asked(self, member: Member) -> float | None:
        try:
            return member()
        except Exception:
            _logger.exception("Unexpected error in the server's thread")
            return None

    def _end_if_unused(self) -> None:
        with self._lock:
            self._ending = self._ending or (not self._members and not self._calls)

    def _run_calls(self) -> None:
        while self._calls:
            self._guard(self._calls.popleft())

    def _guard(self, callback: Callable[..., None], *arguments: int) -> None:
        """A fault in one callback must not end what the thread does for all others."""
        try:
            callback(*arguments)
        except Exception:
            _logger.exception("Unexpected error in the server's thread")


_sharing = threading.Lock()
_shared: Loop | None = None


def joined_loop(member: Member) -> Loop:
    """The loop of this process, with one more member."""
    global _shared  # noqa: PLW0603
    with _sharing:
        if _shared is None or not _shared.join(member):
            _shared = Loop()
            _shared.join(member)
            _shared.start()
        return _shared


def _after_fork() -> None:
    """The thread is the parent's."""
    global _sharing, _shared
    _sharing, _shared = threading.Lock(), None


os.register_at_fork(after_in_child=_after_fork)
