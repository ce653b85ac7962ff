"""Children that the client recreates when they are deleted, or does not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fakekube.checker.rules import deletions
from fakekube.checker.rules.sieve import MissedChildDeletion
from fakekube.checker.verdict import NotExercised

OBJECTS, CHILDREN = "watch of objects", "watch of children"


@pytest.mark.parametrize(
    ("streams", "delivering", "outcome"),
    [
        ({OBJECTS: "widgets", CHILDREN: "configmaps"}, [OBJECTS], "warn"),
        ({OBJECTS: "configmaps"}, [OBJECTS], ""),  # the client watches them as its objects
        ({OBJECTS: "widgets"}, [OBJECTS], ""),
        ({OBJECTS: "widgets", CHILDREN: "jobs.batch"}, [OBJECTS], ""),  # which run once
    ],
)
def test_a_client_that_watches_its_children_recreates_them(
    streams: dict[str, str], delivering: list[str], outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletions, "_is_repaired", lambda trial, copy, resource: False)
    children = {one: 1 for one in (*streams.values(), "configmaps") if one != "widgets"}
    baseline = SimpleNamespace(streams=streams, delivering=delivering, reaction=SimpleNamespace(children=children))
    copy = SimpleNamespace(judged=True, names=lambda: ["wheel"])
    run: Any = SimpleNamespace(copies=[copy], baseline=baseline, await_reaction=lambda copy: False, excerpt=list)
    rule = MissedChildDeletion()
    if not outcome:
        with pytest.raises(NotExercised, match="does not recreate"):
            rule.provoke(run)
        return
    rule.provoke(run)
    assert not copy.judged
    assert rule.judge_trace(run).outcome == outcome


@pytest.mark.parametrize(
    ("streams", "deleted"), [({OBJECTS: "widgets"}, []), ({CHILDREN: "configmaps"}, ["configmaps"]), ({}, ["configmaps"])]
)
def test_children_that_a_client_of_watches_cannot_see_are_not_deleted(
    streams: dict[str, str], deleted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[str] = []
    monkeypatch.setattr(deletions, "await_quiet", lambda *arguments: None)
    monkeypatch.setattr(deletions, "delete_children", lambda trial, copy, resource: found.append(resource))
    baseline = SimpleNamespace(streams=streams, repaired=set())
    run: Any = SimpleNamespace(baseline=baseline, trace=SimpleNamespace(mark=int))
    copy: Any = SimpleNamespace(mark=0, token="x")
    with pytest.raises(NotExercised, match="does not recreate"):
        deletions.require_repaired(run, copy, ["configmaps"])
    assert found == deleted
