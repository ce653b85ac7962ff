"""Which parameters a binding refers to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from fakekube.apis.rest.resource import Resource
from fakekube.apiserver.admission.policy.dispatch import ParamsError, collect_params, param_resource
from fakekube.apiserver.registry import builtin

RESOURCES = {resource.plural: resource for resource in builtin.resources() if not resource.group}
MAPS, NODES = RESOURCES["configmaps"], RESOURCES["nodes"]


class Objects:
    """ConfigMaps `a` and `b` of the namespace `here`, and a node `a`."""

    def get(self, group: str, plural: str, namespace: str, name: str) -> dict[str, Any] | None:
        return next((obj for obj in self.list(group, plural, namespace) if obj["metadata"]["name"] == name), None)

    def list(self, group: str, plural: str, namespace: str = "") -> Iterator[dict[str, Any]]:
        if plural == "nodes" or namespace == "here":
            yield {"metadata": {"name": "a", "labels": {"tier": "gold"}}}
        if plural == "configmaps" and namespace == "here":
            yield {"metadata": {"name": "b"}}

    def resource_of_kind(self, group: str, version: str, kind: str) -> Resource | None:
        return MAPS if (group, version, kind) == ("", "v1", "ConfigMap") else None


CLUSTER: Any = Objects()


def names(reference: Mapping[str, Any] | None, resource: Resource | None = MAPS, namespace: str = "here") -> list[str | None]:
    found = collect_params(CLUSTER, resource, reference, namespace)
    return [obj["metadata"]["name"] if obj is not None else None for obj in found]


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        (None, [None]),
        ({"name": "a"}, ["a"]),
        ({"name": "a", "namespace": "elsewhere"}, []),
        ({"selector": {}}, ["a", "b"]),
        ({"selector": {"matchLabels": {"tier": "gold"}}}, ["a"]),
        ({"name": "none", "parameterNotFoundAction": "Allow"}, []),
    ],
)
def test_params_by_name_and_selector(reference: Mapping[str, Any] | None, found: list[str | None]) -> None:
    assert names(reference) == found


def test_policy_without_param_kind_has_null_params() -> None:
    assert param_resource(CLUSTER, None) is None
    assert names({"name": "a"}, resource=None) == [None]


def test_params_have_kind_and_api_version() -> None:
    (obj,) = collect_params(CLUSTER, MAPS, {"name": "a"}, "here")
    assert obj is not None
    assert (obj["apiVersion"], obj["kind"]) == ("v1", "ConfigMap")


def test_params_are_converted_to_the_param_version() -> None:
    renamed = replace(MAPS, version="v2", from_storage=lambda obj: {**obj, "shown": True})
    (obj,) = collect_params(CLUSTER, renamed, {"name": "a"}, "here")
    assert obj is not None
    assert (obj["apiVersion"], obj["shown"]) == ("v2", True)


@pytest.mark.parametrize(
    ("reference", "resource", "namespace", "problem"),
    [
        (
            {"name": "x", "parameterNotFoundAction": "Deny"},
            MAPS,
            "here",
            "no params found for policy binding with `Deny` parameterNotFoundAction",
        ),
        ({"name": "a"}, MAPS, "", "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"),
        (
            {"name": "a", "namespace": "here"},
            NODES,
            "",
            "paramRef.namespace must not be provided for a cluster-scoped `paramKind`",
        ),
    ],
)
def test_invalid_param_references(reference: Mapping[str, Any], resource: Resource, namespace: str, problem: str) -> None:
    with pytest.raises(ParamsError) as raised:
        names(reference, resource, namespace)
    assert str(raised.value) == problem


def test_param_kind_must_be_served() -> None:
    with pytest.raises(ParamsError) as raised:
        param_resource(CLUSTER, {"apiVersion": "example.com/v1", "kind": "Nothing"})
    assert str(raised.value) == "failed to find resource referenced by paramKind: 'example.com/v1, Kind=Nothing'"
