"""Rules about objects that are deleted and created again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fakekube.checker.rules.lifecycles import RecreatedObject


@pytest.mark.parametrize(("collection", "broken"), [("configmaps", True), ("events.events.k8s.io", False), ("events", False)])
def test_what_is_created_for_a_deleted_object_is_no_event(collection: str, broken: bool) -> None:
    call = SimpleNamespace(collection=collection, is_write=True, status=201, mentions=lambda text: text == "old")
    trial: Any = SimpleNamespace(ended="", loop="", excerpt=list, trace=SimpleNamespace(since=lambda mark: [call]))
    rule = RecreatedObject()
    old, new = ({"metadata": {"uid": uid, "name": "wheel"}} for uid in ("old", "new"))
    rule.old = SimpleNamespace(objects=[old])  # type: ignore[assignment]
    rule.new = SimpleNamespace(objects=[new], mark=7, names=lambda: ["wheel"])  # type: ignore[assignment]
    found = rule.judge(trial)
    assert str(found.outcome) == ("fail" if broken else "pass")
    assert found.by_chance is broken
