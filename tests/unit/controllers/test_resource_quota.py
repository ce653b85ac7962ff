"""The status of resource quotas follows what is in their namespace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import ApiError, Cluster


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    cluster = Cluster(controllers="resourcequota-controller")
    cluster.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})
    yield cluster
    cluster.stop()


def config(cluster: Cluster, name: str) -> None:
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})


def quota(cluster: Cluster, hard: dict[str, str], **spec: Any) -> None:
    cluster.create({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard, **spec}})
    cluster.settle()


def used(cluster: Cluster) -> dict[str, str]:
    cluster.settle()
    status = cluster.get("resourcequotas", "q")["status"]
    assert status["hard"] == cluster.get("resourcequotas", "q")["spec"]["hard"]
    found: dict[str, str] = status.get("used", {})
    return found


def pod(cluster: Cluster, name: str, **requests: str) -> None:
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]},
        }
    )


def test_existing_objects_are_counted_and_deleted_ones_released(cluster: Cluster) -> None:
    config(cluster, "a")
    quota(cluster, {"configmaps": "2", "count/deployments.apps": "1", "secrets": "1"})
    assert used(cluster) == {"configmaps": "1", "count/deployments.apps": "0", "secrets": "0"}
    config(cluster, "b")
    with pytest.raises(ApiError, match="exceeded quota: q, requested: configmaps=1, used: configmaps=2, limited: configmaps=2"):
        config(cluster, "c")
    cluster.delete("configmaps", "a")
    assert used(cluster)["configmaps"] == "1"


def test_changed_limits_are_recalculated(cluster: Cluster) -> None:
    config(cluster, "a")
    quota(cluster, {"configmaps": "2", "secrets": "1"})
    cluster.patch("resourcequotas", "q", {"spec": {"hard": {"configmaps": None, "services": "3"}}})
    assert used(cluster) == {"secrets": "0", "services": "1"}


def test_terminated_pods_use_nothing(cluster: Cluster) -> None:
    quota(cluster, {"pods": "5", "count/pods": "5", "requests.cpu": "2", "requests.memory": "1Gi"})
    for name in "ab":
        pod(cluster, name, cpu="300m", memory="256Mi")
    assert used(cluster) == {"pods": "2", "count/pods": "2", "requests.cpu": "600m", "requests.memory": "512Mi"}
    cluster.patch("pods", "a", {"status": {"phase": "Succeeded"}}, subresource="status")
    assert used(cluster) == {"pods": "1", "count/pods": "2", "requests.cpu": "300m", "requests.memory": "256Mi"}


def test_only_objects_in_scope_count(cluster: Cluster) -> None:
    pod(cluster, "idle")
    pod(cluster, "busy", cpu="1")
    quota(cluster, {"pods": "5"}, scopes=["BestEffort"])
    assert used(cluster) == {"pods": "1"}


def test_unserved_resources_are_not_counted(cluster: Cluster) -> None:
    quota(cluster, {"count/widgets.example.com": "1"})
    assert used(cluster) == {}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    cluster.create(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"plural": "widgets", "kind": "Widget"},
                "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
            },
        }
    )
    assert used(cluster) == {"count/widgets.example.com": "0"}
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "one"}}
    cluster.create(widget)
    assert used(cluster) == {"count/widgets.example.com": "1"}
    cluster.delete("widgets", "one")
    assert used(cluster) == {"count/widgets.example.com": "0"}


def test_a_wrong_status_is_corrected_by_the_resync(cluster: Cluster) -> None:
    config(cluster, "a")
    quota(cluster, {"configmaps": "9"})
    cluster.clock.hold()
    cluster.patch("resourcequotas", "q", {"status": {"used": {"configmaps": "7"}}}, subresource="status")
    cluster.clock.advance(minutes=5)
    assert used(cluster) == {"configmaps": "1"}
