"""The thread pool of the process, for connections of servers and controllers of clusters.

Starting a thread costs several times as much as passing a task to an idle one; many clients open a connection for every request,
and many clusters exist for one test only. The thread that has been idle for the shortest time is used first, so that the
additional threads of a burst end.

Invariant: no thread refers to a task that has ended, which would keep its cluster in memory.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

_MAX_WAITING = 16
_PATIENCE = 5.0

_Task = Callable[[], None]


class Workers:
    """Runs each task in an idle thread, or in a new one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[SimpleQueue[_Task]] = []

    def run(self, task: _Task) -> None:
        """Runs `task`, which must not raise.

        Raises:
            RuntimeError: the system cannot start another thread.
        """
        with self._lock:
            if self._waiting:
                self._waiting.pop().put(task)
                return
        mailbox: SimpleQueue[_Task] = SimpleQueue()
        mailbox.put(task)
        threading.Thread(target=self._work, args=(mailbox,), name="fakekube-worker", daemon=True).start()

    def forget(self) -> None:
        """Resets the pool after a fork: the threads belong to the parent."""
        self._lock = threading.Lock()
        self._waiting = []

    def _work(self, mailbox: SimpleQueue[_Task]) -> None:
        mailbox.get()()
        while self._run_next(mailbox):
            pass

    def _run_next(self, mailbox: SimpleQueue[_Task]) -> bool:
        """Waits for a task and runs it; returns False if the thread is not needed any more."""
        task = self._next(mailbox)
        if task is None:
            return False
        task()
        return True

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
"""The thread pool of this process."""

os.register_at_fork(after_in_child=WORKERS.forget)
