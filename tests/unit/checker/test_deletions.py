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
