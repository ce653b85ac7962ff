"""Web pages of other origins get nothing that needs no secret; clients that are not browsers need nothing new."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterator

import pytest

from fakekube import Cluster
from fakekube.apiserver.auth.browsers import BrowserGuard, ForeignRequest
from tests.unit.raw_calls import Call, call

#: What clients send as Host: curl and client-go the address of the URL, Java and JavaScript without the default port.
OWN = (
    "127.0.0.1:8080",
    "127.0.0.1",
    "localhost:6443",
    "LOCALHOST",
    "localhost.",
    "web.localhost:1",
    "[::1]:8080",
    "10.0.0.7:8080",
    "host.docker.internal:8001",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local:443",
)
FOREIGN = (
    "evil.example",
    "evil.example:8080",
    "localhost.evil.example",
    "",
    ".",
    "127.0.0.1.evil.example",
    "a b",
    "[::1",
    "a,localhost",
)


@pytest.mark.parametrize("host", OWN)
def test_own_hosts_are_admitted(host: str) -> None:
    BrowserGuard().check({"HTTP_HOST": host})


@pytest.mark.parametrize("host", FOREIGN)
def test_foreign_hosts_are_refused(host: str) -> None:
    with pytest.raises(ForeignRequest, match="--allowed-hosts"):
        BrowserGuard().check({"HTTP_HOST": host})


def test_allowed_hosts_and_the_own_host_are_admitted() -> None:
    guard = BrowserGuard("kube.example", ["build.example", ".lan"])
    for host in ("kube.example:1", "Build.Example.", "a.b.lan:8080"):
        guard.check({"HTTP_HOST": host})
    for host in ("lan", "other.example", "evilbuild.example"):
        with pytest.raises(ForeignRequest):
            guard.check({"HTTP_HOST": host})


def test_a_request_without_host_is_not_a_browsers() -> None:
    BrowserGuard().check({})


@pytest.mark.parametrize("site", ["cross-site", "same-site", "anything"])
def test_requests_of_other_sites_are_refused(site: str) -> None:
    with pytest.raises(ForeignRequest, match=site):
        BrowserGuard().check({"HTTP_HOST": "127.0.0.1:1", "HTTP_SEC_FETCH_SITE": site})


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_requests_of_the_user_and_of_the_own_page_are_admitted(site: str) -> None:
    BrowserGuard().check({"HTTP_HOST": "127.0.0.1:1", "HTTP_SEC_FETCH_SITE": site})


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://127.0.0.1:1", "127.0.0.1:1"),
        ("http://localhost", "localhost:80"),
        ("https://LOCALHOST:443", "localhost"),
        ("http://localhost", "127.0.0.1:1"),
        ("", "127.0.0.1:1"),
    ],
)
def test_the_own_origin_is_admitted(origin: str, host: str) -> None:
    BrowserGuard().check({"HTTP_HOST": host, "HTTP_ORIGIN": origin})


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost:3000", "http://127.0.0.1:2", "file://", "http://["]
)
def test_other_origins_are_refused(origin: str) -> None:
    with pytest.raises(ForeignRequest, match="origin"):
        BrowserGuard().check({"HTTP_HOST": "127.0.0.1:1", "HTTP_ORIGIN": origin})


# ---------------------------------------------------------------- every path of a cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(profile="apiserver") as cluster:
        yield cluster


PATHS = ("/api/v1/namespaces", "/apis", "/version", "/openapi/v2", "/metrics", "/nothing", "/fakekube/v1/clock")
ATTACKS = (
    Call("GET", "/", host="evil.example"),
    Call("GET", "/", host="[::1].evil.example"),
    Call("GET", "/", {"Origin": "http://evil.example"}),
    Call("GET", "/", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}),
    Call("POST", "/", {"Origin": "null"}, b'{"metadata":{"name":"x"}}'),
    Call("GET", "/", {"Authorization": "Bearer admin-token"}, host="evil.example"),
    Call("GET", "/", {"Authorization": "bearer admin-token"}, host="evil.example"),
    Call(
        "GET",
        "/",
        {
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Origin": "http://evil.example",
            "Sec-WebSocket-Protocol": "v5.channel.k8s.io, base64url.bearer.authorization.k8s.io."
            + urlsafe_b64encode(b"admin-token").decode().rstrip("="),
        },
    ),
)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("attack", ATTACKS, ids=range(len(ATTACKS)))
def test_web_pages_get_nothing(cluster: Cluster, attack: Call, path: str) -> None:
    status, body = call(cluster, attack.to(path))
    assert status in (401, 403), body
    assert status == 401 or b"credentials" in body


def test_valid_credentials_pass_from_anywhere(cluster: Cluster) -> None:
    config = cluster.kubeconfig_for("jane", ["system:masters"]).read_text()
    token = config.partition("token: ")[2].split()[0]
    call_ = Call("GET", "/api/v1/namespaces", {"Authorization": f"Bearer {token}"}, host="cluster.example")
    assert call(cluster, call_)[0] == 200


def test_allowed_hosts_are_an_argument() -> None:
    with Cluster(profile="apiserver", allowed_hosts=["ci"]) as cluster:
        assert call(cluster, Call("GET", "/api/v1/namespaces", host="ci:8080"))[0] == 200


# ---------------------------------------------------------------- other hosts


def test_other_hosts_get_nothing_without_credentials() -> None:
    with Cluster(profile="apiserver", host="0.0.0.0") as cluster:
        assert call(cluster, Call("GET", "/api/v1/namespaces"))[0] == 403
        assert call(cluster, Call("GET", "/api/v1/namespaces", {"Authorization": "Bearer admin-token"}))[0] == 401
        assert len(cluster.token) > 20
        assert call(cluster, Call("GET", "/api/v1/namespaces", {"Authorization": f"Bearer {cluster.token}"}))[0] == 200
        assert cluster.token in cluster.kubeconfig.read_text()


def test_the_token_for_other_hosts_is_random() -> None:
    with Cluster(profile="apiserver", host="0.0.0.0") as one, Cluster(profile="apiserver", host="0.0.0.0") as other:
        assert one.token != other.token


def test_an_option_that_names_the_danger_admits_everybody() -> None:
    with Cluster(profile="apiserver", host="0.0.0.0", insecure_anonymous_admin=True) as cluster:
        assert call(cluster, Call("GET", "/api/v1/namespaces"))[0] == 200
        assert call(cluster, Call("GET", "/api/v1/namespaces", host="evil.example"))[0] == 403
