"""Pod rules, logs and exec over the control API."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as made:
        spec = {"containers": [{"name": "main", "image": "busybox"}]}
        made.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"app": "a"}}, "spec": spec})
        made.settle()
        yield made


def ask(cluster: Cluster, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    data = None if body is None else json.dumps(body).encode()
    url = f"{cluster.url}/fakekube/v1/pods/{path}"
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            text = response.read()
            return response.status, json.loads(text) if "json" in response.headers["Content-Type"] else text.decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def test_log_lines(cluster: Cluster) -> None:
    assert ask(cluster, "POST", "default/p/log", {"lines": ["one", "two"]}) == (200, {})
    assert ask(cluster, "GET", "default/p/log") == (200, "one\ntwo\n")
    assert ask(cluster, "POST", "default/none/log", {"lines": []})[0] == 404
    assert ask(cluster, "POST", "default/p/log", {"lines": "one"})[0] == 400
    assert ask(cluster, "POST", "default/p/log", {"lines": [], "container": "none"})[0] == 400


def test_exec_rules_with_fixed_results(cluster: Cluster) -> None:
    on, answer = {"image": "busybox"}, {"stdout": "dump\n", "stderr": "odd\n", "code": 3}
    code, rule = ask(cluster, "POST", "rules", {"on": on, "do": {"exec": {"pg_dump": answer}, "uses": {"cpu": "2"}}})
    assert (code, rule["on"]) == (201, on)
    found = ask(cluster, "POST", "default/p/exec", {"command": "pg_dump; echo $?"})
    assert found == (200, {"code": 0, "stdout": "dump\n3\n", "stderr": "odd\n"})
    metrics = cluster.call("GET", "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods/p")
    assert metrics["containers"][0]["usage"]["cpu"] == "2000m"
    assert ask(cluster, "GET", "rules") == (200, {"items": [rule]})
    assert ask(cluster, "DELETE", f"rules/{rule['id']}")[0] == 200
    assert ask(cluster, "DELETE", f"rules/{rule['id']}")[0] == 404
    assert ask(cluster, "POST", "default/p/exec", {"command": ["cat"], "stdin": "in"})[1]["stdout"] == "in"


def test_run_and_exit_rules_restart_containers(cluster: Cluster) -> None:
    code, _ = ask(cluster, "POST", "rules", {"on": {"labels": "app=a"}, "do": {"run": {"seconds": 0}, "exits": {"code": 2}}})
    assert code == 201
    cluster.wait_for("pods", "p", until=lambda pod: pod["status"]["containerStatuses"][0]["restartCount"] > 0, timeout=60)
    assert ask(cluster, "DELETE", "rules") == (200, {})


@pytest.mark.parametrize(
    "rule",
    [
        {"on": {"colour": "red"}, "do": {"oom": {}}},
        {"on": {}, "do": {}},
        {"on": {}, "do": {"explode": {}}},
        {"on": {}, "do": {"exits": {"code": 1000}}},
        {"on": {}, "do": {"run": {"minutes": 3}}},
        {"on": {}, "do": {"logs": {"file": "/etc/passwd"}}},
        {"on": {}, "do": {"exec": {"x": {"code": "1"}}}},
        {"on": {}, "do": {"serve": {"x": "y"}}},
        {"on": {"labels": "a in"}, "do": {"oom": {}}},
        {"on": [], "do": {"oom": {}}},
    ],
)
def test_invalid_pod_rules_return_400(cluster: Cluster, rule: dict[str, Any]) -> None:
    assert ask(cluster, "POST", "rules", rule)[0] == 400
    assert ask(cluster, "GET", "rules")[1] == {"items": []}
