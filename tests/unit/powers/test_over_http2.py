"""Faults hit the one stream that they meet; the connection and its other streams go on."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster
from tests.unit.net.http2.client import Answer, Client

TIMEOUT = 60.0
INTERNAL_ERROR = 2
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
WATCH = CONFIGMAPS + "?watch=1"
AS_ADMIN = ("authorization", "Bearer admin-token")


class Session(Client):
    """A client of one cluster, who is its administrator."""

    def ask(self, target: str = "/", method: str = "GET", *extra: tuple[str, str], ends: bool = True) -> int:
        return super().ask(target, method, AS_ADMIN, *extra, ends=ends)

    def create(self, name: str) -> Answer:
        stream_id = self.ask(CONFIGMAPS, "POST", ("content-type", "application/json"), ends=False)
        self.h2.send_data(stream_id, json.dumps({"metadata": {"name": name}}).encode(), end_stream=True)
        return self.answer(stream_id)

    def watch(self, target: str = WATCH) -> Answer:
        answer = self.answers[self.ask(target)]
        self.until(lambda: bool(answer.fields) or answer.reset is not None)
        return answer

    def has_events(self, answer: Answer, count: int) -> None:
        self.until(lambda: answer.data.count(b"\n") == count)

    def ends(self, answer: Answer) -> None:
        self.until(lambda: answer.ended or answer.reset is not None)


@pytest.fixture(scope="module")
def shared() -> Iterator[Cluster]:
    with Cluster(profile="apiserver", tls=True) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared: Cluster) -> Iterator[Cluster]:
    yield shared
    shared.reset()


@pytest.fixture
def session(cluster: Cluster) -> Iterator[Session]:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    session = Session(int(cluster.url.rpartition(":")[2]), context)
    yield session
    session.close()


def types(answer: Answer) -> list[str]:
    return [json.loads(line)["type"] for line in answer.data.splitlines()]


def test_refuse_resets_the_stream_without_performing_the_request(cluster: Cluster, session: Session) -> None:
    cluster.faults.on("create", "configmaps").refuse(times=1)
    assert session.create("a").reset == INTERNAL_ERROR
    assert cluster.list("configmaps", field_selector="metadata.name=a") == []
    assert session.create("a").status == "201"


def test_lose_resets_the_stream_after_performing_the_request(cluster: Cluster, session: Session) -> None:
    cluster.faults.on("create", "configmaps").lose(times=1)
    assert session.create("a").reset == INTERNAL_ERROR
    assert session.create("a").status == "409"
    cluster.faults.on("watch", "configmaps").lose(times=1)
    assert session.watch().reset == INTERNAL_ERROR


@pytest.mark.parametrize(("size", "came"), [(None, 0), (20, 20)])
def test_cut_resets_the_stream_within_a_response(cluster: Cluster, session: Session, size: int | None, came: int) -> None:
    cluster.faults.on("list", "configmaps").cut(after_bytes=size, times=1)
    answer = session.get(CONFIGMAPS)
    assert (len(answer.data), answer.ended, answer.reset) == (came, False, INTERNAL_ERROR)
    assert session.get(CONFIGMAPS).ended


def test_cut_resets_a_watch_stream(cluster: Cluster, session: Session) -> None:
    cluster.faults.on("watch", "configmaps").cut(times=1)
    cut = session.watch()
    session.ends(cut)
    assert (cut.data, cut.reset) == (b"", INTERNAL_ERROR)
    other = session.watch()
    session.create("a")
    session.has_events(other, 1)
    fault = cluster.faults.on("watch", "configmaps").cut(after_events=1)
    session.create("b")
    session.create("c")
    session.ends(other)
    assert (types(other)[:2], other.reset) == (["ADDED", "ADDED"], INTERNAL_ERROR)
    fault.remove()
    cluster.faults.on("watch", "configmaps").cut(after_bytes=30, times=1)
    halved = session.watch(WATCH + "&resourceVersion=0")
    session.ends(halved)
    assert (len(halved.data), halved.reset) == (30, INTERNAL_ERROR)


def test_slice_keeps_responses_and_watches_complete(cluster: Cluster, session: Session) -> None:
    session.create("a")
    fault = cluster.faults.on("watch,list", "configmaps").slice(7)
    answer = session.watch(WATCH + "&resourceVersion=0")
    session.has_events(answer, 1)
    assert types(answer) == ["ADDED"]
    assert len(json.loads(session.get(CONFIGMAPS).data)["items"]) == 1
    assert fault.hits == 2


def test_end_and_error_event_end_a_watch_stream(cluster: Cluster, session: Session) -> None:
    cluster.faults.on("watch", "configmaps").end(after_events=1, times=1)
    answer = session.watch()
    session.create("a")
    session.ends(answer)
    assert (types(answer), answer.ended, answer.reset) == (["ADDED"], True, None)
    failing = session.watch(WATCH + "&fieldSelector=metadata.name%3Db")
    cluster.faults.on("watch", "configmaps").error_event(500)
    session.ends(failing)
    assert (types(failing), failing.ended) == (["ERROR"], True)


def test_gone_ends_a_watch_with_410(cluster: Cluster, session: Session) -> None:
    answer = session.watch()
    cluster.faults.on("watch", "configmaps").gone(times=1)
    session.ends(answer)
    assert (types(answer), answer.ended) == (["ERROR"], True)
    assert b'"code":410' in answer.data


def test_silence_affects_a_single_watch(cluster: Cluster, session: Session) -> None:
    silent, other = session.watch(), session.watch()
    fault = cluster.faults.on("watch", "configmaps").silence(times=1)
    assert fault.hits == 1
    session.create("a")
    session.until(lambda: bool(silent.data or other.data))
    assert sorted([len(types(silent)), len(types(other))]) == [0, 1]


def test_hang_and_delay_do_not_block_other_streams(cluster: Cluster, session: Session) -> None:
    fault = cluster.faults.on("get", "configmaps", name="a").hang()
    waiting = session.ask(CONFIGMAPS + "/a")
    assert session.get("/version").status == "200"
    assert not session.answers[waiting].fields
    fault.remove()
    assert session.answer(waiting).status == "404"
    cluster.clock.hold()
    delayed = cluster.faults.on("get", "configmaps", name="b").delay(60)
    waiting = session.ask(CONFIGMAPS + "/b")
    session.flush()
    cluster.requests.where(verb="get", name="b")
    assert session.get("/version").status == "200"
    cluster.clock.release()
    cluster.clock.advance(minutes=2)
    assert session.answer(waiting).status == "404"
    assert delayed.hits == 1


def test_hanging_request_can_be_reset_by_the_client(cluster: Cluster, session: Session) -> None:
    fault = cluster.faults.on("get", "configmaps", name="a").hang()
    waiting = session.ask(CONFIGMAPS + "/a")
    session.h2.reset_stream(waiting)
    assert session.get("/version").status == "200"
    fault.remove()
    assert session.get(CONFIGMAPS + "/b").status == "404"


def test_status_conflict_and_intercept_over_http2(cluster: Cluster, session: Session) -> None:
    session.create("a")
    cluster.faults.on("get", "configmaps").status(503, retry_after=3, times=1)
    answer = session.get(CONFIGMAPS + "/a")
    assert (answer.status, answer.fields["retry-after"]) == ("503", "3")
    cluster.faults.on("get", "configmaps").intercept(lambda exchange: (418, {"path": exchange.path}), times=1)
    assert session.get(CONFIGMAPS + "/a").data == b'{"path":"%s/a"}\n' % CONFIGMAPS.encode()
    cluster.faults.on("delete", "configmaps").conflict(times=1)
    version = json.loads(session.get(CONFIGMAPS + "/a").data)["metadata"]["resourceVersion"]
    stream_id = session.ask(CONFIGMAPS + "/a", "DELETE", ("content-type", "application/json"), ends=False)
    body = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"resourceVersion": version}}
    session.h2.send_data(stream_id, json.dumps(body).encode(), end_stream=True)
    assert session.answer(stream_id).status == "409"


def test_restart_ends_the_connection_with_goaway(cluster: Cluster, session: Session) -> None:
    session.watch()
    cluster.restart(cold=0)
    session.rest()
    assert session.goaway == 0


def test_requests_over_http2_are_recorded(cluster: Cluster, session: Session) -> None:
    mark = cluster.requests.mark()
    session.create("a")
    answer = session.watch(WATCH + "&resourceVersion=0")
    session.has_events(answer, 1)
    created = cluster.requests.since(mark).where(verb="create", resource="configmaps").one
    assert (created.status, created.body["metadata"], created.answer["kind"]) == (201, {"name": "a"}, "ConfigMap")
    assert created.headers["host"] == "localhost" and created.user == "admin"
    watched = cluster.requests.since(mark).where(verb="watch").one
    assert (watched.events, watched.ended) == (1, None)
    ended = threading.Event()
    session.close()
    for _ in range(1000):
        if watched.ended is not None:
            break
        ended.wait(0.01)
    assert watched.ended == "closed by the client"


def test_silence_of_the_connection_leaves_pings_unanswered(cluster: Cluster, session: Session) -> None:
    """Clients notice a dead connection by PINGs that are not answered."""
    answer = session.watch()
    cluster.faults.on("watch", "configmaps").silence(times=1, connection=True)
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}})
    session.socket.settimeout(0.3)
    with pytest.raises(TimeoutError):
        for _ in range(1000):
            session.h2.ping(b"silence?")
            session.receive()
    assert (answer.data, answer.ended, answer.reset) == (b"", False, None)


def test_client_certificate_authenticates_over_http2(cluster: Cluster) -> None:
    from fakekube.net.certificates import client_credentials

    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    certificate, key = client_credentials("alice", ("team-a",))
    with open_pem(certificate + key) as path:
        context.load_cert_chain(path)
    client = Client(int(cluster.url.rpartition(":")[2]), context)
    try:
        answer = client.get(CONFIGMAPS)
    finally:
        client.close()
    assert answer.status == "403" and b'User \\"alice\\" cannot list' in answer.data


def open_pem(text: str) -> Any:
    import contextlib
    import os
    import tempfile

    @contextlib.contextmanager
    def opened() -> Iterator[str]:
        descriptor, path = tempfile.mkstemp()
        with open(descriptor, "w", encoding="ascii") as file:
            file.write(text)
        try:
            yield path
        finally:
            os.unlink(path)

    return opened()
