"""When a client is considered quiet, and how long its reactions are awaited."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from fakekube.checker import client_run, waits
from fakekube.checker.client_run import ClientRun
from fakekube.checker.trial import Trial
from fakekube.checker.waits import await_lists, await_quiet


class Run:
    """A run whose time passes only while it waits, and whose client sends requests of 0.1 s at given times, and discovery at
    others."""

    def __init__(
        self, *sent: float, slowness: float = 1.0, discovery: Sequence[float] = (), computes: tuple[float, float] = (0.0, 0.0)
    ) -> None:
        self.now, self.learned, self.cluster = 0.0, None, None
        self.session = SimpleNamespace(quiet=0.8, seconds=10.0, slowness=lambda: slowness)
        self.computes, self.looks = computes, 0
        self.trace = SimpleNamespace(since=lambda mark: self._calls(sent, discovery))

    def _calls(self, sent: Sequence[float], discovery: Sequence[float]) -> list[Any]:
        calls = sorted([(at, "configmaps") for at in sent] + [(at, "") for at in discovery])
        return [self._call(at, resource) for at, resource in calls if at <= self.now]

    @staticmethod
    def _call(at: float, resource: str) -> Any:
        names = {"collection": resource, "resource": resource, "mentions": lambda token: resource and token == "bcdfgh"}  # noqa: S105
        sent = {"is_watch": False, "is_write": True, "succeeded": True, "number": round(at * 1000), "name": "motd-bcdfgh"}
        return SimpleNamespace(at=at, end=at + 0.1, **sent, **names)

    def is_runnable(self) -> bool:
        """The client computes from the first to the second of these times, and is runnable at every second look besides."""
        self.looks += 1
        begun, end = self.computes
        return begun <= self.now < end or self.looks % 2 == 0

    def await_until(self, condition: Callable[[], bool], seconds: float) -> bool:
        end = self.now + seconds
        while self.now < end:
            if condition():
                return True
            self.now += 0.05
        return False


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param((0.1, 0.5), id="at once"),
        pytest.param((1.5, 3.0, 3.1), id="works for a while before each write"),
        pytest.param((1.2, 2.6, 4.5, 6.9), id="becomes slower"),
        pytest.param((4.0,), id="waits before it acts"),
    ],
)
def test_a_client_is_quiet_after_its_last_request(sent: tuple[float, ...]) -> None:
    run: Any = Run(*sent, slowness=2.0)
    assert await_quiet(run, -1, ["bcdfgh"]) == pytest.approx(sent[-1] + 0.1)


@pytest.mark.parametrize(("fields", "last"), [([("data", "alive")], 0.6), ([("data", "alive"), ("data", "text")], 30.0)])
def test_a_client_that_only_tells_that_it_lives_is_quiet(
    fields: Sequence[tuple[str, ...]], last: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waits, "written_fields", lambda cluster, call, name: fields if call.at >= 1.0 else [("data", "text")])
    run: Any = Run(0.5, *range(1, 40))
    run.learned = SimpleNamespace(periodic_fields=lambda: {"configmaps": {("data", "alive")}})
    assert await_quiet(run, -1, ["bcdfgh"]) == pytest.approx(last, abs=0.2)


@pytest.mark.parametrize(("discovery", "last"), [((1.0, 3.5, 5.5), 8.1), ((1.0,), 1.3), ((), 1.3)])
def test_discovery_within_a_reaction_is_work(discovery: tuple[float, ...], last: float) -> None:
    run: Any = Run(1.2, 8.0, discovery=discovery)
    assert await_quiet(run, -1, ["bcdfgh"]) == pytest.approx(last)


def test_a_client_that_computes_before_its_next_write_is_not_quiet() -> None:
    run: Any = Run(0.1, 4.0, computes=(0.2, 3.9))
    assert await_quiet(run, -1, ["bcdfgh"]) == pytest.approx(4.1)


def test_discovery_before_the_first_request_is_no_reaction() -> None:
    run: Any = Run(4.0, discovery=(0.5,))
    assert await_quiet(run, -1, ["bcdfgh"]) == pytest.approx(4.1)


def test_a_heartbeat_does_not_keep_a_client_busy() -> None:
    run: Any = Run(0.1, *(10.0 * number for number in range(1, 10)))
    assert await_quiet(run, -1, ["bcdfgh"]) < 1.0
    assert run.now < 3.0


def test_a_client_that_sends_nothing_is_quiet_after_some_time() -> None:
    run: Any = Run()
    assert await_quiet(run, -1, ["bcdfgh"]) == 0.0
    assert 3.0 < run.now < 10.0


def test_what_is_waited_for_may_take_long_to_look_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the trace is long, the pauses between the looks are the smaller part of the time."""
    processor = count()
    clock = SimpleNamespace(thread_time=lambda: next(processor), monotonic=lambda: 0.0, sleep=lambda seconds: None)
    monkeypatch.setattr(client_run, "time", clock)
    session = SimpleNamespace(stopping=SimpleNamespace(is_set=bool), time_is_up=bool, slowness=lambda: 1.0)
    run: Any = SimpleNamespace(session=session, now=0.0, look_at_client=lambda: None)
    looks: list[int] = []
    assert not ClientRun.await_until(run, lambda: looks.append(1) is not None, 3.0)
    assert len(looks) == 3


class Watching:
    """A run whose client opens its watch again after some seconds, and lists at others; never for None."""

    def __init__(self, opens: float | None, lists: float | None, *, beside: bool = False) -> None:
        self.now, self._opens, self._lists = 0.0, opens, lists
        keys = frozenset({"pods"})
        self.baseline = SimpleNamespace(first_streams=keys, listed_beside=keys if beside else frozenset())
        self.trace, self.reaction_timeout = self, 30.0

    def open_watches(self) -> list[Any]:
        old = SimpleNamespace(stream="pods", number=3, at=-50.0)
        new = SimpleNamespace(stream="pods", number=9, at=self._opens)
        return [new] if self._opens is not None and self._opens <= self.now else [old]

    def has_listed(self) -> bool:
        return self._lists is not None and self._lists <= self.now

    await_until = Run.await_until


@pytest.mark.parametrize(
    ("opens", "lists", "beside", "listed", "until"),
    [
        pytest.param(4.0, 3.0, False, True, 3.0, id="it lists before it watches"),
        pytest.param(4.0, 4.5, False, True, 4.5, id="its first watch does not last"),
        pytest.param(4.0, None, False, False, 5.2, id="it only watches"),
        pytest.param(4.0, 20.0, True, True, 20.0, id="it also lists beside its watch"),
        pytest.param(None, None, False, False, 30.0, id="it does neither"),
    ],
)
def test_a_client_that_watches_again_does_not_list_any_more(
    opens: float | None, lists: float | None, beside: bool, listed: bool, until: float
) -> None:
    run: Any = Watching(opens, lists, beside=beside)
    assert await_lists(run, run.has_listed, 5) is listed
    assert run.now == pytest.approx(until, abs=0.1)


def attempt(*pauses: float, connected: float = 0.0, fails: bool = False) -> Any:
    """A stream that is watched again at a time, after these pauses."""
    return SimpleNamespace(pauses=lambda: pauses, time_connected=lambda pause: connected, keeps_failing=lambda since: fails)


@pytest.mark.parametrize(
    ("run", "attempts", "seconds"),
    [
        pytest.param({}, (), 8.0 + 9.0, id="it reacts at once"),
        pytest.param({"slowness": 2.0}, (), 16.0 + 9.0, id="on a busy machine"),
        pytest.param({"reaction": 3.0}, (), 32.0 + 9.0, id="its reaction takes 3 s"),
        pytest.param({"polls": 5.0}, (), 8.0 + 10.0 + 9.0, id="it lists every 5 s"),
        pytest.param({"polls": 90.0}, (), 8.0 + 60.0 + 9.0, id="it lists rarely"),
        pytest.param({"retry_after": 4}, (), 12.0 + 9.0, id="it was told to wait"),
        pytest.param({}, (attempt(1.0, 4.0, connected=120.0),), 8.0 + 20.0, id="it watches again 20 s later"),
        pytest.param({}, (attempt(1.0, 4.0, connected=150.0),), 8.0 + 27.0, id="the next pause is bounded"),
        pytest.param(
            {}, (attempt(4.0, connected=120.0, fails=True),), 8.0 + 9.0, id="a stream that keeps failing does not count"
        ),
    ],
)
def test_how_long_a_reaction_is_awaited(run: dict[str, float], attempts: tuple[Any, ...], seconds: float) -> None:
    baseline = SimpleNamespace(reaction_seconds=run.get("reaction", 0.0), poll_seconds=lambda: run.get("polls", 0.0))
    calls = [SimpleNamespace(retry_after=run.get("retry_after", 0))]
    trial: Any = SimpleNamespace(
        baseline=baseline,
        provoked_at=0,
        trace=SimpleNamespace(since=lambda mark: calls),
        session=SimpleNamespace(slowness=lambda: run.get("slowness", 1.0)),
        _attempts=lambda: attempts,
    )
    assert Trial.reaction_timeout(trial, 100.0) == seconds
