"""How long this process stood still."""

from __future__ import annotations

import threading
import time

import pytest

from fakekube.checker.runner import confirm
from fakekube.checker.session import Stalls
from fakekube.checker.verdict import Outcome, Verdict


def test_a_stall_is_a_sleep_that_took_much_longer() -> None:
    stalls = Stalls()
    stalls.observe(10.0, 10.2)
    assert stalls.longest(0.0) == 0.0
    stalls.observe(10.2, 13.3)
    stalls.observe(13.3, 14.4)
    assert stalls.longest(0.0) == pytest.approx(3.0)
    assert stalls.longest(14.0) == pytest.approx(1.0)
    assert stalls.longest(15.0) == 0.0


def test_they_are_measured_by_a_thread_that_ends() -> None:
    stalls, begun = Stalls(), time.monotonic()
    with stalls.measuring():
        names = [thread.name for thread in threading.enumerate()]
    assert "fakekube-check-stalls" in names
    assert "fakekube-check-stalls" not in [thread.name for thread in threading.enumerate()]
    assert stalls.longest(begun) >= 0.0


FAILED, LATE = Verdict.failure("broken"), Verdict.failure("late", by_time=True)


@pytest.mark.parametrize(
    ("first", "second", "stalled", "outcome"),
    [
        (LATE, LATE, False, Outcome.FAIL),
        (LATE, Verdict.success(), False, Outcome.WARN),
        (LATE, Verdict.success(), True, Outcome.PASS),
        (LATE, Verdict.not_exercised("aborted"), False, Outcome.FAIL),
        (FAILED, Verdict.success(), True, Outcome.PASS),
        (FAILED, FAILED, True, Outcome.FAIL),
        (Verdict.warning("perhaps"), Verdict.success(), True, Outcome.PASS),
        (Verdict.failure("by chance", by_chance=True), Verdict.success(), False, Outcome.PASS),
        (Verdict.warning("by chance", by_chance=True), Verdict.success(), False, Outcome.PASS),
        (LATE.as_warning(), Verdict.success(), False, Outcome.PASS),
        (LATE.as_warning(), FAILED, False, Outcome.WARN),
        (LATE.as_warning(), Verdict.not_exercised("aborted"), False, Outcome.WARN),
    ],
)
def test_a_run_with_a_stall_does_not_count(first: Verdict, second: Verdict, stalled: bool, outcome: Outcome) -> None:
    assert confirm(first, second, stalled=stalled).outcome is outcome
