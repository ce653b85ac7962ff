"""The control API: settle and the clock over HTTP, and authorization."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from fakekube import Cluster


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as started:
        yield started


def ask(cluster: Cluster, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=60)
    data = body if body is None or isinstance(body, bytes) else json.dumps(body)
    connection.request(method, path, data, headers)
    answer = connection.getresponse()
    text = answer.read()
    found = answer.status, json.loads(text) if "json" in (answer.headers["Content-Type"] or "") else text
    connection.close()
    return found


def test_settle_over_http(cluster: Cluster) -> None:
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    assert ask(cluster, "POST", "/fakekube/v1/settle", {"timeout": 5, "horizon": 3}) == (200, {"settled": True})
    assert cluster.get("serviceaccounts", "default", namespace="team")
    assert ask(cluster, "POST", "/fakekube/v1/settle") == (200, {"settled": True})


def test_clock_hold_advance_next_and_release(cluster: Cluster) -> None:
    code, first = ask(cluster, "POST", "/fakekube/v1/clock/hold")
    assert (code, first["held"]) == (200, True)
    code, second = ask(cluster, "POST", "/fakekube/v1/clock/advance", {"seconds": 3600.0})
    assert code == 200
    assert second["now"] > first["now"]
    assert ask(cluster, "GET", "/fakekube/v1/clock") == (200, second)
    assert ask(cluster, "POST", "/fakekube/v1/clock/next")[1]["moved"] is None
    fired: list[float] = []
    cluster.clock.call_at(cluster.clock.monotonic() + 5, lambda: fired.append(cluster.clock.monotonic()))
    assert ask(cluster, "POST", "/fakekube/v1/clock/next")[1]["moved"] == 5
    assert fired == [cluster.clock.monotonic()]
    assert ask(cluster, "POST", "/fakekube/v1/clock/release")[1]["held"] is False
    assert ask(cluster, "POST", "/fakekube/v1/clock/next") == (409, {"error": "the clock is not held"})


@pytest.mark.parametrize(
    ("path", "body", "text"),
    [
        ("settle", {"timout": 5}, "unknown member 'timout'; known are horizon, timeout"),
        ("settle", {"timeout": -1}, "member 'timeout' must be a number of seconds from 0 to 1000000000"),
        ("settle", {"horizon": True}, "member 'horizon' must be a number of seconds from 0 to 1000000000"),
        ("settle", [], "the body must be a JSON object"),
        ("settle", b"{", "the body is not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ("settle?timeout=3", {}, "unknown parameter 'timeout'; known are none"),
        ("clock/advance", {}, "member 'seconds' is required"),
        ("clock/advance", {"seconds": "60"}, "member 'seconds' must be a number of seconds from 0 to 1000000000"),
        ("clock/advance", b'{"seconds": NaN}', "member 'seconds' must be a number of seconds from 0 to 1000000000"),
        ("clock/hold", {"a": 1}, "unknown member 'a'; known are none"),
    ],
)
def test_invalid_request_bodies_return_400(cluster: Cluster, path: str, body: Any, text: str) -> None:
    assert ask(cluster, "POST", f"/fakekube/v1/{path}", body) == (400, {"error": text})


def test_unknown_paths_return_404_and_wrong_methods_405(cluster: Cluster) -> None:
    assert ask(cluster, "GET", "/fakekube/v1/nothing") == (404, {"error": "there is no /fakekube/v1/nothing"})
    assert ask(cluster, "GET", "/fakekube/v1/settle") == (405, {"error": "/fakekube/v1/settle takes POST"})
    assert ask(cluster, "POST", "/fakekube/v1/settle", b"x" * 3_200_000)[0] == 413


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:80"},
        {"Host": "localhost.evil.example"},
        {"Host": "[::1"},
        {"Host": ""},
        {"Origin": "http://evil.example"},
        {"Origin": "http://[::1"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_cross_origin_requests_are_rejected(cluster: Cluster, headers: dict[str, str]) -> None:
    code, body = ask(cluster, "POST", "/fakekube/v1/clock/hold", **headers)
    assert (code, list(body)) == (403, ["error"])
    assert not cluster.clock.held


def test_same_origin_requests_are_accepted(cluster: Cluster) -> None:
    for host in (f"127.0.0.1:{cluster.port}", f"localhost:{cluster.port}"):
        assert ask(cluster, "GET", "/fakekube/v1/clock", Host=host, Origin=f"http://{host}")[0] == 200


def test_control_api_requires_non_resource_url_permission(cluster: Cluster) -> None:
    code, body = ask(cluster, "GET", "/fakekube/v1/clock", Authorization="Bearer user-token")
    assert (code, body["kind"], body["message"]) == (
        403,
        "Status",
        'forbidden: User "alice" cannot get path "/fakekube/v1/clock"',
    )
    assert ask(cluster, "GET", "/fakekube/v1/clock", Authorization="Bearer nonsense")[0] == 401
    rules = [{"nonResourceURLs": ["/fakekube/*"], "verbs": ["get"]}]
    cluster.create(
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "look"}, "rules": rules}
    )
    cluster.create(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "look"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "look"},
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "alice"}],
        }
    )
    assert ask(cluster, "GET", "/fakekube/v1/clock", Authorization="Bearer user-token")[0] == 200
    assert ask(cluster, "POST", "/fakekube/v1/clock/hold", Authorization="Bearer user-token")[0] == 403


def test_control_api_can_be_disabled() -> None:
    with Cluster(control=False) as cluster:
        assert ask(cluster, "GET", "/fakekube/v1/clock")[0] == 404


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/v2/clock",
        "//v1/clock",
        "/../fakekube/v1/clock",
        "/v1/clock/",
        "/v1/clock%00",
        "/v1/clock;x",
        "/v1/faults/-1",
        "/v1/faults/x",
    ],
)
def test_unnormalised_paths_return_404(cluster: Cluster, path: str) -> None:
    assert ask(cluster, "GET", f"/fakekube{path}")[0] == 404
    assert ask(cluster, "GET", f"/fakekube{path}", Authorization="Bearer user-token")[0] == 403


@pytest.mark.parametrize(
    "body",
    [
        b"\xff",
        b"[" * 100_000,
        b"- " * 100_000,
        b"a: &a [*a]\n",
        b"a: &a [1,1]\n"
        + b"".join(
            b"b%d: &b%d [*%s,*%s]\n" % (n, n, was, was)
            for n, was in [(n, b"a" if not n else b"b%d" % (n - 1)) for n in range(60)]
        ),
        b"[1, 2]",
        b"apiVersion: v1\nkind: ConfigMap\nmetadata: 5\n",
        b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: [1]}\n",
        b"apiVersion: [v1]\nkind: ConfigMap\n",
        b"apiVersion: v1\nkind: List\nitems: [5]\n",
        b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, ownerReferences: [5]}\n",
        b"apiVersion: fakekube.dev/v1\nkind: ClusterState\n",
    ],
)
def test_unloadable_manifests_return_400(cluster: Cluster, body: bytes) -> None:
    code, answer = ask(cluster, "POST", "/fakekube/v1/load", body)
    assert (code, list(answer)) == (400, ["error"])


def test_restart_and_outage_requests_get_a_response(cluster: Cluster) -> None:
    watch = http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=60)
    watch.request("GET", "/api/v1/pods?watch=1")
    opened = watch.getresponse()
    assert ask(cluster, "POST", "/fakekube/v1/restart", {"cold": 3600}) == (200, {})
    assert opened.read() == b""
    watch.close()
    maps = "/api/v1/configmaps"
    assert [ask(cluster, "GET", path)[0] for path in (maps, f"{maps}?limit=1", "/api/v1/events")] == [429, 200, 200]
    cluster.clock.hold()
    assert ask(cluster, "POST", "/fakekube/v1/outage", {"seconds": 60}) == (200, {})
    with pytest.raises(OSError, match="refused"):
        ask(cluster, "GET", maps)
    cluster.clock.advance(seconds=3601)
    assert ask(cluster, "GET", maps)[0] == 200


def test_large_resource_versions_are_exact_in_json() -> None:
    with Cluster(profile="apiserver", first_revision=2**128) as cluster:
        made = cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
        (version,) = ask(cluster, "GET", "/fakekube/v1/history/configmaps/default/a")[1]["items"]
        assert str(version["revision"]) == made["metadata"]["resourceVersion"] == str(2**128 + 1)


def test_page_port_can_end_an_outage_under_a_held_clock(cluster: Cluster) -> None:
    parts = urlsplit(cluster.serve_page())
    ask(cluster, "POST", "/fakekube/v1/clock/hold")
    assert ask(cluster, "POST", "/fakekube/v1/outage", {"seconds": 60})[0] == 200
    beside = http.client.HTTPConnection(parts.netloc, timeout=60)
    beside.request("GET", f"{parts.path}?{parts.query}")
    page = beside.getresponse()
    page.read()
    headers = {"Cookie": (page.headers["Set-Cookie"] or "").partition(";")[0], "X-Fakekube": "page"}
    beside.request("POST", "/fakekube/v1/clock/advance", b'{"seconds": 61}', headers)
    answer = beside.getresponse()
    assert answer.status == 200, answer.read()
    beside.close()
    assert ask(cluster, "GET", "/api/v1/configmaps")[0] == 200


def test_images_are_deleted_by_name(cluster: Cluster) -> None:
    assert ask(cluster, "POST", "/fakekube/v1/images", {"name": "a"})[0] == 201
    assert ask(cluster, "DELETE", "/fakekube/v1/images?name=a")[0] == 200
    assert ask(cluster, "DELETE", "/fakekube/v1/images?name=a")[0] == 404
