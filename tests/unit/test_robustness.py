"""Random bodies of all built-in kinds cause no internal server error."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.apimachinery.schema.model import Shape, Type
from fakekube.apis.rest.resource import Resource
from fakekube.apiserver.registry import builtin
from fakekube.controllers.client import Client

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"

#: Of these, what is deleted takes much with it.
KEPT = {"namespaces", "apiservices", "flowschemas", "prioritylevelconfigurations"}
#: Subresources that speak another protocol.
CONNECTING = {"log", "exec", "attach", "portforward", "proxy"}

SCALARS: dict[Shape, list[Any]] = {
    Shape.STRING: ["", "a", "Always", "x y", "tcp", "TCP", "ClusterIP", "10.0.0.1", "v1", "/x", "é"],
    Shape.BOOLEAN: [True, False],
    Shape.INTEGER: [0, 1, -1, 80, 70000, 2**31 - 1],
    Shape.NUMBER: [0, 1.5],
    Shape.BYTES: ["", "YQ=="],
    Shape.TIME: [None, "2020-01-01T00:00:00Z"],
    Shape.MICRO_TIME: [None, "2020-01-01T00:00:00.000000Z"],
    Shape.DURATION: ["1s"],
    Shape.QUANTITY: ["1", "-1", "1Gi", "0", 5],
    Shape.INT_OR_STRING: [0, 80, "http", "50%", -1],
    Shape.RAW: [{}],
}


class Bodies:
    """Values of types, at random."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def of(self, type_: Type, depth: int = 0) -> Any:
        chance = self.random
        if type_.shape is Shape.STRUCT:
            likely = 0 if depth > 6 else 0.55 if depth < 3 else 0.3
            fields = {name: field for name, field in type_.fields.items() if name not in ("kind", "apiVersion")}
            return {name: self.of(field.type, depth + 1) for name, field in fields.items() if chance.random() < likely}
        if type_.shape is Shape.LIST and type_.items:
            return [self.of(type_.items, depth + 1) for _ in range(chance.choice([0, 1, 1, 2]) if depth < 8 else 0)]
        if type_.shape is Shape.MAP and type_.items:
            return {
                chance.choice(["a", "app", "x/y", ""]): self.of(type_.items, depth + 1) for _ in range(chance.choice([0, 1, 2]))
            }
        if type_.shape is Shape.UNION and type_.items:
            return self.of(type_.items, depth + 1)
        return chance.choice(SCALARS.get(type_.shape, [{}, "x", None, 1]))

    def named(self, type_: Type, **metadata: Any) -> dict[str, Any]:
        value = self.of(type_)
        return {**(value if isinstance(value, dict) else {}), "metadata": metadata}


Request = tuple[str, str, Any, dict[str, str], str]


def requests(client: Client, resource: Resource, bodies: Bodies) -> Iterator[Request]:
    """One request of every sort about a resource."""
    name = f"n{bodies.random.randrange(6)}"
    collection, path, kind = client.path(resource, "default"), client.path(resource, "default", name), resource.type
    whole = {"apiVersion": resource.api_version, "kind": resource.kind}
    yield "POST", collection, bodies.named(kind, name=name), {}, ""
    if "get" in resource.verbs:
        yield "PUT", path, bodies.named(kind, name=name), {}, ""
        yield "PATCH", path, bodies.named(kind), {}, bodies.random.choice([MERGE, STRATEGIC])
        yield "PATCH", path, {**bodies.named(kind, name=name), **whole}, {"fieldManager": "m", "force": "true"}, APPLY
        yield "GET", path, None, {}, ""
    for subresource, found in resource.subresources.items():
        below = f"{path}/{subresource}"
        for verb, method, content_type in (
            ("create", "POST", ""),
            ("update", "PUT", ""),
            ("patch", "PATCH", MERGE),
            ("get", "GET", ""),
        ):
            if verb in found.verbs and subresource not in CONNECTING:
                yield method, below, None if method == "GET" else bodies.named(found.type, name=name), {}, content_type
    if "delete" in resource.verbs and resource.plural not in KEPT and bodies.random.random() < 0.3:
        yield "DELETE", path, None, {}, ""


@pytest.mark.parametrize("seed", range(4))
def test_random_bodies_cause_no_internal_error(seed: int) -> None:
    cluster = Cluster(profile="apiserver")
    client, bodies = cluster._client, Bodies(seed)
    failed = []
    accepted = 0
    for resource in builtin.resources():
        if "create" not in resource.verbs:
            continue
        for method, path, body, query, content_type in requests(client, resource, bodies):
            answer = client.request(method, path, body, query, content_type=content_type or "application/json")
            assert isinstance(answer.body, bytes)
            accepted += answer.code < 300
            if b"an error on the server (" in answer.body:
                failed.append((method, path, content_type, body, answer.body))
    cluster.stop()
    assert not failed
    assert accepted > 20  # or nothing would be tried beyond the checks
