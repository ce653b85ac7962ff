"""The soak scripts, each for a moment: they work, and what they look for does not happen at once."""

from __future__ import annotations

import pytest

from tests.soak import churn, clusters, linearizability, mutations, watchers
from tests.soak.serving import ServedCluster


def test_watchers_see_each_change_once_and_in_order() -> None:
    figures, wrong = watchers.play(watchers=20, seconds=1, least=50)
    assert wrong == []
    assert figures.events > 100
    assert figures.drops


@pytest.mark.parametrize("http2", [False, True])
def test_histories_are_linearizable(http2: bool) -> None:
    count, wrong = linearizability.play(http2=http2, clients=4, seconds=0.5, least=100)
    assert wrong == []
    assert count >= 100


def test_a_history_that_is_not_linearizable_is_told() -> None:
    write = linearizability.Operation("write", 0.0, 1.0, "a", 2, "new", 0)
    stale = linearizability.Operation("read", 2.0, 3.0, "a", 1, "old")
    first = linearizability.Operation("write", -2.0, -1.0, "a", 1, "old", 0)
    assert linearizability.check([first, write, stale], {}) == [f"{stale} tells a version that was replaced before it began"]


@pytest.mark.parametrize("http2", [False, True])
def test_damaged_input_is_answered_or_refused(http2: bool) -> None:
    outcome = mutations.play(http2=http2, seconds=20, attempts=20 if http2 else 300)
    assert outcome.wrong == []


def test_stopped_clusters_keep_nothing() -> None:
    before, _, after = clusters.play(20)
    assert after.files <= before.files


def test_what_comes_and_goes_is_gone() -> None:
    with ServedCluster(*churn.FLAGS) as server, churn.Client(server) as client:
        churn.prepare(client)
        for subject in churn.SUBJECTS.values():
            subject(client, 1)
            subject(client, 1)  # of the same name
    assert not server.output
