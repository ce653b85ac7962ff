from __future__ import annotations

from typing import Any

import pytest

from tests.unit.apimachinery.printers.rows import ago, cells


def test_namespaces_config_maps_secrets_and_service_accounts() -> None:
    assert cells("/v1/namespaces", {"status": {"phase": "Active"}}) == ["x", "Active", "60m"]
    assert cells("/v1/configmaps", {"data": {"a": "", "b": ""}, "binaryData": {"c": ""}}) == ["x", 3, "60m"]
    assert cells("/v1/secrets", {"type": "Opaque", "data": {"a": ""}}) == ["x", "Opaque", 1, "60m"]
    assert cells("/v1/serviceaccounts", {}) == ["x", "60m"]


def test_component_statuses() -> None:
    healthy = {"conditions": [{"type": "Healthy", "status": "True", "message": "ok"}]}
    assert cells("/v1/componentstatuses", healthy) == ["x", "Healthy", "ok", ""]
    unhealthy = {"conditions": [{"type": "Healthy", "status": "False", "error": "e"}]}
    assert cells("/v1/componentstatuses", unhealthy) == ["x", "Unhealthy", "", "e"]
    assert cells("/v1/componentstatuses", {}) == ["x", "Unknown", "", ""]


def test_resource_quotas() -> None:
    status = {"hard": {"pods": "5", "limits.cpu": "2", "cpu": "1"}, "used": {"pods": "1", "limits.cpu": "500m"}}
    assert cells("/v1/resourcequotas", {"status": status}) == ["x", "cpu: 0/1, pods: 1/5", "limits.cpu: 500m/2", "60m"]


def test_nodes() -> None:
    unknown = ["<none>", "<none>", "<unknown>", "<unknown>", "<unknown>"]
    assert cells("/v1/nodes", {}) == ["x", "Unknown", "<none>", "60m", "", *unknown]
    status = {
        "conditions": [{"type": "Ready", "status": "False"}, {"type": "Ready", "status": "True"}],
        "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "ExternalIP", "address": "2.2.2.2"}],
        "nodeInfo": {
            "architecture": "amd64",
            "kernelVersion": "5",
            "osImage": "O",
            "containerRuntimeVersion": "c",
            "kubeletVersion": "v1",
        },
    }
    labels = {
        "node-role.kubernetes.io/b": "",
        "node-role.kubernetes.io/a": "y",
        "kubernetes.io/role": "z",
        "node-role.kubernetes.io/": "",
    }
    assert cells("/v1/nodes", {"spec": {"unschedulable": True}, "status": status}, labels=labels) == [
        "x", "Ready,SchedulingDisabled", "a,b,z", "60m", "v1", "10.0.0.1", "2.2.2.2", "O", "5 (amd64)", "c",
    ]  # fmt: skip


@pytest.mark.parametrize("group", ["", "events.k8s.io"])
def test_events(group: str) -> None:
    classic: dict[str, Any] = {
        "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "spec.c"}, "type": "Normal", "reason": "R", "message": " hi \n",
        "firstTimestamp": ago(hours=3), "lastTimestamp": ago(hours=1), "count": 5, "source": {"component": "c", "host": "h"},
    }  # fmt: skip
    assert cells(f"{group}/v1/events", classic) == ["60m", "Normal", "R", "pod/p", "spec.c", "c, h", "hi", "3h", 5, "x"]
    series: dict[str, Any] = {
        "involvedObject": {"kind": "Pod"}, "eventTime": ago(hours=2), "reportingComponent": "k.io/c",
        "reportingInstance": "i", "series": {"count": 9, "lastObservedTime": ago(hours=1)},
    }  # fmt: skip
    assert cells(f"{group}/v1/events", series) == ["60m", "", "", "pod", "", "k.io/c, i", "", "120m", 9, "x"]
    assert cells(f"{group}/v1/events", {})[:9] == ["<unknown>", "", "", "", "", "", "", "<unknown>", 1]
