"""exec, attach, port forwarding, logs and proxies over sockets, with a stub kubelet."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.net.streaming.kubelet_api import KubeletError
from fakekube.net.streams import WholeStream
from tests.stub_kubelet import StubKubelet, make_pod, stubbed_cluster
from tests.unit.net.streaming.peers import BINARY, CLOSE_FRAME, SPDYClient, masked, messages

POD = "/api/v1/namespaces/default/pods/web"
WEBSOCKET = (
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
)
V5 = "v5.channel.k8s.io"


@pytest.fixture(scope="module")
def kubelet() -> StubKubelet:
    return StubKubelet()


@pytest.fixture(scope="module")
def cluster(kubelet: StubKubelet) -> Iterator[Cluster]:
    with stubbed_cluster(kubelet) as cluster:
        yield cluster


class Answer:
    """The head of an answer, and what came behind it until the connection ended."""

    def __init__(self, data: bytes) -> None:
        head, _, self.body = data.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        self.status = int(first.split()[1])
        self.headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}


def ask(cluster: Cluster, method: str, target: str, headers: str, data: bytes = b"") -> Answer:
    """Sends a request and some data, and reads until the server closes the connection."""
    host, _, port = cluster.url.rpartition("/")[2].partition(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(f"{method} {target} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode() + data)
        received = b""
        while piece := connection.recv(65536):
            received += piece
    return Answer(received)


def over_websocket(cluster: Cluster, target: str, protocol: str | None, *sent: bytes) -> Answer:
    offered = "" if protocol is None else f"Sec-WebSocket-Protocol: {protocol}\r\n"
    return ask(cluster, "GET", target, WEBSOCKET + offered, b"".join(masked(BINARY, one) for one in sent))


def over_spdy(cluster: Cluster, target: str, protocol: str, data: bytes = b"") -> Answer:
    offered = f"X-Stream-Protocol-Version: {protocol}\r\n" if protocol else ""
    upgrade = "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 0\r\n"
    return ask(cluster, "POST", target, upgrade + offered, data)


def channels(answer: Answer) -> dict[int, bytes]:
    """What came on each channel."""
    found: dict[int, bytes] = {}
    for opcode, payload in messages(answer.body):
        if opcode == BINARY and payload:
            found[payload[0]] = found.get(payload[0], b"") + payload[1:]
    return found


@pytest.mark.parametrize("protocol", [V5, "v4.channel.k8s.io", "channel.k8s.io", None])
def test_exec_over_websocket(cluster: Cluster, protocol: str | None) -> None:
    answer = over_websocket(cluster, f"{POD}/exec?command=echo&command=a+b&stdout=1&stderr=1", protocol)
    assert answer.status == 101
    assert answer.headers["sec-websocket-protocol"] == (protocol or "")
    assert channels(answer)[1] == b"a b\n"
    assert messages(answer.body)[-1] == CLOSE_FRAME


def test_exec_closes_stdin_and_returns_the_exit_status(cluster: Cluster) -> None:
    answer = over_websocket(cluster, f"{POD}/exec?command=cat&stdin=1&stdout=1", V5, b"\x00hello", b"\xff\x00")
    assert channels(answer) == {1: b"hello", 3: b'{"metadata":{},"status":"Success"}'}
    answer = over_websocket(cluster, f"{POD}/exec?command=exit&command=7&stderr=true", V5)
    received = channels(answer)
    assert received[2] == b"it fails\n"
    assert json.loads(received[3])["details"]["causes"] == [{"reason": "ExitCode", "message": "7"}]


def test_exec_with_large_output(cluster: Cluster) -> None:
    answer = over_websocket(cluster, f"{POD}/exec?command=flood&command=3000000&stdout=1", V5)
    assert channels(answer)[1] == b"x" * 3_000_000


def test_exec_over_spdy(cluster: Cluster) -> None:
    client = SPDYClient()
    opening = [client.open(streamtype=kind) for kind in ("error", "stdin", "stdout")]
    data = b"".join(data for _, data in opening) + client.data(3, b"hello", fin=True)
    answer = over_spdy(cluster, f"{POD}/exec?command=cat&stdin=1&stdout=1", "v4.channel.k8s.io", data)
    assert (answer.status, answer.headers["x-stream-protocol-version"]) == (101, "v4.channel.k8s.io")
    found: list[Any] = client.read(answer.body)
    sent = {frame.stream_id: frame.data for frame in found if hasattr(frame, "data")}
    assert (sent[5], sent[1]) == (b"hello", b'{"status":"Success"}')


def test_attach_over_websocket(cluster: Cluster) -> None:
    answer = over_websocket(cluster, f"{POD}/attach?stdout=1", V5)
    assert channels(answer)[1] == b"attached\n"


@pytest.mark.parametrize(
    ("target", "protocol", "code", "text"),
    [
        ("exec?command=x", "v4.channel.k8s.io", 400, "you must specify at least 1 of stdin, stdout, stderr"),
        ("exec?stdout=1", "v3.channel.k8s.io", 403, ""),
        ("portforward", "v4.channel.k8s.io", 400, 'query parameter "port" is required'),
        ("portforward?ports=0", "v4.channel.k8s.io", 400, 'port "0" must be > 0'),
        ("portforward?ports=80", "portforward.k8s.io", 403, ""),
    ],
)
def test_kubelet_errors_before_the_upgrade(cluster: Cluster, target: str, protocol: str, code: int, text: str) -> None:
    answer = over_websocket(cluster, f"{POD}/{target}", protocol)
    assert (answer.status, answer.body.decode()) == (code, text)


def test_kubelet_errors_are_sent_on_the_error_channel_with_v5(cluster: Cluster) -> None:
    received = channels(over_websocket(cluster, f"{POD}/exec?command=x", V5))[3]
    problem = "unable to upgrade connection: you must specify at least 1 of stdin, stdout, stderr"
    assert json.loads(received)["message"] == f"Internal error occurred: {problem}"


@pytest.mark.parametrize(
    ("protocol", "code", "text"),
    [
        ("", 400, "unable to upgrade: header X-Stream-Protocol-Version does not exist in request with 5 headers\n"),
        (",", 400, "unable to upgrade: header X-Stream-Protocol-Version contains [,], but no valid protocols\n"),
        (
            "v5.channel.k8s.io",
            403,
            "unable to upgrade: unable to negotiate protocol: client supports [v5.channel.k8s.io], server accepts "
            "[v4.channel.k8s.io v3.channel.k8s.io v2.channel.k8s.io channel.k8s.io]\n",
        ),
    ],
)
def test_spdy_requires_a_supported_protocol(cluster: Cluster, protocol: str, code: int, text: str) -> None:
    answer = over_spdy(cluster, f"{POD}/exec?stdout=1", protocol)
    assert (answer.status, answer.body.decode()) == (code, text)


@pytest.mark.parametrize(
    ("state", "text"),
    [
        ({"waiting": {"reason": "ContainerCreating"}}, 'container not found ("c")'),
        ({"terminated": {"exitCode": 0, "containerID": "fake://1"}}, 'container not found ("c")'),
    ],
)
def test_exec_requires_a_running_container(cluster: Cluster, state: dict[str, Any], text: str) -> None:
    make_pod(cluster, "still")
    statuses = cluster.get("pods", "still")["status"]["containerStatuses"]
    statuses[0] |= {"state": state, "ready": False}
    cluster.patch("pods", "still", {"status": {"containerStatuses": statuses}}, subresource="status")
    still = POD.replace("web", "still")
    answer = over_websocket(cluster, f"{still}/exec?stdout=1", "v4.channel.k8s.io")
    assert (answer.status, answer.body.decode()) == (500, text)
    answer = over_websocket(cluster, f"{still}/portforward?ports=80", "v4.channel.k8s.io")
    assert (answer.status, answer.body.decode()) == (500, 'pod not found ("still_default")')
    cluster.delete("pods", "still", gracePeriodSeconds=0)


@pytest.mark.parametrize(
    ("change", "query", "problem"),
    [
        ({"state": {"waiting": {"reason": "ContainerCreating"}}}, "", "is waiting to start: ContainerCreating"),
        ({"state": {"waiting": {"reason": "ImagePullBackOff"}}}, "", "is waiting to start: trying and failing to pull image"),
        ({"state": {"terminated": {"exitCode": 0}}}, "", "is terminated"),
        ({}, "?previous=true", "not found"),
    ],
)
def test_log_of_a_container_without_logs_returns_400(cluster: Cluster, change: dict[str, Any], query: str, problem: str) -> None:
    make_pod(cluster, "mute")
    statuses = cluster.get("pods", "mute")["status"]["containerStatuses"]
    statuses[0] |= change
    cluster.patch("pods", "mute", {"status": {"containerStatuses": statuses}}, subresource="status")
    answer = ask(cluster, "GET", f"{POD.replace('web', 'mute')}/log{query}", "Connection: close\r\n")
    previous = "previous terminated " if query else ""
    assert json.loads(answer.body)["message"] == f'{previous}container "c" in pod "mute" {problem}'
    assert answer.status == 400
    cluster.delete("pods", "mute", gracePeriodSeconds=0)


def test_log_response_is_plain_text(cluster: Cluster, kubelet: StubKubelet) -> None:
    answer = ask(cluster, "GET", f"{POD}/log?follow=1&tailLines=5&sinceTime=2020-01-01T00:00:00.5Z", "Connection: close\r\n")
    assert (answer.status, answer.headers["content-type"]) == (200, "text/plain")
    assert answer.body == b"8\r\none\ntwo\n\r\n0\r\n\r\n"
    options = kubelet.log_options
    assert options is not None
    assert (options.follow, options.tail_lines, str(options.since_time)) == (True, 5, "2020-01-01 00:00:00+00:00")


def test_log_over_websocket(cluster: Cluster, kubelet: StubKubelet) -> None:
    answer = over_websocket(cluster, f"{POD}/log", None)
    assert messages(answer.body) == [(BINARY, b""), (BINARY, b"one\ntwo\n"), CLOSE_FRAME]
    kubelet.log = WholeStream(b"x" * 5000)
    encoded = over_websocket(cluster, f"{POD}/log", "base64.binary.k8s.io")
    assert [len(payload) for _, payload in messages(encoded.body)[:-1]] == [0, 2732, 2732, 1208]
    assert over_websocket(cluster, f"{POD}/log", "foo").status == 403
    kubelet.log = b"one\ntwo\n"


@pytest.mark.parametrize(
    ("code", "answered"),
    [
        (400, (400, "no log")),
        (404, (404, "the server could not find the requested resource (pods/log web)")),
        (500, (500, "Internal error occurred: no log")),
    ],
)
def test_kubelet_log_errors(
    cluster: Cluster, kubelet: StubKubelet, monkeypatch: pytest.MonkeyPatch, code: int, answered: tuple[int, str]
) -> None:
    def refuse(*_: Any) -> bytes:
        raise KubeletError(code, "no log")

    monkeypatch.setattr(kubelet, "container_logs", refuse)
    answer = ask(cluster, "GET", f"{POD}/log", "Connection: close\r\n")
    assert (answer.status, json.loads(answer.body)["message"]) == answered


def test_pod_and_node_proxy_reach_wsgi_applications(cluster: Cluster, kubelet: StubKubelet) -> None:
    def application(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response("200 OK", [("Content-Type", "text/plain")])
        asked = f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}?{environ['QUERY_STRING']} ".encode()
        return [asked + environ["wsgi.input"].read()]

    kubelet.destinations[80] = kubelet.node = application
    answers = [
        ask(cluster, "PUT", f"{target}/a/b?c=d", "Connection: close\r\nContent-Length: 2\r\n", b"xy").body
        for target in (f"{POD}/proxy", f"{POD}:80/proxy", POD.replace("web", "http:web:http/proxy"), "/api/v1/nodes/n1/proxy")
    ]
    assert all(b"PUT /a/b?c=d xy" in answer for answer in answers)
    refused = ask(cluster, "GET", f"{POD}:81/proxy/", "Connection: close\r\n")
    problem = "error trying to reach service: dial tcp 10.1.0.9:81: connect: connection refused"
    assert (refused.status, json.loads(refused.body)["message"]) == (503, problem)
    unknown = ask(cluster, "GET", f"{POD}:foo/proxy/", "Connection: close\r\n")
    assert json.loads(unknown.body)["message"] == "error trying to reach service: dial tcp: lookup tcp/foo: unknown port"


SERVICE: dict[str, Any] = {
    "kind": "Service",
    "apiVersion": "v1",
    "metadata": {"name": "front"},
    "spec": {"ports": [{"name": "web", "port": 80, "targetPort": 8443}]},
}
PORTS = [{"name": "web", "port": 8443}]


def answer_path(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [environ["PATH_INFO"].encode()]


def check_service_proxy(cluster: Cluster, shown: str) -> None:
    """Checks which ports of the Service reach the application, and how the Service is shown that has no such port."""
    for name in ("front:80", "front:web", "http:front:web"):
        answer = ask(cluster, "GET", f"/api/v1/namespaces/default/services/{name}/proxy/x", "Connection: close\r\n")
        assert (answer.status, b"/x" in answer.body) == (200, True)
    absent = ask(cluster, "GET", "/api/v1/namespaces/default/services/front:other/proxy/", "Connection: close\r\n")
    assert json.loads(absent.body)["message"] == f'no endpoints available for service "{shown}"'


def test_service_proxy_reaches_the_pods_of_endpoint_slices(cluster: Cluster, kubelet: StubKubelet) -> None:
    kubelet.destinations[8443] = answer_path
    cluster.create(SERVICE)
    reference = {"kind": "Pod", "name": "web", "namespace": "default"}
    unready = {"addresses": ["10.1.0.9"], "targetRef": {**reference, "name": "absent"}, "conditions": {"ready": False}}
    endpoints = [{"addresses": ["10.9.9.9"], "targetRef": reference}, unready, {"addresses": ["10.1.0.9"]}]
    base = {"kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1", "addressType": "IPv4", "ports": PORTS}
    of_front = {"kubernetes.io/service-name": "front"}
    cluster.create({**base, "metadata": {"name": "front-a", "labels": of_front}, "endpoints": endpoints})
    ready = [{"addresses": ["10.1.0.9"], "targetRef": reference}]
    cluster.create({**base, "metadata": {"name": "other", "labels": {}}, "endpoints": ready})
    answer = ask(cluster, "GET", "/api/v1/namespaces/default/services/front:web/proxy/", "Connection: close\r\n")
    assert answer.status == 503
    cluster.create({**base, "metadata": {"name": "front-b", "labels": of_front}, "endpoints": ready})
    check_service_proxy(cluster, "front")


def test_service_proxy_before_1_37_reaches_the_pods_of_endpoints() -> None:
    kubelet = StubKubelet()
    kubelet.destinations[8443] = answer_path
    with stubbed_cluster(kubelet, version="1.36") as cluster:
        cluster.create(SERVICE)
        reference = {"kind": "Pod", "name": "web", "namespace": "default"}
        addresses = [{"ip": "10.9.9.9", "targetRef": reference}, {"ip": "10.1.0.9", "targetRef": reference}, {"ip": "10.1.0.9"}]
        subsets = [{"addresses": addresses, "ports": PORTS}]
        cluster.create({"kind": "Endpoints", "apiVersion": "v1", "metadata": {"name": "front"}, "subsets": subsets})
        check_service_proxy(cluster, "front:other")


# ---------------------------------------------------------------- clients that go away, or break the protocol


def opened(cluster: Cluster, target: str, headers: str) -> socket.socket:
    """A connection that has been upgraded."""
    host, _, port = cluster.url.rpartition("/")[2].partition(":")
    connection = socket.create_connection((host, int(port)), timeout=60)
    connection.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode())
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(65536)
    assert received.startswith(b"HTTP/1.1 101 ")
    return connection


def rest_of(connection: socket.socket) -> bytes:
    """What comes until the server ends the connection."""
    received = b""
    try:
        while piece := connection.recv(65536):
            received += piece
    except ConnectionResetError:  # it did not read all that was sent
        pass
    return received


CAT = f"{POD}/exec?command=cat&stdin=1&stdout=1"
FORWARD = f"{POD}/portforward?ports=7"
SPDY_UPGRADE = "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: "
TUNNEL = f"{WEBSOCKET}Sec-WebSocket-Protocol: SPDY/3.1+portforward.k8s.io\r\n"
UPGRADES = {
    "v5": (CAT, f"{WEBSOCKET}Sec-WebSocket-Protocol: {V5}\r\n"),
    "ports": (FORWARD, f"{WEBSOCKET}Sec-WebSocket-Protocol: v4.channel.k8s.io\r\n"),
    "tunnel": (FORWARD, TUNNEL),
    "exec over SPDY": (CAT, f"{SPDY_UPGRADE}v4.channel.k8s.io\r\n"),
    "ports over SPDY": (FORWARD, f"{SPDY_UPGRADE}portforward.k8s.io\r\n"),
}
GARBAGE = b"\xff" * 64 + b"\x00" * 64


@pytest.mark.parametrize(("target", "headers"), UPGRADES.values(), ids=UPGRADES)
def test_invalid_stream_data_ends_only_its_connection(cluster: Cluster, target: str, headers: str) -> None:
    with opened(cluster, *UPGRADES["v5"]) as other, opened(cluster, target, headers) as hostile:
        hostile.sendall(GARBAGE)
        rest_of(hostile)
        other.sendall(masked(BINARY, b"\x00still here") + masked(BINARY, b"\xff\x00"))
        assert (BINARY, b"\x01still here") in messages(rest_of(other))


def test_client_disconnect_cancels_the_process(cluster: Cluster, kubelet: StubKubelet) -> None:
    kubelet.cancelled.clear()
    opened(cluster, *UPGRADES["v5"]).close()
    assert kubelet.cancelled.wait(60)


def test_server_stop_ends_upgraded_streams(kubelet: StubKubelet) -> None:
    cluster = stubbed_cluster(kubelet)
    cluster.start()
    kubelet.cancelled.clear()
    connections = [opened(cluster, target, headers) for target, headers in UPGRADES.values()]
    cluster.stop()
    for connection in connections:
        rest_of(connection)
        connection.close()
    assert kubelet.cancelled.wait(60)


def test_upgraded_request_is_recorded(cluster: Cluster) -> None:
    over_websocket(cluster, f"{POD}/exec?command=echo&stdout=1", V5)
    recorded = cluster.requests.where(resource="pods/exec").last
    assert (recorded.verb, recorded.status, recorded.name) == ("get", 101, "web")
