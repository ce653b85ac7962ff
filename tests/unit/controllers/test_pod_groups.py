"""Groups of pods live until no active pod names them."""

from __future__ import annotations

from typing import Any

import pytest

from fakekube import Cluster

GATES = {"1.36": {"GenericWorkload": True}, "1.37": {"GenericWorkload": True}}
GROUPS = "podgroups.scheduling.k8s.io"
SERVED = {"1.36": "v1alpha2", "1.37": "v1beta1"}


def _pod(name: str, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "example.com/main:1"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": containers, **spec}}


@pytest.mark.parametrize("minor", GATES)
def test_a_deleted_group_waits_for_its_pods(minor: str) -> None:
    version = f"scheduling.k8s.io/{SERVED[minor]}"
    options: dict[str, Any] = {"feature_gates": GATES[minor], "runtime_config": f"{version}=true"}
    with Cluster(version=minor, profile="cluster", nodes=1, **options) as cluster:
        body = {"apiVersion": version, "kind": "PodGroup", "metadata": {"name": "g", "namespace": "default"}}
        cluster.create({**body, "spec": {"schedulingPolicy": {"basic": {}}}})
        cluster.create(_pod("member", schedulingGroup={"podGroupName": "g"}))
        cluster.settle()
        cluster.delete(GROUPS, "g")
        cluster.settle()
        group = cluster.get(GROUPS, "g")
        assert group["metadata"]["finalizers"] == ["scheduling.k8s.io/podgroup-protection"]
        cluster.delete("pods", "member")
        cluster.settle()
        assert cluster.list(GROUPS) == []
