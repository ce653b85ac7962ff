"""Judges that say why a client ended."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fakekube.checker import judges
from fakekube.checker.judges import (
    judge_late_reaction,
    judge_lists_beside_watch,
    judge_misread_status,
    judge_process,
    judge_resumption,
    judge_start_of_watch,
)

LEASE = {"kind": "Lease", "spec": {"leaseDurationSeconds": 10}}


def ended(*renewed_before: float, printed: str = "", slowness: float = 1.0, was_killed: bool = False) -> Any:
    """A run whose client has ended, so many seconds after it renewed a lease of ten seconds."""
    renewal = {"collection": "leases.coordination.k8s.io", "is_write": True, "succeeded": True, "answer": LEASE}
    renewals = [SimpleNamespace(**renewal, at=100.0 - before) for before in renewed_before]
    end = {"ended": "the client ended", "ended_at": 100.0, "started_at": 50.0, "printed": [printed]}
    end |= {"was_killed": was_killed, "loop": ""}
    end["session"] = SimpleNamespace(slowness=lambda: slowness)
    return SimpleNamespace(**end, trace=renewals, excerpt=list, calm_seconds=lambda: 0.0, time_ended=lambda: 100.0)


@pytest.mark.parametrize(
    ("renewed_before", "verdict"),
    [
        ((), "fail"),
        ((2.0,), "fail"),
        ((7.0,), "not exercised"),
        ((20.0, 6.0, 4.0, 2.0), "fail"),
        ((12.0, 10.0, 3.0), "not exercised"),
    ],
)
def test_a_leader_that_could_not_renew_its_lease_may_end(renewed_before: tuple[float, ...], verdict: str) -> None:
    found = judge_process(ended(*renewed_before))
    assert found is not None
    assert str(found.outcome) == verdict


@pytest.mark.parametrize(
    ("printed", "verdict"), [("fatal: leader election lost", "not exercised"), ("KeyError: 'block'", "fail"), ("", "fail")]
)
def test_a_leader_on_a_busy_machine_may_say_that_it_has_lost_its_lease(printed: str, verdict: str) -> None:
    """It was late from its start on, so that its last pauses were no longer than usual."""
    found = judge_process(ended(11.5, 8.0, 6.9, 5.1, 2.5, printed=printed))
    assert found is not None
    assert str(found.outcome) == verdict


@pytest.mark.parametrize(
    ("slowness", "printed", "verdict"), [(2.0, "", "not exercised"), (1.0, "", "fail"), (2.0, "KeyError: 'block'", "fail")]
)
def test_a_leader_on_a_busy_machine_may_not_have_read_its_last_renewal(slowness: float, printed: str, verdict: str) -> None:
    found = judge_process(ended(12.8, 10.3, 7.8, 5.3, 2.6, slowness=slowness, printed=printed))
    assert found is not None
    assert str(found.outcome) == verdict


@pytest.mark.parametrize("was_killed", [False, True])
def test_the_end_of_a_client_that_something_else_has_killed_does_not_count_alone(was_killed: bool) -> None:
    """Such as the kernel that lacks memory: a second run decides."""
    found = judge_process(ended(was_killed=was_killed))
    assert found is not None
    assert found.by_chance is was_killed


def resumed(*, ended: str, delivered: int = 7, equal: bool = False, listed: bool = False, silent: float = 1.0) -> Any:
    """A run whose client resumed a watch from revision 5; with `equal` it has two such watches, with `listed` it listed the
    resource for another purpose in between. The last event came after so many seconds of silence."""
    following = SimpleNamespace(resumes=True, asked_revision="5", number=2)
    stream = SimpleNamespace(
        next_call=lambda call: SimpleNamespace(resumes=False) if listed else following, next_watch=lambda call: following
    )
    trace = SimpleNamespace(streams=lambda: {"configmaps": stream})
    baseline = SimpleNamespace(has_several_watches=lambda key: equal, is_shared=lambda key: equal or listed)
    run = SimpleNamespace(trace=trace, baseline=baseline, idle_limit=lambda: 5.0)
    watch = SimpleNamespace(
        stream="configmaps",
        at=2.0,
        events=[SimpleNamespace(at=3.0), SimpleNamespace(at=3.0 + silent)],
        ended_normally=ended == "ended by the server",
        newest_delivered=lambda bookmarks: delivered,
    )
    return judge_resumption(run, [watch], bookmarks=False)  # type: ignore[arg-type, list-item]


@pytest.mark.parametrize(
    ("run", "broken"),
    [
        ({"ended": "ended by the server"}, True),
        ({"ended": "ended by the server", "delivered": 5}, False),
        ({"ended": "ended by the server", "equal": True}, False),
        ({"ended": "ended by the server", "listed": True}, True),
        ({"ended": "ended by the server", "silent": 6.0}, False),  # it may have given the watch up meanwhile
        ({"ended": "closed by the client"}, False),
        ({"ended": "error 500"}, False),
    ],
)
def test_a_watch_is_resumed_from_what_the_client_has_read(
    run: dict[str, Any], broken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judges, "excerpt", list)
    assert (resumed(**run) is not None) is broken


def listed(*revisions: int, watched: bool = True, write_at: float | None = None) -> Any:
    """A run whose client lists a stream once a second."""
    lists = [SimpleNamespace(at=float(at), status=200, query={}, revision=one) for at, one in enumerate(revisions)]
    stream = SimpleNamespace(lists=lists, is_watched_at=lambda at: watched)
    writes = [] if write_at is None else [SimpleNamespace(is_write=True, at=write_at)]
    calls = [*writes, *(SimpleNamespace(is_write=False, at=one.at) for one in lists)]

    class Calls(list):  # type: ignore[type-arg]
        def streams(self) -> Any:
            return {"configmaps": stream}

    baseline = SimpleNamespace(streams={"configmaps": "configmaps"}, has_several_watches=lambda key: False)
    return SimpleNamespace(trace=Calls(calls), baseline=baseline, excerpt=list)


@pytest.mark.parametrize(
    ("run", "suspected"),
    [
        (listed(7, 7, 7, 7, 7), True),
        (listed(7, 7, 7, 8, 8), False),
        (listed(7, 7, 7, 7, 7, watched=False), False),
        (listed(7, 7, 7, 7, 7, write_at=2.5), False),
    ],
)
def test_lists_beside_an_open_watch_are_suspicious_if_nothing_changes(run: Any, suspected: bool) -> None:
    assert (judge_lists_beside_watch(run) is not None) is suspected


def reacted(*, after: float, again: bool = True, refused: bool = False) -> Any:
    """A run whose client is told of a copy at 1.0, asks again if `again`, and reacts some seconds later."""
    copy = SimpleNamespace(mark=1, judged=True, created_at=1.0, token="abc", names=lambda: ["sample-abc"])
    plain = {"dropped": False, "status": 200, "exchange": SimpleNamespace(fault="")}
    events = [SimpleNamespace(name="sample-abc", at=1.0)]
    watch = SimpleNamespace(number=1, at=0.0, events=events, is_write=False, **plain)
    relist = SimpleNamespace(number=2, at=0.5 + after, events=[], is_write=False, **plain)
    problem = SimpleNamespace(**{**plain, "status": 500}, number=3, at=0.8, events=[], is_write=False)
    reaction = SimpleNamespace(number=4, at=1.0 + after, is_write=True, mentions=lambda token: token == "abc", **plain)
    calls = [watch, *([relist] if again else []), *([problem] if refused else []), reaction]
    stream = SimpleNamespace(key="configmaps", watches=[watch], calls=[one for one in calls if one in (watch, relist)])
    trace = SimpleNamespace(since=lambda: calls, streams=lambda: {"configmaps": stream})
    reaction_ = SimpleNamespace(visible=True)
    baseline = SimpleNamespace(reaction=reaction_, reaction_seconds=0.02, delivering={"configmaps": frozenset({"configmaps"})})
    return SimpleNamespace(trace=trace, copies=[copy], baseline=baseline, started_at=0.0, excerpt=list)


@pytest.mark.parametrize(
    ("run", "suspected"),
    [
        (reacted(after=12.0), True),
        (reacted(after=1.0), False),
        (reacted(after=12.0, again=False), False),
        (reacted(after=12.0, refused=True), False),
    ],
)
def test_a_reaction_is_late_if_it_comes_only_after_another_list(run: Any, suspected: bool) -> None:
    assert (judge_late_reaction(run) is not None) is suspected


def asking_for(name: str, *, told: str = "", status: int = 404) -> Any:
    """The verdict about a client that reads a node by its name; an answer has told it another name."""
    listed = {"verb": "list", "name": "", "status": 200, "succeeded": True, "has_delivered": lambda text: text in told}
    refused = {"verb": "get", "name": name, "path": f"/api/v1/nodes/{name}", "status": status, "succeeded": status < 400}
    refused["has_delivered"] = lambda text: text == name  # the message of a 404 has the name
    calls = [SimpleNamespace(**one, collection="nodes", is_write=False) for one in (listed, refused, refused)]
    usual = SimpleNamespace(trace=SimpleNamespace(since=lambda: [SimpleNamespace(name="settings")]))
    baseline = SimpleNamespace(streams={"/api/v1/nodes": "nodes"}, trial=usual)
    trace = SimpleNamespace(since=lambda mark=-1: calls)
    return judge_misread_status(
        SimpleNamespace(trace=trace, provoked_at=-1, baseline=baseline, copies=[SimpleNamespace(token="x7")]), "mark"
    )


@pytest.mark.parametrize(
    ("verdict", "how"),
    [
        ("fail", {"name": "undefined"}),
        ("fail", {"name": "None"}),
        ("warn", {"name": "0"}),
        ("", {"name": "undefined", "status": 200}),
        ("", {"name": "one-x7-copy"}),
        ("", {"name": "worker-1", "told": "worker-1"}),
        ("", {"name": "settings"}),
    ],
)
def test_a_name_that_nothing_has_had_comes_from_a_bookmark(verdict: str, how: Any) -> None:
    found = asking_for(**how)
    assert (str(found.outcome) if found else "") == verdict


@pytest.mark.parametrize(("names", "extra"), [("one-x7", False), ("one-x7 two-x7", True), ("one-x7 x7-for-b2 x7-for-k9", False)])
def test_what_a_client_makes_for_each_pair_of_objects_is_not_made_twice(
    names: str, extra: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    children = [{"metadata": {"name": name, "uid": name}} for name in names.split()]
    past, gone, first, second = (
        SimpleNamespace(token=token, deleted=number == 1, mark=-1, names=lambda: ["x"])
        for number, token in enumerate(("k9", "x7", "x7", "b2"))  # x7 was made again under its name
    )
    monkeypatch.setattr(
        judges,
        "children_of",
        lambda cluster, one, resource: [child for child in children if one.token in child["metadata"]["name"]],
    )
    trial: Any = SimpleNamespace(
        past=[past], copies=[gone, first, second], cluster=None, trace=SimpleNamespace(since=lambda mark: [])
    )
    trial.baseline = SimpleNamespace(usual_children=lambda resource: 1)
    assert (judges.judge_extra_children(trial, {"secrets": 1}) is not None) is extra


def request(kind: str, number: int, revision: str = "") -> Any:
    """A list, or a watch from a revision."""
    kinds = {"is_list": kind == "list", "is_watch": kind == "watch", "resumes": kind == "watch" and revision not in ("", "0")}
    return SimpleNamespace(
        number=number, at=float(number), succeeded=True, asked_revision=revision, sends_initial_events=False, **kinds
    )


@pytest.mark.parametrize(
    ("calls", "outcome"),
    [
        ([request("list", 1), request("watch", 2, "7"), request("watch", 3, "9")], ""),
        ([request("list", 1), request("watch", 2, "0")], "fail"),
        ([request("list", 1), request("watch", 2, "7"), request("watch", 3)], "warn"),
        ([request("list", 1), request("watch", 2, "7"), request("list", 3), request("watch", 4)], "fail"),
        ([request("watch", 1), request("watch", 2, "7"), request("watch", 3, "0")], ""),  # it keeps nothing
    ],
)
def test_after_a_list_no_watch_begins_anywhere(calls: list[Any], outcome: str) -> None:
    stream = SimpleNamespace(key="configmaps", calls=calls, lists=[call for call in calls if call.is_list])
    run: Any = SimpleNamespace(
        started_at=0.0,
        trace=SimpleNamespace(streams=lambda: {"configmaps": stream}),
        baseline=SimpleNamespace(is_shared=lambda key: False),
        excerpt=list,
    )
    found = judge_start_of_watch(run)
    assert str(found.outcome if found else "") == outcome
