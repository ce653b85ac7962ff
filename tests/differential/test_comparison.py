"""The comparison of recorded exchanges: what counts as a difference."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from fakekube import Cluster
from tests.differential.comparison import Score, differences
from tests.differential.normaliser import normalise
from tests.differential.recordings import RECORDINGS, Recording, mark_unstable, play_in_process, play_to_server, score

UID, OTHER_UID = "7d8d2f5e-0000-4000-8000-000000000001", "7d8d2f5e-0000-4000-8000-000000000002"


def exchange(**changes: Any) -> dict[str, Any]:
    """A recorded GET of an object."""
    body = {
        "kind": "ConfigMap", "apiVersion": "v1",
        "metadata": {"name": "a", "uid": UID, "resourceVersion": "17", "creationTimestamp": "2026-01-02T03:04:05Z"},
        "data": {"k": "v"},
    }  # fmt: skip
    request = {"method": "GET", "path": "/api/v1/x", "query": None, "body": None}
    return {"request": request, "status": 200, "headers": {"content-type": "application/json"}, "body": body, **changes}


def with_metadata(**changes: Any) -> dict[str, Any]:
    made = exchange()
    made["body"]["metadata"] |= changes
    return made


def compared(recorded: dict[str, Any], answered: dict[str, Any]) -> list[str]:
    result = Score()
    result.add("s", [recorded], [answered])
    return [line for difference in result.differences for line in difference.lines]


@pytest.mark.parametrize(
    "answered",
    [with_metadata(uid=OTHER_UID), with_metadata(resourceVersion="99"), with_metadata(creationTimestamp="2026-06-07T08:09:10Z")],
)
def test_volatile_values_are_not_differences(answered: dict[str, Any]) -> None:
    assert compared(exchange(), answered) == []


@pytest.mark.parametrize(
    ("answered", "line"),
    [
        (exchange(status=201), "status: 201, want 200"),
        (exchange(headers={"content-type": "text/plain"}), 'headers.content-type: "text/plain", want "application/json"'),
        (exchange(headers={}), 'headers.content-type: missing (want "application/json")'),
        (with_metadata(name="b"), 'body.metadata.name: "b", want "a"'),
        (with_metadata(labels={}), "body.metadata.labels: unwanted {}"),
        (
            with_metadata(creationTimestamp="2026-06-07T08:09:10.123456Z"),
            'body.metadata.creationTimestamp: "<microtime>", want "<time>"',
        ),
    ],
)
def test_differences_are_reported(answered: dict[str, Any], line: str) -> None:
    assert compared(exchange(), answered) == [line]


def test_uids_are_compared_by_identity_across_exchanges() -> None:
    recorded = [exchange(), exchange()]
    answered = [exchange(), with_metadata(uid=OTHER_UID)]
    assert differences(normalise(recorded), normalise(answered)) == ['[1].body.metadata.uid: "<uid 2>", want "<uid 1>"']


def test_resource_versions_are_compared_by_order() -> None:
    later = with_metadata(resourceVersion="18")
    assert compared_all([exchange(), later], [later, exchange()])
    assert not compared_all([exchange(), later], [with_metadata(resourceVersion="5"), with_metadata(resourceVersion="500")])


def compared_all(recorded: list[dict[str, Any]], answered: list[dict[str, Any]]) -> list[str]:
    return differences(normalise(recorded), normalise(answered))


def test_missing_exchanges_count_as_different() -> None:
    result = Score()
    result.add("s", [exchange(), exchange()], [exchange()])
    assert (result.identical, result.exchanges, result.identical_scenarios, result.scenarios) == (1, 2, 0, 1)


def test_member_order_is_scored_separately() -> None:
    answered = exchange()
    answered["body"] = dict(reversed(answered["body"].items()))
    result = Score()
    result.add("s", [exchange()], [answered])
    assert (result.identical, result.in_order) == (1, 0)


def test_unstable_exchanges_are_not_scored() -> None:
    first, second = {"s": [exchange(), exchange()]}, {"s": [exchange(), exchange(status=500)]}
    assert mark_unstable(first, second) == 1
    assert first["s"][1]["unstable"].endswith("status: 500, want 200")
    result = score(first, second)
    assert (result.identical, result.exchanges) == (1, 1)


@pytest.mark.parametrize("name", RECORDINGS)
def test_an_exchange_that_is_not_scored_says_why(name: str) -> None:
    marks = [
        exchange["unstable"] for exchanges in RECORDINGS[name].read().values() for exchange in exchanges if "unstable" in exchange
    ]
    assert all(isinstance(mark, str) and len(mark) > 20 for mark in marks)


def test_random_story_is_deterministic_for_a_seed() -> None:
    recording = Recording("random", "random:any:2")
    first, second = (play_in_process(recording, recording.scenarios()) for _ in range(2))
    assert score(copy.deepcopy(first), second).differences == []
    assert first["random.any.0000"] != first["random.any.0001"]


def test_socket_and_wsgi_application_give_equal_responses() -> None:
    recording = Recording("watches")
    scenarios = recording.scenarios("selector")
    assert scenarios
    with Cluster(profile="apiserver") as cluster:
        by_socket = play_to_server(recording, scenarios, cluster.url, jobs=8)
    assert score(by_socket, play_in_process(recording, scenarios)).differences == []
