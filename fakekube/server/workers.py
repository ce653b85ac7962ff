"""Threads that serve connections: one thread a connection, kept for a while for the next one.

A thread that is started costs several times what handing a connection to a waiting one does, and clients
that open a connection for every request are common. The thread that waited least is taken first, so that a
burst's threads end.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue

__all__ = ["Workers"]

_MAX_WAITING = 16
_PATIENCE = 5.0

_Task = Callable[[], None]


class Workers:
    """Runs tasks, each in a thread that has nothing else to do."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[SimpleQueue[_Task | None]] = []
        self._threads: set[threading.Thread] = set()
        self._ending = False

    def run(self, task: _Task) -> bool:
        """Run `task`, which must not raise; false if it will not be run, for the end has begun.

        :raises RuntimeError: the system has no more threads
        """
        with self._lock:
            if self._ending:
                return False
            if self._waiting:
                self._waiting.pop().put(task)
                return True
            thread = threading.Thread(target=self._work, args=(task,), name="fakekube-connection", daemon=True)
            self._threads.add(thread)
        try:
            thread.start()
        except BaseException:
            with self._lock:
                self._threads.discard(thread)
            raise
        return True

    def stop(self, patience: float) -> None:
        """Send waiting threads home, and give busy ones `patience` seconds to finish what they do."""
        with self._lock:
            self._ending = True
            waiting, self._waiting = self._waiting, []
            threads = self._threads - {threading.current_thread()}
        for mailbox in waiting:
            mailbox.put(None)
        end = time.monotonic() + patience
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))

    def _work(self, task: _Task | None) -> None:
        mailbox: SimpleQueue[_Task | None] = SimpleQueue()
        try:
            while task is not None:
                task()
                task = self._next(mailbox)
        finally:
            with self._lock:
                self._threads.discard(threading.current_thread())

    def _next(self, mailbox: SimpleQueue[_Task | None]) -> _Task | None:
        with self._lock:
            if self._ending or len(self._waiting) >= _MAX_WAITING:
                return None
            self._waiting.append(mailbox)
        try:
            return mailbox.get(timeout=_PATIENCE)
        except Empty:
            with self._lock:
                if mailbox in self._waiting:
                    self._waiting.remove(mailbox)
                    return None
            return mailbox.get()
