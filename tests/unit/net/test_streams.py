"""Streams for servers that iterate over them."""

from __future__ import annotations

import time

from fakekube.base.clock import Clock
from fakekube.net.streams import WholeStream, frames_of


class UntilDeadline(WholeStream):
    """Returns its data when the deadline has passed."""

    def __init__(self, clock: Clock, deadline: float) -> None:
        super().__init__(b"late")
        self.deadline = deadline
        self._clock = clock

    def take(self) -> list[bytes]:
        assert self.deadline is not None
        return super().take() if self._clock.monotonic() >= self.deadline else []


def test_deadlines_of_a_clock_that_runs_faster_are_due_earlier(clock: Clock) -> None:
    clock.scale(1000)
    began = time.monotonic()
    assert list(frames_of(UntilDeadline(clock, clock.monotonic() + 50), clock)) == [b"late"]
    assert time.monotonic() - began < 10
