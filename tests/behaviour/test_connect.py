"""Logs, exec, attach, port-forward and proxies, as far as a server answers without reaching a node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.behaviour.conftest import Api


@pytest.fixture
def pod(api: Api) -> Callable[..., str]:
    """Makes pods; returns the path of one."""

    def make(name: str, containers: int = 1, node: str = "") -> str:
        spec: dict[str, Any] = {"containers": [{"name": f"c{number}", "image": "x"} for number in range(containers)]}
        if node:
            spec["nodeName"] = node
        made = api.post(api.path("pods"), {"metadata": {"name": name}, "spec": spec})
        assert made.status == 201, made.body
        return api.path("pods", name)

    return make


def test_the_log_of_a_pod_without_a_node_is_empty(api: Api, pod: Callable[..., str]) -> None:
    answer = api.get(pod("free") + "/log", {"container": "c0", "follow": "true"})
    assert (answer.status, answer.body) == (204, b"")


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        ("container=zz", 400, "container zz is not valid for pod free"),
        ("tailLines=x", 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ("tailLines=-1", 422, "tailLines: Invalid value: -1: must be greater than or equal to 0"),
        ("limitBytes=0", 422, "limitBytes: Invalid value: 0: must be greater than 0"),
        ("sinceSeconds=0", 422, "sinceSeconds: Invalid value: 0: must be greater than 0"),
        ("stream=Stdout", 422, "stream: Forbidden: may not be specified"),
        (
            "sinceSeconds=1&sinceTime=2020-01-01T00:00:00Z", 422,
            "[]: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified",
        ),
    ],
)  # fmt: skip
def test_options_of_a_log(api: Api, pod: Callable[..., str], query: str, code: int, message: str) -> None:
    answer = api.get(pod("free") + "/log", query)
    prefix = 'PodLogOptions "free" is invalid: ' if code == 422 else ""
    assert (answer.status, answer.at("message")) == (code, prefix + message)


@pytest.mark.parametrize("subresource", ["log", "exec?command=ls", "attach?stdout=1"])
def test_a_container_must_be_chosen(api: Api, pod: Callable[..., str], subresource: str) -> None:
    answer = api.get(f"{pod('two', containers=2)}/{subresource}")
    assert answer.status == 400
    assert answer.at("message") == "a container name must be specified for pod two, choose one of: [c0 c1]"


@pytest.mark.parametrize("subresource", ["exec?command=ls", "attach?stdout=1", "portforward?ports=80"])
def test_streams_need_a_node(api: Api, pod: Callable[..., str], subresource: str) -> None:
    answer = api.get(f"{pod('free')}/{subresource}")
    assert (answer.status, answer.at("message")) == (400, "pod free does not have a host assigned")


@pytest.mark.parametrize("subresource", ["log", "exec?command=ls", "portforward?ports=80"])
def test_a_node_must_be_there_and_have_an_address(api: Api, pod: Callable[..., str], subresource: str) -> None:
    node = api.name("node")
    path = f"{pod('bound', node=node)}/{subresource}"
    answer = api.get(path)
    assert (answer.status, answer.at("message")) == (404, f'pods "{node}" not found')
    api.post("/api/v1/nodes", {"metadata": {"name": node}})
    answer = api.get(path)
    assert (answer.status, answer.at("message")) == (500, "no preferred addresses found; known addresses: []")
    api.delete(f"/api/v1/nodes/{node}")


@pytest.mark.parametrize(
    ("path", "code", "message"),
    [
        ("pods/free/proxy", 400, "address not allowed"),
        ("pods/https:free:8080/proxy/a", 400, "address not allowed"),
        ("pods/ftp:free:80/proxy", 400, 'invalid pod request "ftp:free:80"'),
        ("pods/a:b:c:d/proxy", 400, 'invalid pod request "a:b:c:d"'),
        ("pods/absent/proxy", 404, 'pods "absent" not found'),
        ("services/front/proxy", 404, 'services "front" not found'),
        ("services/front:81/proxy", 503, 'no service port 81 found for service "front"'),
        ("services/front:80/proxy", 404, 'services "front" not found'),
    ],
)
def test_proxies(api: Api, pod: Callable[..., str], path: str, code: int, message: str) -> None:
    pod("free")
    api.post(api.path("services"), {"metadata": {"name": "front"}, "spec": {"ports": [{"port": 80}]}})
    answer = api.get(api.path(path))
    assert (answer.status, answer.at("message")) == (code, message)


@pytest.mark.parametrize("subresource", ["exec", "attach", "portforward", "proxy"])
def test_connections_cannot_be_tried_out(api: Api, subresource: str) -> None:
    answer = api.post(api.path("pods", "absent", subresource), None, {"dryRun": "All"})
    assert (answer.status, answer.at("message")) == (400, "dryRun is not supported")


def test_connections_have_no_flow(api: Api) -> None:
    """Nobody waits in a queue for what may take any time."""
    flow = "x-kubernetes-pf-flowschema-uid"
    assert all(flow not in api.get(api.path("pods", "absent", one)).headers for one in ("exec", "log", "proxy"))
    assert flow in api.get(api.path("pods", "absent", "status")).headers


def test_a_log_must_be_acceptable_as_an_object(api: Api) -> None:
    assert api.get(api.path("pods", "absent", "log"), headers={"Accept": "text/plain"}).status == 406
    assert api.get(api.path("pods", "absent", "log"), headers={"Accept": "application/json, */*"}).status == 404
