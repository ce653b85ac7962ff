"""Rules about objects that are deleted and created again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fakekube.checker.rules.lifecycles import RecreatedObject


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
