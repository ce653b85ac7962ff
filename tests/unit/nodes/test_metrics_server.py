"""metrics.k8s.io: what is measured, selectors, and an autoscaler that follows a load."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.controllers.client import ApiError

ROOT = "/apis/metrics.k8s.io/v1beta1"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as made:
        yield made


def pod(name: str, **metadata: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "main", "image": "app:1"}, {"name": "proxy", "image": "proxy:1"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": spec}


def get(cluster: Cluster, path: str, **query: str) -> Any:
    return cluster.call("GET", f"{ROOT}/{path}", None, query)


def test_values_come_from_rules_functions_annotations_and_defaults(cluster: Cluster) -> None:
    cluster.create(pod("plain"))
    cluster.create(pod("annotated", annotations={"kwok.x-k8s.io/usage-cpu": "20m", "kwok.x-k8s.io/usage-memory": "3Mi"}))
    cluster.create(pod("told"))
    cluster.settle()
    cluster.pods.on(name="told", container="main").uses(cpu="1.5", memory=lambda found: f"{len(found['metadata']['name'])}Gi")
    found = {item["metadata"]["name"]: item["containers"] for item in get(cluster, "pods")["items"]}
    assert [one["usage"] for one in found["plain"]] == [{"cpu": "1m", "memory": "1024Ki"}] * 2
    assert [one["usage"] for one in found["annotated"]] == [{"cpu": "20m", "memory": "3072Ki"}] * 2
    assert [one["usage"] for one in found["told"]] == [{"cpu": "1500m", "memory": "4194304Ki"}, {"cpu": "1m", "memory": "1024Ki"}]
    (node,) = get(cluster, "nodes")["items"]
    assert node["usage"]["cpu"] == "1543m"


def test_only_running_pods_have_metrics(cluster: Cluster) -> None:
    cluster.pods.on(name="late").starts(None)
    cluster.create(pod("late"))
    cluster.settle()
    assert get(cluster, "pods")["items"] == []
    with pytest.raises(ApiError, match=r'pods\.metrics\.k8s\.io "late" not found'):
        get(cluster, "namespaces/default/pods/late")


def test_selectors_and_tables(cluster: Cluster) -> None:
    cluster.create(pod("a", labels={"app": "a"}))
    cluster.create(pod("b", labels={"app": "b"}))
    cluster.settle()
    assert [item["metadata"]["name"] for item in get(cluster, "pods", labelSelector="app=a")["items"]] == ["a"]
    assert [item["metadata"]["name"] for item in get(cluster, "pods", fieldSelector="metadata.name=b")["items"]] == ["b"]
    with pytest.raises(ApiError) as refused:
        get(cluster, "pods", labelSelector="a in")
    assert refused.value.code == 400
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    table = cluster.request("GET", f"{ROOT}/namespaces/default/pods/a", headers={"Accept": accept}).body
    assert isinstance(table, bytes) and b'"cells":["a","2m","2048Ki","15s"]' in table


def test_an_autoscaler_uses_the_metrics(cluster: Cluster) -> None:
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "100m"}}}]},
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template},
    }
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {"scaleTargetRef": target, "maxReplicas": 4, "metrics": [metric]},
    }
    cluster.clock.hold()
    cluster.load(deployment, autoscaler)
    cluster.settle()
    cluster.clock.advance(seconds=16)
    conditions = cluster.get("horizontalpodautoscalers", "web")["status"]["conditions"]
    assert next(one["reason"] for one in conditions if one["type"] == "ScalingActive") == "ValidMetricFound"
    load = cluster.pods.on(labels={"app": "web"}).uses(cpu="10m")
    cluster.clock.advance(minutes=6)
    assert cluster.get("deployments", "web")["spec"]["replicas"] == 1
    load.uses(cpu="200m")
    cluster.clock.advance(minutes=1)
    assert cluster.get("deployments", "web")["spec"]["replicas"] == 4
    load.uses(cpu="1m")
    cluster.clock.advance(minutes=12)
    assert cluster.get("deployments", "web")["spec"]["replicas"] == 1


def test_it_can_be_disabled() -> None:
    with Cluster(controllers="*,-metrics-server") as cluster:
        assert cluster.request("GET", ROOT).status == 404
        assert "v1beta1.metrics.k8s.io" not in [one["metadata"]["name"] for one in cluster.list("apiservices")]


def test_a_mounted_application_replaces_it(cluster: Cluster) -> None:
    def other(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response("200 OK", [("Content-Type", "application/json")])
        return [b'{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"metrics.k8s.io/v1beta1","resources":[]}']

    with cluster.aggregate("metrics.k8s.io/v1beta1", other):
        assert get(cluster, "nodes")["kind"] == "APIResourceList"
    assert get(cluster, "nodes")["kind"] == "NodeMetricsList"
