"""A WSGI application is mounted as an aggregated API: `Cluster.aggregate`."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.controllers.client import ApiError, UnknownResource

GROUP_VERSION = "metrics.example.com/v1beta1"
PODS = {"name": "pods", "singularName": "pod", "namespaced": True, "kind": "PodMetrics", "verbs": ["get", "list"]}


class Metrics:
    """An API with one resource; remembers the environs of its requests."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []
        self.status = "200 OK"

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        self.seen.append(environ)
        path = environ["PATH_INFO"]
        if path == "/apis" or path.startswith("/openapi"):
            start_response("404 Not Found", [("Content-Type", "text/plain")])
            return [b"no"]
        if path == f"/apis/{GROUP_VERSION}":
            body: Any = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": GROUP_VERSION, "resources": [PODS]}
        elif "watch" in environ["QUERY_STRING"]:
            start_response("200 OK", [("Content-Type", "application/json")])
            return iter([b'{"type": "ADDED"}\n', b'{"type": "DELETED"}\n'])
        else:
            body = {
                "kind": "PodMetricsList",
                "items": [{"metadata": {"name": "p"}}],
                "sent": environ["wsgi.input"].read().decode(),
            }
        start_response(self.status, [("Content-Type", "application/json")])
        return [json.dumps(body).encode()]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(profile="apiserver") as cluster:
        yield cluster


@pytest.mark.parametrize("path", ["*", "pods", "apis/metrics.example.com/v1beta1"])
def test_a_path_without_a_slash_is_not_found(cluster: Cluster, path: str) -> None:
    cluster.aggregate(GROUP_VERSION, Metrics())
    response = cluster.request("GET", path)
    assert (response.status, response.body) == (404, b"404 page not found\n")


def test_requests_are_served_by_the_application(cluster: Cluster) -> None:
    metrics = Metrics()
    api = cluster.aggregate(GROUP_VERSION, metrics)
    (found,) = cluster.list("pods.metrics.example.com", namespace="default")
    assert found == {"kind": "PodMetrics", "apiVersion": GROUP_VERSION, "metadata": {"name": "p"}}
    environ = metrics.seen[-1]
    assert environ["HTTP_X_REMOTE_GROUP"].split(",")[0] == "system:masters"
    assert environ["PATH_INFO"] == f"/apis/{GROUP_VERSION}/namespaces/default/pods"
    service = cluster.get("apiservices", api.name)
    assert service["spec"]["group"] == "metrics.example.com"


def test_requests_over_http_are_served_by_the_application(cluster: Cluster) -> None:
    cluster.aggregate(GROUP_VERSION, Metrics())
    path = f"{cluster.url}/apis/{GROUP_VERSION}/pods"
    with urllib.request.urlopen(urllib.request.Request(path, b"hello", method="POST")) as answer:
        assert json.load(answer)["sent"] == "hello"
    with urllib.request.urlopen(f"{path}?watch=1") as answer:
        assert answer.read().count(b"\n") == 2


def test_requests_are_authorized(cluster: Cluster) -> None:
    metrics = Metrics()
    cluster.aggregate(GROUP_VERSION, metrics)
    before = len(metrics.seen)
    with pytest.raises(ApiError) as caught:
        cluster.as_user("bob").list("pods.metrics.example.com")
    assert caught.value.code == 403
    # A discovery of the group may be on its way; the refused request itself is not handed on.
    assert f"/apis/{GROUP_VERSION}/namespaces/default/pods" not in [environ["PATH_INFO"] for environ in metrics.seen[before:]]
    assert cluster.list("pods.metrics.example.com")
    assert len(metrics.seen) > before


def test_the_application_is_unmounted_after_the_context(cluster: Cluster) -> None:
    with cluster.aggregate(GROUP_VERSION, Metrics()) as api:
        assert cluster.list("pods.metrics.example.com")
    with pytest.raises(UnknownResource):
        cluster.list("pods.metrics.example.com")
    with pytest.raises(ApiError):
        cluster.get("apiservices", api.name)
    api.remove()


def test_an_existing_api_service_is_used_and_kept(cluster: Cluster) -> None:
    reference = {"namespace": "kube-system", "name": "metrics-server", "port": 443}
    spec = {
        "group": "metrics.example.com",
        "version": "v1beta1",
        "service": reference,
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
    }
    name = "v1beta1.metrics.example.com"
    cluster.create({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": name}, "spec": spec})
    with cluster.aggregate(GROUP_VERSION, Metrics()):
        assert cluster.list("pods.metrics.example.com")
    (condition,) = cluster.get("apiservices", name)["status"]["conditions"]
    assert condition["reason"] == "ServiceNotFound"


def test_a_fork_keeps_the_application(cluster: Cluster) -> None:
    cluster.aggregate(GROUP_VERSION, Metrics())
    twin = cluster.fork()
    assert twin.list("pods.metrics.example.com")
    twin.stop()


def test_settle_waits_for_the_availability_check(cluster: Cluster) -> None:
    cluster.aggregate(GROUP_VERSION, Metrics())
    cluster.settle()
    document = cluster.request("GET", "/openapi/v3")
    assert document.status == 200
    assert not cluster.working()


def test_the_clock_triggers_another_check(cluster: Cluster) -> None:
    cluster.clock.hold()
    metrics = Metrics()
    api = cluster.aggregate(GROUP_VERSION, metrics)
    metrics.status = "500 Internal Server Error"
    cluster.clock.advance(seconds=31)
    (condition,) = cluster.get("apiservices", api.name)["status"]["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "FailedDiscoveryCheck")
    metrics.status = "200 OK"
    cluster.clock.advance(seconds=31)
    (condition,) = cluster.get("apiservices", api.name)["status"]["conditions"]
    assert condition["status"] == "True"


@pytest.mark.parametrize("name", ["v1", "a/b/c", "/v1", "group/"])
def test_invalid_group_versions(cluster: Cluster, name: str) -> None:
    with pytest.raises(ValueError, match="group/version"):
        cluster.aggregate(name, Metrics())


def test_group_versions_of_the_cluster_are_refused(cluster: Cluster) -> None:
    with pytest.raises(ValueError, match="apps/v1 is served by the cluster itself"):
        cluster.aggregate("apps/v1", Metrics())


def test_an_application_without_discovery_is_not_available(cluster: Cluster) -> None:
    with pytest.raises(RuntimeError, match=r"bad status from .*: 404"):
        cluster.aggregate("other.example.com/v1", lambda _, start: (start("404 Not Found", []), [b""])[1])
    with pytest.raises(ApiError):
        cluster.get("apiservices", "v1.other.example.com")


def test_an_exception_of_the_application_is_a_500(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics()
    cluster.aggregate(GROUP_VERSION, metrics)
    metrics.seen = None  # type: ignore[assignment]
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(f"{cluster.url}/apis/{GROUP_VERSION}/pods")
    caught.value.close()
    assert caught.value.code == 500
    assert "NoneType" in caplog.text


def test_a_client_that_leaves_while_it_sends_the_body_is_no_failure(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics()
    cluster.aggregate(GROUP_VERSION, metrics)
    before = len(metrics.seen)
    with socket.create_connection(("127.0.0.1", cluster.port), timeout=60) as client:
        client.sendall(f"POST /apis/{GROUP_VERSION}/pods HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhello".encode())
        client.shutdown(socket.SHUT_WR)
        while client.recv(1024):
            pass
    assert not caplog.records
    assert len(metrics.seen) == before
