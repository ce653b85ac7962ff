"""The pool of clusters: forks, fresh clusters, limits, idle ones, identities, over HTTP."""

from __future__ import annotations

import http.client
import json
import threading
import time
import tracemalloc
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from fakekube import Cluster
from fakekube.cluster.pool import ClusterPool, create_cluster


@pytest.fixture
def pool() -> Iterator[Cluster]:
    with Cluster(profile="apiserver") as cluster:
        ClusterPool(cluster, limit=4)
        yield cluster


def ask(url: str, method: str, path: str, body: Any = None, token: str = "") -> tuple[int, Any]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    found = answer.status, json.loads(answer.read())
    connection.close()
    return found


def create(pool: Cluster, **body: Any) -> Any:
    code, made = ask(pool.url, "POST", "/fakekube/v1/clusters", body)
    assert code == 201, made
    return made


def config_map(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def test_a_fork_has_the_objects_of_its_origin_and_its_own_writes(pool: Cluster) -> None:
    pool.create(config_map("shared"))
    first, second = create(pool, **{"from": "fork"}), create(pool, **{"from": "fork"})
    path = "/api/v1/namespaces/default/configmaps"
    assert ask(first["url"], "POST", path, config_map("own"))[0] == 201
    assert ask(first["url"], "GET", f"{path}/shared")[0] == 200
    assert ask(first["url"], "GET", f"{path}/own")[0] == 200
    assert ask(second["url"], "GET", f"{path}/own")[0] == 404
    assert pool.get("configmaps", "shared")
    third = create(pool, **{"from": {"cluster": first["name"]}})
    assert ask(third["url"], "GET", f"{path}/own")[0] == 200


def test_a_fork_of_a_snapshot_has_what_was_there_then(pool: Cluster) -> None:
    pool.create(config_map("before"))
    assert ask(pool.url, "POST", "/fakekube/v1/snapshots", {"name": "s"})[0] == 201
    pool.create(config_map("after"))
    path = "/api/v1/namespaces/default/configmaps"
    for _ in range(2):
        made = create(pool, **{"from": {"snapshot": "s"}})
        assert ask(made["url"], "GET", f"{path}/before")[0] == 200
        assert ask(made["url"], "GET", f"{path}/after")[0] == 404


def test_a_fresh_cluster_has_its_own_version_profile_and_objects(pool: Cluster) -> None:
    pool.create(config_map("shared"))
    text = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: shop\n"
    made = create(pool, name="a", version="1.35", profile="cluster", load=text)
    assert (made["name"], made["control"]) == ("a", f"{made['url']}/fakekube/v1")
    assert ask(made["url"], "GET", "/version")[1]["minor"] == "35"
    assert ask(made["url"], "GET", "/api/v1/namespaces/default/configmaps/shared")[0] == 404
    assert ask(made["url"], "GET", "/api/v1/namespaces/shop")[0] == 200
    assert [one["metadata"]["name"] for one in ask(made["url"], "GET", "/api/v1/nodes")[1]["items"]] == ["node-1"]
    ask(made["url"], "DELETE", "/api/v1/namespaces/shop")
    assert ask(made["url"], "POST", "/fakekube/v1/reset")[0] == 200
    assert ask(made["url"], "GET", "/api/v1/namespaces/shop")[0] == 200  # what was loaded is the initial state
    shown = ask(pool.url, "GET", "/fakekube/v1/clusters")[1]["items"]
    assert [(one["name"], one["version"], one["profile"]) for one in shown] == [("a", "1.35", "cluster")]


def test_recorder_faults_and_clock_are_those_of_each_cluster(pool: Cluster) -> None:
    first, second = create(pool, name="a"), create(pool, name="b")
    fault = {"on": {"verbs": "get", "resource": "pods"}, "do": {"status": {"code": 503}}}
    assert ask(first["url"], "POST", "/fakekube/v1/faults", fault)[0] == 201
    assert ask(first["url"], "POST", "/fakekube/v1/clock/hold")[1]["held"] is True
    assert ask(first["url"], "GET", "/api/v1/namespaces/default/pods/web")[0] == 503
    assert ask(second["url"], "GET", "/api/v1/namespaces/default/pods/web")[0] == 404
    assert ask(second["url"], "GET", "/fakekube/v1/clock")[1]["held"] is False
    statuses = [
        [one["status"] for one in ask(one["url"], "GET", "/fakekube/v1/requests?resource=pods")[1]["items"]]
        for one in (first, second)
    ]
    assert statuses == [[503], [404]]


def test_a_token_of_one_cluster_is_worth_nothing_at_another(pool: Cluster) -> None:
    first, second = create(pool, name="a", profile="cluster"), create(pool, name="b", profile="cluster")
    path = "/api/v1/namespaces"
    user = yaml.safe_load(first["kubeconfig"])["users"][0]["user"]
    assert user == {"token": first["token"]}
    assert ask(first["url"], "GET", path, token=first["token"])[0] == 200
    assert ask(second["url"], "GET", path, token=first["token"])[0] == 401
    assert ask(first["url"], "GET", path, token="admin-token")[0] == 401
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    account = "/api/v1/namespaces/default/serviceaccounts/default/token"
    token = ask(first["url"], "POST", account, request, first["token"])[1]["status"]["token"]
    assert ask(first["url"], "GET", "/api", token=token)[0] == 200
    assert ask(second["url"], "GET", "/api", token=token)[0] == 401


def test_tokens_of_a_cluster_with_tls_are_its_own() -> None:
    with Cluster(profile="apiserver", tls=True) as cluster:
        made = [ClusterPool(cluster).create(), cluster.pool.create()] if cluster.pool is not None else []
        pooled = ClusterPool(cluster)
        made = [pooled.create(), pooled.create()]
        configs = [yaml.safe_load(one.cluster.kubeconfig_text) for one in made]
        users = [config["users"][0]["user"] for config in configs]
        assert [sorted(user) for user in users] == [["token"], ["token"]]
        assert users[0] != users[1]
        assert all("certificate-authority-data" in config["clusters"][0]["cluster"] for config in configs)


@pytest.mark.parametrize(
    ("body", "code", "text"),
    [
        ({"name": "A"}, 422, "not a DNS label"),
        ({"from": {"snapshot": "x"}}, 422, "there is no snapshot 'x'"),
        ({"from": {"cluster": "x"}}, 422, "there is no cluster 'x'"),
        ({"from": 3}, 400, "member 'from' must be"),
        ({"from": "fork", "version": "1.35"}, 422, "version is that of the origin"),
        ({"version": "1.2"}, 422, "Kubernetes 1.2 is not known"),
        ({"profile": "nothing"}, 422, "the profile 'nothing' is not known; known: apiserver, envtest, cluster"),
        ({"flags": {"audit_log_path": "/tmp/x"}}, 400, "names a file of the server's machine"),
        ({"flags": {"service-account-key-file": ["/tmp/x"]}}, 400, "names a file of the server's machine"),
        ({"flags": {"host": "0.0.0.0"}}, 400, "unknown option: 'host'"),
        ({"flags": {"feature-gates": "A=yes"}}, 400, "flag feature_gates must be an object of booleans"),
        ({"feature_gates": {"A": "yes"}}, 400, "flag feature_gates must be an object of booleans"),
        ({"flags": {"anonymous-auth": "maybe"}}, 400, "flag anonymous_auth must be true or false"),
        ({"flags": {"enable-admission-plugins": [5]}}, 400, "flag enable_admission_plugins must be a string or"),
        ({"flags": {"service-cluster-ip-range": 5}}, 400, "flag service_cluster_ip_range must be a string"),
        ({"flags": {"event-ttl": "soon"}}, 400, "flag event_ttl must be a number of seconds"),
        ({"flags": {"keep-requests": "many"}}, 400, "flag keep_requests must be an integer"),
        ({"nodes": -1}, 422, "nodes is -1, not from 0 to 500"),
        ({"nodes": 10**6}, 422, "nodes is 1000000, not from 0 to 500"),
        ({"nodes": "two"}, 400, "member 'nodes' must be an integer"),
        ({"load": "{"}, 422, "load: "),
        ({"load": "apiVersion: v1\nkind: Unknown\nmetadata: {name: a}"}, 422, "load: "),
        ({"nodse": 2}, 400, "unknown member 'nodse'"),
    ],
)
def test_what_cannot_be_made_is_refused_and_leaves_nothing(pool: Cluster, body: Any, code: int, text: str) -> None:
    found, answer = ask(pool.url, "POST", "/fakekube/v1/clusters", body)
    assert (found, text in answer["error"]) == (code, True), answer
    assert ask(pool.url, "GET", "/fakekube/v1/clusters")[1] == {"items": []}


def test_names_are_unique_and_the_number_is_bounded(pool: Cluster) -> None:
    create(pool, name="a")
    assert ask(pool.url, "POST", "/fakekube/v1/clusters", {"name": "a"})[0] == 409
    names = {create(pool)["name"] for _ in range(3)}
    assert len(names) == 3
    assert ask(pool.url, "POST", "/fakekube/v1/clusters", {})[0] == 429
    assert ask(pool.url, "DELETE", "/fakekube/v1/clusters/a")[0] == 200
    assert ask(pool.url, "GET", "/fakekube/v1/clusters/a")[0] == 404
    create(pool, name="a")
    assert ask(pool.url, "DELETE", "/fakekube/v1/clusters")[1] == {"deleted": 4}


def test_deleting_a_cluster_ends_its_watches(pool: Cluster) -> None:
    made = create(pool, name="a")
    connection = http.client.HTTPConnection(urlsplit(made["url"]).netloc, timeout=60)
    connection.request("GET", "/api/v1/pods?watch=true&sendInitialEvents=false")
    answer = connection.getresponse()
    ended = threading.Event()

    def read() -> None:
        answer.read()
        ended.set()

    threading.Thread(target=read, daemon=True).start()
    assert ask(pool.url, "DELETE", "/fakekube/v1/clusters/a")[0] == 200
    assert ended.wait(60)
    connection.close()


def test_a_server_without_a_pool_says_so() -> None:
    with Cluster(profile="apiserver") as cluster:
        code, answer = ask(cluster.url, "GET", "/fakekube/v1/clusters")
    assert (code, "serve --clusters" in answer["error"]) == (404, True)


def test_idle_clusters_end_and_used_ones_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fakekube.cluster.pool._LONGEST_ROUND", 0.02)
    with Cluster(profile="apiserver") as cluster:
        pool = ClusterPool(cluster, idle=3600)
        idle, used = pool.create("idle"), pool.create("used")
        connection = http.client.HTTPConnection("127.0.0.1", used.cluster.port, timeout=60)
        connection.request("GET", "/version")
        connection.getresponse().read()  # the connection stays open
        pool._idle = 0.1
        end = time.monotonic() + 60
        while pool.find("idle") is not None and time.monotonic() < end:
            threading.Event().wait(0.02)
        assert pool.find("idle") is None
        assert pool.find("used") is used
        assert idle.cluster.connections == 0
        connection.close()


def test_the_clusters_end_with_the_one_of_the_pool() -> None:
    with Cluster(profile="apiserver") as cluster:
        made = ClusterPool(cluster).create()
        url = made.cluster.url
    with pytest.raises(OSError):
        ask(url, "GET", "/version")


def test_a_hundred_forks_are_small_and_share_what_they_do_not_write() -> None:
    with Cluster() as cluster:
        for number in range(500):
            cluster.create({**config_map(f"c{number}"), "data": {"text": "x" * 200}})
        cluster.settle()
        pool = ClusterPool(cluster)
        pool.create(origin={"cluster": ""})
        tracemalloc.start()
        made = [pool.create(origin={"cluster": ""}) for _ in range(100)]
        size, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert size / 100 < 1_000_000
        assert [one.cluster.get("configmaps", "c499")["data"]["text"][:1] for one in made[::25]] == ["x"] * 4
        assert not any(one.cluster.working(10.0) for one in made)


def test_the_rules_of_the_control_api_are_compiled_once_for_all_clusters(pool: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    first = create(pool, **{"from": "fork"})
    monkeypatch.setattr("werkzeug.routing.Rule.compile", lambda _rule: pytest.fail("a rule is compiled"))
    assert ask(first["url"], "GET", "/fakekube/v1/requests", token=first["token"])[0] == 200


def test_timers_of_the_origin_run_in_a_fork() -> None:
    """A fork of a cluster whose controllers are idle does not begin anew, and forgets nothing that is due later."""
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "late"},
        "spec": {
            "ttlSecondsAfterFinished": 60,
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "app"}]}},
        },
    }
    with Cluster() as cluster:
        cluster.pods.on().run(seconds=30).exits(0)
        cluster.clock.hold()
        cluster.create(job)
        cluster.settle()
        fork = cluster.fork()
        assert fork._components.manager.waiting()
        with fork:
            fork.clock.advance(seconds=31)
            fork.settle()
            assert fork.get("jobs", "late")["status"].get("succeeded") == 1
            again = fork.fork()
            with again:
                again.clock.advance(seconds=120)
                again.settle()
                assert not again.list("jobs")
            assert fork.list("jobs")
        assert "succeeded" not in cluster.get("jobs", "late")["status"]


def test_flags_are_json_or_texts_of_a_command_line() -> None:
    flags = {
        "anonymous-auth": "false",
        "authorization-mode": "RBAC",
        "event-ttl": "1m30s",
        "feature-gates": "ListFromCacheSnapshot=false",
        "runtime-config": "api/all=true",
        "enable-admission-plugins": ["AlwaysPullImages"],
        "keep-requests": "10",
    }
    with Cluster(profile="apiserver") as cluster:
        pool = ClusterPool(cluster)
        _, made = create_cluster(cluster, {"name": "a", "flags": flags})
        assert made.get("name") == "a", made
        found = pool.find("a")
        assert found is not None
        options = found.cluster.options
        assert (options["anonymous_auth"], options["event_ttl"], options["keep_requests"]) == (False, 90.0, 10)
        assert options["feature_gates"] == {"ListFromCacheSnapshot": False}
        assert found.cluster.call("GET", "/apis")["groups"] != cluster.call("GET", "/apis")["groups"]
