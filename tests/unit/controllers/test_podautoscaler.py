"""Autoscalers: arithmetic, stabilization, rules, and a scale target that follows its metrics."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.controllers.podautoscaler.controller import Bounds, History
from fakekube.controllers.podautoscaler.replica_calculator import (
    MetricError,
    PodMetric,
    ReplicaCalculator,
    Tolerances,
    calculate_pod_requests,
    get_usage_ratio_replicas,
)
from tests.unit.controllers.workloads import condition, reasons, workload

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
BOUNDS = Bounds(1, 100)


def pod(name: str, phase: str = "Running", ready: str = "True") -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T10:00:00Z"}]
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "100m"}}}]},
        "status": {"phase": phase, "startTime": "2026-01-01T10:00:00Z", "conditions": conditions},
    }


def used(**values: int) -> dict[str, PodMetric]:
    return {name: PodMetric(value, NOW, timedelta(seconds=30)) for name, value in values.items()}


@pytest.mark.parametrize(
    ("pods", "metrics", "found"),
    [
        ([pod("a"), pod("b")], used(a=100, b=100), 4),
        ([pod("a"), pod("b")], used(a=52, b=50), 2),
        ([pod("a"), pod("b")], used(a=20, b=20), 1),
        ([pod("a"), pod("b")], used(a=100), 2),
        ([pod("a"), pod("b")], used(a=10), 2),
        ([pod("a"), pod("b", "Pending")], used(a=200), 4),
        ([pod("a"), pod("b", "Pending")], used(a=10), 1),
        ([pod("a"), pod("b", "Failed")], used(a=100, b=900), 2),
    ],
)
def test_replicas_by_utilization(pods: list[dict[str, Any]], metrics: dict[str, PodMetric], found: int) -> None:
    calculator = ReplicaCalculator(pods, 2, Tolerances(), NOW)
    assert calculator.resource_replicas(metrics, calculate_pod_requests(pods, "", "cpu"), 50, "cpu")[0] == found


def test_metrics_that_cannot_be_computed() -> None:
    with pytest.raises(MetricError, match="did not receive metrics"):
        ReplicaCalculator([pod("a", "Pending")], 1, Tolerances(), NOW).plain_metric_replicas(used(a=1), 1, "")
    with pytest.raises(MetricError, match="missing request for memory in container c of Pod a"):
        calculate_pod_requests([pod("a")], "", "memory")
    with pytest.raises(MetricError, match="no pods returned"):
        get_usage_ratio_replicas(2.0, 3, [], Tolerances())


@pytest.mark.parametrize(("ratio", "present", "found"), [(2.0, 2, 4), (1.05, 2, 2), (0.4, 2, 1), (3.0, 0, 3)])
def test_replicas_by_ratio(ratio: float, present: int, found: int) -> None:
    assert get_usage_ratio_replicas(ratio, present, [pod("a"), pod("b"), pod("c", ready="False")], Tolerances()) == found


def test_the_highest_recent_recommendation_counts_for_five_minutes() -> None:
    history = History()
    history.record_initial_recommendation(5, 0.0)
    stabilized = history.normalize(2, 5, BOUNDS, 60.0)
    assert (stabilized.replicas, stabilized.able[0]) == (5, "ScaleDownStabilized")
    assert history.normalize(2, 5, BOUNDS, 301.0).replicas == 2


@pytest.mark.parametrize(
    ("desired", "found", "reason"),
    [(50, 10, "ScaleUpLimit"), (8, 8, "DesiredWithinRange"), (200, 10, "ScaleUpLimit"), (0, 1, "TooFewReplicas")],
)
def test_the_default_scale_up_limit_is_twice_the_replicas(desired: int, found: int, reason: str) -> None:
    decision = History().normalize(desired, 5, BOUNDS, 0.0)
    assert (decision.replicas, decision.limit[0]) == (found, reason)


def rules(policies: list[dict[str, Any]], window: int = 0, select: str = "Max") -> dict[str, Any]:
    return {"stabilizationWindowSeconds": window, "selectPolicy": select, "policies": policies}


PODS = {"type": "Pods", "value": 2, "periodSeconds": 60}
PERCENT = {"type": "Percent", "value": 50, "periodSeconds": 60}


@pytest.mark.parametrize(
    ("up", "down", "desired", "found"),
    [
        (rules([PODS, PERCENT]), rules([PODS]), 50, 15),
        (rules([PODS, PERCENT], select="Min"), rules([PODS]), 50, 12),
        (rules([PODS], select="Disabled"), rules([PODS]), 50, 10),
        (rules([PODS]), rules([PODS]), 1, 8),
        (rules([PODS]), rules([PODS, PERCENT]), 1, 5),
        (rules([PODS]), rules([PODS, PERCENT], select="Min"), 1, 8),
    ],
)
def test_scaling_policies_limit_the_rate(up: dict[str, Any], down: dict[str, Any], desired: int, found: int) -> None:
    assert History().normalize_with_behaviors({"scaleUp": up, "scaleDown": down}, desired, 10, BOUNDS, 0.0).replicas == found


def test_scale_events_in_the_period_count() -> None:
    behavior = {"scaleUp": rules([PODS]), "scaleDown": rules([PODS], window=300)}
    history = History()
    history.record_initial_recommendation(10, 0.0)
    assert history.normalize_with_behaviors(behavior, 50, 10, BOUNDS, 1.0).replicas == 12
    history.store_scale_event(behavior, 10, 12, 1.0)
    assert history.normalize_with_behaviors(behavior, 50, 12, BOUNDS, 31.0).replicas == 12
    assert history.normalize_with_behaviors(behavior, 50, 12, BOUNDS, 62.0).replicas == 14
    assert history.normalize_with_behaviors(behavior, 1, 12, BOUNDS, 70.0).able[0] == "ScaleDownStabilized"


# ---------------------------------------------------------------- in a cluster


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as made:
        made.clock.hold()
        requests = {"containers": [{"name": "c", "image": "app:1", "resources": {"requests": {"cpu": "100m"}}}]}
        made.create(workload("Deployment", replicas=2, pod=requests))
        made.settle()
        yield made


def autoscale(cluster: Cluster, low: int, high: int, **spec: Any) -> None:
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    cluster.create(
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "hpa", "namespace": "default"},
            "spec": {"scaleTargetRef": target, "minReplicas": low, "maxReplicas": high, "metrics": [cpu], **spec},
        }
    )
    cluster.settle()


def autoscaler(cluster: Cluster) -> dict[str, Any]:
    return cluster.get("horizontalpodautoscalers", "hpa", namespace="default")


def replicas(cluster: Cluster) -> int:
    count: int = cluster.get("deployments", "web", namespace="default")["spec"]["replicas"]
    return count


def test_min_and_max_replicas_apply_without_metrics(cluster: Cluster) -> None:
    autoscale(cluster, 3, 4)
    assert replicas(cluster) == 3
    assert condition(autoscaler(cluster), "ScalingActive") == ("False", "FailedGetResourceMetric")


def test_two_autoscalers_of_one_target_do_nothing(cluster: Cluster) -> None:
    autoscale(cluster, 1, 4)
    other = autoscaler(cluster)
    cluster.create({**other, "metadata": {"name": "other", "namespace": "default"}})
    cluster.settle()
    found = cluster.get("horizontalpodautoscalers", "other", namespace="default")
    assert condition(found, "ScalingActive") == ("False", "AmbiguousSelector")


ODD_METRICS = [
    {"items": [{}]},
    {"items": [3]},
    {"items": [{"containers": [{"name": "c", "usage": {"cpu": "much"}}], "metadata": {"name": "p"}}]},
]


def metrics_server(list_pods: Callable[[], dict[str, Any]]) -> Any:
    """Returns a WSGI application that serves the metrics of pods."""

    def serve(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        pods = {"name": "pods", "singularName": "pod", "namespaced": True, "kind": "PodMetrics", "verbs": ["get", "list"]}
        listed = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "metrics.k8s.io/v1beta1", "resources": [pods]}
        start_response("200 OK", [("Content-Type", "application/json")])
        return [json.dumps(list_pods() if environ["PATH_INFO"].endswith("/pods") else listed).encode()]

    return serve


@pytest.mark.parametrize("odd", ODD_METRICS)
def test_invalid_metrics_show_in_the_conditions(cluster: Cluster, odd: dict[str, Any]) -> None:
    with cluster.aggregate("metrics.k8s.io/v1beta1", metrics_server(lambda: odd)):
        autoscale(cluster, 1, 6)
    assert condition(autoscaler(cluster), "ScalingActive") == ("False", "FailedGetResourceMetric")
    assert replicas(cluster) == 2


def test_a_container_without_metrics_shows_in_the_condition(cluster: Cluster) -> None:
    found = {"items": [{"metadata": {"name": "p"}, "containers": [{"name": "sidecar", "usage": {"cpu": "1"}}]}]}
    source = {"name": "cpu", "container": "c", "target": {"type": "Utilization", "averageUtilization": 50}}
    with cluster.aggregate("metrics.k8s.io/v1beta1", metrics_server(lambda: found)):
        autoscale(cluster, 1, 6, metrics=[{"type": "ContainerResource", "containerResource": source}])
    (active,) = (one for one in autoscaler(cluster)["status"]["conditions"] if one["type"] == "ScalingActive")
    assert (active["status"], active["reason"]) == ("False", "FailedGetContainerResourceMetric")
    assert active["message"].endswith("failed to get container metrics: container c not present in metrics for pod default/p")
    assert replicas(cluster) == 2


def test_it_scales_by_an_aggregated_metrics_api(cluster: Cluster) -> None:
    usage = {"cpu": "200m"}

    def list_pods() -> dict[str, Any]:
        time = cluster.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        containers = [{"name": "c", "usage": usage}]
        items = [
            {"metadata": {"name": one["metadata"]["name"]}, "timestamp": time, "window": "30s", "containers": containers}
            for one in cluster.list("pods", namespace="default")
        ]
        return {"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "items": items}

    with cluster.aggregate("metrics.k8s.io/v1beta1", metrics_server(list_pods)):
        cluster.clock.advance(minutes=1)
        autoscale(cluster, 1, 6)
        assert replicas(cluster) == 4  # twice at most
        cluster.clock.advance(seconds=45)
        assert replicas(cluster) == 6
        found = autoscaler(cluster)
        assert condition(found, "ScalingLimited") == ("True", "TooManyReplicas")
        current = found["status"]["currentMetrics"][0]["resource"]["current"]
        assert current == {"averageUtilization": 200, "averageValue": "200m"}
        usage["cpu"] = "10m"
        cluster.clock.advance(minutes=4)
        assert replicas(cluster) == 6
        cluster.clock.advance(minutes=3)
        assert replicas(cluster) == 2
        assert reasons(cluster, "hpa").count("SuccessfulRescale") == 3
