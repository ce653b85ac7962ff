"""Rules that read the traces of all runs."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from fakekube.checker.rules.unprovoked import EqualPauses

if TYPE_CHECKING:
    from collections.abc import Callable


def run_with_pause(pause: float, *, retry_after: int = 0) -> Any:
    """A run whose client pauses after a watch that was refused with 500."""
    common = {"dropped": False, "retry_after": retry_after, "ended": None, "is_watch": True, "is_list": False, "events": ()}
    calls = [
        SimpleNamespace(**common, status=200, at=0.0, end=4.0),
        SimpleNamespace(**common, status=500, at=5.0, end=5.1),
        SimpleNamespace(**common, status=500, at=5.1 + pause, end=5.2 + pause),
        SimpleNamespace(**common, status=200, at=9.0 + pause, end=None),
    ]
    baseline = SimpleNamespace(streams={"configmaps": "configmaps"}, is_shared=lambda key: False)
    trace = SimpleNamespace(streams=lambda: {"configmaps": SimpleNamespace(calls=calls)})
    return SimpleNamespace(rule=object(), trace=trace, baseline=baseline)


DICE = random.Random(1)


@pytest.mark.parametrize(
    ("pauses", "more", "broken"),
    [
        (lambda: 1.0, {}, True),
        (lambda: 1.0 + (DICE.random() > 0.85) * 0.7, {}, True),
        (lambda: 0.05, {}, False),
        (lambda: DICE.uniform(0.9, 1.1), {}, False),
        (lambda: DICE.uniform(0.8, 1.6), {}, False),
        (lambda: 1.0, {"retry_after": 1}, False),
    ],
)
def test_pauses_that_are_equal_in_all_runs_have_no_jitter(pauses: Callable[[], float], more: Any, broken: bool) -> None:
    rule = EqualPauses()
    for _ in range(30):
        assert rule.inspect(run_with_pause(pauses(), **more)) is None
    assert (rule.conclude() is not None) is broken


def test_a_few_pauses_say_nothing() -> None:
    rule = EqualPauses()
    for _ in range(EqualPauses.LEAST - 1):
        rule.inspect(run_with_pause(1.0))
    assert rule.conclude() is None
