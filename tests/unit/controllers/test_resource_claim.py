"""ResourceClaims of pods: made from templates, reserved, released."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster

REQUEST = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    cluster = Cluster(controllers="resourceclaim-controller", nodes=0)
    cluster.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})
    yield cluster
    cluster.stop()


def template(cluster: Cluster) -> None:
    cluster.create(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "t"},
            "spec": {"metadata": {"labels": {"a": "b"}}, "spec": REQUEST},
        }
    )


def pod(cluster: Cluster, **spec: Any) -> dict[str, Any]:
    made = cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p"},
            "spec": {
                "containers": [{"name": "c", "image": "i"}],
                "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}],
                **spec,
            },
        }
    )
    cluster.settle()
    return made


def claims(cluster: Cluster) -> list[dict[str, Any]]:
    cluster.settle()
    return cluster.list("resourceclaims")


def test_a_claim_is_created_from_the_template_and_named_in_the_pod_status(cluster: Cluster) -> None:
    template(cluster)
    uid = pod(cluster)["metadata"]["uid"]
    (claim,) = claims(cluster)
    metadata = claim["metadata"]
    assert metadata["name"].startswith("p-gpu-")
    assert (metadata["labels"], metadata["annotations"]) == ({"a": "b"}, {"resource.kubernetes.io/pod-claim-name": "gpu"})
    assert metadata["ownerReferences"] == [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": True}]
    told = cluster.get("pods", "p")["status"]["resourceClaimStatuses"]
    assert told == [{"name": "gpu", "resourceClaimName": metadata["name"]}]
    cluster.delete("resourceclaims", metadata["name"])
    assert claims(cluster)[0]["metadata"]["name"] != metadata["name"]


def test_a_missing_template_causes_an_event(cluster: Cluster) -> None:
    cluster.clock.hold()
    pod(cluster)
    (event,) = cluster.list("events", namespace="default")
    assert (event["reason"], event["message"]) == (
        "FailedResourceClaimCreation",
        'PodResourceClaim gpu: resource claim template "t": resourceclaimtemplate.resource.k8s.io "t" not found',
    )
    template(cluster)
    assert len(claims(cluster)) == 1


def allocate(cluster: Cluster, name: str, *users: str) -> None:
    allocation = {"devices": {"results": [{"request": "r", "driver": "d.example.com", "pool": "p", "device": "d"}]}}
    reserved = [{"resource": "pods", "name": "p", "uid": uid} for uid in users]
    claim = cluster.get("resourceclaims", name)
    cluster.patch("resourceclaims", name, {"metadata": {"finalizers": ["resource.kubernetes.io/delete-protection"]}})
    cluster.patch("resourceclaims", name, {"status": {"allocation": allocation, "reservedFor": reserved}}, subresource="status")
    assert claim


def test_claims_of_finished_pods_are_released(cluster: Cluster) -> None:
    cluster.create({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "shared"}, "spec": REQUEST})
    uid = pod(cluster, resourceClaims=[{"name": "gpu", "resourceClaimName": "shared"}])["metadata"]["uid"]
    allocate(cluster, "shared", uid)
    cluster.settle()
    assert "allocation" in cluster.get("resourceclaims", "shared")["status"]
    cluster.patch("pods", "p", {"status": {"phase": "Succeeded"}}, subresource="status")
    (claim,) = claims(cluster)
    assert "allocation" not in claim.get("status", {})
    assert "finalizers" not in claim["metadata"]


def test_a_claim_is_reserved_for_a_pod_created_with_a_node_name(cluster: Cluster) -> None:
    cluster.create({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "shared"}, "spec": REQUEST})
    allocate(cluster, "shared")
    uid = pod(cluster, nodeName="n", resourceClaims=[{"name": "gpu", "resourceClaimName": "shared"}])["metadata"]["uid"]
    (claim,) = claims(cluster)
    assert claim["status"]["reservedFor"] == [{"resource": "pods", "name": "p", "uid": uid}]


def test_the_generated_claim_of_a_finished_pod_is_deleted(cluster: Cluster) -> None:
    template(cluster)
    pod(cluster)
    assert len(claims(cluster)) == 1
    cluster.patch("pods", "p", {"status": {"phase": "Failed"}}, subresource="status")
    assert claims(cluster) == []
