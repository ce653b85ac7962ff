"""Claims and volumes: who is bound to whom, who makes volumes, what happens when one goes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.controllers.volumes.binding import (
    PluginError,
    check_provisioner,
    check_volume_satisfies_claim,
    find_matching_volume,
    is_deleted_in_tree,
)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    cluster = Cluster(controllers="*,-kubelet,-kube-scheduler", nodes=0)
    yield cluster
    cluster.stop()


def volume(
    name: str,
    size: str = "1Gi",
    modes: tuple[str, ...] = ("ReadWriteOnce",),
    policy: str = "Retain",
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    source = {} if {"hostPath", "nfs"} & spec.keys() else {"csi": {"driver": "example.com", "volumeHandle": name}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": list(modes),
            "persistentVolumeReclaimPolicy": policy,
            "storageClassName": "c",
            **source,
            **spec,
        },
    }


def claim(name: str = "c", size: str = "1Gi", modes: tuple[str, ...] = ("ReadWriteOnce",), **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"accessModes": list(modes), "resources": {"requests": {"storage": size}}, "storageClassName": "c", **spec},
    }


def phases(cluster: Cluster) -> dict[str, str]:
    cluster.settle()
    return {obj["metadata"]["name"]: obj["status"]["phase"] for kind in ("pvc", "pv") for obj in cluster.list(kind)}


def told(cluster: Cluster) -> set[tuple[str, str]]:
    return {(event["reason"], event["message"]) for event in cluster.list("events")}


def bound(cluster: Cluster, name: str = "c") -> str:
    return str(cluster.get("pvc", name)["spec"].get("volumeName", ""))


def test_the_smallest_sufficient_volume_is_bound(cluster: Cluster) -> None:
    for name, size in (("large", "10Gi"), ("middle", "5Gi"), ("small", "1Gi")):
        cluster.create(volume(name, size))
    cluster.create(volume("more-modes", "3Gi", ("ReadWriteOnce", "ReadOnlyMany")))
    cluster.create(claim(size="2Gi"))
    assert phases(cluster) == {
        "c": "Bound",
        "large": "Available",
        "middle": "Bound",
        "small": "Available",
        "more-modes": "Available",
    }
    assert cluster.get("pvc", "c")["status"]["capacity"] == {"storage": "5Gi"}
    reference = cluster.get("pv", "middle")["spec"]["claimRef"]
    assert (reference["namespace"], reference["name"]) == ("default", "c")


def test_a_pending_claim_is_bound_when_a_volume_is_created(cluster: Cluster) -> None:
    cluster.create(claim(storageClassName=""))
    assert phases(cluster) == {"c": "Pending"}
    assert ("FailedBinding", "no persistent volumes available for this claim and no storage class is set") in told(cluster)
    cluster.create(volume("v", storageClassName=""))
    assert phases(cluster) == {"c": "Bound", "v": "Bound"}


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"size": "2Gi"}, "requested PV is too small"),
        ({"storageClassName": "other"}, "storageClassName does not match"),
        ({"volumeMode": "Block"}, "incompatible volumeMode"),
        ({"modes": ("ReadWriteMany",)}, "incompatible accessMode"),
        ({"volumeAttributesClassName": "fast"}, "volumeAttributesClassName does not match"),
    ],
)
def test_a_claim_with_an_unsuitable_volume_name_stays_pending(cluster: Cluster, spec: dict[str, Any], problem: str) -> None:
    cluster.create(volume("v"))
    wanted = claim(volumeName="v", **spec)
    assert check_volume_satisfies_claim(volume("v"), wanted) == problem
    assert find_matching_volume(wanted, [volume("v")], delayed=False) is None
    cluster.create(wanted)
    assert phases(cluster) == {"c": "Pending", "v": "Available"}
    assert ("VolumeMismatch", f'Cannot bind to requested volume "v": {problem}') in told(cluster)


def test_a_claim_whose_volume_is_bound_to_another_claim_stays_pending(cluster: Cluster) -> None:
    cluster.create(volume("v"))
    cluster.create(claim("first", volumeName="v"))
    cluster.settle()
    cluster.create(claim("second", volumeName="v"))
    assert phases(cluster) == {"first": "Bound", "second": "Pending", "v": "Bound"}
    assert ("FailedBinding", 'volume "v" already bound to a different claim.') in told(cluster)


def test_a_volume_with_a_claim_ref_is_bound_to_that_claim(cluster: Cluster) -> None:
    cluster.create(volume("v", "5Gi", claimRef={"namespace": "default", "name": "c"}))
    cluster.create(claim("other"))
    assert phases(cluster) == {"other": "Pending", "v": "Available"}
    cluster.create(claim())
    assert phases(cluster) == {"c": "Bound", "other": "Pending", "v": "Bound"}


def test_a_claim_is_lost_when_its_volume_is_deleted(cluster: Cluster) -> None:
    cluster.create(volume("v"))
    cluster.create(claim())
    assert phases(cluster)["c"] == "Bound"
    cluster.delete("pv", "v")
    cluster.patch("pv", "v", {"metadata": {"finalizers": None}})
    assert phases(cluster) == {"c": "Lost"}
    status = cluster.get("pvc", "c")["status"]
    assert [name for name in status if name != "conditions"] == ["phase"]


def test_a_removed_claim_ref_is_restored(cluster: Cluster) -> None:
    cluster.create(volume("v"))
    cluster.create(claim())
    assert phases(cluster)["c"] == "Bound"
    cluster.patch("pv", "v", {"spec": {"claimRef": None}})
    assert phases(cluster) == {"c": "Bound", "v": "Bound"}
    assert cluster.get("pv", "v")["spec"]["claimRef"]["name"] == "c"


def test_a_lost_claim_is_bound_again_when_its_volume_is_recreated(cluster: Cluster) -> None:
    cluster.create(volume("v"))
    cluster.create(claim())
    cluster.settle()
    cluster.delete("pv", "v")
    cluster.patch("pv", "v", {"metadata": {"finalizers": None}})
    assert phases(cluster) == {"c": "Lost"}
    cluster.create(volume("v"))
    assert phases(cluster) == {"c": "Bound", "v": "Bound"}


@pytest.mark.parametrize(
    ("more", "left", "reason"),
    [
        ({"policy": "Retain"}, "Released", None),
        ({"policy": "Delete"}, "Released", None),
        ({"policy": "Delete", "hostPath": {"path": "/tmp/x"}}, None, None),
        (
            {"policy": "Delete", "hostPath": {"path": "/data"}},
            "Failed",
            "host_path deleter only supports /tmp/.+ but received provided /data",
        ),
        (
            {"policy": "Delete", "nfs": {"server": "s", "path": "/"}},
            "Failed",
            'error getting deleter volume plugin for volume "v": no deletable volume plugin matched',
        ),
        ({"policy": "Recycle", "nfs": {"server": "s", "path": "/"}}, "Available", None),
        ({"policy": "Recycle"}, "Failed", "No recycler plugin found for the volume!"),
    ],
)
def test_the_reclaim_policy_applies_when_the_claim_is_deleted(
    cluster: Cluster, more: dict[str, Any], left: str | None, reason: str | None
) -> None:
    cluster.create(volume("v", **more))
    cluster.create(claim())
    assert phases(cluster)["c"] == "Bound"
    cluster.delete("pvc", "c")
    assert phases(cluster).get("v") == left
    if left is not None:
        assert cluster.get("pv", "v")["status"].get("message") == reason


def test_the_default_class_provisions_and_deletes_volumes(cluster: Cluster) -> None:
    wanted = claim()
    del wanted["spec"]["storageClassName"]
    cluster.create(wanted)
    cluster.settle()
    (made,) = cluster.list("pv")
    found = cluster.get("pvc", "c")
    assert (found["spec"]["storageClassName"], found["status"]["phase"]) == ("standard", "Bound")
    assert made["metadata"]["name"] == f"pvc-{found['metadata']['uid']}"
    assert made["metadata"]["annotations"]["pv.kubernetes.io/provisioned-by"] == "fakekube.dev/host-path"
    assert ("ProvisioningSucceeded", f"Successfully provisioned volume {made['metadata']['name']}") in told(cluster)
    cluster.patch("pvc", "c", {"spec": {"resources": {"requests": {"storage": "3Gi"}}}})
    cluster.settle()
    assert cluster.get("pvc", "c")["status"]["capacity"] == {"storage": "3Gi"}
    assert cluster.list("pv")[0]["spec"]["capacity"] == {"storage": "3Gi"}
    assert ("ExternalExpanding", "waiting for an external controller to expand this PVC") in told(cluster)
    cluster.delete("pvc", "c")
    cluster.settle()
    assert cluster.list("pv") == []


def test_a_claim_gets_the_default_class_once_it_exists(cluster: Cluster) -> None:
    cluster.delete("storageclasses", "standard")
    wanted = claim()
    del wanted["spec"]["storageClassName"]
    cluster.create(wanted)
    assert phases(cluster) == {"c": "Pending"}
    for name in ("b", "a"):
        cluster.create(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "provisioner": "example.com/none",
                "metadata": {"name": name, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
            }
        )
    cluster.settle()
    assert cluster.get("pvc", "c")["spec"]["storageClassName"] in ("a", "b")


@pytest.mark.parametrize(
    ("provisioner", "reason", "text"),
    [
        ("kubernetes.io/no-provisioner", "ProvisioningFailed", "no volume plugin matched name: kubernetes.io/no-provisioner"),
        ("kubernetes.io/nfs", "ProvisioningFailed", "no provisionable volume plugin matched"),
        ("example.com/disks", "ExternalProvisioning", "external provisioner 'example.com/disks'"),
        ("kubernetes.io/aws-ebs", "ExternalProvisioning", "external provisioner 'ebs.csi.aws.com'"),
    ],
)
def test_a_claim_without_an_internal_provisioner_has_an_event(cluster: Cluster, provisioner: str, reason: str, text: str) -> None:
    cluster.create(
        {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "c"}, "provisioner": provisioner}
    )
    cluster.create(claim())
    assert phases(cluster) == {"c": "Pending"}
    assert [message for told_reason, message in told(cluster) if told_reason == reason and text in message]


@pytest.mark.parametrize("provisioner", ["rancher.io/local-path", "k8s.io/minikube-hostpath"])
def test_the_provisioners_of_kind_and_minikube_are_played(cluster: Cluster, provisioner: str) -> None:
    cluster.create(
        {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "c"}, "provisioner": provisioner}
    )
    cluster.create(claim())
    assert set(phases(cluster).values()) == {"Bound"}
    (made,) = cluster.list("pv")
    assert made["metadata"]["annotations"]["pv.kubernetes.io/provisioned-by"] == provisioner
    cluster.delete("pvc", "c")
    cluster.settle()
    assert cluster.list("pv") == []


def test_a_wait_for_first_consumer_class_waits_for_a_pod(cluster: Cluster) -> None:
    cluster.create(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "c"},
            "provisioner": "fakekube.dev/host-path",
            "volumeBindingMode": "WaitForFirstConsumer",
        }
    )
    cluster.create(claim())
    assert phases(cluster) == {"c": "Pending"}
    assert ("WaitForFirstConsumer", "waiting for first consumer to be created before binding") in told(cluster)
    cluster.patch("pvc", "c", {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n"}}})
    cluster.settle()
    (made,) = cluster.list("pv")
    (term,) = made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["n"]
    assert cluster.get("pvc", "c")["status"]["phase"] == "Bound"


def test_claims_of_ephemeral_volumes_are_created_and_deleted_with_the_pod(cluster: Cluster) -> None:
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {key: value for key, value in claim()["spec"].items() if key != "storageClassName"},
    }
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p"},
            "spec": {
                "containers": [{"name": "c", "image": "i"}],
                "volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": template}}],
            },
        }
    )
    cluster.settle()
    made = cluster.get("pvc", "p-v")
    assert (made["metadata"]["labels"], made["status"]["phase"]) == ({"a": "b"}, "Bound")
    cluster.delete("pvc", "p-v")
    cluster.settle()
    assert cluster.get("pvc", "p-v")["metadata"]["uid"] != made["metadata"]["uid"]
    cluster.delete("pods", "p", gracePeriodSeconds=0)
    cluster.settle()
    assert cluster.list("pvc") == cluster.list("pv") == []


def test_an_existing_claim_of_another_owner_blocks_an_ephemeral_volume(cluster: Cluster) -> None:
    cluster.create(claim("p-v"))
    cluster.clock.hold()
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p"},
            "spec": {
                "containers": [{"name": "c", "image": "i"}],
                "volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": claim()["spec"]}}}],
            },
        }
    )
    cluster.settle()
    assert ("FailedBinding", "ephemeral volume v: PVC default/p-v was not created for pod default/p (pod is not owner)") in told(
        cluster
    )


@pytest.mark.parametrize(("resource", "name"), [("pv", "v"), ("pvc", "c")])
def test_a_removed_protection_finalizer_is_restored(cluster: Cluster, resource: str, name: str) -> None:
    cluster.create(volume("v"))
    cluster.create(claim())
    before = cluster.get(resource, name)["metadata"]["finalizers"]
    cluster.patch(resource, name, {"metadata": {"finalizers": None}})
    cluster.settle()
    assert cluster.get(resource, name)["metadata"]["finalizers"] == before


def test_in_tree_plugins_are_migrated_or_unknown() -> None:
    check_provisioner("kubernetes.io/gce-pd")
    migrated = volume("v")
    migrated["metadata"]["annotations"] = {"pv.kubernetes.io/provisioned-by": "kubernetes.io/gce-pd"}
    assert not is_deleted_in_tree(migrated)
    migrated["metadata"]["annotations"] = {"pv.kubernetes.io/provisioned-by": "kubernetes.io/glusterfs"}
    with pytest.raises(PluginError, match="no volume plugin matched name: kubernetes"):
        is_deleted_in_tree(migrated)


def test_a_volume_attributes_class_in_use_is_protected(cluster: Cluster) -> None:
    cluster.create(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "VolumeAttributesClass",
            "metadata": {"name": "fast"},
            "driverName": "example.com",
            "parameters": {"speed": "1"},
        }
    )
    cluster.create(claim(volumeAttributesClassName="fast"))
    cluster.settle()
    assert cluster.get("volumeattributesclasses", "fast")["metadata"]["finalizers"] == ["kubernetes.io/vac-protection"]
    cluster.delete("volumeattributesclasses", "fast")
    cluster.settle()
    assert cluster.get("volumeattributesclasses", "fast")
    cluster.delete("pvc", "c")
    cluster.settle()
    assert cluster.list("volumeattributesclasses") == []
