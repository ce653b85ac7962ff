"""What is nested too deep, too large, or meant to take for ever: an answer in words, soon, and nothing half done."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/widgets"
STRING = {"type": "string"}
SCHEMA = {"type": "object", "properties": {"spec": {
    "type": "object", "x-kubernetes-preserve-unknown-fields": True,
    "properties": {"text": {**STRING, "pattern": "^(a+)+$"}, "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}}},
}}}


def definition(schema: str, plural: str = "widgets") -> str:
    spec = {"group": "example.com", "scope": "Cluster", "names": {"plural": plural, "kind": plural.title()}, "versions": ["VERSION"]}
    body = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.example.com"}, "spec": spec}
    version = f'{{"name": "v1", "served": true, "storage": true, "schema": {{"openAPIV3Schema": {schema}}}}}'
    return json.dumps(body).replace('"VERSION"', version)


class Server:
    def __init__(self, cluster: Cluster) -> None:
        self._address = cluster.url.rpartition("/")[2]

    def ask(self, method: str, path: str, body: str | None = None, content_type: str = "application/json") -> tuple[int, Any]:
        connection = http.client.HTTPConnection(self._address, timeout=20)
        try:
            connection.request(method, path, body, {"Content-Type": content_type} if body else {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Cluster(profile="apiserver") as cluster:
        server = Server(cluster)
        assert server.ask("POST", DEFINITIONS, definition(json.dumps(SCHEMA)))[0] == 201
        yield server


def widget(spec: str) -> str:
    return f'{{"apiVersion": "example.com/v1", "kind": "Widgets", "metadata": {{"name": "one"}}, "spec": {spec}}}'


@pytest.mark.parametrize("depth", [2000, 9000, 11_000])
@pytest.mark.parametrize(("before", "after"), [('{"a":', "}"), ("[", "]")])
def test_deep_objects(server: Server, depth: int, before: str, after: str) -> None:
    code, body = server.ask("POST", WIDGETS, widget('{"free": ' + before * depth + "1" + after * depth + "}"))
    assert (code, b"exceeded max depth" in body) == (400, True)
    assert server.ask("GET", f"{WIDGETS}/one")[0] == 404


@pytest.mark.parametrize("depth", [2000, 11_000])
@pytest.mark.parametrize(("before", "after"), [('{"type":"object","properties":{"a":', "}}"), ('{"not":', "}")])
def test_deep_schemas(server: Server, depth: int, before: str, after: str) -> None:
    code, body = server.ask("POST", DEFINITIONS, definition(before * depth + "{}" + after * depth, "deep"))
    assert (code, b"exceeded max depth" in body) == (400, True)


def test_deep_defaults(server: Server) -> None:
    default = '{"a":' * 2000 + "1" + "}" * 2000
    free = f'{{"type": "object", "x-kubernetes-preserve-unknown-fields": true, "default": {default}}}'
    code, body = server.ask("POST", DEFINITIONS, definition(f'{{"type": "object", "properties": {{"spec": {free}}}}}', "deep"))
    assert (code, b"exceeded max depth" in body) == (400, True)


def test_patterns_take_linear_time(server: Server) -> None:
    code, body = server.ask("POST", WIDGETS, widget(json.dumps({"text": "a" * 50_000 + "!"})))
    assert (code, b"should match '^(a+)+$'" in body) == (422, True)


def test_large_sets(server: Server) -> None:
    code, body = server.ask("POST", WIDGETS, widget(json.dumps({"set": [*range(20_000), 5]})))
    assert (code, b"spec.set[20000]: Duplicate value: 5" in body) == (422, True)


@pytest.mark.parametrize("number", ["1" + "0" * 400, "1e400", "-1e400"])
def test_huge_numbers(server: Server, number: str) -> None:
    code, body = server.ask("POST", WIDGETS, widget(f'{{"n": {number}}}'))
    assert (code, b"json: cannot unmarshal number" in body) == (400, True)
