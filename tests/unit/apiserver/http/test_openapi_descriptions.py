"""Descriptions are read from a separately installed package."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from fakekube.apimachinery import data
from fakekube.apimachinery.features import emulation
from fakekube.apiserver.http.openapi import documents, operations, v2, v3
from fakekube.apiserver.http.openapi.v3 import Definitions
from fakekube.apiserver.registry.served_apis import NO_RUNTIME_CONFIG

POD = "io.k8s.api.core.v1.Pod"
PODS = "/api/v1/namespaces/{namespace}/pods"
PUBLISHED = {
    "paths": {
        PODS: {
            "parameters": [{"$ref": "#/parameters/pretty-1"}],
            "get": {"description": "list pods", "parameters": [{"name": "limit", "in": "query", "description": "How many."}]},
        }
    },
    "parameters": {"pretty-1": {"name": "pretty", "in": "query", "description": "Indented."}},
    "definitions": {
        POD: {"description": "A pod.", "properties": {"spec": {"description": "What is wanted."}, "gone": {"description": "x"}}}
    },
}


def published() -> dict[str, Any]:
    return PUBLISHED


@pytest.fixture(autouse=True)
def package(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package that describes 1.36."""
    found = EntryPoint("1.36", f"{__name__}:published", "fakekube.descriptions")
    monkeypatch.setattr(EntryPoint, "load", lambda _: published)
    monkeypatch.setattr(data, "find_spec", lambda _: None)
    monkeypatch.setattr(
        "importlib.metadata.entry_points", lambda group, name: [found] if (group, name) == (found.group, found.name) else []
    )
    data.published_document.cache_clear()
    yield
    data.published_document.cache_clear()


def test_kinds_and_fields_have_descriptions() -> None:
    schema = Definitions(data.minor("1.36"), "1.36", enums=True).schema(POD)
    plain = Definitions(data.minor("1.36"), "1.35", enums=True).schema(POD)
    assert schema["description"] == "A pod."
    assert schema["properties"]["spec"] == {"description": "What is wanted.", **plain["properties"]["spec"]}
    assert schema["properties"]["status"] == plain["properties"]["status"]
    assert list(schema["properties"]) == list(plain["properties"])
    shown = v2.schema(schema)["properties"]["spec"]
    assert list(shown.items()) == [("description", "What is wanted."), ("$ref", "#/definitions/io.k8s.api.core.v1.PodSpec")]


def test_no_descriptions_without_a_package() -> None:
    assert "description" not in Definitions(data.minor("1.36"), "1.35", enums=True).schema(POD)


def test_schemas_without_description_are_unchanged() -> None:
    schema = {"type": "object"}
    assert operations.describe("1.36", "io.k8s.api.core.v1.Nothing", schema) is schema


def test_operations_and_parameters_have_descriptions() -> None:
    paths = documents.builtin_paths.__wrapped__(emulation("1.36"), NO_RUNTIME_CONFIG)["api/v1"]
    listing = next(operation for operation in paths[PODS] if operation.method == "get")
    assert listing.description == "list pods"
    texts = {parameter.name: parameter.description for parameter in listing.parameters}
    assert (texts["limit"], texts["pretty"], texts["watch"]) == ("How many.", "Indented.", "")
    definitions = Definitions(data.minor("1.36"), "1.36", enums=True)
    shown = v3.document({}, {PODS: paths[PODS]}, definitions)["paths"][PODS]
    assert shown["get"]["description"] == "list pods"
    assert {
        "name": "pretty",
        "in": "query",
        "description": "Indented.",
        "schema": {"type": "string", "uniqueItems": True},
    } in shown["parameters"]


def test_kubernetes_validate_package_is_the_fallback(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "kubernetes-json-schema" / "v1.36.0-local"
    folder.mkdir(parents=True)
    definitions = {POD: {"description": "A schema.", "properties": {"spec": {"description": "A field."}}}}
    (folder / "_definitions.json").write_text(json.dumps({"$defs": definitions}))
    package = ModuleSpec("kubernetes_validate", None, origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group, name: [])
    monkeypatch.setattr(data, "find_spec", lambda _: package)
    data.published_document.cache_clear()
    assert data.field_text("1.36", POD, "spec") == "A field."
    assert data.field_text("1.36", POD, "status") == data.field_text("1.35", POD, "spec") == ""
