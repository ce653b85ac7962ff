"""Oversized or malicious values are rejected quickly with an error message."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.apiextensions.instances import validation
from fakekube.apimachinery.errors import field

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/widgets"
STRING = {"type": "string"}
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {
                "text": {**STRING, "pattern": "^(a+)+$"},
                "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}},
            },
        }
    },
}


def definition(schema: str) -> str:
    spec = {
        "group": "example.com",
        "scope": "Cluster",
        "names": {"plural": "widgets", "kind": "Widgets"},
        "versions": ["VERSION"],
    }
    body = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": spec,
    }
    version = f'{{"name": "v1", "served": true, "storage": true, "schema": {{"openAPIV3Schema": {schema}}}}}'
    return json.dumps(body).replace('"VERSION"', version)


class Server:
    def __init__(self, cluster: Cluster) -> None:
        self._address = cluster.url.rpartition("/")[2]

    def ask(self, method: str, path: str, body: str | None = None, content_type: str = "application/json") -> tuple[int, Any]:
        connection = http.client.HTTPConnection(self._address, timeout=60)
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


def test_catastrophic_patterns_take_linear_time(server: Server) -> None:
    code, body = server.ask("POST", WIDGETS, widget(json.dumps({"text": "a" * 50_000 + "!"})))
    assert (code, b"should match '^(a+)+$'" in body) == (422, True)


def test_duplicates_in_large_sets_are_found(server: Server) -> None:
    code, body = server.ask("POST", WIDGETS, widget(json.dumps({"set": [*range(20_000), 5]})))
    assert (code, b"spec.set[20000]: Duplicate value: 5" in body) == (422, True)


@pytest.mark.parametrize("number", ["1" + "0" * 400, "1e400", "-1e400"])
def test_huge_numbers_are_rejected(server: Server, number: str) -> None:
    code, body = server.ask("POST", WIDGETS, widget(f'{{"n": {number}}}'))
    assert (code, b"json: cannot unmarshal number" in body) == (400, True)


def test_long_enums_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each item of a list is looked up, and its error says all values, which are made a text once."""
    quoted: list[str] = []
    quote = field.go_quote
    monkeypatch.setattr(field, "go_quote", lambda text: quoted.append(text) or quote(text))
    compared: list[object] = []
    becomes = validation.becomes
    monkeypatch.setattr(validation, "becomes", lambda value, item: compared.append(item) or becomes(value, item))
    schema = {"type": "array", "items": {"type": "string", "enum": [f"e{number}" for number in range(100)]}}
    assert validation.value_errors(schema, ["e99"] * 100) == []
    errors = validation.value_errors(schema, [f"x{number}" for number in range(100)])
    assert len(errors) == 100
    assert errors[0].body == f'Unsupported value: "x0": {errors[1].detail}'
    assert len(quoted) == 100 + 1
    assert not compared
