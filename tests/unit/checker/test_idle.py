"""What an idle client may send."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import fakekube
from fakekube.checker.rules.economy import IdleRequests, NeedlessWrites, _changes_only_times, _find_needless
from fakekube.checker.trace import LEASES
from fakekube.checker.trial import Baseline

SECONDS = 60.0


def judged(*calls: Any, replicas: int = 1, watches: bool = True) -> str:
    copies = [SimpleNamespace(deleted=False), SimpleNamespace(deleted=False)]
    baseline = SimpleNamespace(replicas=lambda: replicas, streams={"/api/v1/configmaps": "configmaps"} if watches else {})
    trial: Any = SimpleNamespace(session=SimpleNamespace(idle=None), copies=copies, baseline=baseline, excerpt=list)
    verdict = IdleRequests()._judge_repetitions(trial, calls, SECONDS)
    return "pass" if verdict is None else str(verdict.outcome)


def requests(verb: str, each: float, *, changes: bool = True) -> list[Any]:
    """Equal requests of an object within `SECONDS`; each write makes a new revision if `changes`."""
    kind = {"is_watch": verb == "watch", "is_write": verb == "patch", "succeeded": True, "collection": "configmaps"}
    names = {"verb": verb, "path": "/api/v1/namespaces/default/configmaps/a", "stream": "/api/v1/namespaces/default/configmaps/a"}
    times = range(int(SECONDS / each))
    return [SimpleNamespace(**kind, **names, at=number * each, revision=number if changes else 1) for number in times]


def lists(each: float, pause: float) -> list[Any]:
    """Lists of which the second one of each pair follows after a pause: one for each of the two objects."""
    found = []
    for one in requests("list", each):
        found += [one, SimpleNamespace(**{**vars(one), "at": one.at + pause})]
    return found


@pytest.mark.parametrize(
    ("calls", "verdict"),
    [
        (requests("patch", 10.0), "pass"),
        (requests("patch", 20.0, changes=False), "warn"),
        (requests("patch", 7.0), "warn"),
        (requests("patch", 1.0, changes=False), "fail"),
        (requests("get", 10.0), "pass"),
        (requests("get", 1.0), "fail"),
        (requests("list", 10.0), "pass"),
        (requests("list", 8.2), "pass"),
        (requests("list", 6.0), "warn"),
        (requests("list", 3.0), "fail"),
        (lists(10.0, 0.5), "pass"),
        (lists(3.0, 0.5), "fail"),
        (requests("watch", 8.0), "pass"),
        (requests("watch", 2.0), "warn"),
    ],
)
def test_heartbeats_and_reconnects_are_rare_and_change_something(calls: list[Any], verdict: str) -> None:
    assert judged(*calls) == verdict


@pytest.mark.parametrize(
    ("verb", "each", "verdict"), [("list", 1.0, "warn"), ("get", 1.0, "warn"), ("list", 0.1, "fail"), ("list", 10.0, "pass")]
)
def test_a_client_that_only_reads_in_a_loop_is_suspected_until_it_reads_more_often_than_client_go_would(
    verb: str, each: float, verdict: str
) -> None:
    assert judged(*requests(verb, each), watches=False) == verdict


def test_each_replica_may_watch_again() -> None:
    calls = requests("watch", 8.0) * 2
    assert (judged(*calls), judged(*calls, replicas=2)) == ("warn", "pass")


@pytest.mark.parametrize(("resource", "watches", "replicas"), [(LEASES, (2, 2), 2), (LEASES, (2, 1), 1), ("pods", (2, 2), 1)])
def test_candidates_for_a_lease_are_replicas_if_each_stream_has_as_many_watches(
    resource: str, watches: tuple[int, int], replicas: int
) -> None:
    trial = SimpleNamespace(trace=[SimpleNamespace(collection=resource)])
    baseline: Any = SimpleNamespace(trial=trial, watches=dict(zip("ab", watches, strict=True)))
    assert Baseline.replicas(baseline) == replicas


def write(revision: int, name: str = "a", verb: str = "patch", kind: str = "application/merge-patch+json", **more: Any) -> Any:
    """A write of a client, of which the answer has a revision."""
    call = {"verb": verb, "path": f"/configmaps/{name}", "collection": "configmaps", "name": name, "revision": revision}
    exchange = SimpleNamespace(content_type=kind)
    return SimpleNamespace(**{**call, "is_write": True, "succeeded": True, "exchange": exchange, **more})


@pytest.mark.parametrize(
    ("call", "needless"),
    [
        (write(7), True),  # the revision is that of the other client's write
        (write(8), False),
        (write(5, "child"), True),
        (write(6, "child"), False),  # written since
        (write(7, verb="update"), True),
        (write(7, verb="delete"), False),
        (write(7, kind="application/apply-patch+yaml"), False),
        (write(7, succeeded=False), False),
        (write(0), False),  # the answer was not kept
    ],
)
def test_a_write_that_stores_nothing_is_needless(call: Any, needless: bool) -> None:
    assert bool(_find_needless([call], {("configmaps", "a"): 7}, before=5)) is needless


@pytest.mark.parametrize(("second", "verdict"), [([write(9)], "warn"), ([write(9, "b")], "pass"), ([], "pass")])
def test_needless_writes_are_suspected_if_they_come_each_time(second: list[Any], verdict: str) -> None:
    rule = NeedlessWrites()
    trial: Any = SimpleNamespace(excerpt=list)
    rule.rounds = [{(one.verb, one.path): [one] for one in calls} for calls in ([write(7)], second)]
    assert rule.judge_trace(trial).outcome == verdict


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"seen": "2026-11-27T01:00:01Z"}, True),
        ({"alive": "2026-11-27T01:00:01Z"}, False),  # the idle client writes it, too
        ({"seen": "2026-11-27T01:00:01Z", "text": "other"}, False),
        ({"text": "other"}, False),
        ({"more": "2026-11-27T01:00:01Z"}, False),
    ],
)
def test_a_write_of_nothing_but_times_is_told_from_others(change: dict[str, str], expected: bool) -> None:
    with fakekube.Cluster(profile="apiserver") as cluster:
        data = {"seen": "2026-11-27T01:00:00Z", "alive": "2026-11-27T01:00:00Z", "text": "hello"}
        cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "motd"}, "data": data})
        written = cluster.patch("configmaps", "motd", {"data": change})
        call: Any = SimpleNamespace(
            collection="configmaps", name="motd", namespace="default", revision=int(written["metadata"]["resourceVersion"])
        )
        run: Any = SimpleNamespace(cluster=cluster)
        assert _changes_only_times(run, call, {("data", "alive")}) is expected


def test_what_the_idle_client_writes_is_known_for_good() -> None:
    with fakekube.Cluster(profile="apiserver") as cluster:
        cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "motd"}, "data": {"text": "hello"}})
        calls: list[Any] = []

        def write(at: float, **data: str) -> None:
            written = cluster.patch("configmaps", "motd", {"data": data})
            kind = {"is_write": True, "succeeded": True, "collection": "configmaps", "name": "motd", "namespace": "default"}
            revision = int(written["metadata"]["resourceVersion"])
            calls.append(SimpleNamespace(**kind, number=len(calls), at=at, revision=revision))

        trial = SimpleNamespace(trace=calls, cluster=cluster)
        baseline: Any = SimpleNamespace(trial=trial, idle_from=2.0, _idle_writes={})
        write(1.0, text="other")
        write(3.0, alive="now")
        assert Baseline.periodic_fields(baseline) == {"configmaps": {("data", "alive")}}
        cluster.compact()  # of what has been known before nothing is lost
        write(4.0, seen="now")
        assert Baseline.periodic_fields(baseline) == {"configmaps": {("data", "alive"), ("data", "seen")}}
