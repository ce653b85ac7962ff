"""VolumeAttachments come and go with the pods that use CSI volumes, where nodes leave that to the control plane."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.controllers.volumes.attach_detach import attachment_name


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    cluster = Cluster(controllers="persistentvolume-attach-detach-controller,persistentvolume-binder-controller", nodes=0)
    cluster.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "v"},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "c",
                "csi": {"driver": "d.example.com", "volumeHandle": "h"},
            },
        }
    )
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "c"},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "c", "resources": {"requests": {"storage": "1Gi"}}},
        }
    )
    yield cluster
    cluster.stop()


def node(cluster: Cluster, *, managed: bool = True) -> None:
    annotations = {"volumes.kubernetes.io/controller-managed-attach-detach": "true"} if managed else {}
    cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "annotations": annotations}})


def pod(cluster: Cluster) -> None:
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p"},
            "spec": {
                "nodeName": "n",
                "containers": [{"name": "c", "image": "i"}],
                "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
            },
        }
    )


def attachments(cluster: Cluster) -> list[dict[str, Any]]:
    cluster.settle()
    return cluster.list("volumeattachments")


def test_a_volume_is_attached_while_a_pod_uses_it(cluster: Cluster) -> None:
    node(cluster)
    pod(cluster)
    (attachment,) = attachments(cluster)
    name = attachment_name("h", "d.example.com", "n")
    assert (attachment["metadata"]["name"], attachment["spec"]) == (
        name,
        {"attacher": "d.example.com", "nodeName": "n", "source": {"persistentVolumeName": "v"}},
    )
    cluster.patch("volumeattachments", name, {"status": {"attached": True}}, subresource="status")
    cluster.settle()
    assert cluster.get("nodes", "n")["status"]["volumesAttached"] == [
        {"name": "kubernetes.io/csi/d.example.com^h", "devicePath": ""}
    ]
    (message,) = (event["message"] for event in cluster.list("events") if event["reason"] == "SuccessfulAttachVolume")
    assert message == 'AttachVolume.Attach succeeded for volume "v" '
    cluster.delete("pods", "p", gracePeriodSeconds=0)
    assert attachments(cluster) == []
    assert "volumesAttached" not in cluster.get("nodes", "n")["status"]


def test_a_driver_without_attach_required_gets_no_attachment(cluster: Cluster) -> None:
    cluster.create(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIDriver",
            "metadata": {"name": "d.example.com"},
            "spec": {"attachRequired": False},
        }
    )
    node(cluster)
    pod(cluster)
    assert attachments(cluster) == []


def test_a_node_without_controller_managed_attachment_is_skipped(cluster: Cluster) -> None:
    node(cluster, managed=False)
    pod(cluster)
    assert attachments(cluster) == []
