"""Rules about objects that are deleted and created again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fakekube.checker.reaction import Copy, Effect, EffectKind
from fakekube.checker.rules.identity import REPLACED, RecreatedOwner
from fakekube.checker.rules.lifecycles import RecreatedCopy, RecreatedObject, find_equal_status


def write(number: int, uid: str, *, collection: str = "configmaps", status: int = 201) -> Any:
    kind = {"collection": collection, "is_write": True, "succeeded": True}
    return SimpleNamespace(**kind, number=number, status=status, mentions=lambda text: text == uid)


@pytest.mark.parametrize(
    ("calls", "broken"),
    [
        ([write(8, "old")], True),
        ([write(8, "new"), write(9, "old")], True),
        ([write(8, "old"), write(9, "new")], False),
        ([write(8, "old"), write(9, "new", status=200)], False),
        ([write(8, "old"), write(9, "new", collection="secrets")], True),
        ([write(8, "old", collection="events.events.k8s.io")], False),
        ([write(8, "old", collection="events")], False),
    ],
)
def test_what_is_created_for_a_deleted_object_is_made_again_or_is_an_event(calls: list[Any], broken: bool) -> None:
    trial: Any = SimpleNamespace(ended="", loop="", excerpt=list, trace=SimpleNamespace(since=lambda mark: calls))
    rule = RecreatedObject()
    old, new = ({"metadata": {"uid": uid, "name": "wheel"}} for uid in ("old", "new"))
    rule.old = SimpleNamespace(objects=[old])  # type: ignore[assignment]
    rule.new = SimpleNamespace(objects=[new], mark=7, names=lambda: ["wheel"])  # type: ignore[assignment]
    found = rule.judge(trial)
    assert str(found.outcome) == ("fail" if broken else "pass")
    assert found.by_chance is broken


@pytest.mark.parametrize(
    ("calls", "reason"),
    [
        ([write(8, "old"), write(9, "new")], "creates them for the deleted one"),
        ([write(8, "old", collection="secrets")], "uses the children of the old one"),
    ],
)
def test_why_a_new_object_has_no_children(calls: list[Any], reason: str) -> None:
    trial: Any = SimpleNamespace(ended="", loop="", excerpt=lambda calls: [], trace=SimpleNamespace(since=lambda mark: calls))
    trial.provoked_at, trial.copies = 7, [SimpleNamespace(objects=[{"metadata": {"uid": "old"}}])]
    rule = RecreatedOwner()
    rule.new = SimpleNamespace(mark=7, names=lambda: ["wheel"])  # type: ignore[assignment]
    rule.lacks = ["configmaps"]
    assert rule.judge(trial).evidence[0] == f"creates no configmaps for the new wheel: it {reason}"


@pytest.mark.parametrize(
    ("deletes", "replaced", "outcome"),
    [
        pytest.param([([REPLACED], True)], True, "fail", id="whatever has the name"),
        pytest.param([([REPLACED], False), ([], True)], True, "pass", id="what it has read, and later what it has read then"),
        pytest.param([([REPLACED], True)], False, "not exercised", id="what could not be replaced"),
        pytest.param([], False, "not exercised", id="nothing"),
    ],
)
def test_a_client_deletes_the_object_that_it_has_read(
    deletes: list[tuple[list[str], bool]], replaced: bool, outcome: str
) -> None:
    calls = [
        SimpleNamespace(succeeded=succeeded, exchange=SimpleNamespace(faults=faults), collection="configmaps", name="wheel")
        for faults, succeeded in deletes
    ]
    trace = SimpleNamespace(since=lambda mark: calls)
    converged = {"missing": (), "not_received": (), "unmet": None, "abandoned": ()}
    trial: Any = SimpleNamespace(ended="", loop="", excerpt=list, trace=trace, provoked_at=0, **converged)
    rule = RecreatedCopy()
    rule.replaced = [("configmaps", {"metadata": {"name": "wheel"}})] if replaced else []
    assert str(rule.judge(trial).outcome) == outcome


@pytest.mark.parametrize(
    ("usual", "now", "claims"),
    [
        ({"phase": "Running", "job": "{}-run"}, {"phase": "Running", "job": "{}-run"}, True),
        ({"phase": "Running", "job": "{}-run"}, {"phase": "Running"}, False),
        ({"phase": "Running"}, {"phase": "Waiting"}, False),
        ({"ready": True}, {"ready": True}, True),
        ({"job": "{}-run", "count": 1}, {"job": "{}-run", "count": 1}, False),  # which may be written before the child is made
        ({"phase": "hello"}, {"phase": "hello"}, False),  # which the object contains
        ({"phase": "Running", "other": "a"}, {"phase": "Running", "other": "b"}, True),  # somebody else writes that
        ({"since": "2026-11-27T14:00:00Z"}, {"since": "2026-11-27T14:00:00Z"}, False),
    ],
)
def test_a_status_claims_a_foreign_child_if_it_says_the_same_as_usual(usual: Any, now: Any, claims: bool) -> None:
    written = ("phase", "job", "ready", "count", "since")
    effects = [Effect(EffectKind.FIELD, "tasks", "task-{}", ("status", field)) for field in written]
    baseline: Any = SimpleNamespace(reaction=SimpleNamespace(effects=effects))
    copy = Copy("x7", [{"spec": {"text": "hello"}}], ["tasks"], -1, 0.0)
    states: list[Any] = [
        {("tasks", "task-{}"): {("status", field): value for field, value in one.items()}} for one in (usual, now)
    ]
    assert find_equal_status(baseline, copy, *states) == ("tasks" if claims else "")
