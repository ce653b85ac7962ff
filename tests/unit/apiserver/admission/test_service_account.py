"""The ServiceAccount plugin, which the profile `cluster` has."""

from __future__ import annotations

from fakekube import Cluster

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"containers": [{"name": "web", "image": "nginx"}]},
}


def test_default_service_account_is_set_in_both_fields() -> None:
    with Cluster() as cluster:
        spec = cluster.create(POD)["spec"]
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")


def test_defaulted_pod_can_be_applied_by_another_manager() -> None:
    with Cluster(nodes=0, controllers="*,-kube-scheduler") as cluster:
        first = cluster.apply(POD, field_manager="one")
        second = cluster.apply(POD, field_manager="two", force=False)
    assert second["spec"] | {"nodeName": ""} == first["spec"] | {"nodeName": ""}  # it may be scheduled by now
    assert {entry["manager"] for entry in second["metadata"]["managedFields"]} == {"one", "two"}
