"""How long the rest of a check will take."""

from __future__ import annotations

import random
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


def run(clock: Clock, lives: list[list[Any]], chance: random.Random, factor: float) -> list[tuple[float, float]]:
    """Runs lives, all at once; returns the seconds that are left after each rule, with the estimate of them.

    Args:
        clock: the clock.
        lives: the rules of each life.
        chance: decides how long each rule runs.
        factor: how many times longer than expected they run on the average.
    """
    estimate, begun = estimate_of(lives, [0.0]), clock.now
    ends: list[tuple[float, Any]] = []
    for life in lives:
        estimate.begin(life)
        at = begun
        for rule in life:
            at += factor * rule.expected_seconds * chance.lognormvariate(0.0, 0.3)
            ends.append((at, rule))
    ends.sort(key=lambda end: end[0])
    found = []
    for at, rule in ends[:-1]:
        clock.now = at
        estimate.record(rule, at)
        found.append((ends[-1][0] - at, estimate.seconds()))
    return found


@pytest.mark.parametrize("factor", [0.7, 1.0, 1.5])
def test_most_estimates_are_right_within_a_factor_of_one_and_a_half(clock: Clock, factor: float) -> None:
    """From the first result on, although the first ones are those of the rules that were quicker than expected."""
    right = []
    for seed in range(10):
        chance = random.Random(seed)
        lives = [rules(*chance.choices([5.0, 10.0, 20.0, 40.0], k=chance.randint(1, 3))) for _ in range(16)]
        found = run(clock, lives, chance, factor)
        right += [left / 1.5 < told < left * 1.5 for left, told in found if left > 10.0]
    assert sum(right) > 0.75 * len(right)


@pytest.mark.parametrize(("starts", "seconds"), [([1.5], 40.0), ([1.5, 3.5], 60.0), ([1.5] + [3.5] * 20, 80.0)])
def test_slow_starts_take_longer_than_all_else(starts: list[float], seconds: float) -> None:
    assert estimate_of([rules(5.0) for _ in range(40)], starts).seconds() == pytest.approx(seconds, abs=7.0)


def test_a_life_takes_what_its_rules_take_together_and_longer_if_others_have_taken_longer(clock: Clock) -> None:
    life, other = rules(20.0, 20.0), rules(20.0)
    estimate = estimate_of([life, other], [0.0])
    estimate.begin(life)
    estimate.begin(other)
    assert estimate.seconds() == pytest.approx(35.0, abs=2.0)
    clock.now += 10.0
    assert estimate.seconds() == pytest.approx(28.0, abs=2.0)
    clock.now += 50.0
    estimate.record(other[0], clock.now)
    assert estimate.seconds() > 15.0
    assert "2 to go" in str(estimate)
    for rule in life:
        estimate.record(rule, clock.now)
    assert str(estimate) == "done"


def test_a_rule_that_takes_longer_than_expected_tells_so_while_it_runs(clock: Clock) -> None:
    lives = [rules(10.0) for _ in range(64)]
    estimate = estimate_of(lives, [0.0])
    before = estimate.seconds()
    for life in lives[:16]:
        estimate.begin(life)
    clock.now += 30.0
    assert estimate.seconds() > 1.5 * before


def test_the_wait_for_the_start_of_a_client_and_a_second_run_do_not_count_as_time_of_a_rule(clock: Clock) -> None:
    life, other = rules(20.0), rules(40.0)
    estimate = estimate_of([life, other], [0.0])
    clock.now += 100.0
    estimate.begin(life)
    clock.now += 20.0
    ended = clock.now
    clock.now += 100.0
    estimate.record(life[0], ended)
    assert estimate.seconds() == pytest.approx(33.0, abs=2.0)


def test_what_waits_takes_the_places_of_what_ends(clock: Clock) -> None:
    estimate = estimate_of([rules(10.0) for _ in range(33)], [-0.5])
    assert estimate.seconds() == pytest.approx(30.0, abs=5.0)


def test_rules_that_a_life_has_left_have_clients_of_their_own(clock: Clock) -> None:
    life = rules(1.0, 1.0, 1.0, 1.0)
    estimate = estimate_of([life], [9.5])
    estimate.begin(life)
    assert estimate.seconds() == pytest.approx(4.0, abs=1.0)
    estimate.record(life[0], clock.now)
    estimate.leave(life[1:])
    assert estimate.seconds() == pytest.approx(15.5, abs=1.0)
    estimate.begin([life[1]])
    assert "3 to go" in str(estimate)
