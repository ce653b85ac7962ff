"""Makes the volumes that claims of the default class ask for, and takes them away with their claims.

It stands for what a distribution brings along (minikube's and kind's hostpath provisioners): a fresh cluster has the class
`standard`, which is the default one, and this provisioner behind it. A volume is as large as its claim asks for and has its
access modes; nothing is in it. Any class that names this provisioner is served, also one that waits for a pod.

Specified by: sigs.k8s.io/sig-storage-lib-external-provisioner (controller.go) for what is written and said.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fakekube.client import ApiError
from fakekube.controllers.reconciler import Key, Object, Reconciler
from fakekube.controllers.recorder import get_reference
from fakekube.controllers.volumes.claims import PROVISIONER as WANTED
from fakekube.controllers.volumes.expander import asks_for_more
from fakekube.controllers.volumes.matching import DELAYED, PROVISIONED_BY, SELECTED_NODE, requested, size_of, storage_class

__all__ = ["DEFAULT_CLASS", "PROVISIONER", "StorageProvisioner"]

PROVISIONER = "fakekube.dev/host-path"
CLAIMS, VOLUMES, CLASSES = "persistentvolumeclaims", "persistentvolumes", "storageclasses.storage.k8s.io"

DEFAULT_CLASS: dict[str, Any] = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    "provisioner": PROVISIONER,
    "reclaimPolicy": "Delete",
    "volumeBindingMode": "Immediate",
    "allowVolumeExpansion": True,
}


class StorageProvisioner(Reconciler):
    """Keys are claims, and (without a namespace) volumes."""

    name = "storage-provisioner"
    program = "storage-provisioner"
    component = PROVISIONER
    watches = (CLAIMS, VOLUMES)

    @staticmethod
    def concerns(resource: str, obj: Object, old: Object | None) -> bool:
        """Also what `keys` goes by."""
        return _is_ours(obj) if resource == VOLUMES else _waits(obj) or asks_for_more(obj)

    def keys(self, resource: str, event_type: str, obj: Object, old: Object | None) -> Iterable[Key]:
        metadata = obj["metadata"]
        if event_type == "DELETED" or not self.concerns(resource, obj, old):
            return ()
        return (Key(metadata.get("namespace", ""), metadata["name"]),)

    def reconcile(self, key: Key) -> None:
        if not key.namespace:
            volume = self.cache.get(VOLUMES, "", key.name)
            if volume is not None and _is_ours(volume):
                self._delete(volume)
            return
        claim = self.cache.get(CLAIMS, key.namespace, key.name)
        if claim is not None and _waits(claim):
            self._provision(claim)
        elif claim is not None and asks_for_more(claim):
            self._resize(claim)

    def _provision(self, claim: Object) -> None:
        found = self.cache.get(CLASSES, "", storage_class(claim))
        annotations = claim["metadata"].get("annotations") or {}
        if found is None or (found.get("volumeBindingMode") == DELAYED and SELECTED_NODE not in annotations):
            return
        metadata = claim["metadata"]
        name, said = f"pvc-{metadata['uid']}", f"{metadata['namespace']}/{metadata['name']}"
        if self.cache.get(VOLUMES, "", name) is not None:
            return
        self.recorder.event(claim, "Normal", "Provisioning", f'External provisioner is provisioning volume for claim "{said}"')
        try:
            self.client.create(_volume(name, claim, found))
        except ApiError as error:
            if error.reason != "AlreadyExists":
                problem = f'failed to provision volume with StorageClass "{found["metadata"]["name"]}": {error}'
                self.recorder.event(claim, "Warning", "ProvisioningFailed", problem)
                raise
        self.recorder.event(claim, "Normal", "ProvisioningSucceeded", f"Successfully provisioned volume {name}")

    def _resize(self, claim: Object) -> None:
        """Make the volume of a claim larger, as an external resizer does."""
        volume = self.cache.get(VOLUMES, "", claim["spec"]["volumeName"])
        if volume is None or not _is_ours(volume):
            return
        size = {"storage": str(requested(claim))}
        name = volume["metadata"]["name"]
        self.recorder.event(claim, "Normal", "Resizing", f"External resizer is resizing volume {name}")
        if size_of(volume) < requested(claim):
            self.client.update({**volume, "spec": {**volume["spec"], "capacity": size}})
        status = {**claim["status"], "capacity": size, "allocatedResources": size}
        self.client.update({**claim, "status": status}, subresource="status")
        self.recorder.event(claim, "Normal", "VolumeResizeSuccessful", "Resize volume succeeded")

    def _delete(self, volume: Object) -> None:
        released = (volume.get("status") or {}).get("phase") == "Released"
        if released and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
            self.client.delete(VOLUMES, volume["metadata"]["name"])


def _waits(claim: Object) -> bool:
    """Is it for us to make a volume for the claim?"""
    metadata = claim["metadata"]
    wanted = (metadata.get("annotations") or {}).get(WANTED)
    return wanted == PROVISIONER and not claim["spec"].get("volumeName") and "deletionTimestamp" not in metadata


def _is_ours(volume: Object) -> bool:
    annotations = volume["metadata"].get("annotations") or {}
    return annotations.get(PROVISIONED_BY) == PROVISIONER and "deletionTimestamp" not in volume["metadata"]


def _volume(name: str, claim: Object, found: Object) -> Object:
    spec = claim["spec"]
    node = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE)
    affinity = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: PROVISIONER}},
        "spec": {
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "accessModes": spec["accessModes"],
            "persistentVolumeReclaimPolicy": found.get("reclaimPolicy", "Delete"),
            "claimRef": get_reference(claim),
            "storageClassName": found["metadata"]["name"],
            "volumeMode": spec.get("volumeMode", "Filesystem"),
            "hostPath": {"path": f"/var/lib/fakekube/volumes/{name}", "type": "DirectoryOrCreate"},
            **({"mountOptions": found["mountOptions"]} if found.get("mountOptions") else {}),
            **({"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [affinity]}]}}} if node else {}),
        },
    }
