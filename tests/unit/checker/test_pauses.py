"""The pauses between attempts that fail."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from fakekube.checker import pauses
from fakekube.checker.pauses import (
    judge_backoff,
    judge_growth,
    judge_jitter,
    judge_pauses_after_success,
    judge_repeated_refusals,
    judge_write_backoff,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


def attempts(*failures: float, then: Sequence[float] = (), dropped: bool = False) -> Any:
    """A stream with attempts that fail at some times, also because connections drop, and others that succeed."""
    kind = {"is_watch": True, "is_list": False, "dropped": dropped}
    calls = [SimpleNamespace(at=at, fails=at in failures, **kind) for at in (*failures, *then)]
    return SimpleNamespace(key="configmaps", calls=calls)


def with_lists(stream: Any, *late: float) -> Any:
    """The same, and each attempt asks for initial events first, and lists so many seconds later."""
    calls = []
    for call, after in zip(stream.calls, late, strict=True):
        call.sends_initial_events = True
        kind = {"is_watch": False, "is_list": True, "dropped": False}
        calls += [call, SimpleNamespace(at=call.at + after, fails=True, succeeded=False, **kind)]
    return SimpleNamespace(key="configmaps", calls=calls)


@pytest.mark.parametrize(
    ("stream", "verdict"),
    [
        (attempts(0.0, 1.0, 3.0, 7.0), None),
        (with_lists(attempts(0.0, 1.4, 4.9, 9.6), 0.3, 0.4, 0.2, 0.3), None),  # on a busy machine
        (with_lists(attempts(*range(9)), *[0.2] * 9), "fail"),
        (attempts(0.0, 1.0, 3.0, 7.0, then=(8.0, 8.2, 8.4, 8.6)), None),
        (attempts(*range(9)), "fail"),
        (attempts(*range(9), dropped=True), None),  # as client-go's HTTP client
        (attempts(*range(13), dropped=True), "fail"),
        (attempts(*(number / 10 for number in range(40)), dropped=True), "fail"),
        (attempts(0.0, 1.9, 2.8, 3.2, 4.1, 4.5), "warn"),
        (attempts(0.0, 1.1, 1.9, 3.2, 4.0, 5.3, 6.1, 7.2, 8.0), "fail"),
        (attempts(0.0, 4.0, 8.0, 10.0, 11.0, 12.0, 12.5, 13.0, 13.5, 14.0, 14.3), "fail"),  # they become shorter
        (attempts(0.0, 1.5, 5.2, 11.8, 15.8, 19.2, 20.7, 22.9), None),  # random lengths
        (attempts(*(number / 10 for number in range(40))), "fail"),
    ],
)
def test_the_pauses_between_failures_grow_and_what_follows_them_does_not_count(
    stream: Any, verdict: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pauses, "is_failure", lambda call: call.fails)
    monkeypatch.setattr(pauses, "excerpt", list)
    found = judge_backoff([stream])
    assert (None if found is None else str(found.outcome)) == verdict


@pytest.mark.parametrize(
    ("streams", "broken"),
    [
        ([attempts(0.0, 1.0, 3.0, 7.0, 15.0)], True),
        ([attempts(0.0, 1.0, 3.3, 7.0, 15.0)], False),
        ([attempts(0.0, 1.0, 3.0, 7.0)], False),
        ([attempts(0.0, 1.0, 2.0, 3.0, 4.0)], False),
        ([attempts(0.0, 1.0, 3.0, 7.0, 15.0), attempts(0.0, 1.0, 3.3, 7.0, 15.0)], False),  # the first one by chance
        ([attempts(0.0, 1.0, 3.0, 7.0), attempts(0.0, 1.0, 3.0, 7.0, 15.0)], True),  # the first one says nothing
        ([attempts(0.0, 1.0, 3.0, 7.0, 15.0, 31.0), attempts(0.0, 1.0, 3.3, 7.0, 15.0)], True),  # hardly by chance
    ],
)
def test_pauses_that_grow_by_the_same_factor_have_no_jitter(
    streams: list[Any], broken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pauses, "is_failure", lambda call: call.fails)
    monkeypatch.setattr(pauses, "excerpt", list)
    found = judge_jitter(streams)
    assert (found is not None) is broken
    assert found is None or found.by_chance


@pytest.mark.parametrize(
    ("times", "broken"),
    [
        ((0.0, 0.8, 4.8, 24.8), True),
        ((0.0, 1.2, 8.7, 33.6), True),  # with jitter
        ((0.0, 0.8, 2.4, 5.6, 12.0), False),
        ((0.0, 0.8, 4.0, 10.4), False),  # doubled, with jitter up to as much again
        ((0.0, 0.2, 1.2, 1.5, 7.0), False),  # at random up to a growing length
        ((0.0, 0.8, 4.8), False),
    ],
)
def test_pauses_that_grow_much_faster_than_by_doubling_keep_the_client_away(
    times: tuple[float, ...], broken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pauses, "is_failure", lambda call: call.fails)
    monkeypatch.setattr(pauses, "excerpt", list)
    assert (judge_growth([attempts(*times)]) is not None) is broken


@pytest.mark.parametrize(
    ("paused", "broken"),
    [
        ((0.8, 1.6, 3.2, 6.4), True),
        ((1.2, 0.9, 3.9, 4.0), True),  # with jitter
        ((0.8, 1.4, 0.6, 1.1), False),
        ((0.0, 0.0, 0.0, 0.0), False),
        ((0.1, 0.2, 0.4, 0.8), False),  # it ends soon
        ((0.8, 1.6, 3.2), False),
    ],
)
def test_a_watch_that_ended_normally_begins_the_backoff_anew(
    paused: tuple[float, ...], broken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pauses, "excerpt", list)
    ended = [SimpleNamespace(end=10.0 * number) for number in range(len(paused))]
    after = {id(one): SimpleNamespace(at=one.end + pause) for one, pause in zip(ended, paused, strict=True)}
    stream: Any = SimpleNamespace(key="configmaps", calls=[], next_call=lambda call: after[id(call)])
    known: Any = ended
    assert (judge_pauses_after_success(stream, known) is not None) is broken


def refused(*at: float) -> Any:
    """A run in which a write was refused at some times."""
    call = {"verb": "create", "path": "/secrets", "name": "a", "is_write": True, "collection": "secrets", "dropped": False}
    calls = [SimpleNamespace(**call, at=one, status=500, fails=True) for one in at]
    return run_with(calls)


def run_with(calls: list[Any], *others: Any) -> Any:
    """A run with refused writes, and other calls before or between them."""
    trace = SimpleNamespace(
        since=lambda mark=-1: calls if mark >= 0 else [*others, *calls],
        refused_writes=lambda mark: [SimpleNamespace(key="secrets", calls=calls)],
    )
    return SimpleNamespace(provoked_at=0, trace=trace, excerpt=list)


def tries(*pauses: float, each: int = 1) -> list[float]:
    """The times of attempts after some pauses, of so many calls within a few milliseconds each."""
    begun = itertools.accumulate(pauses)
    return [at + 0.01 * number for at in begun for number in range(each)]


@pytest.mark.parametrize(
    ("times", "broken"),
    [
        (tries(*[0.08] * 64), True),  # so close to each other that two of them are one attempt, but not all of them
        (tries(*[0.0] * 25, *[0.08] * 7, *[0.12, 0.04, 0.08, 0.08] * 6), True),  # a burst, and then a limiter of the client
        (tries(*[0.0] * 25, *[0.32, 0.24, 0.4] * 7), True),
        (tries(*[0.3] * 20), True),
        (tries(*(0.005 * 2**step for step in range(9))), False),  # client-go's queue for 2.5 s
        (tries(*(0.005 * 3**step for step in range(7)), each=12), False),  # the last attempt alone has short pauses
        (tries(*(0.02 * 1.2**step for step in range(18))), False),
        (tries(*(0.005 * 2**step for step in range(11))), False),
        (tries(*(0.005 * 2**step for step in range(11)), each=5), False),  # a helper within a queue
        (tries(0.5, 1.0, 2.0), False),
        (tries(0.5, *[0.7, 1.3, 0.9] * 4), True),
        (tries(0.5, *[0.1, 0.2, 0.4, 0.8] * 4), False),  # a helper that begins anew
        (tries(0.0, 0.15, 0.18, 0.62, 0.16, 0.17, 0.75, 0.15, 0.18), False),  # the same, whose other pauses are equal by chance
        (tries(0.0, 0.2, 1.1, 5.2), True),
    ],
)
def test_refused_writes_need_growing_pauses(times: list[float], broken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pauses, "is_failure", lambda call: call.fails)
    monkeypatch.setattr(pauses, "excerpt", list)
    assert (judge_write_backoff(refused(*times)) is not None) is broken


@pytest.mark.parametrize(
    ("others", "broken"),
    [
        ([0.2 * number for number in range(40)], False),  # a limiter makes the pauses of all requests
        ([0.2 * number for number in range(10)], True),  # the others are too few to tell
        ([number + 0.02 * other for number in range(8) for other in range(4)], True),
    ],
)
def test_pauses_that_a_limiter_of_all_requests_makes_are_not_those_of_the_client(others: list[float], broken: bool) -> None:
    writes = refused(*tries(*[0.6, 0.4, 0.8] * 4)).trace.since(0)
    run = run_with(writes, *[SimpleNamespace(at=at) for at in others if at not in {call.at for call in writes}])
    assert (judge_write_backoff(run) is not None) is broken


@pytest.mark.parametrize(
    ("times", "by_chance"),
    [
        (tries(*[0.3] * 20), False),
        (tries(0.0, 0.32, 0.51, 1.36, 0.54, 0.77, 1.28, 0.66), True),  # decorrelated jitter from 0.1 s
    ],
)
def test_random_pauses_of_refused_writes_are_judged_by_two_runs(times: list[float], by_chance: bool) -> None:
    verdict = judge_write_backoff(refused(*times))
    assert verdict is not None
    assert verdict.by_chance is by_chance


def conflicting(*at: float, status: int = 409, changes: bool = False) -> Any:
    """A run in which a create conflicted at some times, each time with another body if it `changes`."""
    call = {"verb": "create", "path": "/secrets", "is_write": True, "collection": "secrets"}
    bodies = [str(number if changes else 0).encode() for number in range(len(at))]
    calls = [
        SimpleNamespace(**call, at=one, status=status, exchange=SimpleNamespace(raw_body=body))
        for one, body in zip(at, bodies, strict=True)
    ]
    return SimpleNamespace(trace=SimpleNamespace(since=lambda: calls), excerpt=list)


@pytest.mark.parametrize(
    ("run", "broken"),
    [
        (conflicting(*tries(*[0.4] * 12)), True),
        (conflicting(*tries(*[0.4] * 12), changes=True), False),  # other writes
        (conflicting(*tries(*[0.4] * 12), status=500), False),
        (conflicting(*tries(*(0.005 * 2**step for step in range(11)))), False),
        (conflicting(*tries(0.4, 0.4, 0.4)), False),
    ],
)
def test_a_conflict_that_is_repeated_unchanged_needs_growing_pauses(run: Any, broken: bool) -> None:
    assert (judge_repeated_refusals(run, 409) is not None) is broken
