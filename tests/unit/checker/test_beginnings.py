"""Rules about a client that is started again, and about objects that are being deleted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fakekube.checker.rules import beginnings
from fakekube.checker.rules.beginnings import ListedLate
from fakekube.checker.rules.terminations import ChildrenOfTerminating

WRITE = ("update", "/apis/example.com/v1/namespaces/default/widgets/wheel/status")


def write(states: tuple[Any, Any] | None = None) -> Any:
    return SimpleNamespace(name="wheel", states=states)


@pytest.mark.parametrize(
    ("found", "usual", "outcome"),
    [
        ([write()], [], "fail"),
        ([write()], [write()], ""),
        ([write(({"status": 3}, {"status": 0})), write(({"status": 0}, {"status": 3}))], [write(), write()], "warn"),
        ([write(({"status": 3}, {"status": 0})), write(({"status": 0}, {"status": 4}))], [write(), write()], ""),
        ([write(({"status": 3}, {"status": 0})), write()], [write(), write()], ""),
    ],
)
def test_what_a_client_writes_before_all_is_listed_is_compared_with_other_starts(
    found: list[Any], usual: list[Any], outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beginnings, "states_around", lambda cluster, call, name: call.states)
    trial: Any = SimpleNamespace(cluster=None, excerpt=lambda calls=None: [])
    verdict = ListedLate._judge_changes(trial, "configmaps", {WRITE: found}, {WRITE: usual} if usual else {})
    assert (str(verdict.outcome) if verdict is not None else "") == outcome


@pytest.mark.parametrize(("made", "broken"), [(0, False), (2, False), (3, True)])
def test_children_of_an_object_that_is_being_deleted_are_created_once_more_at_most(made: int, broken: bool) -> None:
    call = SimpleNamespace(status=201, resource="configmaps", mentions=lambda token: token == "k2x9")
    baseline = SimpleNamespace(reaction=SimpleNamespace(children={"configmaps": 2}))
    copy = SimpleNamespace(token="k2x9", names=lambda: ["wheel-k2x9"])
    trace = SimpleNamespace(since=lambda mark: [call] * made)
    trial: Any = SimpleNamespace(copies=[copy], baseline=baseline, trace=trace, excerpt=list)
    rule = ChildrenOfTerminating()
    assert rule.find_failure(trial) is None  # it has not begun
    rule.mark = 0
    assert (rule.find_failure(trial) is not None) is broken
