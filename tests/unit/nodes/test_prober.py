"""Probes of containers that run their command."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import h2.config
import h2.connection
import h2.events
import pytest

from fakekube import Cluster


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as made:
        made.clock.hold()
        made.pods.on().runs_command()
        yield made


def start(cluster: Cluster, script: str = "sleep 1000", **fields: Any) -> None:
    main = {"name": "main", "image": "busybox", "command": ["sh", "-c", script], **fields}
    cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [main]}})
    cluster.settle()


def status_of(cluster: Cluster) -> Any:
    return cluster.get("pods", "p")["status"]["containerStatuses"][0]


def is_ready(cluster: Cluster) -> bool:
    ready = bool(status_of(cluster)["ready"])
    conditions = {one["type"]: one["status"] for one in cluster.get("pods", "p")["status"]["conditions"]}
    assert conditions["Ready"] == str(ready)
    return ready


def after(cluster: Cluster, seconds: float) -> Cluster:
    cluster.clock.advance(seconds=seconds)
    cluster.settle()
    return cluster


def messages(cluster: Cluster, reason: str) -> list[str]:
    return [one["message"] for one in cluster.list("events") if one["reason"] == reason]


def command(script: str, **fields: Any) -> dict[str, Any]:
    return {"exec": {"command": ["sh", "-c", script]}, **fields}


def test_a_readiness_probe_decides_whether_a_container_is_ready(cluster: Cluster) -> None:
    script = "sleep 7; touch /tmp/up; sleep 20; rm /tmp/up; sleep 1000"
    start(cluster, script, readinessProbe=command("cat /tmp/up", periodSeconds=5, failureThreshold=2))
    assert not is_ready(cluster)
    assert messages(cluster, "Unhealthy") == ["Readiness probe failed: cat: can't open '/tmp/up': No such file or directory\n"]
    assert not is_ready(after(cluster, 6))
    assert is_ready(after(cluster, 5))
    assert is_ready(after(cluster, 20))  # failed once
    assert not is_ready(after(cluster, 5))
    assert status_of(cluster)["restartCount"] == 0


def test_a_success_threshold_delays_readiness(cluster: Cluster) -> None:
    start(cluster, readinessProbe=command("true", initialDelaySeconds=3, periodSeconds=2, successThreshold=3))
    assert not is_ready(after(cluster, 6))
    assert is_ready(after(cluster, 1))


def test_a_failed_liveness_probe_restarts_a_container(cluster: Cluster) -> None:
    script = "touch /tmp/up; sleep 9; rm /tmp/up; sleep 1000"
    start(cluster, script, livenessProbe=command("test -e /tmp/up", periodSeconds=2, failureThreshold=3))
    assert is_ready(cluster)
    assert status_of(after(cluster, 13))["restartCount"] == 0
    found = status_of(after(cluster, 2))
    assert (found["restartCount"], found["lastState"]["terminated"]["exitCode"]) == (1, 137)
    assert messages(cluster, "Killing") == ["Container main failed liveness probe, will be restarted"]


def test_other_probes_wait_for_the_startup_probe(cluster: Cluster) -> None:
    start(
        cluster,
        "sleep 12; touch /tmp/up; sleep 1000",
        startupProbe=command("test -e /tmp/up", periodSeconds=5, failureThreshold=10),
        livenessProbe=command("test -e /tmp/up", periodSeconds=1, failureThreshold=1),
    )
    assert (status_of(after(cluster, 11))["started"], is_ready(cluster)) == (False, False)
    assert (status_of(after(cluster, 5))["started"], is_ready(cluster)) == (True, True)
    assert status_of(cluster)["restartCount"] == 0


def test_a_failed_startup_probe_restarts_a_container(cluster: Cluster) -> None:
    start(cluster, startupProbe=command("false", periodSeconds=1, failureThreshold=3))
    assert status_of(after(cluster, 3))["restartCount"] == 1
    assert messages(cluster, "Killing") == ["Container main failed startup probe, will be restarted"]


def test_a_probe_that_takes_too_long_fails(cluster: Cluster) -> None:
    start(cluster, readinessProbe=command("sleep 3", timeoutSeconds=2))
    assert not is_ready(cluster)
    assert messages(cluster, "Unhealthy") == ['Readiness probe failed: command "sh -c sleep 3" timed out after 2s']


def answering(statuses: Iterator[str], paths: list[str]) -> Callable[..., Iterable[bytes]]:
    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        paths.append(f"{environ['PATH_INFO']} {environ['HTTP_X_PROBE']}")
        start_response(next(statuses), [("Content-Length", "0")])
        return [b""]

    return application


def test_an_http_probe_requests_a_path(cluster: Cluster) -> None:
    paths: list[str] = []
    cluster.pods.on(name="p").serve(8080, answering(iter(["503 Service Unavailable", "204 No Content"]), paths))
    action = {"path": "/ready", "port": "http", "httpHeaders": [{"name": "X-Probe", "value": "yes"}]}
    ports = [{"name": "http", "containerPort": 8080}]
    start(cluster, ports=ports, readinessProbe={"httpGet": action, "periodSeconds": 5})
    assert not is_ready(cluster)
    assert messages(cluster, "Unhealthy") == ["Readiness probe failed: HTTP probe failed with statuscode: 503"]
    assert is_ready(after(cluster, 5))
    assert paths == ["/ready yes"] * 2


@pytest.mark.parametrize(
    ("handler", "text"),
    [
        ({"httpGet": {"port": 81, "path": "/"}}, 'Get "http://{ip}:81/": dial tcp {ip}:81: connect: connection refused'),
        ({"tcpSocket": {"port": 81}}, "dial tcp {ip}:81: connect: connection refused"),
    ],
)
def test_a_probe_of_a_closed_port_fails(cluster: Cluster, handler: dict[str, Any], text: str) -> None:
    start(cluster, ports=[{"containerPort": 80}], readinessProbe=handler)
    assert not is_ready(cluster)
    ip = cluster.get("pods", "p")["status"]["podIP"]
    assert messages(cluster, "Unhealthy") == [f"Readiness probe failed: {text.format(ip=ip)}"]


def test_a_probe_of_an_open_port_succeeds(cluster: Cluster) -> None:
    start(cluster, image="nginx", command=[], readinessProbe={"tcpSocket": {"port": 80}})
    assert is_ready(cluster)


def test_a_handler_of_a_test_can_be_a_probe(cluster: Cluster) -> None:
    codes = iter([1, 0])
    cluster.pods.on(name="p").exec(lambda context: next(codes), command="pg_isready")
    start(cluster, readinessProbe={"exec": {"command": ["pg_isready"]}, "periodSeconds": 5, "timeoutSeconds": 60})
    assert not is_ready(cluster)
    assert is_ready(after(cluster, 5))


def test_probes_succeed_if_the_shell_does_not_have_the_command_of_the_container(cluster: Cluster) -> None:
    start(cluster, image="operator:1", command=["/manager"], readinessProbe={"httpGet": {"port": 81, "path": "/readyz"}})
    assert is_ready(cluster)


def test_a_probe_succeeds_if_the_shell_does_not_have_its_command(cluster: Cluster) -> None:
    start(cluster, readinessProbe=command("pg_isready -U postgres"))
    assert is_ready(cluster)


def test_an_http_hook_requests_a_path(cluster: Cluster) -> None:
    paths: list[str] = []
    cluster.pods.on(name="p").serve(8080, answering(iter(["200 OK", "500 Internal Server Error"]), paths))
    header = [{"name": "X-Probe", "value": "yes"}]
    hooks = {when: {"httpGet": {"path": f"/{when}", "port": 8080, "httpHeaders": header}} for when in ("postStart", "preStop")}
    start(cluster, lifecycle=hooks)
    assert is_ready(cluster)
    cluster.delete("pods", "p")
    cluster.settle()
    assert paths == ["/postStart yes", "/preStop yes"]
    assert not messages(cluster, "FailedPreStopHook"), "an answer is enough, whatever its status"


def test_an_http_hook_fails_without_an_answer(cluster: Cluster) -> None:
    start(cluster, lifecycle={"preStop": {"httpGet": {"port": 8081}}}, ports=[{"containerPort": 8080}])
    cluster.delete("pods", "p")
    cluster.settle()
    assert messages(cluster, "FailedPreStopHook") == ["PreStopHook failed"]


def redirecting(location: str) -> Callable[..., list[bytes]]:
    """An application that redirects its root, and else answers 500."""

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        is_root = environ["PATH_INFO"] == "/"
        start_response("302 Found" if is_root else "500 Wrong", [("Location", location)] if is_root else [])
        return []

    return application


def test_an_http_probe_follows_redirections_to_the_same_host(cluster: Cluster) -> None:
    cluster.pods.on(name="p").serve(8080, redirecting("/fails"))
    start(cluster, readinessProbe={"httpGet": {"port": 8080}})
    assert not is_ready(cluster)
    assert messages(cluster, "Unhealthy") == ["Readiness probe failed: HTTP probe failed with statuscode: 500"]


def test_an_http_probe_succeeds_if_it_is_redirected_to_another_host(cluster: Cluster) -> None:
    cluster.pods.on(name="p").serve(8080, redirecting("http://example.com/"))
    start(cluster, readinessProbe={"httpGet": {"port": 8080}})
    assert is_ready(cluster)


def test_a_sleep_before_the_stop_delays_it(cluster: Cluster) -> None:
    start(cluster, lifecycle={"preStop": {"sleep": {"seconds": 7}}})
    cluster.delete("pods", "p")
    cluster.settle()
    assert after(cluster, 6).list("pods")
    assert not after(cluster, 2).list("pods")


def test_a_web_server_without_its_page_is_not_ready(cluster: Cluster) -> None:
    probe = {"httpGet": {"path": "/index.html", "port": 80}, "periodSeconds": 1, "failureThreshold": 1}
    start(cluster, image="httpd:2", command=[], readinessProbe=probe)
    assert is_ready(cluster)
    cluster.pods.get("p").exec("mv /usr/local/apache2/htdocs/index.html /tmp/")
    assert not is_ready(after(cluster, 1))
    cluster.pods.get("p").exec("mv /tmp/index.html /usr/local/apache2/htdocs/")
    assert is_ready(after(cluster, 1))


def grpc_server(statuses: dict[str, int]) -> Callable[[Any, Any], None]:
    """Returns a server of a port that speaks grpc.health.v1 by h2; a service without a status is NOT_FOUND."""

    def serve(received: Any, sent: Any) -> None:
        connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        connection.initiate_connection()
        sent.write_all(connection.data_to_send())
        body = b""
        while data := received.read_blocking(timeout=60):
            for event in connection.receive_data(data):
                if isinstance(event, h2.events.DataReceived):
                    body += event.data
                if not isinstance(event, h2.events.StreamEnded):
                    continue
                status = statuses.get(body[7:].decode())
                headers = [(":status", "200"), ("content-type", "application/grpc")]
                if status is None:
                    connection.send_headers(
                        1, [*headers, ("grpc-status", "5"), ("grpc-message", "unknown service")], end_stream=True
                    )
                else:
                    message = bytes([8, status]) if status else b""
                    connection.send_headers(1, headers)
                    connection.send_data(1, b"\0" + len(message).to_bytes(4, "big") + message)
                    connection.send_headers(1, [("grpc-status", "0")], end_stream=True)
            sent.write_all(connection.data_to_send())

    return serve


@pytest.mark.parametrize(
    ("service", "failure"),
    [
        ("", None),
        ("up", None),
        ("down", 'service unhealthy (responded with "NOT_SERVING")'),
        ("new", 'service unhealthy (responded with "UNKNOWN")'),
        ("other", "error: health rpc probe failed: rpc error: code = NotFound desc = unknown service"),
    ],
)
def test_a_grpc_probe_calls_the_health_service_of_a_server(cluster: Cluster, service: str, failure: str | None) -> None:
    cluster.pods.on(name="p").serve(5000, grpc_server({"": 1, "up": 1, "down": 2, "new": 0}))
    probe = {"grpc": {"port": 5000, "service": service}, "periodSeconds": 5, "timeoutSeconds": 5}
    start(cluster, readinessProbe=probe)
    assert is_ready(cluster) is (failure is None)
    assert messages(cluster, "Unhealthy") == ([f"Readiness probe failed: {failure}"] if failure else [])


def test_a_grpc_probe_of_a_server_of_something_else_fails_in_time(cluster: Cluster) -> None:
    def application(environ: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", [])
        return [b"ok"]

    cluster.pods.on(name="p").serve(5000, application)
    for port in (5000, 5001):
        start(cluster, readinessProbe={"grpc": {"port": port}, "timeoutSeconds": 1})
        assert not is_ready(cluster)
        address = cluster.get("pods", "p")["status"]["podIP"]
        reason = f'timeout: failed to connect service "{address}:{port}" within 1s: context deadline exceeded'
        assert messages(cluster, "Unhealthy")[-1] == f"Readiness probe failed: {reason}"
        cluster.delete("pods", "p")
        after(cluster, 60)
