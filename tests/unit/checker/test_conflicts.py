"""Rules about fields of others in objects that a client writes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fakekube.checker.rules import conflicts
from fakekube.checker.rules.conflicts import LostUpdates, _judge_at_once, _loses

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


def refused(path: str, body: bytes, at: float) -> Any:
    kind = {"verb": "update", "status": 409, "collection": "deployments.apps"}
    return SimpleNamespace(**kind, path=path, exchange=SimpleNamespace(raw_body=body), at=at, end=at + 0.002)


@pytest.mark.parametrize(
    ("pauses", "bodies", "paths", "suspected"),
    [
        pytest.param([0.001] * 4, [b"old"] * 5, ("web", "mail"), True, id="again and again"),
        pytest.param([1.0, *[0.001] * 3], [b"old"] * 5, ("web", "mail"), True, id="later again and again"),
        pytest.param([0.001] * 4, [b"old"] * 5, ("web",), False, id="one object"),
        pytest.param([0.001] * 2, [b"old"] * 3, ("web", "mail"), False, id="few times"),
        pytest.param([0.001] * 4, [b"1", b"2", b"3", b"4", b"5"], ("web", "mail"), False, id="reads the object"),
        pytest.param([0.01] * 4, [b"old"] * 5, ("web", "mail"), False, id="RetryOnConflict of client-go"),
        pytest.param([0.005, 0.01, 0.02, 0.04], [b"old"] * 5, ("web", "mail"), False, id="a queue of client-go"),
    ],
)
def test_a_client_that_repeats_a_stale_write_at_once_is_suspected(
    pauses: list[float], bodies: list[bytes], paths: tuple[str, ...], suspected: bool
) -> None:
    calls, at = [], 0.0
    for path in paths:
        for body, pause in zip(bodies, [0.0, *pauses], strict=True):
            at += pause + 0.002
            calls.append(refused(path, body, at))
    trial: Any = SimpleNamespace(provoked_at=0, trace=SimpleNamespace(since=lambda mark: calls), excerpt=list)
    assert (_judge_at_once(trial) is not None) is suspected
