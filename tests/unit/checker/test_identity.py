"""Writes that are refused again and again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fakekube.checker.rules.identity import await_slow_loop, judge_loop

MAPS = "/api/v1/namespaces/registry/configmaps"


def refused(verb: str, path: str, at: float = 0.0) -> Any:
    kind = {"is_write": True, "collection": "configmaps", "status": 404}
    return SimpleNamespace(**kind, verb=verb, path=path, name="wheel", at=at)


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


class Repeating:
    """A run whose time passes only while it waits, and whose client sends a refused update at given times."""

    def __init__(self, *times: float) -> None:
        self.now, self.provoked_at = 0.0, 0
        self.session = SimpleNamespace(slowness=lambda: 1.0)
        self.baseline = SimpleNamespace(trial=SimpleNamespace(trace=SimpleNamespace(since=list)))
        self.trace = SimpleNamespace(since=lambda mark: [refused("update", MAPS, at) for at in times if at <= self.now])

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def await_until(self, condition: Any, seconds: float) -> bool:
        end = self.now + seconds
        while not condition() and self.now < end:
            self.now += 0.05
        return bool(condition())


@pytest.mark.parametrize(
    ("times", "seconds"),
    [
        pytest.param((0.1,), 2.5, id="it does not repeat the write"),
        pytest.param((0.1, 0.2, 0.4), 2.9, id="it gives up"),
        pytest.param((0.1, 0.2, 1.2, 2.2, 3.2, 4.2, 5.2, 6.2, 7.2), 6.2, id="it loops"),
        pytest.param((0.1, 2.1, 4.1, 6.1, 8.1, 10.1), 11.5, id="it loops slowly"),
    ],
)
def test_a_slow_loop_is_awaited_as_long_as_the_client_repeats_the_write(times: tuple[float, ...], seconds: float) -> None:
    run: Any = Repeating(*times)
    await_slow_loop(run, 404)
    assert run.now == pytest.approx(seconds, abs=0.1)
