"""The OpenAPI documents are consistent and describe the served resources."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from fakekube.apimachinery.features import DEFAULT
from fakekube.apis.rest.resource import Registry, Resource
from fakekube.apiserver.http.openapi.documents import OpenAPIDocuments
from fakekube.apiserver.registry.served_apis import NO_RUNTIME_CONFIG

METHODS = ("get", "put", "post", "patch", "delete", "head", "options")
GATEWAYS = {
    "spec": {
        "versions": [
            {
                "name": "v1",
                "selectableFields": [{"jsonPath": ".spec.port"}],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["port", "extra"],
                                "properties": {
                                    "port": {"x-kubernetes-int-or-string": True},
                                    "extra": {"type": "string", "nullable": True, "default": ""},
                                    "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                                    "object": {"type": "object", "x-kubernetes-embedded-resource": True},
                                },
                            }
                        },
                    }
                },
            }
        ]
    }
}
VERBS = frozenset({"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"})


def gateways() -> Resource:
    return Resource(
        group="net.example.com", version="v1", plural="gateways", singular="gateway", kind="Gateway", namespaced=True, verbs=VERBS,
        bucket="gateways.net.example.com", list_kind="GatewayList", custom=True,
        strategy_factory=lambda: None, type_factory=lambda: None,  # type: ignore[arg-type, return-value]
    )  # fmt: skip


@pytest.fixture
def registry(machinery) -> Registry:
    return Registry(list(machinery.backend.registry))


@pytest.fixture
def documents(registry: Registry) -> OpenAPIDocuments:
    return OpenAPIDocuments(DEFAULT, NO_RUNTIME_CONFIG, registry, lambda _: GATEWAYS)


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for inner in value.values():
            yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)


def _resolved(document: dict[str, Any], reference: str) -> Any:
    value: Any = document
    for step in reference.removeprefix("#/").split("/"):
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _check(document: dict[str, Any]) -> None:
    """References are resolved, schemas are used, operation ids are unique, and paths have
    their parameters.
    """
    references = set(_references(document))
    assert [reference for reference in references if _resolved(document, reference) is None] == []
    identifiers = []
    for path, item in document["paths"].items():
        for method in METHODS:
            if method not in item:
                continue
            identifiers.append(item[method]["operationId"])
            listed = [*item.get("parameters", []), *item[method].get("parameters", [])]
            shown = [_resolved(document, entry["$ref"]) if "$ref" in entry else entry for entry in listed]
            named = [part.strip("{}") for part in path.split("/") if part.startswith("{")]
            assert sorted(entry["name"] for entry in shown if entry["in"] == "path") == sorted(named), (path, method)
    assert len(identifiers) == len(set(identifiers))


def test_openapi_v3_documents_have_no_dangling_references(documents: OpenAPIDocuments) -> None:
    current = documents.current()
    names = list(json.loads(current.index.json)["paths"])
    assert {"api", "api/v1", "apis", "apis/apps", "apis/apps/v1", "version"} <= set(names)
    for name in names:
        document = json.loads(current.document(name).json)
        _check(document)
        used = {reference.rpartition("/")[2] for reference in _references(document)}
        described = document.get("components", {}).get("schemas", {})
        roots = [name for name, schema in described.items() if "x-kubernetes-group-version-kind" in schema]
        assert set(described) <= used | set(roots)


def test_openapi_v2_has_no_dangling_references(documents: OpenAPIDocuments) -> None:
    document = json.loads(documents.current().v2.json)
    _check(document)
    assert document["swagger"] == "2.0"
    assert len(document["paths"]) > 400


def test_paths_have_the_operations_of_the_resource_verbs(documents: OpenAPIDocuments, registry: Registry) -> None:
    for resource in registry:
        root = f"/apis/{resource.group}" if resource.group else "/api"
        name = f"{root}/{resource.version}"
        document = json.loads(documents.current().document(name[1:]).json)
        collection = f"{name}/namespaces/{{namespace}}/{resource.plural}" if resource.namespaced else f"{name}/{resource.plural}"
        for path, verbs in ((collection, "list create deletecollection"), (f"{collection}/{{name}}", "get update patch delete")):
            methods = {
                {"create": "post", "update": "put", "patch": "patch", "get": "get", "list": "get"}.get(verb, "delete")
                for verb in verbs.split()
                if verb in resource.verbs
            }
            assert {key for key in document["paths"].get(path, {}) if key in METHODS} == methods, path


def test_openapi_documents_are_cached(documents: OpenAPIDocuments) -> None:
    current = documents.current()
    assert documents.current() is current
    assert current.document("apis/apps/v1") is current.document("apis/apps/v1")
    assert current.document("apis/nope/v1") is None


def test_openapi_follows_added_and_removed_custom_resources(documents: OpenAPIDocuments, registry: Registry) -> None:
    before = documents.current()
    registry.replace((), [gateways()])
    after = documents.current()
    assert before.document("apis/net.example.com/v1") is None
    document = json.loads(after.document("apis/net.example.com/v1").json)
    _check(document)
    path = "/apis/net.example.com/v1/namespaces/{namespace}/gateways"
    assert path in document["paths"]
    assert path in json.loads(after.v2.json)["paths"]
    _check(json.loads(after.v2.json))
    assert after.document("apis/apps/v1") is before.document("apis/apps/v1")
    assert after.v2.hash != before.v2.hash
    registry.replace([("net.example.com", "v1", "gateways")], [])
    assert documents.current().index == before.index


def test_schemas_of_custom_resources(documents: OpenAPIDocuments, registry: Registry) -> None:
    registry.replace((), [gateways()])
    document = json.loads(documents.current().document("apis/net.example.com/v1").json)
    schema = document["components"]["schemas"]["com.example.net.v1.Gateway"]
    assert schema["x-kubernetes-selectable-fields"] == [{"fieldPath": "spec.port"}]
    assert list(schema["properties"]) == ["apiVersion", "kind", "metadata", "spec"]
    spec = schema["properties"]["spec"]["properties"]
    assert spec["port"]["anyOf"] == [{"type": "integer"}, {"type": "string"}]
    assert spec["object"]["required"] == ["kind", "apiVersion"]
    assert list(spec["object"]["properties"]) == ["apiVersion", "kind", "metadata"]
    old = json.loads(documents.current().v2.json)["definitions"]["com.example.net.v1.Gateway"]["properties"]["spec"]
    assert old["required"] == ["port"]
    assert old["properties"]["port"] == {"x-kubernetes-int-or-string": True}
    assert old["properties"]["extra"] == {}
    assert old["properties"]["any"] == {"x-kubernetes-preserve-unknown-fields": True}
