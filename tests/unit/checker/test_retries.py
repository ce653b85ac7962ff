"""Reads that fail for some time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fakekube.checker.execution import unmet_requirement
from fakekube.checker.rules.retries import ProxyErrors, ServerErrors


@pytest.mark.parametrize(("status", "verdict"), [(200, "not exercised"), (503, "pass")])
def test_a_client_that_only_lists_has_to_list_meanwhile(status: int, verdict: str) -> None:
    call = SimpleNamespace(dropped=False, status=status, is_watch=False, end=1.0)
    trial: Any = SimpleNamespace(provoked_at=7, trace=SimpleNamespace(since=lambda mark: [call]), attempts_since=list, notes=[])
    assert str(ServerErrors().judge_trace(trial).outcome) == verdict


@pytest.mark.parametrize("rule", [ServerErrors, ProxyErrors])
def test_it_meets_failing_lists(rule: Any) -> None:
    baseline: Any = SimpleNamespace(streams={}, session=SimpleNamespace(starter=SimpleNamespace(restartable=True)))
    assert unmet_requirement(baseline, rule()) == ""
