"""Judges that say why a client ended."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from fakekube.checker import judges
from fakekube.checker.judges import judge_backoff, judge_process, judge_resumption

if TYPE_CHECKING:
    from collections.abc import Sequence

LEASE = {"kind": "Lease", "spec": {"leaseDurationSeconds": 10}}


def ended(*renewed_before: float) -> Any:
    """A run whose client has ended, so many seconds after it renewed a lease of ten seconds."""
    renewal = {"collection": "leases.coordination.k8s.io", "is_write": True, "succeeded": True, "answer": LEASE}
    renewals = [SimpleNamespace(**renewal, at=100.0 - before) for before in renewed_before]
    end = {"ended": "the client ended", "ended_at": 100.0, "started_at": 50.0, "printed": []}
    return SimpleNamespace(**end, loop="", trace=renewals, excerpt=list, calm=lambda: 0.0)


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


def resumed(*, ended: str, delivered: int = 7, equal: bool = False) -> Any:
    """A run whose client resumed a watch from revision 5; with `equal` it has two such watches."""
    following = SimpleNamespace(resumes=True, asked_revision="5", number=2)
    stream = SimpleNamespace(next_call=lambda call: following)
    trace = SimpleNamespace(streams=lambda: {"configmaps": stream})
    run = SimpleNamespace(trace=trace, baseline=SimpleNamespace(is_shared=lambda key: equal))
    watch = SimpleNamespace(
        stream="configmaps", may_be_unread=ended != "ended by the server", newest_delivered=lambda bookmarks: delivered
    )
    return judge_resumption(run, [watch], bookmarks=False)  # type: ignore[arg-type, list-item]


@pytest.mark.parametrize(
    ("run", "broken"),
    [
        ({"ended": "ended by the server"}, True),
        ({"ended": "ended by the server", "delivered": 5}, False),
        ({"ended": "ended by the server", "equal": True}, False),
        ({"ended": "closed by the client"}, False),
    ],
)
def test_a_watch_is_resumed_from_what_the_client_has_read(
    run: dict[str, Any], broken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judges, "excerpt", list)
    assert (resumed(**run) is not None) is broken


def attempts(*failures: float, then: Sequence[float] = ()) -> Any:
    """A stream with attempts that fail at some times, and others that succeed."""
    calls = [SimpleNamespace(at=at, fails=True) for at in failures] + [SimpleNamespace(at=at, fails=False) for at in then]
    return SimpleNamespace(key="configmaps", calls=calls)


@pytest.mark.parametrize(
    ("stream", "verdict"),
    [
        (attempts(0.0, 1.0, 3.0, 7.0), None),
        (attempts(0.0, 1.0, 3.0, 7.0, then=(8.0, 8.2, 8.4, 8.6)), None),
        (attempts(*range(9)), "fail"),
        (attempts(0.0, 1.1, 1.9, 3.2, 4.0, 5.3, 6.1, 7.2, 8.0), "warn"),
        (attempts(*(number / 10 for number in range(40))), "fail"),
    ],
)
def test_the_pauses_between_failures_grow_and_what_follows_them_does_not_count(
    stream: Any, verdict: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judges, "is_failure", lambda call: call.fails)
    monkeypatch.setattr(judges, "excerpt", list)
    found = judge_backoff([stream])
    assert (None if found is None else str(found.outcome)) == verdict
