"""Writes that are refused again and again, and objects that vanish before a write."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from fakekube.checker.rules import identity
from fakekube.checker.rules.identity import VanishedMeanwhile, await_slow_loop, judge_loop

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


def test_a_child_of_the_same_kind_and_name_is_not_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    removed: list[str] = []
    monkeypatch.setattr(identity, "remove", lambda trial, resource, obj: removed.append(obj["path"]))

    def write(trial: Any, namespace: str) -> None:
        path = f"/api/v1/namespaces/{namespace}/secrets/wheel"
        writes = {"resource": "secrets", "group": "", "subresource": "", "namespace": namespace, "name": "wheel", "path": path}
        trial.take_away(SimpleNamespace(**writes))

    class Trial:
        random = Random(0)
        sample = SimpleNamespace(copies=lambda token: [{"metadata": {"name": "wheel", "namespace": "default"}}])
        cluster = SimpleNamespace(call=lambda verb, path: {"path": path})
        faults = property(lambda self: SimpleNamespace(on=lambda verb, resource: self))
        reaction_timeout = 1.0

        def intercept(self, take_away: Callable[[Any], None], label: str) -> Any:
            self.take_away = take_away
            return nullcontext()

        def stimulate(self, token: str) -> Any:
            write(self, "team-b")
            write(self, "default")
            return SimpleNamespace()

        def await_until(self, condition: Callable[[], bool], seconds: float) -> bool:
            return condition()

    trial: Any = Trial()
    rule = VanishedMeanwhile()
    rule._remove_before(trial, "patch", "secrets")
    assert removed == ["/api/v1/namespaces/default/secrets/wheel"] == list(rule.removed)
