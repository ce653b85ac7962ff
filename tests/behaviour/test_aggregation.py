"""API aggregation: availability of APIServices, proxying to extension servers, and errors of unreachable ones."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.conftest import Api, Reply
from tests.behaviour.extension_server import ExtensionServer, Received
from tests.behaviour.webhook_server import JSON, TEXT, Authority

SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
MERGE = "application/merge-patch+json"
AGGREGATED = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}


def until(probe: Callable[[], Any], seconds: float = 60) -> Any:
    """Poll until a condition holds; fail after a timeout."""
    end = time.monotonic() + seconds
    while not (found := probe()):
        assert time.monotonic() < end, "nothing happens"
        time.sleep(0.01)
    return found


@dataclass
class Extension:
    """An extension server, registered as v1 of a group of the test's own."""

    api: Api
    server: ExtensionServer
    authority: Authority

    @property
    def group(self) -> str:
        return self.server.group

    @property
    def service(self) -> str:
        return f"{SERVICES}/v1.{self.group}"

    def path(self, *rest: str) -> str:
        return "/".join([f"/apis/{self.group}/v1/namespaces/{self.api.namespace}/things", *rest])

    def register(self, reason: str = "Passed", **spec: Any) -> None:
        reference = {"namespace": self.api.namespace, "name": "extension", "port": self.server.port}
        trust = {} if "insecureSkipTLSVerify" in spec else {"caBundle": self.authority.bundle}
        body = {
            "metadata": {"name": f"v1.{self.group}"},
            "spec": {
                "group": self.group, "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 15, "service": reference,
                **trust, **spec,
            },
        }  # fmt: skip
        made = self.api.post(SERVICES, body)
        assert made.status == 201, made.body
        self.await_reason(reason)
        if reason == "Passed":
            until(lambda: self.api.get(f"/apis/{self.group}/v1").status == 200)

    def condition(self) -> dict[str, Any]:
        found: list[dict[str, Any]] = self.api.get(self.service).at("status", "conditions", default=[])
        return next((one for one in found if one["type"] == "Available"), {})

    def await_reason(self, reason: str) -> None:
        until(lambda: self.condition().get("reason") == reason)

    def asked(self) -> list[Received]:
        """The requests that are about the resource."""
        return [one for one in self.server.seen if "/things" in one.path]

    def discovered(self) -> dict[str, Any]:
        """The group in the aggregated document."""
        items = self.api.get("/apis", headers=AGGREGATED).at("items", default=[])
        return next((item for item in items if item["metadata"].get("name") == self.group), {})


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority(name="extensions")


@pytest.fixture
def extension(api: Api, authority: Authority, tmp_path: Path) -> Iterator[Extension]:
    name = f"extension.{api.namespace}.svc"
    server = ExtensionServer(tmp_path, authority, f"{api.name('group')}.example.com", "v1", name)
    body = {"metadata": {"name": "extension"}, "spec": {"type": "ExternalName", "externalName": "127.0.0.1"}}
    assert api.post(api.path("services"), body).status == 201
    found = Extension(api, server, authority)
    yield found
    api.delete(found.service)
    server.close()


# ---------------------------------------------------------------- availability


def test_apiservice_with_responding_server_is_available(extension: Extension) -> None:
    extension.register()
    assert extension.condition() == extension.condition() | {"status": "True", "message": "all checks passed"}
    (probe, *_) = [one for one in extension.server.seen if one.path == f"/apis/{extension.group}/v1"]
    assert probe.header("x-remote-user") == ["system:kube-aggregator"]
    assert probe.header("x-remote-group") == ["system:masters"]


def test_apiservice_with_missing_service_is_unavailable(extension: Extension) -> None:
    extension.register(reason="ServiceNotFound", service={"namespace": extension.api.namespace, "name": "none", "port": 443})
    assert extension.condition()["message"] == f'service/none in "{extension.api.namespace}" is not present'
    refused = extension.api.get(extension.path())
    assert (refused.status, refused.body) == (503, b"service unavailable\n")
    assert refused.headers["content-type"] == "text/plain; charset=utf-8"


def test_failed_discovery_check_is_retried(extension: Extension) -> None:
    extension.server.failing = 500
    extension.register(reason="FailedDiscoveryCheck")
    assert extension.condition()["message"].endswith(f"/apis/{extension.group}/v1: 500")
    assert extension.api.get(extension.path()).status == 503
    extension.server.failing = 0
    extension.await_reason("Passed")
    until(lambda: extension.api.get(extension.path()).status == 200)


def test_apiservice_ca_bundle_must_trust_the_server_certificate(extension: Extension) -> None:
    other = Authority(name="others").bundle
    extension.register(reason="FailedDiscoveryCheck", caBundle=other)
    assert "x509: certificate signed by unknown authority" in extension.condition()["message"]
    change = {"spec": {"caBundle": None, "insecureSkipTLSVerify": True}}
    assert extension.api.patch(extension.service, change, MERGE).status == 200
    extension.await_reason("Passed")


def test_proxying_to_a_closed_port_returns_503(extension: Extension) -> None:
    extension.register()
    extension.server.close()
    refused = extension.api.get(extension.path())
    place = f"127.0.0.1:{extension.server.port}"
    assert refused.status == 503
    assert refused.body.decode() == f"error trying to reach service: dial tcp {place}: connect: connection refused\n"


def test_removing_the_service_reference_makes_the_apiservice_local(extension: Extension) -> None:
    extension.register()
    changed = extension.api.patch(extension.service, {"spec": {"service": None, "caBundle": None}}, MERGE)
    assert changed.status == 200
    extension.await_reason("Local")
    assert until(lambda: extension.api.get(extension.path()).status == 404)


# ---------------------------------------------------------------- requests and answers


def test_proxied_requests_keep_headers_and_body(extension: Extension) -> None:
    extension.register()
    sent = b'{"a": 1}'
    headers = {
        "X-Custom": "kept",
        "X-Remote-User": "root",
        "X-Remote-Extra-Scope": "all",
        "Connection": "keep-alive, X-Hop",
        "X-Hop": "1",
    }
    answer = extension.api.patch(extension.path("one"), sent, MERGE, "b=2&a=1&b=1&flag", headers=headers)
    assert answer.json == {"path": extension.path("one") + "?a=1&b=2&b=1&flag="}
    received = extension.asked()[-1]
    assert (received.method, received.body) == ("PATCH", sent)
    assert received.header("content-type") == [MERGE]
    assert received.header("x-custom") == ["kept"]
    assert received.header("x-remote-user") != ["root"]
    assert [received.header(name) for name in ("x-hop", "authorization", "x-remote-extra-scope")] == [[], [], []]
    assert received.header("x-forwarded-uri") == [extension.path("one")]
    assert received.header("x-forwarded-for") == ["127.0.0.1"]


def test_proxied_requests_carry_the_user_in_x_remote_headers(extension: Extension) -> None:
    extension.register()
    who = {
        "Impersonate-User": "ann",
        "Impersonate-Group": "system:masters",
        "Impersonate-Uid": "u-1",
        "Impersonate-Extra-Example.com%2Fkey": "v w",
    }
    assert extension.api.get(extension.path(), headers=who).status == 200
    received = extension.asked()[-1]
    assert received.header("x-remote-user") == ["ann"]
    assert received.header("x-remote-uid") == ["u-1"]
    assert received.header("x-remote-group") == ["system:masters", "system:authenticated"]
    assert received.header("x-remote-extra-example.com%2fkey") == ["v w"]
    assert not [name for name, _ in received.headers if name.startswith("impersonate-")]


def test_forbidden_requests_are_not_proxied(extension: Extension) -> None:
    extension.register()
    before = len(extension.asked())
    refused = extension.api.get(extension.path(), headers={"Impersonate-User": "nobody"})
    assert (refused.status, refused.at("reason")) == (403, "Forbidden")
    assert len(extension.asked()) == before


@pytest.mark.parametrize(("status", "headers", "body"), [
    (418, TEXT, b"short and stout"), (409, JSON, b'{"kind": "Status"}'), (204, {}, b""), (503, {"Retry-After": "7"}, b"{}"),
])  # fmt: skip
def test_proxied_responses_are_returned_unchanged(
    extension: Extension, status: int, headers: dict[str, str], body: bytes
) -> None:
    extension.register()
    extension.server.behave = lambda *_: (status, headers, body)
    answer = extension.api.get(extension.path())
    assert (answer.status, answer.body) == (status, body)
    assert all(answer.headers[name.lower()] == value for name, value in headers.items())


def test_redirects_from_an_extension_server_return_502(extension: Extension) -> None:
    extension.register()
    extension.server.behave = lambda *_: (302, {"Location": "https://example.com/"}, b"go")
    answer = extension.api.get(extension.path())
    assert (answer.status, answer.body) == (502, b"the backend attempted to redirect this request, which is not permitted")
    assert "location" not in answer.headers


def test_absolute_path_links_in_proxied_html_get_the_server_host(extension: Extension) -> None:
    extension.register()
    page = b'<a href="/x?a=1&amp;b=2">x</a><a href="other">y</a><script>"<a href=\'/z\'>"</script>'
    extension.server.behave = lambda *_: (200, {"Content-Type": "text/html"}, page)
    host = f"https://127.0.0.1:{extension.server.port}".encode()
    assert extension.api.get(extension.path()).body == page.replace(b'"/x?', b'"' + host + b"/x?")


@pytest.mark.parametrize(("written", "said"), [
    (b"", "EOF"),
    (b"hello\r\n\r\n", 'net/http: HTTP/1.x transport connection broken: malformed HTTP response "hello"'),
    (b"HTTP/1.1 abc\r\n\r\n", 'net/http: HTTP/1.x transport connection broken: malformed HTTP status code "abc"'),
    (b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
     'net/http: HTTP/1.x transport connection broken: malformed MIME header: missing colon: "no colon"'),
    (b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", 'net/http: HTTP/1.x transport connection broken: bad Content-Length "x"'),
])  # fmt: skip
def test_malformed_response_from_an_extension_server_returns_503(extension: Extension, written: bytes, said: str) -> None:
    extension.register()

    def behave(_: Received, connection: socket.socket) -> None:
        connection.sendall(written)

    extension.server.behave = behave
    answer = extension.api.get(extension.path())
    assert (answer.status, answer.body.decode()) == (503, f"error trying to reach service: {said}\n")


def test_proxied_request_times_out_with_504(extension: Extension) -> None:
    extension.register()

    def behave(_: Received, connection: socket.socket) -> None:
        connection.recv(1)

    extension.server.behave = behave
    answer = extension.api.get(extension.path(), {"timeout": "300ms"})
    assert answer.status == 504
    assert answer.at("message") == "Timeout: request did not complete within the allotted timeout"


def test_proxied_watch_events_are_streamed(extension: Extension) -> None:
    extension.register()
    event = b'{"type": "ADDED", "object": {}}\n'

    def behave(_: Received, connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        connection.sendall(b"%x\r\n%b\r\n" % (len(event), event))
        connection.recv(1)

    extension.server.behave = behave
    assert extension.api.watch(extension.path(), {}, count=1) == [json.loads(event)]


def test_large_proxied_response_is_returned_completely(extension: Extension) -> None:
    extension.register()
    extension.server.behave = lambda *_: (200, TEXT, b"x" * 3_000_000)
    answer = extension.api.get(extension.path(), headers={"Accept-Encoding": "gzip"})
    assert (len(answer.body), answer.headers.get("content-encoding")) == (3_000_000, None)


# ---------------------------------------------------------------- upgrades


def upgrade(extension: Extension, *sent: bytes) -> bytes:
    """Upgrade to another protocol, send data, and return the response."""
    connection = extension.api.connect(timeout=60)
    connection.connect()
    plain = connection.sock
    headers = extension.api.headers({"Connection": "Upgrade", "Upgrade": "parrot/1", "Host": "localhost"})
    lines = [f"GET {extension.path()} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    plain.sendall("\r\n".join(lines).encode())
    received = b""
    for piece in sent:
        # Up to the end of the headers, or of the response to the last piece.
        while not received.endswith((b"\r\n\r\n", b">")) and (data := plain.recv(65536)):
            received += data
        plain.sendall(piece)
        received += plain.recv(65536)
    while data := plain.recv(65536):
        received += data
    connection.close()
    return received


def test_protocol_upgrade_is_proxied_in_both_directions(extension: Extension) -> None:
    extension.register()

    def parrot(_: Received, connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: parrot/1\r\n\r\n")
        while data := connection.recv(65536):
            connection.sendall(b"<" + data + b">")
            if b"bye" in data:
                return

    extension.server.behave = parrot
    received = upgrade(extension, b"one", b"bye")
    assert received == b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: parrot/1\r\n\r\n<one><bye>"
    asked = extension.asked()[-1]
    assert asked.header("upgrade") == ["parrot/1"]
    assert asked.header("x-remote-group")


def test_upgrade_without_101_response(extension: Extension) -> None:
    extension.register()
    connection = {"Connection": "Upgrade", "Upgrade": "parrot/1"}
    extension.server.behave = lambda *_: (200, JSON, b"{}")
    answer = extension.api.get(extension.path(), headers=connection)
    assert (answer.status, answer.body) == (503, b"invalid upgrade response: status code 200\n")
    extension.server.behave = lambda *_: (403, TEXT, b"not for you")
    answer = extension.api.get(extension.path(), headers=connection)
    assert (answer.status, answer.body) == (403, b"not for you")


# ---------------------------------------------------------------- discovery and OpenAPI


def test_aggregated_group_appears_in_discovery(extension: Extension) -> None:
    extension.register()
    until(lambda: extension.discovered().get("versions", [{}])[0].get("freshness") == "Current")
    (version,) = extension.discovered()["versions"]
    assert [(one["resource"], one["responseKind"]["kind"], one["scope"]) for one in version["resources"]] == [
        ("things", "Thing", "Namespaced")
    ]
    group = extension.api.get(f"/apis/{extension.group}")
    assert group.at("preferredVersion", "version") == "v1"
    assert extension.group in [one["name"] for one in extension.api.get("/apis").at("groups")]


def test_unavailable_group_is_stale_in_discovery(extension: Extension) -> None:
    extension.server.failing = 503
    extension.register(reason="FailedDiscoveryCheck")
    until(lambda: extension.discovered().get("versions") == [{"version": "v1", "freshness": "Stale"}])


def test_openapi_documents_of_extension_servers_are_merged(extension: Extension) -> None:
    path, name = f"/apis/{extension.group}/v1/things", f"apis/{extension.group}/v1"
    reference = {"$ref": "#/definitions/com.example.Thing"}
    extension.server.documents["/openapi/v2"] = {
        "swagger": "2.0",
        "info": {"title": "extension", "version": "1"},
        "paths": {
            path: {"get": {"produces": ["application/json"], "responses": {"200": {"description": "OK", "schema": reference}}}}
        },
        "definitions": {"com.example.Thing": {"type": "object", "description": "a thing"}},
    }
    extension.register()
    listed: Reply = until(lambda: (r := extension.api.get("/openapi/v3")).at("paths", name) and r)
    document = extension.api.get(listed.at("paths", name, "serverRelativeURL"))
    schema = document.at("paths", path, "get", "responses", "200", "content", "application/json", "schema")
    assert schema == {"$ref": "#/components/schemas/com.example.Thing"}
    assert document.at("components", "schemas", "com.example.Thing", "description") == "a thing"
    merged: Reply = until(lambda: (r := extension.api.get("/openapi/v2")).at("paths", path) and r)
    assert merged.at("definitions", "com.example.Thing")
    assert merged.at("paths", "/api/v1/nodes")


def test_deleting_the_apiservice_removes_the_group(extension: Extension) -> None:
    extension.register()
    until(extension.discovered)
    assert extension.api.delete(extension.service).status == 200
    until(lambda: extension.api.get(extension.path()).status == 404)
    assert extension.api.get(extension.path()).body == b"404 page not found\n"
    until(lambda: not extension.discovered())
