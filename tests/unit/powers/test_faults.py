"""Faults: every action over a socket as a client sees it, and the limits of how often faults hit."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.apimachinery.codecs import protobuf
from fakekube.apimachinery.errors.status import StatusError
from fakekube.apimachinery.schema.builtin import kind_type
from fakekube.powers.streams import ObservedStream

TIMEOUT = 60.0
PODS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(profile="apiserver") as made:
        yield made


@pytest.fixture
def ask(cluster: Cluster) -> Iterator[Callable[..., Any]]:
    """A request on a connection of its own: (code, decoded body), or the error of the connection."""
    connections: list[http.client.HTTPConnection] = []

    def send(method: str, path: str, body: Any = None, *, content_type: str = "application/json", stream: bool = False) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=TIMEOUT)
        connections.append(connection)
        data = None if body is None else json.dumps(body)
        connection.request(method, path, data, {"Content-Type": content_type, "User-Agent": "test"})
        response = connection.getresponse()
        if stream:
            return response
        raw = response.read()
        return response.status, json.loads(raw)

    yield send
    for connection in connections:
        connection.close()


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def event(response: http.client.HTTPResponse) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(response.readline())
    return found


# ---------------------------------------------------------------- requests


def test_status_fault_answers_without_performing_the_request(cluster: Cluster, ask: Callable[..., Any]) -> None:
    fault = cluster.faults.on("create", "configmaps", name="a").status(429, retry_after=2, times=1, label="busy")
    code, answer = ask("POST", PODS, config_map("a"))
    assert (code, answer["reason"], answer["details"]["retryAfterSeconds"]) == (429, "TooManyRequests", 2)
    assert cluster.requests.last.fault == "busy"
    assert fault.exhausted
    assert ask("POST", PODS, config_map("a"))[0] == 201
    assert fault.hits == 1


def test_refused_request_is_not_performed_and_lost_request_is(cluster: Cluster, ask: Callable[..., Any]) -> None:
    with cluster.faults.on("create", "configmaps").refuse(), pytest.raises(OSError):
        ask("POST", PODS, config_map("a"))
    with cluster.faults.on("create", "configmaps").lose(), pytest.raises(OSError):
        ask("POST", PODS, config_map("b"))
    assert [one["metadata"]["name"] for one in cluster.list("configmaps", namespace="default")] == ["b"]


def test_after_every_and_times_limit_fault_hits(cluster: Cluster, ask: Callable[..., Any]) -> None:
    cluster.faults.on("list", "configmaps").status(500, after=1, every=2, times=2)
    assert [ask("GET", PODS)[0] for _ in range(7)] == [200, 500, 200, 500, 200, 200, 200]


def test_fault_expires_by_the_cluster_clock(cluster: Cluster, ask: Callable[..., Any]) -> None:
    cluster.clock.hold()
    cluster.faults.on("list").status(503, lasts=60)
    assert ask("GET", PODS)[0] == 503
    cluster.clock.advance(seconds=61)
    assert ask("GET", PODS)[0] == 200


def test_fault_probability_is_deterministic_for_a_seed(cluster: Cluster, ask: Callable[..., Any]) -> None:
    def codes() -> list[int]:
        cluster.faults.seed(7)
        with cluster.faults.on("list").status(500, probability=0.5):
            return [ask("GET", PODS)[0] for _ in range(12)]

    first = codes()
    assert first == codes()
    assert {*first} == {200, 500}


def test_conflict_fault_modifies_the_object_before_the_update(cluster: Cluster, ask: Callable[..., Any]) -> None:
    cluster.create(config_map("a", x="1"))
    _, obj = ask("GET", f"{PODS}/a")
    cluster.faults.on("update", "cm", name="a").conflict(times=1)
    code, answer = ask("PUT", f"{PODS}/a", obj)
    assert (code, answer["reason"]) == (409, "Conflict")
    _, newer = ask("GET", f"{PODS}/a")
    assert newer["metadata"]["annotations"] == {"fakekube.dev/conflict": "1"}
    assert ask("PUT", f"{PODS}/a", newer)[0] == 200


def test_delay_faults_follow_the_clock_and_add_up(cluster: Cluster, ask: Callable[..., Any]) -> None:
    cluster.clock.hold()
    cluster.faults.on("list").delay(5)
    cluster.faults.on("list").delay(5)
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(ask("GET", PODS)[0]))
    thread.start()
    while thread.is_alive():
        cluster.clock.next()
        thread.join(0.001)
    assert codes == [200]
    assert list(cluster.requests.last.faults) == [fault.name for fault in cluster.faults]


def test_hanging_request_is_performed_when_the_fault_is_removed(cluster: Cluster, ask: Callable[..., Any]) -> None:
    fault = cluster.faults.on("create", "configmaps").hang()
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(ask("POST", PODS, config_map("a"))[0]))
    thread.start()
    while not fault.hits:
        thread.join(0.001)
    assert not cluster.list("configmaps", namespace="default")
    fault.remove()
    thread.join(TIMEOUT)
    assert codes == [201]


def test_stale_read_is_not_older_than_the_requested_resource_version(cluster: Cluster, ask: Callable[..., Any]) -> None:
    made = cluster.create(config_map("a", n="0"))
    old = int(made["metadata"]["resourceVersion"])
    for n in range(1, 6):
        cluster.patch("cm", "a", {"data": {"n": str(n)}})
    cluster.faults.on("get,list", "configmaps").stale(by=3)
    assert ask("GET", f"{PODS}/a?resourceVersion=0")[1]["data"]["n"] == "2"
    assert ask("GET", f"{PODS}/a?resourceVersion={old + 4}")[1]["data"]["n"] == "4"
    assert ask("GET", f"{PODS}?resourceVersion=0")[1]["items"][0]["data"]["n"] == "2"
    assert ask("GET", f"{PODS}/a")[1]["data"]["n"] == "5"  # a consistent read is no stale one


def test_intercept_fault_answers_from_a_function(cluster: Cluster, ask: Callable[..., Any]) -> None:
    cluster.faults.on("create", "configmaps").intercept(
        lambda one: (418, {"seen": one.body["data"]}) if one.name == "a" else None
    )
    assert ask("POST", PODS, config_map("a", x="1")) == (418, {"seen": {"x": "1"}})
    assert ask("POST", PODS, config_map("b"))[0] == 201


def test_faults_on_non_resource_paths(cluster: Cluster, ask: Callable[..., Any]) -> None:
    cluster.faults.on("*", path="/openapi/*").status(503)
    assert ask("GET", "/openapi/v3")[0] == 503
    assert ask("GET", PODS)[0] == 200


def test_slice_and_cut_faults_on_response_bodies(cluster: Cluster, ask: Callable[..., Any]) -> None:
    with cluster.faults.on("list").slice(7):
        assert ask("GET", PODS)[1]["items"] == []
    with cluster.faults.on("list").cut(after_bytes=9):
        response = ask("GET", PODS, stream=True)
        with pytest.raises((http.client.IncompleteRead, OSError)):
            response.read()


@pytest.mark.parametrize("query", ["", "?watch=1"])
def test_cut_without_arguments_ends_the_response_after_the_headers(cluster: Cluster, ask: Callable[..., Any], query: str) -> None:
    cluster.create(config_map("a"))
    with cluster.faults.on("list,watch", "configmaps").cut() as fault:
        response = ask("GET", PODS + query, stream=True)
        assert response.headers["Content-Type"] == "application/json"
        with pytest.raises((http.client.IncompleteRead, OSError)):
            response.read()
    assert fault.hits == 1


def test_cut_beyond_the_end_of_the_response_is_not_a_hit(cluster: Cluster, ask: Callable[..., Any]) -> None:
    with cluster.faults.on("list", "configmaps").cut(after_bytes=10_000):
        assert ask("GET", PODS)[0] == 200
    with cluster.faults.on("*", "configmaps").cut(after_events=1) as fault:
        assert ask("GET", PODS)[0] == 200
    assert fault.hits == 0


def test_faults_hit_the_clusters_own_client_only_with_own(cluster: Cluster) -> None:
    with cluster.faults.on("*").status(500):
        assert cluster.list("pods") == []
    with cluster.faults.on("*", own=True).status(500), pytest.raises(Exception, match="unknown"):
        cluster.list("pods")


def test_first_of_two_exclusive_faults_wins(cluster: Cluster, ask: Callable[..., Any]) -> None:
    first = cluster.faults.on("list").status(500)
    second = cluster.faults.on("list").status(503)
    assert ask("GET", PODS)[0] == 500
    assert (first.hits, second.hits) == (1, 0)
    first.remove()
    assert ask("GET", PODS)[0] == 503


# ---------------------------------------------------------------- watches


def test_gone_fault_ends_open_watches_with_410_and_compacts(cluster: Cluster, ask: Callable[..., Any]) -> None:
    cluster.create(config_map("a"))
    newest = ask("GET", PODS)[1]["metadata"]["resourceVersion"]
    watch = ask("GET", f"{PODS}?watch=1&resourceVersion={newest}", stream=True)
    cluster.faults.on("watch", "configmaps").gone(times=1)
    gone = event(watch)
    assert (gone["type"], gone["object"]["code"], gone["object"]["reason"]) == ("ERROR", 410, "Expired")
    assert watch.read() == b""
    late = ask("GET", f"{PODS}?watch=1&resourceVersion={newest}", stream=True)
    assert event(late)["object"]["code"] == 410
    assert ask("GET", f"{PODS}?resourceVersion={newest}&resourceVersionMatch=Exact")[0] == 410


def test_end_cut_silence_and_slice_faults_on_watches(cluster: Cluster, ask: Callable[..., Any]) -> None:
    for n in range(3):
        cluster.create(config_map(f"c{n}"))
    with cluster.faults.on("watch", "configmaps").end(after_events=2):
        assert len(ask("GET", f"{PODS}?watch=1", stream=True).read().splitlines()) == 2
    assert cluster.requests.last.events == 2
    with cluster.faults.on("watch", "configmaps").cut(after_bytes=500), pytest.raises((http.client.IncompleteRead, OSError)):
        ask("GET", f"{PODS}?watch=1", stream=True).read()
    with cluster.faults.on("watch", "configmaps").silence(after_events=1):
        watch = ask("GET", f"{PODS}?watch=1&timeoutSeconds=1", stream=True)
        assert event(watch)["type"] == "ADDED"
    with cluster.faults.on("watch", "configmaps").slice(5):
        watch = ask("GET", f"{PODS}?watch=1&timeoutSeconds=1", stream=True)
        assert [event(watch)["type"] for _ in range(3)] == ["ADDED"] * 3
        cluster.clock.advance(seconds=1)
        assert watch.read() == b""


def test_error_event_fault_ends_an_open_watch(cluster: Cluster, ask: Callable[..., Any]) -> None:
    watch = ask("GET", f"{PODS}?watch=1", stream=True)
    cluster.faults.on("watch", "configmaps").error_event(500, reason="InternalError", message="etcdserver: no leader")
    found = event(watch)
    assert (found["type"], found["object"]["message"]) == ("ERROR", "etcdserver: no leader")
    assert watch.read() == b""


def test_the_first_error_event_is_what_a_watch_receives() -> None:
    inner = SimpleNamespace(ended=False, sent=[], fail=lambda error: inner.sent.append(error.code))
    exchange: Any = SimpleNamespace(ended=None, record_end=lambda why: setattr(exchange, "ended", why))
    stream: Any = SimpleNamespace(_watch=inner, exchange=exchange)
    for error in (StatusError(500, "InternalError", "m"), StatusError(504, "Timeout", "m")):
        ObservedStream.fail(stream, error)
    assert (inner.sent, exchange.ended) == ([500], "error 500")


def test_bookmarks_fault_sends_frequent_bookmarks(cluster: Cluster, ask: Callable[..., Any]) -> None:
    with cluster.faults.on("watch").bookmarks("often"):
        watch = ask("GET", f"{PODS}?watch=1&allowWatchBookmarks=true", stream=True)
        cluster.create(config_map("a"))
        assert [event(watch)["type"] for _ in range(3)] == ["BOOKMARK", "ADDED", "BOOKMARK"]  # the first ends the initial events
    with pytest.raises(ValueError, match="never"):
        cluster.faults.on("watch").bookmarks("sometimes")


def test_cut_watch_records_only_complete_events(cluster: Cluster, ask: Callable[..., Any]) -> None:
    for n in range(3):
        cluster.create(config_map(f"c{n}"))
    size = len(ask("GET", f"{PODS}?watch=1&timeoutSeconds=1", stream=True).readline())
    with (
        cluster.faults.on("watch", "configmaps").cut(after_bytes=size + 10),
        pytest.raises((http.client.IncompleteRead, OSError)),
    ):
        ask("GET", f"{PODS}?watch=1", stream=True).read()
    assert (cluster.requests.last.events, cluster.requests.last.ended) == (1, "cut by a fault")


def test_bookmarks_fault_respects_allow_watch_bookmarks(cluster: Cluster, ask: Callable[..., Any]) -> None:
    cluster.create(config_map("a"))
    with cluster.faults.on("watch").bookmarks("often"):
        watch = ask("GET", f"{PODS}?watch=1&timeoutSeconds=1", stream=True)
        cluster.clock.advance(seconds=1)
        lines = watch.read().splitlines()
    assert [json.loads(line)["type"] for line in lines] == ["ADDED"]


def test_consistent_reads_do_not_count_as_stale_hits(cluster: Cluster, ask: Callable[..., Any]) -> None:
    cluster.create(config_map("a"))
    newest = ask("GET", PODS)[1]["metadata"]["resourceVersion"]
    fault = cluster.faults.on("get,list", "configmaps").stale(by=1)
    for query in ("", f"?resourceVersion={newest}&resourceVersionMatch=Exact", f"?resourceVersion={newest}&limit=1"):
        assert ask("GET", PODS + query)[0] == 200
    assert not fault.hits


def test_conflict_fault_ignores_its_own_writes_and_can_change_status(cluster: Cluster, ask: Callable[..., Any]) -> None:
    cluster.create(config_map("a"))
    body = cluster.get("cm", "a")
    with cluster.faults.on("*", "configmaps", own=True).conflict() as fault, pytest.raises(Exception, match="has been modified"):
        cluster.call("PUT", f"{PODS}/a", body)
    assert fault.hits == 1

    cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
    cluster.faults.on("update", "nodes/status").conflict(lambda node: node["status"].update(phase="Running"))
    body = ask("GET", "/api/v1/nodes/n")[1]
    assert ask("PUT", "/api/v1/nodes/n/status", body)[0] == 409
    assert cluster.get("nodes", "n")["status"]["phase"] == "Running"


def test_conflict_fault_with_an_invalid_change_has_no_effect(cluster: Cluster, ask: Callable[..., Any]) -> None:
    cluster.create(config_map("a"))
    cluster.faults.on("update", "configmaps").conflict(lambda obj: {**obj, "metadata": {"name": "b"}})
    assert ask("PUT", f"{PODS}/a", config_map("a", x="1"))[0] == 200


def test_hang_ends_when_the_fault_expires(cluster: Cluster, ask: Callable[..., Any]) -> None:
    cluster.clock.hold()
    fault = cluster.faults.on("list").hang(lasts=60)
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(ask("GET", PODS)[0]))
    thread.start()
    while thread.is_alive():
        thread.join(0.001)
        if fault.hits:
            cluster.clock.advance(seconds=61)
    assert codes == [200]


def test_faults_match_names_in_protobuf_bodies(cluster: Cluster) -> None:
    type_ = kind_type("", "v1", "ConfigMap")
    assert type_ is not None
    body = protobuf.document("v1", "ConfigMap", protobuf.encode_item(type_, config_map("a", x="1")))
    media = "application/vnd.kubernetes.protobuf"
    fault = cluster.faults.on("create", "configmaps", name="a").status(503, times=1)
    codes = []
    for _ in range(2):
        connection = http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=TIMEOUT)
        connection.request("POST", PODS, body, {"Content-Type": media, "Accept": media})
        codes.append(connection.getresponse().status)
        connection.close()
    assert (codes, fault.hits) == ([503, 201], 1)
    made = cluster.requests.last
    assert made.body["data"] == made.answer["data"] == {"x": "1"}
    assert made.revision


# ---------------------------------------------------------------- the registry


def test_fault_without_hits_is_listed_as_unfired_after_its_block(cluster: Cluster) -> None:
    with cluster.faults.on("get").status(500) as fault:
        pass
    assert cluster.faults.unfired() == [fault]
    cluster.faults.on("get").status(500).remove()
    assert cluster.faults.unfired() == [fault]
    cluster.faults.clear()
    assert cluster.faults.unfired() == []


def test_faults_are_indexed_by_verb_resource_and_name(cluster: Cluster, ask: Callable[..., Any]) -> None:
    for n in range(3000):
        cluster.faults.on("get", "configmaps", name=f"c{n}").status(503, times=1)
    exchanges = cluster.requests
    ask("GET", f"{PODS}/other")
    assert len(cluster.faults.candidates(exchanges.last)) == 0
    assert ask("GET", f"{PODS}/c77")[0] == 503
    assert len(cluster.faults.candidates(exchanges.last)) == 0  # it is exhausted
    assert ask("GET", f"{PODS}/c77")[0] == 404
    for n in range(1500):
        with cluster.faults.on("delete", name=f"c{n}").status(503):
            pass
    assert len(cluster.faults.unfired()) <= 3999
    cluster.faults.clear()
    assert not len(cluster.faults)


def test_faults_are_listed_and_cleared(cluster: Cluster) -> None:
    one = cluster.faults.on("get").status(500, label="a")
    assert list(cluster.faults) == cluster.faults.unfired() == [one]
    assert len(cluster.faults) == 1
    cluster.faults.clear()
    assert not len(cluster.faults)
    with pytest.raises(ValueError, match="no verb eat"):
        cluster.faults.on("eat")


def test_strict_cluster_fails_on_stop_for_unfired_faults() -> None:
    cluster = Cluster(profile="apiserver", strict=True)
    cluster.faults.on("delete", "pods").status(500)
    with pytest.raises(AssertionError, match="never happened"):
        cluster.stop()
    cluster.stop()
