"""Writes that are refused again and again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fakekube.checker.rules.identity import judge_loop

MAPS = "/api/v1/namespaces/registry/configmaps"


def refused(verb: str, path: str) -> Any:
    kind = {"is_write": True, "collection": "configmaps", "status": 404}
    return SimpleNamespace(**kind, verb=verb, path=path, name="wheel")


@pytest.mark.parametrize(
    ("verb", "usually", "broken"),
    [
        ("create", ["create"], False),  # its namespace does not exist
        ("create", [], True),
        ("update", ["update"], True),
    ],
)
def test_a_create_that_is_refused_without_a_provocation_too_is_no_loop(verb: str, usually: list[str], broken: bool) -> None:
    usual = [refused(verb, MAPS) for verb in usually]
    baseline = SimpleNamespace(trial=SimpleNamespace(trace=SimpleNamespace(since=lambda: usual)))
    calls = [refused(verb, MAPS) for _ in range(8)]
    trial: Any = SimpleNamespace(baseline=baseline, provoked_at=0, trace=SimpleNamespace(since=lambda mark: calls), excerpt=list)
    assert (judge_loop(trial, 404) is not None) is broken
