"""Faults: each action over a socket, as a client sees it; how often they happen; and that the state stays true."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.codecs import protobuf
from fakekube.schema.builtin import kind_type

TIMEOUT = 10.0
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


def test_a_status_is_answered_and_nothing_done(cluster: Cluster, ask: Callable[..., Any]) -> None:
    fault = cluster.faults.on("create", "configmaps", name="a").status(429, retry_after=2, times=1, label="busy")
    code, answer = ask("POST", PODS, config_map("a"))
    assert (code, answer["reason"], answer["details"]["retryAfterSeconds"]) == (429, "TooManyRequests", 2)
    assert cluster.requests.last.fault == "busy"
    assert fault.exhausted
    assert ask("POST", PODS, config_map("a"))[0] == 201
    assert fault.hits == 1


def test_what_is_refused_was_not_done_and_what_is_lost_was(cluster: Cluster, ask: Callable[..., Any]) -> None:
    with cluster.faults.on("create", "configmaps").refuse(), pytest.raises(OSError):
        ask("POST", PODS, config_map("a"))
    with cluster.faults.on("create", "configmaps").lose(), pytest.raises(OSError):
        ask("POST", PODS, config_map("b"))
    assert [one["metadata"]["name"] for one in cluster.list("configmaps", namespace="default")] == ["b"]


def test_how_often_a_fault_happens(cluster: Cluster, ask: Callable[..., Any]) -> None:
    cluster.faults.on("list", "configmaps").status(500, after=1, every=2, times=2)
    assert [ask("GET", PODS)[0] for _ in range(7)] == [200, 500, 200, 500, 200, 200, 200]


def test_a_fault_lasts_as_long_as_the_clock_says(cluster: Cluster, ask: Callable[..., Any]) -> None:
    cluster.clock.hold()
    cluster.faults.on("list").status(503, lasts=60)
    assert ask("GET", PODS)[0] == 503
    cluster.clock.advance(seconds=61)
    assert ask("GET", PODS)[0] == 200


def test_chances_fall_alike_with_one_seed(cluster: Cluster, ask: Callable[..., Any]) -> None:
    def codes() -> list[int]:
        cluster.faults.seed(7)
        with cluster.faults.on("list").status(500, probability=0.5):
            return [ask("GET", PODS)[0] for _ in range(12)]

    first = codes()
    assert first == codes()
    assert {*first} == {200, 500}


def test_a_conflict_is_a_write_of_somebody_else(cluster: Cluster, ask: Callable[..., Any]) -> None:
    cluster.create(config_map("a", x="1"))
    _, obj = ask("GET", f"{PODS}/a")
    cluster.faults.on("update", "cm", name="a").conflict(times=1)
    code, answer = ask("PUT", f"{PODS}/a", obj)
    assert (code, answer["reason"]) == (409, "Conflict")
    _, newer = ask("GET", f"{PODS}/a")
    assert newer["metadata"]["annotations"] == {"fakekube.dev/conflict": "1"}
    assert ask("PUT", f"{PODS}/a", newer)[0] == 200


def test_a_delay_follows_the_clock_and_delays_add_up(cluster: Cluster, ask: Callable[..., Any]) -> None:
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


def test_what_hangs_is_performed_when_the_fault_goes(cluster: Cluster, ask: Callable[..., Any]) -> None:
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


def test_a_stale_read_shows_the_past_and_never_less_than_was_asked_for(cluster: Cluster, ask: Callable[..., Any]) -> None:
    made = cluster.create(config_map("a", n="0"))
    old = int(made["metadata"]["resourceVersion"])
    for n in range(1, 6):
        cluster.patch("cm", "a", {"data": {"n": str(n)}})
    cluster.faults.on("get,list", "configmaps").stale(by=3)
    assert ask("GET", f"{PODS}/a?resourceVersion=0")[1]["data"]["n"] == "2"
    assert ask("GET", f"{PODS}/a?resourceVersion={old + 4}")[1]["data"]["n"] == "4"
    assert ask("GET", f"{PODS}?resourceVersion=0")[1]["items"][0]["data"]["n"] == "2"
    assert ask("GET", f"{PODS}/a")[1]["data"]["n"] == "5"  # a consistent read is no stale one


def test_a_function_may_answer(cluster: Cluster, ask: Callable[..., Any]) -> None:
    cluster.faults.on("create", "configmaps").intercept(
        lambda one: (418, {"seen": one.body["data"]}) if one.name == "a" else None
    )
    assert ask("POST", PODS, config_map("a", x="1")) == (418, {"seen": {"x": "1"}})
    assert ask("POST", PODS, config_map("b"))[0] == 201


def test_paths_that_are_not_about_resources(cluster: Cluster, ask: Callable[..., Any]) -> None:
    cluster.faults.on("*", path="/openapi/*").status(503)
    assert ask("GET", "/openapi/v3")[0] == 503
    assert ask("GET", PODS)[0] == 200


def test_bodies_arrive_in_pieces_and_are_cut(cluster: Cluster, ask: Callable[..., Any]) -> None:
    with cluster.faults.on("list").slice(7):
        assert ask("GET", PODS)[1]["items"] == []
    with cluster.faults.on("list").cut(after_bytes=9):
        response = ask("GET", PODS, stream=True)
        with pytest.raises((http.client.IncompleteRead, OSError)):
            response.read()


@pytest.mark.parametrize("query", ["", "?watch=1"])
def test_a_cut_without_arguments_comes_right_after_the_headers(cluster: Cluster, ask: Callable[..., Any], query: str) -> None:
    cluster.create(config_map("a"))
    with cluster.faults.on("list,watch", "configmaps").cut() as fault:
        response = ask("GET", PODS + query, stream=True)
        assert response.headers["Content-Type"] == "application/json"
        with pytest.raises((http.client.IncompleteRead, OSError)):
            response.read()
    assert fault.hits == 1


def test_a_cut_behind_the_end_is_none(cluster: Cluster, ask: Callable[..., Any]) -> None:
    with cluster.faults.on("list", "configmaps").cut(after_bytes=10_000):
        assert ask("GET", PODS)[0] == 200
    with cluster.faults.on("*", "configmaps").cut(after_events=1) as fault:
        assert ask("GET", PODS)[0] == 200
    assert fault.hits == 0


def test_own_clients_are_met_only_if_that_is_said(cluster: Cluster) -> None:
    with cluster.faults.on("*").status(500):
        assert cluster.list("pods") == []
    with cluster.faults.on("*", own=True).status(500), pytest.raises(Exception, match="unknown"):
        cluster.list("pods")


def test_the_first_of_two_that_exclude_each_other_wins(cluster: Cluster, ask: Callable[..., Any]) -> None:
    first = cluster.faults.on("list").status(500)
    second = cluster.faults.on("list").status(503)
    assert ask("GET", PODS)[0] == 500
    assert (first.hits, second.hits) == (1, 0)
    first.remove()
    assert ask("GET", PODS)[0] == 503


# ---------------------------------------------------------------- watches


def test_gone_ends_open_watches_and_forgets_the_past(cluster: Cluster, ask: Callable[..., Any]) -> None:
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


def test_watches_end_are_cut_and_fall_silent(cluster: Cluster, ask: Callable[..., Any]) -> None:
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
        assert len(ask("GET", f"{PODS}?watch=1&timeoutSeconds=1", stream=True).read().splitlines()) == 3


def test_an_error_event_ends_an_open_watch(cluster: Cluster, ask: Callable[..., Any]) -> None:
    watch = ask("GET", f"{PODS}?watch=1", stream=True)
    cluster.faults.on("watch", "configmaps").error_event(500, reason="InternalError", message="etcdserver: no leader")
    found = event(watch)
    assert (found["type"], found["object"]["message"]) == ("ERROR", "etcdserver: no leader")
    assert watch.read() == b""


def test_bookmarks_often_and_never(cluster: Cluster, ask: Callable[..., Any]) -> None:
    with cluster.faults.on("watch").bookmarks("often"):
        watch = ask("GET", f"{PODS}?watch=1&allowWatchBookmarks=true", stream=True)
        cluster.create(config_map("a"))
        assert [event(watch)["type"] for _ in range(3)] == ["BOOKMARK", "ADDED", "BOOKMARK"]  # the first ends the initial events
    with pytest.raises(ValueError, match="never"):
        cluster.faults.on("watch").bookmarks("sometimes")


def test_a_cut_watch_counts_what_has_arrived(cluster: Cluster, ask: Callable[..., Any]) -> None:
    for n in range(3):
        cluster.create(config_map(f"c{n}"))
    size = len(ask("GET", f"{PODS}?watch=1&timeoutSeconds=1", stream=True).readline())
    with (
        cluster.faults.on("watch", "configmaps").cut(after_bytes=size + 10),
        pytest.raises((http.client.IncompleteRead, OSError)),
    ):
        ask("GET", f"{PODS}?watch=1", stream=True).read()
    assert (cluster.requests.last.events, cluster.requests.last.ended) == (1, "cut by a fault")


def test_bookmarks_come_only_to_whom_wants_them(cluster: Cluster, ask: Callable[..., Any]) -> None:
    cluster.create(config_map("a"))
    with cluster.faults.on("watch").bookmarks("often"):
        lines = ask("GET", f"{PODS}?watch=1&timeoutSeconds=1", stream=True).read().splitlines()
    assert [json.loads(line)["type"] for line in lines] == ["ADDED"]


def test_what_cannot_be_stale_is_not_counted(cluster: Cluster, ask: Callable[..., Any]) -> None:
    cluster.create(config_map("a"))
    newest = ask("GET", PODS)[1]["metadata"]["resourceVersion"]
    fault = cluster.faults.on("get,list", "configmaps").stale(by=1)
    for query in ("", f"?resourceVersion={newest}&resourceVersionMatch=Exact", f"?resourceVersion={newest}&limit=1"):
        assert ask("GET", PODS + query)[0] == 200
    assert not fault.hits


def test_a_conflict_meets_no_write_of_faults_and_may_change_the_status(cluster: Cluster, ask: Callable[..., Any]) -> None:
    cluster.create(config_map("a"))
    body = cluster.get("cm", "a")
    with cluster.faults.on("*", "configmaps", own=True).conflict() as fault, pytest.raises(Exception, match="has been modified"):
        cluster.request("PUT", f"{PODS}/a", body)
    assert fault.hits == 1

    cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
    cluster.faults.on("update", "nodes/status").conflict(lambda node: node["status"].update(phase="Running"))
    body = ask("GET", "/api/v1/nodes/n")[1]
    assert ask("PUT", "/api/v1/nodes/n/status", body)[0] == 409
    assert cluster.get("nodes", "n")["status"]["phase"] == "Running"


def test_a_change_that_the_api_refuses_makes_no_conflict(cluster: Cluster, ask: Callable[..., Any]) -> None:
    cluster.create(config_map("a"))
    cluster.faults.on("update", "configmaps").conflict(lambda obj: {**obj, "metadata": {"name": "b"}})
    assert ask("PUT", f"{PODS}/a", config_map("a", x="1"))[0] == 200


def test_a_hang_ends_with_its_fault(cluster: Cluster, ask: Callable[..., Any]) -> None:
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


def test_names_in_protobuf_are_read(cluster: Cluster) -> None:
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


def test_a_fault_that_ends_unhit_with_its_block_is_unfired(cluster: Cluster) -> None:
    with cluster.faults.on("get").status(500) as fault:
        pass
    assert cluster.faults.unfired() == [fault]
    cluster.faults.on("get").status(500).remove()
    assert cluster.faults.unfired() == [fault]
    cluster.faults.clear()
    assert cluster.faults.unfired() == []


def test_thousands_of_faults_are_found_by_verb_resource_and_name(cluster: Cluster, ask: Callable[..., Any]) -> None:
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


def test_a_strict_cluster_fails_for_a_fault_that_never_happened() -> None:
    cluster = Cluster(profile="apiserver", strict=True)
    cluster.faults.on("delete", "pods").status(500)
    with pytest.raises(AssertionError, match="never happened"):
        cluster.stop()
    cluster.stop()
