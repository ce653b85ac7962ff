"""Outages in which requests are refused for some seconds: who goes on after them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from fakekube.checker import pauses
from fakekube.checker.client_run import Decided
from fakekube.checker.rules import outages
from fakekube.checker.rules.outages import ChangedUnderFault, DeletedUnderFault, FailingWrites, ForbiddenReads, UnauthorizedSpell
from tests.unit.checker.test_pauses import attempts

GROWING = (0.0, 0.8, 2.4, 5.6)
EQUAL = tuple(number / 4 for number in range(20))


def request(verb: str, resource: str) -> Any:
    return SimpleNamespace(
        verb=verb, resource=resource, group="", subresource="", name="", namespace="shop", user="clerk", fault=None
    )


class Run:
    """A run with a client that lists at some times of an outage, and is told each time what a fault answers.

    Args:
        times: in seconds of the outage.
        goes_on: whether the client lists again after a refusal.
    """

    def __init__(self, times: Sequence[float], *, goes_on: bool = True) -> None:
        self._times, self._goes_on = times if goes_on else times[:1], goes_on
        self._refuse: Callable[[Any], Any] | None = None
        self.verbs = ""
        self.answers: list[Any] = []
        self.faults = self

    def on(self, verbs: str) -> Any:
        fault = SimpleNamespace(remove=lambda: None)
        return SimpleNamespace(intercept=lambda refuse, label: self._intercept(verbs, refuse), end=lambda label: fault)

    @contextmanager
    def _intercept(self, verbs: str, refuse: Callable[[Any], Any]) -> Iterator[None]:
        self.verbs, self._refuse = verbs, refuse
        yield
        self._refuse = None

    def stimulate(self) -> None:
        """In place of that of a run."""

    def wait(self, seconds: float) -> None:
        assert self._refuse is not None
        assert self._refuse(request("list", "leases")) is None
        self.answers += [self._refuse(request("list", "configmaps")) for at in self._times if at < seconds]

    def await_all(self) -> None:
        assert self._refuse is None
        if not self._goes_on:
            raise Decided("no reaction")

    def attempts_since(self) -> list[Any]:
        return [attempts(*self._times)]


@pytest.fixture(autouse=True)
def doubles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outages, "require_resumption", lambda trial: None)
    monkeypatch.setattr(pauses, "is_failure", lambda call: call.fails)
    monkeypatch.setattr(pauses, "excerpt", list)


@pytest.mark.parametrize("made", [UnauthorizedSpell, ForbiddenReads])
@pytest.mark.parametrize(("times", "verdict"), [(GROWING, "pass"), (EQUAL, "fail")])
def test_a_client_that_is_refused_tries_again_with_backoff(
    made: type[UnauthorizedSpell], times: Sequence[float], verdict: str
) -> None:
    run: Any = Run(times)
    rule = made()
    rule.provoke(run)
    assert str(rule.judge_trace(run).outcome) == verdict


@pytest.mark.parametrize("made", [UnauthorizedSpell, ForbiddenReads])
def test_a_client_that_gives_up_when_it_is_refused_does_not_react_later(made: type[UnauthorizedSpell]) -> None:
    run: Any = Run(GROWING, goes_on=False)
    with pytest.raises(Decided):
        made().provoke(run)
    assert len(run.answers) == 1


@pytest.mark.parametrize(
    ("made", "verbs", "code", "message"),
    [
        (UnauthorizedSpell, "*", 401, "Unauthorized"),
        (
            ForbiddenReads,
            "list,watch",
            403,
            'configmaps is forbidden: User "clerk" cannot list resource "configmaps" in API group "" in the namespace "shop"',
        ),
    ],
)
def test_a_refusal_is_that_of_an_authenticator_or_of_an_authorizer(
    made: type[UnauthorizedSpell], verbs: str, code: int, message: str
) -> None:
    run: Any = Run(GROWING)
    made().provoke(run)
    assert run.verbs == verbs
    assert {(answer[0], answer[1]["code"], answer[1]["message"]) for answer in run.answers} == {(code, code, message)}


class SlowRun:
    """A run with a client that sends its write only when it is waited for."""

    def __init__(self) -> None:
        self.faults = self
        self.session = SimpleNamespace(seconds=10.0, depth="fast")
        self.copies = [SimpleNamespace()]
        self.baseline = SimpleNamespace(deletion=SimpleNamespace(effects=[SimpleNamespace(detail=("delete",), resource="pods")]))
        self.trace = SimpleNamespace(mark=lambda: 0, since=lambda mark: [])
        self.cluster = None
        self.reaction_timeout = 5.0
        self._armed: list[Any] = []

    def on(self, verb: str, resource: str) -> Any:
        return SimpleNamespace(status=lambda *code, **told: self._arm())

    @contextmanager
    def _arm(self) -> Iterator[Any]:
        fault = SimpleNamespace(hits=0)
        self._armed.append(fault)
        yield fault
        self._armed.remove(fault)

    def stimulate(self) -> Any:
        return self.copies[0]

    def delete(self, copy: Any) -> None:
        """In place of that of a run."""

    def has_reacted(self, copy: Any) -> bool:
        return False

    def await_until(self, condition: Callable[[], bool], seconds: float) -> None:
        for fault in self._armed:
            fault.hits += 1
        assert condition() or not self._armed

    def wait(self, seconds: float) -> None:
        assert all(fault.hits for fault in self._armed), "the outage ends before the client has met it"

    def await_all(self) -> None:
        assert not self._armed


def test_an_outage_does_not_end_before_a_slow_client_has_met_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outages, "refusable_writes", lambda *asked: [("create", "pods")])
    run: Any = SlowRun()
    rule = FailingWrites()
    rule.provoke(run)
    assert rule.refused == 1
    DeletedUnderFault().miss(run, run.copies[0])


def test_a_change_is_refused_also_if_a_slow_client_writes_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outages, "refusable_writes", lambda *asked: [("create", "pods")])
    monkeypatch.setattr(ChangedUnderFault, "learn", lambda *asked: SimpleNamespace(effects=[], missing=lambda *told: []))
    monkeypatch.setattr(ChangedUnderFault, "_alter", lambda *asked: None)
    run: Any = SlowRun()
    ChangedUnderFault().provoke(run)
