"""Mutating policies in a cluster: how their work and that of the plugins come together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import ApiError, Cluster

GROUP = "admissionregistration.k8s.io/v1"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    cluster = Cluster(profile="apiserver")
    yield cluster
    cluster.stop()


def mutate(cluster: Cluster, name: str, *mutations: str, resources: str = "configmaps", group: str = "", **spec: Any) -> None:
    """Put a policy in force; mutations that begin with a bracket are JSON patches."""
    rule = {"apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": [resources]}
    made = [
        {"patchType": "JSONPatch", "jsonPatch": {"expression": source}}
        if source.startswith("[")
        else {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": source}}
        for source in mutations
    ]
    cluster.create(
        {
            "apiVersion": GROUP,
            "kind": "MutatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {"reinvocationPolicy": "Never", "matchConstraints": {"resourceRules": [rule]}, "mutations": made, **spec},
        }
    )
    cluster.create(
        {"apiVersion": GROUP, "kind": "MutatingAdmissionPolicyBinding", "metadata": {"name": name}, "spec": {"policyName": name}}
    )


def config_map(name: str = "m", **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data or {"a": "1"}}


def test_later_mutations_see_earlier_ones(cluster: Cluster) -> None:
    mutate(
        cluster,
        "p",
        "Object{data: {'b': string(object.data.a) + '2'}}",
        "[JSONPatch{op: 'add', path: '/data/c', value: string(object.data.b) + string(variables.size)}]",
        variables=[{"name": "size", "expression": "object.data.size()"}],
    )
    mutate(cluster, "q", "Object{data: {'d': string(object.data.c) + '!'}}")
    assert cluster.create(config_map())["data"] == {"a": "1", "b": "12", "c": "122", "d": "122!"}


def test_updates_are_mutated(cluster: Cluster) -> None:
    mutate(cluster, "p", "Object{data: {'by': request.operation}}")
    cluster.create(config_map())
    assert cluster.patch("configmaps", "m", {"data": {"a": "2"}})["data"] == {"a": "2", "by": "UPDATE"}


def test_built_in_plugins_run_again_after_mutations(cluster: Cluster) -> None:
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "LimitRange",
            "metadata": {"name": "l"},
            "spec": {"limits": [{"type": "Container", "default": {"cpu": "2"}}]},
        }
    )
    mutate(
        cluster,
        "p",
        "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'side', image: 's'}]}}",
        resources="pods",
    )
    containers = [{"name": "main", "image": "m"}]
    pod = cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers}})
    assert [c["resources"]["limits"] for c in pod["spec"]["containers"]] == [{"cpu": "2"}] * 2


def test_failing_mutation_stores_nothing(cluster: Cluster) -> None:
    mutate(cluster, "p", "Object{data: {'b': 'x'}}")
    mutate(cluster, "q", "Object{data: {'c': string(object.data.none)}}")
    with pytest.raises(ApiError, match="no such key: none"):
        cluster.create(config_map())
    assert cluster.list("configmaps", namespace="default") == []


def test_mutation_requires_the_request_version_of_the_object(cluster: Cluster) -> None:
    mutate(
        cluster,
        "p",
        "Object{spec: Object.spec{minReplicas: 2}}",
        resources="horizontalpodautoscalers",
        group="autoscaling",
        matchConstraints={
            "resourceRules": [
                {
                    "apiGroups": ["autoscaling"],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE"],
                    "resources": ["horizontalpodautoscalers"],
                }
            ]
        },
    )
    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h"},
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}},
    }
    unknown = r"converting \(v1.HorizontalPodAutoscaler\) to \(v2.HorizontalPodAutoscaler\): unknown conversion"
    with pytest.raises(ApiError, match=unknown):
        cluster.create(scaler)
    assert cluster.create({**scaler, "apiVersion": "autoscaling/v1"})["spec"]["minReplicas"] == 2


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("5", "expected string, got &value.valueUnstructured{Value:5}"),
        ("null", "expected string, got &value.valueUnstructured{Value:0}"),
        ("b'ab'", "expected string, got &value.valueUnstructured{Value:[]uint8{0x61, 0x62}}"),
    ],
)
def test_type_errors_of_mutations_show_the_value(cluster: Cluster, value: str, shown: str) -> None:
    mutate(cluster, "p", f"Object{{data: {{'x': {value}}}}}")
    with pytest.raises(ApiError) as refused:
        cluster.create(config_map())
    assert str(refused.value).endswith(f"failed to convert patch object to typed object: .data.x: {shown}")


def test_scale_cannot_be_mutated_by_apply_configuration(cluster: Cluster) -> None:
    mutate(cluster, "p", "Object{spec: Object.spec{replicas: 3}}", resources="deployments/scale", group="apps")
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    cluster.create(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "d"},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
        }
    )
    with pytest.raises(ApiError, match="no corresponding type for autoscaling/v1, Kind=Scale"):
        cluster.patch("deployments", "d", {"spec": {"replicas": 2}}, subresource="scale")
