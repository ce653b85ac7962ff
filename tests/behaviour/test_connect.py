"""Logs, exec, attach, port-forward and proxies, as far as a server answers without reaching a node."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.behaviour.conftest import Api
from tests.behaviour.test_websocket import Conversation


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


def test_log_of_an_unscheduled_pod_is_empty(api: Api, pod: Callable[..., str]) -> None:
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
def test_invalid_pod_log_options_are_rejected(api: Api, pod: Callable[..., str], query: str, code: int, message: str) -> None:
    answer = api.get(pod("free") + "/log", query)
    prefix = 'PodLogOptions "free" is invalid: ' if code == 422 else ""
    assert (answer.status, answer.at("message")) == (code, prefix + message)


@pytest.mark.parametrize("subresource", ["log", "exec?command=ls", "attach?stdout=1"])
def test_container_name_is_required_for_pods_with_several_containers(api: Api, pod: Callable[..., str], subresource: str) -> None:
    answer = api.get(f"{pod('two', containers=2)}/{subresource}")
    assert answer.status == 400
    assert answer.at("message") == "a container name must be specified for pod two, choose one of: [c0 c1]"


@pytest.mark.parametrize("subresource", ["exec?command=ls", "attach?stdout=1", "portforward?ports=80"])
def test_streaming_subresources_require_a_scheduled_pod(api: Api, pod: Callable[..., str], subresource: str) -> None:
    answer = api.get(f"{pod('free')}/{subresource}")
    assert (answer.status, answer.at("message")) == (400, "pod free does not have a host assigned")


@pytest.mark.parametrize("subresource", ["log", "exec?command=ls", "portforward?ports=80"])
def test_streaming_requires_an_existing_node_with_an_address(api: Api, pod: Callable[..., str], subresource: str) -> None:
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
        ("services/front/proxy", 503, 'no endpoints available for service "front"'),
        ("services/front:81/proxy", 503, 'no service port 81 found for service "front"'),
        ("services/front:80/proxy", 503, 'no endpoints available for service "front"'),
    ],
)
def test_proxy_errors_for_pods_and_services(api: Api, pod: Callable[..., str], path: str, code: int, message: str) -> None:
    pod("free")
    api.post(api.path("services"), {"metadata": {"name": "front"}, "spec": {"ports": [{"port": 80}]}})
    answer = api.get(api.path(path))
    assert (answer.status, answer.at("message")) == (code, message)


@pytest.mark.parametrize("subresource", ["exec", "attach", "portforward", "proxy"])
def test_dry_run_is_not_supported_for_connect_requests(api: Api, subresource: str) -> None:
    answer = api.post(api.path("pods", "absent", subresource), None, {"dryRun": "All"})
    assert (answer.status, answer.at("message")) == (400, "dryRun is not supported")


def test_long_running_requests_have_no_flow_schema_header(api: Api) -> None:
    """Long-running requests are exempt from priority and fairness."""
    flow = "x-kubernetes-pf-flowschema-uid"
    assert all(flow not in api.get(api.path("pods", "absent", one)).headers for one in ("exec", "log", "proxy"))
    assert flow in api.get(api.path("pods", "absent", "status")).headers


def test_log_requires_an_acceptable_object_media_type(api: Api) -> None:
    assert api.get(api.path("pods", "absent", "log"), headers={"Accept": "text/plain"}).status == 406
    assert api.get(api.path("pods", "absent", "log"), headers={"Accept": "application/json, */*"}).status == 404


# ---------------------------------------------------------------- unreachable kubelet

REFUSED = "dial tcp 127.0.0.1:1: connect: connection refused"


@pytest.fixture
def unreachable(api: Api, pod: Callable[..., str]) -> Iterator[str]:
    """The path of a pod on such a node."""
    node = api.name("silent")
    api.post("/api/v1/nodes", {"metadata": {"name": node}})
    address = {"type": "InternalIP", "address": "127.0.0.1"}
    found = {"addresses": [address], "daemonEndpoints": {"kubeletEndpoint": {"Port": 1}}}
    answer = api.patch(f"/api/v1/nodes/{node}/status", {"status": found}, "application/merge-patch+json")
    assert answer.status == 200, answer.body
    yield pod("bound", node=node)
    api.delete(f"/api/v1/nodes/{node}")


@pytest.mark.parametrize("subresource", ["exec?stdout=1", "attach?stdout=1", "portforward", "portforward?ports=80,81&ports=0"])
def test_streaming_subresources_require_an_upgrade(api: Api, unreachable: str, subresource: str) -> None:
    for method in ("GET", "POST"):
        answer = api.request(method, f"{unreachable}/{subresource}")
        assert (answer.status, answer.at("message")) == (400, "Upgrade request required")


@pytest.mark.parametrize(
    ("port", "problem"),
    [("x", "invalid syntax"), ("-1", "invalid syntax"), ("65536", "value out of range"), ("", "invalid syntax")],
)
def test_port_forward_ports_must_be_numbers(api: Api, unreachable: str, port: str, problem: str) -> None:
    answer = api.get(f"{unreachable}/portforward?ports={port}")
    text = f'cannot convert to []int32: strconv.ParseUint: parsing "{port}": {problem}'
    assert (answer.status, answer.at("message")) == (400, text)


@pytest.mark.parametrize(
    ("method", "target", "headers"),
    [
        ("POST", "exec?stdout=1", {"Upgrade": "SPDY/3.1"}),
        ("GET", "attach?stdout=1", {"Upgrade": "websocket", "Sec-WebSocket-Protocol": "v4.channel.k8s.io"}),
        ("GET", "portforward?ports=80", {"Upgrade": "websocket", "Sec-WebSocket-Protocol": "SPDY/3.1+portforward.k8s.io"}),
    ],
)
def test_unreachable_kubelet_returns_500(api: Api, unreachable: str, method: str, target: str, headers: dict[str, str]) -> None:
    answer = api.request(method, f"{unreachable}/{target}", headers={"Connection": "Upgrade", **headers})
    assert (answer.status, answer.at("message"), answer.at("reason")) == (500, f"error dialing backend: {REFUSED}", None)


def test_backend_errors_are_sent_on_the_websocket_error_channel(api: Api, unreachable: str) -> None:
    target = f"{unreachable}/exec?command=ls&command=-l&stdin=1&stdout=1"
    conversation = Conversation(api, target, {"Sec-WebSocket-Protocol": "foo, v5.channel.k8s.io"})
    try:
        assert (conversation.status, conversation.headers["Sec-WebSocket-Protocol"]) == (101, "v5.channel.k8s.io")
        assert conversation.message() == (2, b"\x01")
        _, told = conversation.message()
        assert conversation.message() == (8, b"\x03\xe8")
    finally:
        conversation.close()
    url = f"https://127.0.0.1:1/exec/{api.namespace}/bound/c0?command=ls&command=-l&input=1&output=1"
    problem = f'error sending request: Post "{url}": {REFUSED}'
    assert told[:1] == b"\x03"
    assert json.loads(told[1:]) == {
        "metadata": {},
        "status": "Failure",
        "message": f"Internal error occurred: {problem}",
        "reason": "InternalError",
        "details": {"causes": [{"message": problem}]},
        "code": 500,
    }


@pytest.mark.parametrize(
    ("headers", "status"), [({"Sec-WebSocket-Key": ""}, 400), ({"Sec-WebSocket-Version": "8"}, 400), ({"Upgrade": "foo"}, 500)]
)
def test_invalid_websocket_handshake_is_rejected(api: Api, unreachable: str, headers: dict[str, str], status: int) -> None:
    asked = {"Sec-WebSocket-Protocol": "v5.channel.k8s.io", **headers}
    conversation = Conversation(api, f"{unreachable}/exec?stdout=1", asked)
    conversation.close()
    assert conversation.status == status


@pytest.mark.parametrize("subresource", ["exec", "attach", "portforward"])
def test_websocket_exec_requires_the_create_verb(api: Api, unreachable: str, subresource: str) -> None:
    user, group = api.name("ann"), "rbac.authorization.k8s.io"
    rules = [{"apiGroups": [""], "resources": [f"pods/{subresource}"], "verbs": ["get"]}]
    api.post(api.path("roles", group=f"{group}/v1"), {"metadata": {"name": "getter"}, "rules": rules})
    role = {"apiGroup": group, "kind": "Role", "name": "getter"}
    bound = {"metadata": {"name": "getter"}, "roleRef": role, "subjects": [{"apiGroup": group, "kind": "User", "name": user}]}
    api.post(api.path("rolebindings", group=f"{group}/v1"), bound)
    headers, forbidden = {"Impersonate-User": user}, 'pods "bound" is forbidden: '
    got = api.get(f"{unreachable}/{subresource}", headers=headers)
    while not api.is_ours and "cannot get" in got.at("message"):  # its authorizer hears of the role a moment later
        got = api.get(f"{unreachable}/{subresource}", headers=headers)
    assert (got.status, got.at("message")) == (403, forbidden)
    posted = api.post(f"{unreachable}/{subresource}", None, headers=headers)
    text = f'User "{user}" cannot create resource "pods/{subresource}" in API group "" in the namespace "{api.namespace}"'
    assert (posted.status, posted.at("message")) == (403, forbidden + text)
