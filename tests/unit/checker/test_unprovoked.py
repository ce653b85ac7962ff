"""Rules that read the traces of all runs."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from fakekube.checker.execution import Inspections
from fakekube.checker.judges import judge_lost_conditions, judge_refused_writes
from fakekube.checker.rules.unprovoked import EqualPauses, UserAgent
from fakekube.checker.verdict import Verdict
from fakekube.controllers.client import UnknownResource

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


def test_a_rule_that_cannot_inspect_a_run_does_not_end_the_check() -> None:
    class Broken(EqualPauses):
        def inspect(self, trial: Any) -> None:
            raise KeyError("no such definition")

    inspections = Inspections([Broken()])
    inspections.inspect(baseline_run(stall=0.0))
    assert inspections.verdict(EqualPauses()).outcome == "pass"


def test_a_run_in_which_the_check_stood_still_says_nothing() -> None:
    """What its trace shows as delivered was not sent yet."""

    class Finds(EqualPauses):
        def inspect(self, trial: Any) -> Verdict:
            return Verdict.failure("found")

    rule = Finds()
    inspections = Inspections([rule])
    inspections.inspect(baseline_run(stall=2.0))
    assert inspections.verdict(rule).outcome == "not exercised"
    inspections.inspect(baseline_run(stall=1.0))
    assert inspections.verdict(rule).outcome == "fail"


@pytest.mark.parametrize(("by_chance", "outcome"), [(False, "fail"), (True, "pass")])
def test_what_may_be_chance_does_not_count(by_chance: bool, outcome: str) -> None:
    class Finds(EqualPauses):
        def inspect(self, trial: Any) -> Verdict:
            return Verdict.failure("found", by_chance=by_chance)

    rule = Finds()
    inspections = Inspections([rule])
    inspections.inspect(baseline_run(stall=0.0))
    assert inspections.verdict(rule).outcome == outcome


def baseline_run(*, stall: float) -> Any:
    """A run in which this process stood still for some seconds."""
    stalls = SimpleNamespace(longest=lambda since: stall)
    return SimpleNamespace(rule=None, key="baseline", zero=0.0, session=SimpleNamespace(stalls=stalls))


def test_a_status_whose_definition_is_deleted_has_no_conditions() -> None:
    def history(*_: object) -> None:
        raise UnknownResource("no resource is called widgets")

    place = {"resource": "widgets/status", "collection": "widgets", "name": "a", "namespace": ""}
    write = SimpleNamespace(verb="update", is_write=True, succeeded=True, revision=7, **place)
    run: Any = SimpleNamespace(trace=SimpleNamespace(since=lambda: [write]), cluster=SimpleNamespace(history=history))
    assert judge_lost_conditions(run) is None


@pytest.mark.parametrize(
    ("resource", "agent", "verdict"),
    [("", "kr8s/0.20", "pass"), ("configmaps", "kr8s/0.20", "warn"), ("configmaps", "python-requests/2", "fail")],
)
def test_the_user_agent_is_that_of_requests_for_resources(resource: str, agent: str, verdict: str) -> None:
    """A library may ask for the version of the server before the program can name itself."""
    calls = [
        SimpleNamespace(resource=asked, exchange=SimpleNamespace(agent=one))
        for asked, one in ((resource, agent), ("configmaps", "mine/1"))
    ]
    trial: Any = SimpleNamespace(trace=SimpleNamespace(since=lambda: calls))
    assert UserAgent().judge(trial).outcome == verdict


@pytest.mark.parametrize(
    ("statuses", "rule", "broken"),
    [
        ([422] * 4, None, True),
        ([422] * 3, None, False),
        ([422] * 4 + [200], None, False),
        ([409] * 4, None, False),
        ([422] * 4, object(), False),  # a provocation may be the reason
    ],
)
def test_a_kind_of_write_that_is_never_accepted_is_suspicious(statuses: list[int], rule: Any, broken: bool) -> None:
    kind = {"is_write": True, "verb": "update", "resource": "widgets/status", "path": "/widgets/wheel/status"}
    calls = [SimpleNamespace(**kind, status=status, answer={"message": "must be specified"}) for status in statuses]
    trial: Any = SimpleNamespace(rule=rule, trace=SimpleNamespace(since=lambda: calls), excerpt=list)
    found = judge_refused_writes(trial)
    assert str(found.outcome if found else "pass") == ("warn" if broken else "pass")
