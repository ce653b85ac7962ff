"""Watches and their bookmarks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fakekube.checker.rules import watch_events
from fakekube.checker.rules.watch_events import FrequentBookmarks, RepeatedAfterRestart
from fakekube.checker.trace import CLOSED
from fakekube.checker.verdict import Verdict


@pytest.mark.parametrize(
    ("initial", "events", "verdict"),
    [
        (True, ["ADDED", "BOOKMARK"], "pass"),  # a list; the client watches by another request
        (True, ["ADDED", "BOOKMARK", "BOOKMARK"], "fail"),
        (False, ["BOOKMARK"], "fail"),
        (False, ["BOOKMARK", "ADDED"], "pass"),
    ],
)
def test_a_client_may_close_a_watch_after_its_initial_events(initial: bool, events: list[str], verdict: str) -> None:
    told = [SimpleNamespace(type=one) for one in events]
    call = SimpleNamespace(is_watch=True, ended=CLOSED, at=1.0, end=2.0, events=told, sends_initial_events=initial)
    trial: Any = SimpleNamespace(trace=[call, call], idle_limit=lambda: 10.0, excerpt=list)
    assert str(FrequentBookmarks().judge_trace(trial).outcome) == verdict


@pytest.mark.parametrize(
    ("change", "restarts", "compared"),
    [
        pytest.param(None, 1, "at first", id="nothing changes"),
        pytest.param(Verdict.failure("a counter grew"), 2, "then", id="it may count what a child has become"),
        pytest.param(Verdict.warning("status.phase changed"), 2, "then", id="it may follow from the state of a child"),
    ],
)
def test_a_change_counts_that_happens_at_each_repetition(
    change: Verdict | None, restarts: int, compared: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    restarted: list[None] = []
    trial: Any = SimpleNamespace(restart_client=lambda: restarted.append(None), converge=lambda: None)
    monkeypatch.setattr(RepeatedAfterRestart, "remember", lambda self, trial: vars(self).update(copy=None, before="at first"))
    doubles = {"_judge_changes": change, "_await_unchanged": None, "_state": "then"}
    for name, result in doubles.items():
        monkeypatch.setattr(watch_events, name, lambda *_, result=result: result)
    rule = RepeatedAfterRestart()
    rule.provoke(trial)
    assert (len(restarted), rule.before) == (restarts, compared)
