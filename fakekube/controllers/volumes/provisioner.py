"""The expand controller, and a provisioner for the default storage class.

The expand controller records that an enlarged claim waits for an external controller; none of the in-tree plugins of
kube-controller-manager can expand volumes.

The provisioner creates the volumes of claims, and deletes released ones. It corresponds to the host path provisioners of minikube
and kind. A fresh cluster has the default class `standard`, with this provisioner. A volume has the size and the access modes of
its claim, and no storage. The provisioner serves any class that has its name, also with WaitForFirstConsumer.

Specified by: pkg/controller/volume/expand/expand_controller.go; sigs.k8s.io/sig-storage-lib-external-provisioner
(controller/controller.go), for objects and events.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from fakekube.apis.validation.resource_lists import quantity
from fakekube.controllers.client import ApiError
from fakekube.controllers.objects import Object, StoredObject
from fakekube.controllers.reconciler import Key, Reconciler
from fakekube.controllers.recorder import get_reference
from fakekube.controllers.volumes.binding import (
    CLAIMS,
    CLASSES,
    PRE_RESIZE_CAPACITY,
    PROVISIONED_BY,
    SELECTED_NODE,
    VOLUMES,
    WAIT_FOR_FIRST_CONSUMER,
    get_class_name,
    has_annotation,
    has_plugin,
    is_volume_bound_to_claim,
    phase_of,
    requested_storage,
    volume_capacity,
)
from fakekube.controllers.volumes.controller import PROVISIONER as PROVISIONER_ANNOTATION

__all__ = ["DEFAULT_CLASS", "PROVISIONER", "ExpandController", "StorageProvisioner", "is_expansion_requested"]

_WAITS: Final = "waiting for an external controller to expand this PVC"


class ExpandController(Reconciler):
    """Records events; keys are claims."""

    name = "persistentvolume-expander-controller"
    component = "volume_expand"
    watches = (CLAIMS,)

    @staticmethod
    def concerns(resource: str, obj: StoredObject, old: StoredObject | None) -> bool:
        expands = is_expansion_requested(obj)
        return obj is not old and expands and (old is None or requested_storage(obj) != requested_storage(old))

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        if event_type == "DELETED" or not is_expansion_requested(obj):
            return ()
        if old is not None and not requested_storage(obj) > requested_storage(old):
            return ()
        return (Key(obj["metadata"]["namespace"], obj["metadata"]["name"]),)

    def reconcile(self, key: Key) -> None:
        claim = self.cache.get(CLAIMS, key.namespace, key.name)
        if claim is None:
            return
        volume = self.cache.get("persistentvolumes", "", claim["spec"].get("volumeName", ""))
        if volume is None or not is_volume_bound_to_claim(volume, claim):
            return
        if is_expansion_requested(claim) or has_annotation(volume, PRE_RESIZE_CAPACITY):
            self.recorder.event(claim, "Normal" if has_plugin(volume) else "Warning", "ExternalExpanding", _WAITS)


def is_expansion_requested(claim: StoredObject) -> bool:
    """Reports whether the claim is bound and requests more than its capacity."""
    capacity = ((claim.get("status") or {}).get("capacity") or {}).get("storage", "0")
    return phase_of(claim) == "Bound" and requested_storage(claim) > quantity(capacity)


PROVISIONER: Final = "fakekube.dev/host-path"

DEFAULT_CLASS: Final[dict[str, Any]] = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    "provisioner": PROVISIONER,
    "reclaimPolicy": "Delete",
    "volumeBindingMode": "Immediate",
    "allowVolumeExpansion": True,
}


class StorageProvisioner(Reconciler):
    """Provisions, resizes and deletes volumes. Keys are claims, and (without a namespace) volumes."""

    name = "storage-provisioner"
    program = "storage-provisioner"
    component = PROVISIONER
    watches = (CLAIMS, VOLUMES)

    @staticmethod
    def concerns(resource: str, obj: StoredObject, old: StoredObject | None) -> bool:
        return _is_provisioned_here(obj) if resource == VOLUMES else _should_provision(obj) or is_expansion_requested(obj)

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        metadata = obj["metadata"]
        if event_type == "DELETED" or not self.concerns(resource, obj, old):
            return ()
        return (Key(metadata.get("namespace", ""), metadata["name"]),)

    def reconcile(self, key: Key) -> None:
        if not key.namespace:
            volume = self.cache.get(VOLUMES, "", key.name)
            if volume is not None and _is_provisioned_here(volume):
                self._delete_volume(volume)
            return
        claim = self.cache.get(CLAIMS, key.namespace, key.name)
        if claim is not None and _should_provision(claim):
            self._provision_volume(claim)
        elif claim is not None and is_expansion_requested(claim):
            self._resize_volume(claim)

    def _provision_volume(self, claim: Object) -> None:
        found = self.cache.get(CLASSES, "", get_class_name(claim))
        annotations = claim["metadata"].get("annotations") or {}
        if found is None or (found.get("volumeBindingMode") == WAIT_FOR_FIRST_CONSUMER and SELECTED_NODE not in annotations):
            return
        metadata = claim["metadata"]
        name, claim_key = f"pvc-{metadata['uid']}", f"{metadata['namespace']}/{metadata['name']}"
        if self.cache.get(VOLUMES, "", name) is not None:
            return
        text = f'External provisioner is provisioning volume for claim "{claim_key}"'
        self.recorder.event(claim, "Normal", "Provisioning", text)
        try:
            self.client.create(_new_volume(name, claim, found))
        except ApiError as error:
            if error.reason != "AlreadyExists":
                problem = f'failed to provision volume with StorageClass "{found["metadata"]["name"]}": {error}'
                self.recorder.event(claim, "Warning", "ProvisioningFailed", problem)
                raise
        self.recorder.event(claim, "Normal", "ProvisioningSucceeded", f"Successfully provisioned volume {name}")

    def _resize_volume(self, claim: Object) -> None:
        """Enlarges the volume of a claim, as an external resizer does."""
        volume = self.cache.get(VOLUMES, "", claim["spec"]["volumeName"])
        if volume is None or not _is_provisioned_here(volume):
            return
        size = {"storage": str(requested_storage(claim))}
        name = volume["metadata"]["name"]
        self.recorder.event(claim, "Normal", "Resizing", f"External resizer is resizing volume {name}")
        if volume_capacity(volume) < requested_storage(claim):
            self.client.update({**volume, "spec": {**volume["spec"], "capacity": size}})
        status = {**claim["status"], "capacity": size, "allocatedResources": size}
        self.client.update({**claim, "status": status}, subresource="status")
        self.recorder.event(claim, "Normal", "VolumeResizeSuccessful", "Resize volume succeeded")

    def _delete_volume(self, volume: Object) -> None:
        released = (volume.get("status") or {}).get("phase") == "Released"
        if released and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
            self.client.delete(VOLUMES, volume["metadata"]["name"])


def _should_provision(claim: StoredObject) -> bool:
    """Reports whether the claim needs a volume of this provisioner."""
    metadata = claim["metadata"]
    provisioner = (metadata.get("annotations") or {}).get(PROVISIONER_ANNOTATION)
    return provisioner == PROVISIONER and not claim["spec"].get("volumeName") and "deletionTimestamp" not in metadata


def _is_provisioned_here(volume: StoredObject) -> bool:
    annotations = volume["metadata"].get("annotations") or {}
    return annotations.get(PROVISIONED_BY) == PROVISIONER and "deletionTimestamp" not in volume["metadata"]


def _new_volume(name: str, claim: Object, found: Object) -> Object:
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
