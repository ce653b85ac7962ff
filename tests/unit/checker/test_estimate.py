"""How long the rest of a check will take."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from fakekube.checker.runner import Estimate


@dataclass(eq=False)
class Expected:
    """A rule that is expected to take some seconds."""

    expected_seconds: float


def rules(*seconds: float) -> list[Any]:
    return [Expected(one) for one in seconds]


def estimate_of(lives: list[list[Any]], starts: list[float]) -> Estimate:
    baseline: Any = SimpleNamespace(session=SimpleNamespace(starts=starts, processors=2))
    return Estimate(baseline, lives, at_once=16)


@pytest.mark.parametrize(("starts", "seconds"), [([1.5], 40), ([1.5, 3.5], 60), ([1.5] + [3.5] * 20, 80)])
def test_slow_starts_take_longer_than_all_else(starts: list[float], seconds: float) -> None:
    assert estimate_of([rules(5.0) for _ in range(40)], starts).seconds() == pytest.approx(seconds)


def test_the_rules_of_one_client_take_as_long_as_all_together_and_longer_if_others_have_taken_longer() -> None:
    life, other = rules(20.0, 20.0), rules(10.0)
    estimate = estimate_of([life, other], [1.5])
    assert estimate.seconds() == pytest.approx(42.0, abs=1.0)
    estimate.record(other[0], 20.0)
    assert estimate.seconds() == pytest.approx(82.0, abs=1.0)
    assert "2 to go" in str(estimate)
    for rule in life:
        estimate.record(rule, 20.0)
    assert str(estimate) == "done"
