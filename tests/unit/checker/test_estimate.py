"""How long the rest of a check will take."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from fakekube.checker import runner
from fakekube.checker.runner import Estimate


@dataclass(eq=False)
class Expected:
    """A rule that is expected to take some seconds."""

    expected_seconds: float


class Clock:
    """A clock that the test moves."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(runner, "time", found)
    return found


def rules(*seconds: float) -> list[Any]:
    return [Expected(one) for one in seconds]


def estimate_of(lives: list[list[Any]], starts: list[float]) -> Estimate:
    baseline: Any = SimpleNamespace(session=SimpleNamespace(starts=starts, processors=2))
    return Estimate(baseline, lives, at_once=16)


@pytest.mark.parametrize(("starts", "seconds"), [([1.5], 44.0), ([1.5, 3.5], 63.5), ([1.5] + [3.5] * 20, 83.0)])
def test_slow_starts_take_longer_than_all_else(starts: list[float], seconds: float) -> None:
    assert estimate_of([rules(5.0) for _ in range(40)], starts).seconds() == pytest.approx(seconds)


def test_the_rules_of_one_client_take_as_long_as_all_together_and_longer_if_others_have_taken_longer(clock: Clock) -> None:
    life, other = rules(20.0, 20.0), rules(20.0)
    estimate = estimate_of([life, other], [1.5])
    assert estimate.seconds() == pytest.approx(40.0)
    estimate.begin(life)
    estimate.begin(other)
    clock.now += 10.0
    assert estimate.seconds() == pytest.approx(30.0)
    estimate.record(other[0], 100.0)
    assert estimate.seconds() == pytest.approx(3.0 * 40.0 - 10.0)
    assert "2 to go" in str(estimate)
    for rule in life:
        estimate.record(rule, 20.0)
    assert str(estimate) == "done"


def test_a_rule_that_takes_longer_than_expected_tells_so_while_it_runs(clock: Clock) -> None:
    lives = [rules(10.0) for _ in range(64)]
    estimate = estimate_of(lives, [0.1])
    assert estimate.seconds() == pytest.approx(40.0 + 15 * 0.3)
    for life in lives[:16]:
        estimate.begin(life)
    clock.now += 30.0
    assert estimate.seconds() > 80.0


def test_the_next_rule_of_a_life_begins_when_the_one_before_has_ended(clock: Clock) -> None:
    life = rules(20.0, 20.0)
    estimate = estimate_of([life], [0.1])
    estimate.begin(life)
    clock.now += 20.0
    estimate.record(life[0], 20.0)
    assert estimate.seconds() == pytest.approx(20.0)
    clock.now += 5.0
    assert estimate.seconds() == pytest.approx(15.0)


def test_what_waits_takes_the_places_of_what_ends(clock: Clock) -> None:
    lives = [rules(30.0), *([one] for one in rules(*[10.0] * 32))]
    assert estimate_of(lives, [-0.5]).seconds() == pytest.approx(30.0)
    assert estimate_of([*lives[1:], lives[0]], [-0.5]).seconds() == pytest.approx(50.0)


def test_rules_that_a_life_has_left_have_clients_of_their_own(clock: Clock) -> None:
    life = rules(1.0, 1.0, 1.0, 1.0)
    estimate = estimate_of([life], [9.5])
    estimate.begin(life)
    assert estimate.seconds() == pytest.approx(4.0)
    estimate.record(life[0], 1.0)
    estimate.leave(life[1:])
    assert estimate.seconds() == pytest.approx(15.0)
    estimate.begin([life[1]])
    assert "3 to go" in str(estimate)
