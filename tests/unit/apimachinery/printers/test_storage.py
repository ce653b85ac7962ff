from __future__ import annotations

from fakekube.apimachinery.printers import cluster
from tests.unit.apimachinery.printers.rows import ago, cells


def test_persistent_volumes() -> None:
    spec = {
        "capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteMany", "ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain",
        "claimRef": {"namespace": "n", "name": "c"}, "volumeMode": "Filesystem", "storageClassName": "sc",
    }  # fmt: skip
    obj = {"spec": spec, "status": {"phase": "Failed", "reason": "Why"}}
    assert cells("/v1/persistentvolumes", obj) == [
        "x", "5Gi", "RWO,RWX", "Retain", "Failed", "n/c", "sc", "<unset>", "Why", "60m", "Filesystem",
    ]  # fmt: skip
    beta = {"volume.beta.kubernetes.io/storage-class": "beta"}
    assert cells("/v1/persistentvolumes", obj, annotations=beta)[6] == "beta"
    assert cells("/v1/persistentvolumes", obj, deletionTimestamp=ago(minutes=1))[4] == "Terminating"
    assert cells("/v1/persistentvolumes", {})[1:] == ["0", "", "", "", "", "", "<unset>", "", "60m", "<unset>"]


def test_persistent_volume_claims() -> None:
    spec = {"volumeName": "v", "storageClassName": "sc"}
    status = {"phase": "Bound", "accessModes": ["ReadWriteOncePod", "ReadOnlyMany"], "capacity": {"storage": "2Gi"}}
    assert cells("/v1/persistentvolumeclaims", {"spec": spec, "status": status}) == [
        "x", "Bound", "v", "2Gi", "ROX,RWOP", "sc", "<unset>", "60m", "<unset>",
    ]  # fmt: skip
    assert cells("/v1/persistentvolumeclaims", {"status": {"phase": "Pending"}})[1:5] == ["Pending", "", "", ""]


def test_storage_classes_and_csi_drivers() -> None:
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    obj = {
        "provisioner": "p",
        "reclaimPolicy": "Retain",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": True,
    }
    assert cells("storage.k8s.io/v1/storageclasses", obj, annotations=default) == [  # only a list marks one of the defaults
        "x",
        "p",
        "Retain",
        "WaitForFirstConsumer",
        True,
        "60m",
    ]
    assert cells("storage.k8s.io/v1/storageclasses", {}) == ["x", "", "Delete", "Immediate", False, "60m"]
    spec = {
        "tokenRequests": [{"audience": "a"}, {"audience": ""}],
        "volumeLifecycleModes": ["Ephemeral", "Persistent"],
        "attachRequired": False,
    }
    assert cells("storage.k8s.io/v1/csidrivers", {"spec": spec}) == [
        "x",
        False,
        False,
        False,
        "a,",
        False,
        "Ephemeral,Persistent",
        "60m",
    ]
    assert cells("storage.k8s.io/v1/csidrivers", {}) == ["x", True, False, False, "<unset>", False, "<none>", "60m"]
    assert cells("storage.k8s.io/v1/csinodes", {"spec": {"drivers": [{}, {}]}}) == ["x", 2, "60m"]
    assert cells("storage.k8s.io/v1/volumeattributesclasses", {"driverName": "d"}) == ["x", "d", "60m"]
    spec = {"attacher": "a", "source": {"persistentVolumeName": "v"}, "nodeName": "n"}
    assert cells("storage.k8s.io/v1/volumeattachments", {"spec": spec, "status": {"attached": True}}) == [
        "x",
        "a",
        "v",
        "n",
        True,
        "60m",
    ]


def test_the_youngest_of_the_default_storage_classes_is_the_one_of_a_list() -> None:
    def one(name: str, created: str, **annotations: str) -> dict[str, object]:
        return {"metadata": {"name": name, "creationTimestamp": created, "annotations": annotations}}

    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    old, new = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
    assert cluster.effective_default([one("a", old, **default), one("c", new, **default), one("b", new, **default)]) == "b"
    assert cluster.effective_default([one("a", new), one("b", old, **default)]) == "b"
    assert cluster.effective_default([one("a", new)]) == ""
