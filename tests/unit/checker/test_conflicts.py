"""Rules about fields of others in objects that a client writes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fakekube.checker.rules import conflicts
from fakekube.checker.rules.conflicts import LostUpdates, _loses

NODE = {"metadata": {"labels": {"rack": "3"}}, "spec": {"taints": [{"key": "a"}]}}


@pytest.mark.parametrize(
    ("states", "loses"),
    [
        (None, False),
        ((NODE, {**NODE, "metadata": {"labels": {"rack": "3"}, "annotations": {"note": "x"}}}), False),
        ((NODE, {**NODE, "metadata": {}}), False),  # another field than the lost one
        ((NODE, {**NODE, "spec": {}}), True),
        ((NODE, {"metadata": NODE["metadata"]}), True),
        ((NODE, {**NODE, "spec": {"taints": []}}), True),
    ],
)
def test_a_client_is_blamed_only_for_what_its_own_writes_have_removed(
    states: Any, loses: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conflicts, "states_around", lambda cluster, call, name: states)
    trial: Any = SimpleNamespace(cluster=None)
    call: Any = SimpleNamespace(name="rack")
    assert _loses(trial, call, [("spec", "taints")]) is loses


@pytest.mark.parametrize("prompt", [True, False])
def test_a_client_that_pauses_for_long_after_conflicts_is_woken(prompt: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    touched: list[str] = []
    monkeypatch.setattr(conflicts, "touch_objects", lambda trial, copy: touched.append(copy))
    monkeypatch.setattr(conflicts, "require_writes", lambda *_: [])
    trial: Any = SimpleNamespace(
        stimulate=lambda change: "copy",
        await_reaction=lambda copy, seconds: prompt,
        await_all=lambda: None,
        baseline=SimpleNamespace(seconds_to_react=float),
        faults=SimpleNamespace(clear=lambda: None),
    )
    LostUpdates().provoke(trial)
    assert touched == ([] if prompt else ["copy"])
