"""Watches and their bookmarks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fakekube.checker.rules.watch_events import FrequentBookmarks
from fakekube.checker.trace import CLOSED


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
