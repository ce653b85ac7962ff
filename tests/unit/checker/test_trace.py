"""Streams: which requests belong to one reflector."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import fakekube
from fakekube.checker.trace import Stream, StreamKey, Trace, read_number

PATH = "/api/v1/configmaps"
METADATA = "application/json;as=PartialObjectMetadata{};g=meta.k8s.io;v=v1,application/json"


@pytest.fixture
def cluster() -> Iterator[fakekube.Cluster]:
    with fakekube.Cluster(profile="apiserver") as made:
        yield made


def ask(cluster: fakekube.Cluster, path: str, accept: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=60)
    connection.request("GET", path, headers={"Accept": accept})
    connection.getresponse().read(1)
    connection.close()


def test_typed_and_metadata_reflectors_of_one_path_are_different_streams(cluster: fakekube.Cluster) -> None:
    trace = Trace(cluster, 0.0)
    ask(cluster, PATH, "application/json")
    ask(cluster, PATH, METADATA.format("List"))
    ask(cluster, f"{PATH}?watch=1&resourceVersion=0", "*/*")
    ask(cluster, f"{PATH}?watch=1&resourceVersion=0", METADATA.format(""))
    verbs = {str(key): [call.verb for call in stream.calls] for key, stream in trace.streams().items()}
    assert verbs == {PATH: ["list", "watch"], f"{PATH} as PartialObjectMetadata": ["list", "watch"]}


@pytest.mark.parametrize("accept", ["application/json", "application/vnd.kubernetes.protobuf", METADATA.format("")])
def test_events_are_read_in_each_format(cluster: fakekube.Cluster, accept: str) -> None:
    trace = Trace(cluster, 0.0)
    labels = {"hash": "6485496958"}  # is no revision
    made = cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": labels}})
    path = "/api/v1/namespaces/default/configmaps"
    ask(cluster, f"{path}?watch=1&resourceVersion=0&fieldSelector=metadata.name%3Da", accept)
    (watch,) = trace.since()
    (event,) = watch.events
    assert (event.type, event.name, event.namespace) == ("ADDED", "a", "default")
    assert event.revision == int(made["metadata"]["resourceVersion"])


@pytest.mark.parametrize(
    ("text", "number"), [("7", 7), (str(2**128), 2**128), ("", 0), ("-1", 0), ("1.5", 0), ("²", 0), ("1" * 5000, 0)]
)
def test_what_is_no_number_counts_as_zero(text: str, number: int) -> None:
    assert read_number(text) == number


def call(begun: float, end: float, *, write: bool = False, succeeded: bool = True) -> Any:
    return SimpleNamespace(at=begun, end=end, is_write=write, succeeded=succeeded)


def test_only_the_time_after_a_write_that_failed_is_a_pause() -> None:
    key = StreamKey(PATH, "", "")
    assert Stream(key, [call(0.0, 1.0), call(3.0, 4.0), call(4.0, 5.0)]).pauses() == [2.0, 0.0]
    writes = [call(0.0, 1.0, write=True), call(9.0, 10.0, write=True, succeeded=False), call(12.0, 13.0, write=True)]
    assert Stream(key, writes).pauses() == [2.0]
