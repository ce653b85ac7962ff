"""A queue of keys like client-go's rate limiting workqueue: a key is queued once, has one worker, and backs off after failures.

Specified by: staging/src/k8s.io/client-go/util/workqueue.
"""

from __future__ import annotations

import heapq
import threading
import time

BASE_DELAY, MAX_DELAY = 0.005, 1000.0


class WorkQueue:
    """Waiting keys, each with the time when it is due. Thread-safe."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._heap: list[tuple[float, str]] = []
        self._due: dict[str, float] = {}
        self._working: set[str] = set()
        self._again: set[str] = set()
        self._failures: dict[str, int] = {}

    def add(self, key: str, delay: float = 0.0) -> None:
        with self._condition:
            if key in self._working and not delay:
                self._again.add(key)
                return
            due = time.monotonic() + delay
            if due < self._due.get(key, float("inf")):
                self._due[key] = due
                heapq.heappush(self._heap, (due, key))
                self._condition.notify()

    def add_rate_limited(self, key: str) -> None:
        with self._condition:
            failures = self._failures.get(key, 0)
            self._failures[key] = failures + 1
        self.add(key, min(BASE_DELAY * 2**failures, MAX_DELAY))

    def forget(self, key: str) -> None:
        with self._condition:
            self._failures.pop(key, None)

    def get(self) -> str:
        """Returns the next due key; the worker calls `done` when it has finished."""
        with self._condition:
            while True:
                now = time.monotonic()
                while self._heap and self._due.get(self._heap[0][1]) != self._heap[0][0]:
                    heapq.heappop(self._heap)
                if self._heap and self._heap[0][0] <= now:
                    _, key = heapq.heappop(self._heap)
                    if key in self._working:
                        del self._due[key]
                        self._again.add(key)
                        continue
                    del self._due[key]
                    self._working.add(key)
                    return key
                self._condition.wait(self._heap[0][0] - now if self._heap else None)

    def done(self, key: str) -> None:
        with self._condition:
            self._working.discard(key)
            again = key in self._again
            self._again.discard(key)
        if again:
            self.add(key)
