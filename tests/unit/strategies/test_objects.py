"""Strategies for values of schemas and for objects that the API server accepts."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("hypothesis")

from hypothesis import HealthCheck, find, given, settings  # noqa: E402

from fakekube import Cluster  # noqa: E402
from fakekube.controllers.client.client import collection_path  # noqa: E402
from fakekube.strategies import objects, values  # noqa: E402

RANGES: dict[str, Any] = {
    "type": "object",
    "required": ["min", "max", "mode"],
    "x-kubernetes-validations": [{"rule": "self.min <= self.max"}, {"rule": "self.mode != 'fixed' || self.min == self.max"}],
    "properties": {
        "min": {"type": "integer", "minimum": 0, "maximum": 20},
        "max": {"type": "integer", "minimum": 0, "maximum": 20},
        "mode": {"type": "string"},
        "zone": {"type": "string", "pattern": "^[a-z]{2}-[0-9]$", "maxLength": 8},
        "ports": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port"],
            "items": {"type": "object", "required": ["port"], "properties": {"port": {"type": "integer", "minimum": 1}}},
        },
    },
}
DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "ranges.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "ranges", "kind": "Range"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "required": ["spec"], "properties": {"spec": RANGES}}},
            }
        ],
    },
}
quick = settings(max_examples=15, database=None, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    made = Cluster(profile="apiserver")
    made.load(DEFINITION)
    return made


@quick
@given(objects("ranges.example.com", definitions=DEFINITION))
def test_custom_resources_keep_to_schema_and_rules(obj: dict[str, Any]) -> None:
    spec = obj["spec"]
    assert 0 <= spec["min"] <= spec["max"] <= 20
    assert spec["mode"] != "fixed" or spec["min"] == spec["max"]
    assert "zone" not in spec or re.fullmatch(r"[a-z]{2}-[0-9]", spec["zone"])
    ports = [one["port"] for one in spec.get("ports", [])]
    assert len(ports) == len(set(ports))


@pytest.fixture(scope="module")
def bare() -> Cluster:
    return Cluster(profile="apiserver")


def creatable(cluster: Cluster) -> Iterator[str]:
    """The resources of the preferred versions that can be created."""
    groups = cluster.request("GET", "/apis").json()["groups"]
    paths = {"": "/api/v1"} | {group["name"]: f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups}
    for group, path in paths.items():
        for resource in cluster.request("GET", path).json()["resources"]:
            if "/" not in resource["name"] and "create" in resource["verbs"]:
                yield f"{resource['name']}.{group}".rstrip(".")


def draws_what_is_accepted(resource: str, cluster: Cluster, namespace: str) -> None:
    """Fails if hypothesis finds too few examples, or if the cluster refuses one."""
    path = collection_path(cluster.mapping(resource), namespace)

    @settings(quick, max_examples=3, suppress_health_check=())
    @given(objects(resource, cluster=cluster, namespace=namespace))
    def accepts(obj: dict[str, Any]) -> None:
        answer = cluster.request("POST", path, body=obj, query={"dryRun": "All"})
        assert answer.status < 300, answer.json()

    accepts()


def test_objects_of_all_built_in_kinds_are_drawn(bare: Cluster) -> None:
    resources = set(creatable(bare)) - {"bindings"}  # a binding needs a pod
    assert len(resources) > 60
    for resource in sorted(resources):
        draws_what_is_accepted(resource, bare, "default")


@pytest.mark.parametrize("resource", ["events.events.k8s.io", "localsubjectaccessreviews.authorization.k8s.io", "services"])
def test_objects_belong_to_their_namespace(resource: str, bare: Cluster) -> None:
    draws_what_is_accepted(resource, bare, "kube-system")


@pytest.mark.parametrize("resource", ["configmaps", "deployments", "services", "networkpolicies", "cronjobs"])
def test_built_in_objects_are_accepted(resource: str, cluster: Cluster) -> None:
    @settings(quick, max_examples=4)
    @given(objects(resource, cluster=cluster))
    def accepts(obj: dict[str, Any]) -> None:
        kept = cluster.create(obj)
        cluster.delete(resource, kept["metadata"]["name"], propagationPolicy="Background")

    accepts()


def test_custom_kinds_with_names_of_built_in_ones_get_none_of_their_fields() -> None:
    names = {"plural": "jobs", "kind": "Job"}
    definition = {**DEFINITION, "metadata": {"name": "jobs.example.com"}, "spec": {**DEFINITION["spec"], "names": names}}

    @settings(quick, max_examples=3)
    @given(objects("jobs.example.com", definitions=definition))
    def check(obj: dict[str, Any]) -> None:
        assert obj["apiVersion"] == "example.com/v1" and obj["spec"].keys() <= RANGES["properties"].keys()

    check()


def test_texts_of_rules_are_likely_and_failures_shrink() -> None:
    found = find(
        objects("ranges.example.com", definitions=DEFINITION), lambda obj: obj["spec"]["mode"] == "fixed", settings=quick
    )
    assert found["spec"] == {"min": 0, "max": 0, "mode": "fixed"}


@pytest.mark.parametrize(
    ("schema", "fits"),
    [
        ({"type": "integer", "minimum": 3, "maximum": 12, "multipleOf": 3}, lambda value: value in (3, 6, 9, 12)),
        ({"type": "integer", "minimum": 0, "exclusiveMinimum": True, "maximum": 2}, lambda value: value in (1, 2)),
        ({"type": "string", "minLength": 2, "maxLength": 3}, lambda value: 2 <= len(value) <= 3),
        ({"type": "string", "pattern": "^(?i)[a-z]-[0-9]$"}, lambda value: re.fullmatch("[A-Za-z]-[0-9]", value)),
        ({"type": "string", "pattern": r"^[[:alpha:]]+\d\z"}, lambda value: re.fullmatch("[A-Za-z]+[0-9]", value)),
        (
            {"type": "string", "pattern": r"^[\da-f]{2}[^\pL[:digit:]]$"},
            lambda value: re.fullmatch("[0-9a-f]{2}[^A-Za-z0-9]", value),
        ),
        ({"type": "string", "pattern": "^[[]a][]b[]$"}, lambda value: value in ("[a]]", "[a]b", "[a][")),
        ({"type": "string", "enum": ["a", "b"]}, lambda value: value in ("a", "b")),
        ({"type": "string", "format": "date-time"}, lambda value: value.endswith("Z")),
        ({"type": "boolean", "nullable": True}, lambda value: value in (True, False, None)),
        ({"x-kubernetes-int-or-string": True}, lambda value: isinstance(value, int | str)),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2}, lambda value: 1 <= len(value) <= 2),
        ({"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 1}, lambda value: len(value) >= 1),
        ({"type": "number", "minimum": 0.5, "maximum": 2}, lambda value: 0.5 <= value <= 2),
    ],
)
def test_values_fit_their_schema(schema: dict[str, Any], fits: Any) -> None:
    @quick
    @given(values(schema))
    def fit(value: Any) -> None:
        assert fits(value)

    fit()


def test_hypothesis_is_imported_by_the_strategies_alone() -> None:
    code = "import sys, fakekube; fakekube.Cluster(); assert not [name for name in sys.modules if 'hypothesis' in name]"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
