"""Rules whose provocation or verdict depends on what the client asks for."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import fakekube
from fakekube.checker.provocations import BreakHalfway, ExpireResumed, arm
from fakekube.checker.rule import Rule
from fakekube.checker.rules import all_rules, answers, leases
from fakekube.checker.rules.answers import HalfObject
from fakekube.checker.rules.discovery import ChangedScope
from fakekube.checker.rules.leases import SkewedClock
from fakekube.checker.rules.lists import EarlyBookmark
from fakekube.checker.rules.retries import RetryAfterOnWatch, RetryAfterOnWrite
from fakekube.checker.rules.watch_ends import HalfOpen
from fakekube.checker.rules.watch_events import LargeEvents, fill_map, has_refused_write
from fakekube.checker.trial import Baseline
from fakekube.checker.verdict import NotExercised, Symptom, Verdict
from fakekube.controllers.client import ApiError


def silenced(timeout: str, idle: float | None) -> str:
    """The verdict about a client that does not notice that its watch is silent."""
    watch = SimpleNamespace(query={"timeoutSeconds": timeout} if timeout else {}, is_watch=True)
    session = SimpleNamespace(idle=idle)
    rule, run = HalfOpen(), SimpleNamespace(session=session, excerpt=list, trace=[watch])
    rule.silenced = [watch]  # type: ignore[list-item]
    try:
        rule.require(SimpleNamespace(session=session, trial=run))  # type: ignore[arg-type]
        return str(rule.judge_trace(run).outcome)  # type: ignore[arg-type]
    except NotExercised:
        return "not exercised"


@pytest.mark.parametrize(
    ("timeout", "idle", "verdict"),
    [("", None, "warn"), ("30", None, "fail"), ("290", None, "not exercised"), ("290", 8.0, "fail")],
)
def test_what_a_client_asks_of_the_server_tells_how_long_it_may_be_silent(timeout: str, idle: float | None, verdict: str) -> None:
    assert silenced(timeout, idle) == verdict


class Disturbed:
    """A run in which a client opens its watches one after the other, when the one before has ended."""

    def __init__(self, *resources: str) -> None:
        self.now, self.ended = 0.0, list[str]()
        self._left = list(resources)
        self.fault = SimpleNamespace(hits=0)
        self.faults, self.trace = self, self
        self.reaction_timeout = 60.0
        self._calls: list[Any] = []

    def on(self, verb: str, resource: str) -> Any:
        def end(label: str) -> Any:
            self.ended.append(resource)
            self._calls[-1].is_open, self._calls[-1].ended = False, "ended by the server"
            return SimpleNamespace(remove=lambda: None)

        return SimpleNamespace(end=end)

    def __iter__(self) -> Iterator[Any]:
        """Yields the calls; a new one is answered when it is looked at for the second time."""
        if all(call.ended for call in self._calls) and self._left:
            fault = SimpleNamespace(fault=EarlyBookmark.LABEL)
            self._calls.append(
                SimpleNamespace(resource=self._left.pop(0), at=self.now, exchange=fault, is_open=False, ended=None)
            )
            self.fault.hits += 1
        elif not self._calls[-1].ended:
            self._calls[-1].is_open = True
        return iter(list(self._calls))

    def await_until(self, condition: Any, seconds: float) -> bool:
        while self.now < seconds and not condition():
            self.now += 0.5
        return self.now < seconds


def test_each_disturbed_watch_ends_also_one_that_is_opened_late() -> None:
    run: Any = Disturbed("pods", "services", "secrets")
    rule = EarlyBookmark()
    rule.fault, rule.times = run.fault, 3
    rule.provoke(run)
    assert run.ended == ["pods", "services", "secrets"]
    assert run.now >= 3 * EarlyBookmark.OPEN


def refused(count: int) -> Any:
    """A run in which a create was refused with Retry-After, and an equal one follows; `count` children are usual."""
    kind = {"verb": "create", "path": "/api/v1/namespaces/default/pods", "resource": "pods", "name": "", "is_write": True}
    kind |= {"is_watch": False, "is_list": False, "exchange": SimpleNamespace(raw_body=b"{}")}
    calls = [
        SimpleNamespace(**kind, at=1.0, end=1.0, status=429, retry_after=4, number=1),
        SimpleNamespace(**kind, at=1.1, end=1.2, status=201, retry_after=0, number=2),
    ]
    baseline = SimpleNamespace(reaction=SimpleNamespace(children={"pods": count}))
    trace, session = SimpleNamespace(since=lambda mark: calls), SimpleNamespace(slowness=lambda: 1.0)
    run = {"baseline": baseline, "trace": trace, "session": session}
    return SimpleNamespace(**run, provoked_at=-1, copies=[], excerpt=lambda calls=(): [])


@pytest.mark.parametrize(("count", "broken"), [(1, True), (3, False)])
def test_equal_creates_at_once_are_several_children_and_no_repetition(count: int, broken: bool) -> None:
    assert (RetryAfterOnWrite().find_failure(refused(count)) is not None) is broken


def refused_after_events(
    *events: tuple[float, int], after: float, slowness: float = 1.0, written: float = 0.0, reads: tuple[float, ...] = ()
) -> Any:
    """A run in which an update was refused with Retry-After after some events of its copy, and an equal one follows.

    `written`: when the client had written to the copy before; 0 if it had not.
    `reads`: how long after the refusal the client reads the copy before it writes again.
    """
    kind = {"verb": "patch", "path": "/api/v1/namespaces/default/pods/a-xyz", "resource": "pods", "name": "a-xyz"}
    kind |= {"is_write": True, "is_watch": False, "is_list": False, "exchange": SimpleNamespace(raw_body=b"{}")}
    kind |= {"mentions": lambda text: text == "xyz"}
    told = [SimpleNamespace(at=at, revision=revision, name="a-xyz", namespace="default") for at, revision in events]
    watch = SimpleNamespace(
        is_watch=True, is_list=False, is_write=False, events=told, stream="pods", sends_initial_events=False, status=200
    )
    get = kind | {"verb": "get", "is_write": False, "status": 200, "retry_after": 0}
    calls = [
        SimpleNamespace(**kind, at=1.0, end=1.0, status=429, retry_after=4, number=1),
        *(SimpleNamespace(**get, at=1.0 + late, end=1.0 + late, number=2) for late in reads),
        SimpleNamespace(**kind, at=1.0 + after, end=1.2 + after, status=200, retry_after=0, number=3),
    ]
    copy = SimpleNamespace(token="xyz", objects=[{"metadata": {"name": "a-xyz", "resourceVersion": "7"}}])
    earlier = [SimpleNamespace(**kind, at=written, end=min(written + 0.05, 0.98), number=0)] if written else []
    trace = SimpleNamespace(since=lambda mark: calls if mark == 0 else [watch, *earlier, *calls])
    baseline = SimpleNamespace(reaction=SimpleNamespace(children={}))
    run = {"trace": trace, "baseline": baseline, "provoked_at": 0, "copies": [copy], "excerpt": lambda calls=(): []}
    return SimpleNamespace(**run, session=SimpleNamespace(slowness=lambda: slowness))


def test_a_worker_takes_the_next_entry_of_its_queue_later_on_a_busy_machine() -> None:
    events = [(0.98, 7), (0.99, 8)]
    assert RetryAfterOnWrite().find_failure(refused_after_events(*events, after=0.3, slowness=2.0)) is None
    assert RetryAfterOnWrite().find_failure(refused_after_events(*events, after=0.3)) is not None


@pytest.mark.parametrize(
    ("events", "after", "broken"),
    [
        ([(0.99, 7)], 0.01, True),  # the copy was created
        ([(0.98, 7), (0.99, 8)], 0.01, False),  # two events, two workers
        ([(0.98, 7), (0.99, 8)], 0.5, True),  # no worker takes so long for the next entry of its queue
        ([(0.2, 8)], 0.01, True),
        ([(1.2, 8)], 0.5, False),
    ],
)
def test_a_write_for_another_event_is_no_repetition(events: list[tuple[float, int]], after: float, broken: bool) -> None:
    assert (RetryAfterOnWrite().find_failure(refused_after_events(*events, after=after)) is not None) is broken


def test_a_worker_was_busy_when_the_event_of_its_own_write_came() -> None:
    assert RetryAfterOnWrite().find_failure(refused_after_events((0.3, 8), after=0.05, written=0.25)) is None
    assert RetryAfterOnWrite().find_failure(refused_after_events((0.2, 8), after=0.05, written=0.25)) is not None
    assert RetryAfterOnWrite().find_failure(refused_after_events((0.3, 8), after=1.0, written=0.25)) is not None


def test_a_worker_takes_its_usual_time_for_the_next_entry_of_its_queue() -> None:
    assert RetryAfterOnWrite().find_failure(refused_after_events((0.3, 8), after=0.5, written=0.25)) is None
    assert RetryAfterOnWrite().find_failure(refused_after_events((0.95, 8), after=0.5, written=0.9)) is not None


def test_new_work_may_begin_with_reads_at_once() -> None:
    events = [(0.98, 7), (0.99, 8)]
    assert RetryAfterOnWrite().find_failure(refused_after_events(*events, after=0.24, reads=(0.08, 0.16))) is None
    assert RetryAfterOnWrite().find_failure(refused_after_events(*events, after=0.24, reads=(0.2,))) is not None
    assert RetryAfterOnWrite().find_failure(refused_after_events(*events, after=0.24, reads=(0.01,))) is not None


def test_an_early_write_counts_only_if_it_happens_twice() -> None:
    """The client may have read an event of the object late: no trace of a server shows that."""
    found = RetryAfterOnWrite().find_failure(refused_after_events(after=2.0))
    assert found is not None
    assert found.by_chance


@pytest.mark.parametrize(("retry_after", "verdict"), [(0, "pass"), (4, "warn")])
def test_a_request_without_retry_after_may_be_followed_at_once(retry_after: int, verdict: str) -> None:
    """A list follows before the answer of a watch that ended normally was complete."""
    kind: dict[str, Any] = {"is_write": False, "stream": "pods", "events": [], "sends_initial_events": False}
    calls = [
        SimpleNamespace(**kind, verb="watch", is_watch=True, is_list=False, at=1.0, end=2.0, status=429, retry_after=retry_after),
        SimpleNamespace(**kind, verb="list", is_watch=False, is_list=True, at=1.9, end=2.1, status=200, retry_after=0),
        SimpleNamespace(**kind, verb="watch", is_watch=True, is_list=False, at=9.0, end=9.1, status=429, retry_after=4),
        SimpleNamespace(**kind, verb="watch", is_watch=True, is_list=False, at=15.0, end=None, status=200, retry_after=0),
    ]
    known = SimpleNamespace(has_several_watches=lambda key: False, is_shared=lambda key: False, streams={"pods": "pods"})
    stream = SimpleNamespace(key="pods", calls=calls)
    trace = SimpleNamespace(since=lambda mark=-1: calls)
    run: Any = SimpleNamespace(
        trace=trace, baseline=known, provoked_at=0, excerpt=lambda calls=(): [], attempts_since=lambda: [stream]
    )
    assert str(RetryAfterOnWatch().judge_trace(run).outcome) == verdict


def baseline(*lists: float, now: float, watches: bool = False) -> Any:
    stream = SimpleNamespace(lists=[SimpleNamespace(at=at) for at in lists])
    trial = SimpleNamespace(now=now, trace=SimpleNamespace(streams=lambda: {"configmaps": stream}))
    return SimpleNamespace(streams={"configmaps": "configmaps"} if watches else {}, trial=trial)


@pytest.mark.parametrize(
    ("run", "seconds"),
    [(baseline(1.0, 31.0, now=40.0), 30.0), (baseline(1.0, now=20.0), 19.0), (baseline(1.0, 31.0, now=40.0, watches=True), 0.0)],
)
def test_a_client_that_only_lists_may_take_until_its_next_list(run: Any, seconds: float) -> None:
    assert Baseline.poll_seconds(run) == seconds


def test_a_renewal_that_hangs_may_hold_up_the_release_of_a_lease() -> None:
    durations = {rule.provocation: rule.DURATIONS for rule in all_rules() if hasattr(rule, "DURATIONS")}
    assert durations == {
        "renewing fails until another candidate has the lease": 1.0,
        "renewing hangs until another candidate has the lease": 2.0,
    }


class Reads(list[Any]):
    """A trace of reads."""

    def since(self, mark: int) -> list[Any]:
        return self


@pytest.mark.parametrize(
    ("ended", "delivered", "verdict"),
    [("exit code 1", True, "not exercised"), ("exit code 1", False, "fail"), ("", True, "pass")],
)
def test_no_client_has_to_handle_objects_of_another_scope(ended: str, delivered: bool, verdict: str) -> None:
    trace = Reads([SimpleNamespace(has_delivered=lambda token: delivered, collection="pods", is_write=False)])
    run: Any = SimpleNamespace(
        ended=ended, was_killed=False, trace=trace, provoked_at=0, printed=[], loop="", excerpt=list, calm_seconds=lambda: 0.0
    )
    assert str(ChangedScope().judge(run).outcome) == verdict


@pytest.mark.parametrize(
    ("query", "expires"),
    [
        ({"resourceVersion": "12"}, True),
        ({"resourceVersion": "0"}, False),
        ({}, False),
        ({"resourceVersion": "12", "sendInitialEvents": "true"}, False),
    ],
)
def test_only_watches_from_a_revision_expire_at_once(query: dict[str, str], expires: bool) -> None:
    exchange: Any = SimpleNamespace(verb="watch", query=query)
    assert ExpireResumed(410, "Expired", "gone").concerns(exchange) is expires


@pytest.mark.parametrize(("named", "held", "verdict"), [("x-bcdfgh", True, "fail"), ("x-bcdfgh", False, None), ("x", True, None)])
def test_a_client_does_not_work_while_another_candidate_leads(
    named: str, held: bool, verdict: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = SkewedClock()
    monkeypatch.setattr(rule, "holder", lambda trial, lease: leases.OTHER)
    rule.held, rule.lease = held, {"metadata": {"name": "leader", "namespace": "default"}}
    rule.copy = SimpleNamespace(token="bcdfgh", mark=0)  # type: ignore[assignment]
    write = SimpleNamespace(is_write=True, collection="configmaps", mentions=lambda token: token in named)
    run: Any = SimpleNamespace(trace=Reads([write]), excerpt=list)
    found = rule.find_failure(run)
    assert (None if found is None else str(found.outcome)) == verdict


def test_an_answer_that_breaks_off_arrives_as_far_as_its_middle() -> None:
    broken: list[Any] = []
    with fakekube.Cluster(profile="apiserver") as cluster:
        cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "motd"}, "data": {"text": "hello"}})
        path = "/api/v1/namespaces/default/configmaps/motd"
        arm(cluster.faults.on("get", "configmaps"), BreakHalfway(lambda exchange: not broken, broken), label="breaks off")
        connection = http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=10)
        connection.request("GET", path, headers={"Authorization": "Bearer admin-token"})
        answer = connection.getresponse()
        length = int(answer.headers["Content-Length"])
        with pytest.raises(http.client.IncompleteRead) as caught:
            answer.read()
        connection.close()
        assert len(caught.value.partial) == length // 2
        connection.request("GET", path, headers={"Authorization": "Bearer admin-token"})
        assert b"hello" in connection.getresponse().read()
        connection.close()
    assert [(one.verb, one.name) for one in broken] == [("get", "motd")]


@pytest.mark.parametrize(
    ("used", "competitors", "verdict"),
    [(0.5, 1.0, "fail"), (6.0, 1.0, "warn"), (1.2, 1.0, "fail"), (1.2, 16.0, "warn"), (0.5, 16.0, "fail")],
)
def test_a_client_that_is_busy_with_a_large_event_is_slow(
    used: float, competitors: float, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = Verdict.failure("no reaction", symptom=Symptom.NO_REACTION)
    monkeypatch.setattr(Rule, "judge", lambda rule, trial: silent)
    session = SimpleNamespace(competitors=lambda: competitors)
    trial: Any = SimpleNamespace(processor_seconds=lambda: used, now=30.0, session=session)
    assert str(LargeEvents().judge(trial).outcome) == verdict


def test_a_map_that_the_client_has_deleted_is_not_filled() -> None:
    asked: list[str] = []

    def patch(resource: str, name: str, change: Any, namespace: str) -> None:
        asked.append(f"{resource}/{name}")
        raise ApiError({"code": 404, "message": "not found"})

    trial: Any = SimpleNamespace(cluster=SimpleNamespace(patch=patch))
    fill_map(trial, {"name": "motd", "namespace": "default"})
    assert asked == ["configmaps/motd"]


@pytest.mark.parametrize(
    ("verb", "name", "status", "refused"),
    [
        ("patch", "wheel-4f2", 422, True),
        ("patch", "wheel-9c1", 422, False),
        ("patch", "wheel-4f2", 409, False),
        ("get", "wheel-4f2", 422, False),
    ],
)
def test_a_client_has_read_the_large_object_for_which_it_writes_too_much(
    verb: str, name: str, status: int, refused: bool
) -> None:
    call = SimpleNamespace(is_write=verb == "patch", status=status, mentions=lambda text: text in name)
    trial: Any = SimpleNamespace(trace=SimpleNamespace(since=lambda mark: [call]))
    copy: Any = SimpleNamespace(token="4f2", mark=0)
    assert has_refused_write(trial, copy) is refused


def test_each_kind_of_answer_breaks_off_for_a_copy_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[Any] = []
    monkeypatch.setattr(answers, "arm", lambda fault, breaking, label: done.append(fault))
    monkeypatch.setattr(HalfObject, "_requests", staticmethod(lambda baseline: [("get", "pods"), ("patch", "pods")]))
    faults = SimpleNamespace(on=lambda verb, resource: (verb, resource))
    trial: Any = SimpleNamespace(
        baseline=None, faults=faults, stimulate=lambda: done.append("copy"), await_all=lambda: done.append("reaction")
    )
    HalfObject().provoke(trial)
    assert done == [("get", "pods"), "copy", "reaction", ("patch", "pods"), "copy", "reaction"]
