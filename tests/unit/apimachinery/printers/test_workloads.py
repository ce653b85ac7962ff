from __future__ import annotations

from typing import Any

import pytest

from tests.unit.apimachinery.printers.rows import ago, cells

TEMPLATE = {
    "spec": {"containers": [{"name": "c", "image": "i:1"}, {"name": "d", "image": "j"}], "nodeSelector": {"b": "1", "a": "2"}}
}
SELECTOR = {"matchLabels": {"k": "v"}}
WIDE = ["c,d", "i:1,j", "k=v"]


def condition(type_: str, status: str = "True") -> dict[str, str]:
    return {"type": type_, "status": status}


def test_workload_pod_counts() -> None:
    spec = {"replicas": 3, "template": TEMPLATE, "selector": SELECTOR}
    status = {"replicas": 2, "readyReplicas": 1, "updatedReplicas": 4, "availableReplicas": 5}
    obj = {"spec": spec, "status": status}
    assert cells("apps/v1/deployments", obj) == ["x", "1/3", 4, 5, "60m", *WIDE]
    assert cells("apps/v1/replicasets", obj) == ["x", 3, 2, 1, "60m", *WIDE]
    assert cells("apps/v1/statefulsets", obj) == ["x", "1/3", "60m", "c,d", "i:1,j"]
    controller = {"spec": {**spec, "selector": {"k": "v"}}, "status": status}
    assert cells("/v1/replicationcontrollers", controller) == ["x", 3, 2, 1, "60m", *WIDE]


def test_daemon_sets() -> None:
    names = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled", "numberAvailable")
    obj = {"spec": {"template": TEMPLATE, "selector": SELECTOR}, "status": {name: at for at, name in enumerate(names)}}
    assert cells("apps/v1/daemonsets", obj) == ["x", 0, 1, 2, 3, 4, "a=2,b=1", "60m", *WIDE]


@pytest.mark.parametrize(
    ("spec", "status", "expected"),
    [
        ({}, {}, ["Running", "0/1", ""]),
        ({"completions": 3, "parallelism": 2}, {"startTime": ago(hours=2), "succeeded": 1}, ["Running", "1/3", "120m"]),
        ({"parallelism": 5}, {"startTime": ago(hours=2), "completionTime": ago(hours=1)}, ["Running", "0/1 of 5", "60m"]),
        ({}, {"conditions": [condition("Suspended")]}, ["Suspended", "0/1", ""]),
        ({}, {"conditions": [condition("Complete"), condition("Failed", "False")]}, ["Complete", "0/1", ""]),
        ({}, {"conditions": [condition("FailureTarget"), condition("Failed")]}, ["Failed", "0/1", ""]),
        ({}, {"conditions": [condition("FailureTarget")]}, ["FailureTarget", "0/1", ""]),
    ],
)
def test_jobs(spec: dict[str, Any], status: dict[str, Any], expected: list[str]) -> None:
    obj = {"spec": {**spec, "template": TEMPLATE, "selector": SELECTOR}, "status": status}
    assert cells("batch/v1/jobs", obj) == ["x", *expected, "60m", *WIDE]


def test_job_being_deleted_is_terminating() -> None:
    obj: dict[str, Any] = {"spec": {}, "status": {"conditions": [condition("Suspended")]}}
    assert cells("batch/v1/jobs", obj, deletionTimestamp=ago(minutes=1))[1] == "Terminating"


def test_cron_jobs() -> None:
    spec = {
        "schedule": "* * * * *",
        "timeZone": "Etc/UTC",
        "suspend": True,
        "jobTemplate": {"spec": {"template": TEMPLATE, "selector": SELECTOR}},
    }
    obj = {"spec": spec, "status": {"lastScheduleTime": ago(hours=4), "active": [{}, {}]}}
    assert cells("batch/v1/cronjobs", obj) == ["x", "* * * * *", "Etc/UTC", "True", 2, "4h", "60m", *WIDE]
    bare = {"spec": {"schedule": "@daily"}}
    assert cells("batch/v1/cronjobs", bare) == ["x", "@daily", "<none>", "<unset>", 0, "<none>", "60m", "", "", "<none>"]


def test_controller_revisions() -> None:
    owners = [{"kind": "A", "name": "a"}, {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "controller": True}]
    assert cells("apps/v1/controllerrevisions", {"revision": 3}, ownerReferences=owners) == ["x", "daemonset.apps/d", 3, "60m"]
    assert cells("apps/v1/controllerrevisions", {}) == ["x", "<none>", 0, "60m"]


TARGETS: list[tuple[dict[str, Any], dict[str, Any], str, str]] = [
    (
        {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 50}}},
        {"resource": {"current": {"averageUtilization": 20}}},
        "cpu: 20%/50%",
        "cpu: <unknown>/50%",
    ),
    (
        {"type": "Resource", "resource": {"name": "memory", "target": {"averageValue": "1Gi"}}},
        {"resource": {"current": {"averageValue": "512Mi"}}},
        "memory: 512Mi/1Gi",
        "memory: <unknown>/1Gi",
    ),
    (
        {"type": "Pods", "pods": {"target": {"averageValue": "5"}}},
        {"pods": {"current": {"averageValue": "2"}}},
        "2/5",
        "<unknown>/5",
    ),
    ({"type": "Object", "object": {"target": {"value": "10"}}}, {"object": {"current": {"value": "4"}}}, "4/10", "<unknown>/10"),
    (
        {"type": "External", "external": {"target": {"averageValue": "10"}}},
        {"external": {"current": {"averageValue": "3"}}},
        "3/10 (avg)",
        "<unknown>/10 (avg)",
    ),
    (
        {"type": "ContainerResource", "containerResource": {"name": "cpu", "target": {"averageUtilization": 30}}},
        {"containerResource": {"current": {"averageUtilization": 7}}},
        "cpu: 7%/30%",
        "cpu: <unknown>/30%",
    ),
    ({"type": "Nope"}, {}, "<unknown type>", "<unknown type>"),
]


def autoscaler(metrics: list[dict[str, Any]], current: list[dict[str, Any]]) -> list[Any]:
    spec = {"scaleTargetRef": {"kind": "Deployment", "name": "d"}, "minReplicas": 2, "maxReplicas": 4, "metrics": metrics}
    return cells(
        "autoscaling/v2/horizontalpodautoscalers", {"spec": spec, "status": {"currentReplicas": 3, "currentMetrics": current}}
    )


@pytest.mark.parametrize(("wanted", "current", "known", "unknown"), TARGETS)
def test_horizontal_pod_autoscalers(wanted: dict[str, Any], current: dict[str, Any], known: str, unknown: str) -> None:
    assert autoscaler([wanted], [current]) == ["x", "Deployment/d", known, "2", 4, 3, "60m"]
    assert autoscaler([wanted], [])[2] == unknown


def test_autoscalers_with_many_metrics() -> None:
    assert autoscaler([], [])[2] == "<none>"
    assert autoscaler([wanted for wanted, *_ in TARGETS[:4]], [])[2] == "cpu: <unknown>/50%, memory: <unknown>/1Gi + 2 more..."
