"""Estimates how long a check will still take.

Invariant: the estimate comes from the expected seconds of the rules that are left, scaled by what the finished ones have taken.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakekube.checker.rule import Rule
    from fakekube.checker.session import Session

#: How much of a processor a run takes besides the start of its client, in seconds.
_WORK = 0.5


class Estimate:
    """The seconds that some rules still take.

    Args:
        session: the check after its baseline run.
        rules: the rules that will run.
        at_once: how many run at the same time.
    """

    def __init__(self, session: Session, rules: Sequence[Rule], at_once: int) -> None:
        assert session.baseline is not None
        self._start = session.baseline.start_seconds + _WORK
        self._left = {rule: rule.expected_seconds for rule in rules}
        self._at_once = at_once
        self._processors = session.processors
        self._begun = time.monotonic()
        self._expected = self._taken = 0.0
        self._lock = threading.Lock()

    def record(self, rule: Rule, seconds: float) -> None:
        """Records that a rule has taken some seconds."""
        with self._lock:
            self._expected += self._left.pop(rule, 0.0)
            self._taken += seconds

    def seconds(self) -> float:
        """Returns the seconds that are left."""
        with self._lock:
            left = list(self._left.values())
            scale = self._taken / self._expected if self._expected else 1.0
        if not left:
            return 0.0
        waiting = max(scale, 1.0) * sum(left) / self._at_once
        starting = len(left) * self._start / self._processors
        longest = max(left) + self._start - (time.monotonic() - self._begun)
        return max(waiting, starting, longest, 1.0)

    def __str__(self) -> str:
        with self._lock:
            count = len(self._left)
        return f"{count} to go, about {self.seconds():.0f} s" if count else "done"
