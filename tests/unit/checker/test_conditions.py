"""Conditions that several clients have in one status (C3)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fakekube.checker.judges import judge_lost_conditions
from fakekube.checker.reaction import Effect, EffectKind
from fakekube.checker.rules import conflicts
from fakekube.checker.rules.conflicts import ForeignCondition
from fakekube.checker.verdict import NotExercised

REQUESTS = "certificatesigningrequests.certificates.k8s.io"


def baseline(*effects: Effect) -> Any:
    control = SimpleNamespace(resources=[REQUESTS])
    reaction = SimpleNamespace(effects=dict.fromkeys(effects, 1))
    return SimpleNamespace(control=control, reaction=reaction, trial=SimpleNamespace(trace=SimpleNamespace(since=list)))


@pytest.mark.parametrize(
    ("effect", "written"),
    [
        (Effect(EffectKind.FIELD, REQUESTS, "web-{}", ("status", "conditions", "0")), {REQUESTS}),
        (Effect(EffectKind.REQUEST, f"{REQUESTS}/status", "web-{}", ("update",)), {REQUESTS}),
        (Effect(EffectKind.REQUEST, f"{REQUESTS}/approval", "web-{}", ("update",)), set()),
        (Effect(EffectKind.FIELD, REQUESTS, "web-{}", ("metadata", "annotations", "a")), set()),
    ],
)
def test_any_subresource_may_write_conditions(effect: Effect, written: set[str]) -> None:
    assert ForeignCondition._statuses(baseline(effect)) == written


def test_a_status_without_conditions_belongs_to_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may replace the whole status."""
    monkeypatch.setattr(conflicts, "await_quiet", lambda *_: 0.0)
    monkeypatch.setattr(
        conflicts, "own_objects", lambda *_: [(REQUESTS, {"metadata": {"name": "web"}, "status": {"phase": "Ready"}})]
    )
    with pytest.raises(NotExercised, match="no conditions that others could share"):
        ForeignCondition().provoke(SimpleNamespace(copies=[SimpleNamespace(mark=0, token="xyz")]))  # type: ignore[arg-type]  # noqa: S106


@pytest.mark.parametrize(("subresource", "broken"), [("/approval", True), ("/status", True), ("", False)])
def test_a_write_of_a_subresource_may_remove_conditions(subresource: str, broken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def version(revision: int, *types: str) -> Any:
        status = {"conditions": [{"type": one} for one in types]}
        return SimpleNamespace(revision=revision, type="MODIFIED", object={"status": status})

    place = {"resource": REQUESTS + subresource, "collection": REQUESTS, "name": "web", "namespace": "", "path": "/web"}
    exchange = SimpleNamespace(content_type="application/json")
    write = SimpleNamespace(verb="update", is_write=True, succeeded=True, revision=7, exchange=exchange, **place)
    history = [version(5), version(6, "Other"), version(7, "Approved")]
    cluster = SimpleNamespace(history=lambda *_: history)
    run: Any = SimpleNamespace(trace=SimpleNamespace(since=lambda: [write]), cluster=cluster, excerpt=list)
    assert (judge_lost_conditions(run) is not None) is broken
