"""What the baseline run, or another run, decides before a provocation starts a client."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fakekube.checker.reaction import Effect, EffectKind, Reaction
from fakekube.checker.rules.conflicts import require_conflicts
from fakekube.checker.rules.watch_errors import FutureRevision
from fakekube.checker.trial import Trial
from fakekube.checker.verdict import NotExercised

MAPS = "/api/v1/configmaps"


def request(number: int, revision: str = "", *, watch: bool = False) -> Any:
    return SimpleNamespace(
        number=number, at=float(number), asked_revision=revision, is_list=not watch, is_watch=watch, sends_initial_events=False
    )


@pytest.mark.parametrize(
    ("relist", "shared", "found"),
    [(("",), False, False), (("0",), False, False), (("", "7"), False, True), (("7",), True, None), ((), False, None)],
)
def test_a_run_shows_whether_a_client_lists_again_at_a_revision(
    relist: tuple[str, ...], shared: bool, found: bool | None
) -> None:
    calls = [request(1, "5"), request(2, "5", watch=True), *(request(number, one) for number, one in enumerate(relist, 3))]
    stream = SimpleNamespace(calls=calls, watches=[call for call in calls if call.is_watch])
    trace = SimpleNamespace(streams=lambda: {MAPS: stream})
    trial: Any = SimpleNamespace(trace=trace, started_at=0.5, baseline=SimpleNamespace(is_shared=lambda key: shared))
    assert Trial.lists_again_at_revision(trial) is found


def test_w15_starts_no_client_when_several_runs_have_shown_that_it_asks_for_no_revision() -> None:
    known: Any = SimpleNamespace(relists=[False] * FutureRevision.RUNS)
    with pytest.raises(NotExercised):
        FutureRevision().require(known)
    known.relists[0] = True
    FutureRevision().require(known)
    known.relists[:] = [False]
    FutureRevision().require(known)


@pytest.mark.parametrize(
    ("body", "conflicts"),
    [
        ({"metadata": {"resourceVersion": "7"}}, True),
        ({"metadata": {"name": "web"}}, False),
        ([{"op": "add", "path": "/metadata/resourceVersion", "value": "7"}], True),
    ],
)
def test_a_write_without_a_revision_cannot_conflict(body: Any, conflicts: bool) -> None:
    reaction = Reaction({Effect(EffectKind.REQUEST, "configmaps", "*", ("patch",)): 1})
    write = SimpleNamespace(number=1, verb="patch", is_write=True, collection="configmaps", resource="configmaps", body=body)
    baseline: Any = SimpleNamespace(reaction=reaction, trial=SimpleNamespace(trace=SimpleNamespace(since=lambda: [write])))
    if conflicts:
        require_conflicts(baseline)
    else:
        with pytest.raises(NotExercised, match="none conflicts"):
            require_conflicts(baseline)
