"""The recorder of requests: recorded fields, filters, waiting, and error messages."""

from __future__ import annotations

import gc
import http.client
import io
import json
import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakekube import Cluster
from fakekube.base.clock import Clock
from fakekube.powers.exchange import Exchange
from fakekube.powers.requests import BYTES_EACH, Recorder

PODS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(profile="apiserver") as made:
        yield made


def send(cluster: Cluster, method: str, path: str, body: object = None, agent: str = "test/1") -> int:
    connection = http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=60)
    headers = {"User-Agent": agent, "Content-Type": "application/json"}
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    response = connection.getresponse()
    response.read()
    connection.close()
    return response.status


def test_recorded_exchange_has_request_and_response_fields(cluster: Cluster) -> None:
    body = {"metadata": {"name": "a"}, "data": {"x": "1"}}
    send(cluster, "POST", f"{PODS}?fieldManager=m", body)
    one = cluster.requests.one
    assert (one.verb, one.resource, one.subresource, one.namespace, one.name) == ("create", "configmaps", "", "default", "a")
    assert (one.user, one.agent, one.method, one.path, one.query) == ("admin", "test/1", "POST", PODS, {"fieldManager": "m"})
    assert (one.status, one.body, one.answer["data"]) == (201, body, {"x": "1"})
    assert one.revision == int(one.answer["metadata"]["resourceVersion"])
    assert one.headers["user-agent"] == "test/1"
    assert one.seconds is not None
    assert one.started <= cluster.clock.now()
    assert (one.fault, one.faults, one.events) == (None, (), None)


def test_where_and_since_filter_recorded_requests(cluster: Cluster) -> None:
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "own"}})
    mark = cluster.requests.mark()
    send(cluster, "GET", PODS, agent="one")
    send(cluster, "GET", f"{PODS}/none", agent="two")
    requests = cluster.requests
    assert [one.verb for one in requests] == ["list", "get"]
    assert len(requests.where(own=True)) == 3
    assert requests.where(status=404).one.agent == "two"
    assert requests.where(verb="get,list").where(agent="on").one.verb == "list"
    assert requests.where(resource="cm", namespace="default", name="none", user="admin").last.status == 404
    assert len(requests.since(mark)) == 2
    assert len(requests.since(requests.mark())) == 0
    requests.where(verb="delete").none()
    requests.clear()
    assert len(requests) == 0


def test_unauthenticated_requests_are_recorded(cluster: Cluster) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=60)
    connection.request("GET", PODS, headers={"Authorization": "Bearer wrong"})
    assert connection.getresponse().status == 401
    connection.close()
    assert (cluster.requests.one.status, cluster.requests.one.user) == (401, "")


def test_wait_returns_when_requests_match(cluster: Cluster) -> None:
    timer = threading.Thread(target=lambda: send(cluster, "GET", PODS))
    port = cluster.port
    timer.start()
    assert cluster.requests.where(verb="list").wait(1).one.status == 200
    timer.join()
    assert port


def test_error_messages_list_the_nearest_requests(cluster: Cluster) -> None:
    send(cluster, "GET", PODS)
    with pytest.raises(TimeoutError, match=r"0 of 2 requests with verb=list, resource=pods .*\n.*list.*other resource"):
        cluster.requests.where(verb="list", resource="pods").wait(2, timeout=0.01)
    with pytest.raises(AssertionError, match="no request with verb=delete; the nearest are"):
        cluster.requests.where(verb="delete").last  # noqa: B018
    with pytest.raises(AssertionError, match="1 requests with verb=list"):
        cluster.requests.where(verb="list").none()
    with pytest.raises(AssertionError, match="0 requests with"):
        cluster.requests.where(verb="delete").one  # noqa: B018


def test_recorded_watch_has_event_count_and_end_reason(cluster: Cluster) -> None:
    made = cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    connection = http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=60)
    connection.request("GET", f"{PODS}?watch=1")
    response = connection.getresponse()
    response.readline()
    watch = cluster.requests.where(verb="watch").wait(1).one
    assert (watch.events, watch.ended, watch.last_revision) == (1, None, int(made["metadata"]["resourceVersion"]))
    response.close()
    connection.close()
    cluster.stop()
    assert watch.ended is not None


def test_keep_requests_limits_recorded_requests() -> None:
    with Cluster(profile="apiserver", keep_requests=2) as cluster:
        for name in "abc":
            send(cluster, "GET", f"{PODS}/{name}")
        assert [one.name for one in cluster.requests] == ["b", "c"]


def test_in_order_asserts_the_order_of_verbs(cluster: Cluster) -> None:
    send(cluster, "GET", f"{PODS}/a")
    send(cluster, "GET", PODS)
    send(cluster, "POST", PODS, {"metadata": {"name": "a"}})
    found = cluster.requests.where(resource="configmaps")
    found.in_order("get", "create")
    found.in_order()
    with pytest.raises(AssertionError, match="no get after the others of create, get"):
        found.in_order("create", "get")


def test_save_writes_requests_as_json_lines(cluster: Cluster, tmp_path: Path) -> None:
    send(cluster, "POST", PODS, {"metadata": {"name": "a"}})
    send(cluster, "PUT", f"{PODS}/a", b"\xff".decode("latin-1"))
    cluster.requests.where(resource="configmaps").save(tmp_path / "requests.jsonl")
    first, second = map(json.loads, (tmp_path / "requests.jsonl").read_text().splitlines())
    assert (first["verb"], first["status"], first["answer"]["metadata"]["name"]) == ("create", 201, "a")
    assert (second["verb"], second["status"]) == ("update", 400)


def test_bodies_of_old_requests_are_dropped_beyond_a_bound() -> None:
    with Cluster(profile="apiserver") as cluster:
        big = "x" * 900_000
        for number in range(24):
            assert send(cluster, "POST", PODS, {"metadata": {"name": f"a-{number}"}, "data": {"x": big}}) == 201
        kept = [bool(one.body) for one in cluster.requests.where(verb="create", resource="configmaps")]
        assert len(kept) == 24
        assert kept == sorted(kept)
        assert 7 < sum(kept) < 12  # the request and the response of each are 0.9 MB


def test_old_bodies_are_dropped_without_a_look_at_those_that_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = []

    class Seen(Exchange):
        status = 200

        @property
        def raw_body(self) -> bytes:
            looked_at.append(self.number)
            return b""

        @raw_body.setter
        def raw_body(self, body: bytes) -> None:
            looked_at.append(self.number)

    recorder, clock = Recorder(100_000, str), Clock()
    for number in range(20_000):
        recorder.keep(Seen(number, {"REQUEST_METHOD": "GET"}, "/", clock))
        recorder.note_bodies(20_000)
    kept = 100_000 * BYTES_EACH // 20_000
    assert 0.8 * kept < 20_000 - len(looked_at) < 1.2 * kept
    assert looked_at == list(range(len(looked_at)))  # each once, the oldest first


def test_a_request_keeps_no_input() -> None:
    with Cluster(profile="apiserver") as cluster:
        assert send(cluster, "GET", "/api/v1/namespaces") == 200
        (kept,) = cluster.requests.where(verb="list", resource="namespaces")
        assert kept.agent == "test/1"
        assert not [one for one in gc.get_referents(*vars(kept).values()) if isinstance(one, io.BufferedIOBase)]


def test_exchanges_of_one_connection_share_what_they_keep_of_equal_requests(cluster: Cluster) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=60)
    for name, agent in (("a", "one"), ("b", "one"), ("c", "two")):
        connection.request("GET", f"{PODS}/{name}?pretty=true", headers={"User-Agent": agent})
        connection.getresponse().read()
    connection.close()
    first, second, third = cluster.requests
    assert first._environ is second._environ
    assert [one.agent for one in (first, second, third)] == ["one", "one", "two"]
    assert [one.path.rpartition("/")[2] for one in (first, second, third)] == ["a", "b", "c"]
    assert {(one.method, one.raw_query, one.protocol) for one in (first, second, third)} == {("GET", "pretty=true", "HTTP/1.1")}


def test_packed_responses_are_as_they_were(cluster: Cluster) -> None:
    for number in range(3):
        assert send(cluster, "POST", PODS, {"metadata": {"name": f"a-{number}"}, "data": {"x": "y" * 60_000}}) == 201
    assert send(cluster, "GET", PODS) == 200  # in several pieces
    assert send(cluster, "GET", f"{PODS}/none") == 404
    found = list(cluster.requests)
    before = [(one.answer, one.body, one.revision, len(one.raw_answer or b"")) for one in found]
    kept = sum(length for *_, length in before)
    with Cluster(profile="apiserver") as other:  # imports what packs, which is not measured
        other.pack_past()
    tracemalloc.start()
    try:
        cluster.pack_past()
        cluster.pack_past()
        packed = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert packed < kept / 10
    assert [(one.answer, one.body, one.revision, len(one.raw_answer or b"")) for one in found] == before
