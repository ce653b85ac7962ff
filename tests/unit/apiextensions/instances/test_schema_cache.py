"""The cache of compiled schemas, shared by equal schemas."""

from __future__ import annotations

import subprocess
import sys
import uuid
from typing import Any

import pytest

from fakekube import ApiError, Cluster
from fakekube.apiextensions.instances import schema_cache
from fakekube.apiextensions.instances.schema_cache import compile_schema, find_compiled

DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
}


def schema(**more: Any) -> dict[str, Any]:
    """A schema that is not in the cache yet."""
    return {"type": "object", "properties": {"spec": {"type": "object", "description": str(uuid.uuid4()), **more}}}


def definition(openapi: dict[str, Any]) -> dict[str, Any]:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": openapi}}
    names = {"plural": "widgets", "kind": "Widget"}
    return {**DEFINITION, "spec": {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]}}


def test_equal_schemas_are_compiled_once() -> None:
    one = schema()
    other = {**one, "properties": dict(one["properties"])}
    assert find_compiled(one) is None
    assert compile_schema(one) is compile_schema(other)
    assert find_compiled(other) is compile_schema(one)
    assert compile_schema(one) is not compile_schema({**one, "nullable": True})
    assert compile_schema({**one, "maximum": 1}) is not compile_schema({**one, "maximum": True})


def test_least_recently_used_schemas_are_evicted(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other, third = (schema() for _ in range(3))
    monkeypatch.setattr(schema_cache, "_cache", schema_cache._Cache())
    compile_schema(one)
    monkeypatch.setattr(schema_cache, "_MAXIMUM_SIZE", int(schema_cache._cache._size * 2.5))
    for each in (other, one, third):
        compile_schema(each)
    assert [find_compiled(each) is not None for each in (one, other, third)] == [True, False, True]


def test_the_number_of_small_schemas_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_cache, "_cache", schema_cache._Cache())
    monkeypatch.setattr(schema_cache, "_MAXIMUM_COUNT", 2)
    known = [schema() for _ in range(4)]
    for each in known:
        compile_schema(each)
    assert [find_compiled(each) is not None for each in known] == [False, False, True, True]


def test_cached_schema_is_accepted_in_another_cluster() -> None:
    one = schema(required=["a"], properties={"a": {"type": "integer", "default": 1}})
    for _ in range(2):
        cluster = Cluster(profile="apiserver")
        cluster.create(definition(one))
        created = cluster.create({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {}})
        assert created["spec"] == {"a": 1}
        cluster.stop()


@pytest.mark.parametrize("wrong", [{}, schema(properties={"a": {"type": "integer", "default": "x"}})])
def test_invalid_schema_is_rejected_again(wrong: dict[str, Any]) -> None:
    for _ in range(2):
        cluster = Cluster(profile="apiserver")
        with pytest.raises(ApiError) as caught:
            cluster.create(definition(wrong))
        assert caught.value.code == 422
        cluster.stop()


def test_definitions_without_rules_do_not_import_cel() -> None:
    code = (
        "import sys; from fakekube import Cluster; from tests.unit.apiextensions.instances.test_schema_cache import definition, schema\n"
        "cluster = Cluster(profile='apiserver')\n"
        "cluster.create(definition(schema(properties={'a': {'type': 'integer', 'default': 1}})))\n"
        "cluster.create({'apiVersion': 'example.com/v1', 'kind': 'Widget', 'metadata': {'name': 'w'}, 'spec': {}})\n"
        "print(sorted(m for m in sys.modules if m.startswith('fakekube.apimachinery.cel')))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
