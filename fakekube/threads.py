"""The threads of the process, lent to whoever has something to run: connections of servers, controllers of clusters.

A thread that is started costs several times what handing a task to a waiting one does, and clients that open a
connection for every request are common, as are clusters that live for one test. The thread that waited least is taken
first, so that a burst's threads end.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

__all__ = ["WORKERS", "Workers"]

_MAX_WAITING = 16
_PATIENCE = 5.0

_Task = Callable[[], None]


class Workers:
    """Runs tasks, each in a thread that has nothing else to do."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[SimpleQueue[_Task]] = []

    def run(self, task: _Task) -> None:
        """Run `task`, which must not raise.

        Raises:
            RuntimeError: the system has no more threads
        """
        with self._lock:
            if self._waiting:
                self._waiting.pop().put(task)
                return
        threading.Thread(target=self._work, args=(task,), name="fakekube-worker", daemon=True).start()

    def forget(self) -> None:
        """Start anew: after a fork the threads are the parent's."""
        self._lock = threading.Lock()
        self._waiting = []

    def _work(self, task: _Task | None) -> None:
        mailbox: SimpleQueue[_Task] = SimpleQueue()
        while task is not None:
            task()
            task = self._next(mailbox)

    def _next(self, mailbox: SimpleQueue[_Task]) -> _Task | None:
        with self._lock:
            if len(self._waiting) >= _MAX_WAITING:
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


WORKERS = Workers()
"""Of this process."""

os.register_at_fork(after_in_child=WORKERS.forget)
