"""Events of controllers: counted up, gathered, and dropped when there are too many."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.controllers.recorder import Recorder


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    cluster = Cluster(profile="apiserver")
    cluster.clock.hold()
    yield cluster
    cluster.stop()


@pytest.fixture
def recorder(cluster: Cluster) -> Recorder:
    return Recorder(cluster._client, cluster.clock, "tester", itertools.count())


@pytest.fixture
def subject(cluster: Cluster) -> dict[str, Any]:
    return cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})


def told(cluster: Cluster) -> list[tuple[str, int]]:
    return [(event["message"], event["count"]) for event in cluster.list("events")]


def test_fields_of_an_event(cluster: Cluster, recorder: Recorder, subject: dict[str, Any]) -> None:
    recorder.event(subject, "Normal", "Done", "it is done", host="node-1")
    (event,) = cluster.list("events")
    metadata = subject["metadata"]
    assert event["involvedObject"] == {
        "kind": "ConfigMap",
        "namespace": "default",
        "name": "a",
        "uid": metadata["uid"],
        "apiVersion": "v1",
        "resourceVersion": metadata["resourceVersion"],
    }
    assert (event["reason"], event["type"], event["count"]) == ("Done", "Normal", 1)
    assert event["source"] == {"component": "tester", "host": "node-1"}
    assert (event["reportingComponent"], event["reportingInstance"]) == ("tester", "node-1")
    assert event["metadata"]["name"].startswith("a.")


def test_equal_events_are_counted(cluster: Cluster, recorder: Recorder, subject: dict[str, Any]) -> None:
    recorder.event(subject, "Normal", "Done", "it is done")
    cluster.clock.advance(seconds=10)
    recorder.event(subject, "Normal", "Done", "it is done")
    (event,) = cluster.list("events")
    assert event["count"] == 2
    assert event["firstTimestamp"] < event["lastTimestamp"]


def test_similar_events_are_aggregated_from_the_tenth_on(cluster: Cluster, recorder: Recorder, subject: dict[str, Any]) -> None:
    for number in range(12):
        recorder.event(subject, "Normal", "Made", f"made {number}")
    found = sorted(told(cluster))
    assert found == [("(combined from similar events): made 11", 3), *sorted((f"made {n}", 1) for n in range(9))]


def test_too_many_events_are_dropped(cluster: Cluster, recorder: Recorder, subject: dict[str, Any]) -> None:
    for _ in range(40):
        recorder.event(subject, "Normal", "Done", "it is done")
    assert told(cluster) == [("it is done", 25)]
    recorder.event(subject, "Warning", "Failed", "of another type")
    cluster.clock.advance(minutes=5)
    recorder.event(subject, "Normal", "Done", "it is done")
    assert sorted(told(cluster)) == [("it is done", 41), ("of another type", 1)]


def test_an_event_that_was_deleted_is_written_again(cluster: Cluster, recorder: Recorder, subject: dict[str, Any]) -> None:
    recorder.event(subject, "Normal", "Done", "it is done")
    cluster.delete("events", cluster.list("events")[0]["metadata"]["name"])
    recorder.event(subject, "Normal", "Done", "it is done")
    assert told(cluster) == [("it is done", 2)]


def test_an_event_that_the_api_refuses_is_dropped(cluster: Cluster, recorder: Recorder, subject: dict[str, Any]) -> None:
    absent = {**subject, "metadata": {**subject["metadata"], "namespace": "absent"}}
    recorder.event(absent, "Normal", "Done", "it is done")
    assert told(cluster) == []
