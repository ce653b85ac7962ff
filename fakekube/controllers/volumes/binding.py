"""Finds the volume for a claim, and binds them to each other.

A volume whose claimRef is the claim comes first; else the smallest volume, of those with the fewest access modes, that satisfies
the claim.

A binding consists of four writes, each only if it changes something: the volume's claimRef, its phase, the claim's volumeName,
its status. After an error, the next sync of either object continues.

`has_plugin` and the functions beside it are facts about in-tree volume plugins: which of them provision, delete and recycle.

Specified by: k8s.io/component-helpers/storage/volume/pv_helpers.go (FindMatchingVolume),
pkg/controller/volume/persistentvolume/{index,pv_controller}.go (checkVolumeSatisfyClaim, bind, unbindVolume, updateVolumePhase,
updateClaimStatus), pkg/volume/plugins.go and the plugins in pkg/volume; k8s.io/csi-translation-lib for migrated plugins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from fakekube.apimachinery.schema.quantity import Quantity
from fakekube.apimachinery.selectors import from_label_selector
from fakekube.apis.core.pods.visitor import claim_names
from fakekube.apis.validation.resource_lists import quantity
from fakekube.apis.well_known import ANN_MIGRATED_TO, BETA_STORAGE_CLASS_ANNOTATION
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.recorder import get_reference

if TYPE_CHECKING:
    from fakekube.controllers.client import Client
    from fakekube.controllers.recorder import Recorder


CLAIMS: Final = "persistentvolumeclaims"
VOLUMES: Final = "persistentvolumes"
CLASSES: Final = "storageclasses.storage.k8s.io"

#: In-tree plugins that were migrated → the CSI drivers of their volumes.
MIGRATED: Final[Mapping[str, str]] = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/azure-file": "file.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
}


_IN_TREE: Final = "kubernetes.io/"
#: The plugins of kube-controller-manager; none of them provisions.
_KNOWN: Final = frozenset({
    "kubernetes.io/csi", "kubernetes.io/fc", "kubernetes.io/host-path", "kubernetes.io/iscsi", "kubernetes.io/local-volume",
    "kubernetes.io/nfs",
})  # fmt: skip
_SOURCES: Final = frozenset({"csi", "fc", "hostPath", "iscsi", "local", "nfs"})
_NOT_DELETABLE: Final = "no deletable volume plugin matched"
_DELETABLE_PATH: Final = re.compile(r"/tmp/.+")


class PluginError(Exception):
    """A plugin is missing or has failed."""


def check_provisioner(name: str) -> None:
    """Checks the provisioner of a class. Raises PluginError if it is an in-tree name, and no such plugin can provision."""
    if not name.startswith(_IN_TREE) or name in MIGRATED:
        return
    if name in _KNOWN:
        raise PluginError("no provisionable volume plugin matched")
    raise PluginError(f"no volume plugin matched name: {name}")


def is_deleted_in_tree(volume: Mapping[str, Any]) -> bool:
    """Reports whether an in-tree plugin deletes the volume's storage; if not, an external deleter does.

    Raises PluginError if no plugin can, or if the plugin fails.
    """
    annotations = volume["metadata"].get("annotations") or {}
    provisioner = annotations.get(PROVISIONED_BY)
    if provisioner:
        if not provisioner.startswith(_IN_TREE) or provisioner in MIGRATED:
            return False
        if provisioner != "kubernetes.io/host-path":
            known = provisioner in _KNOWN
            raise PluginError(_NOT_DELETABLE if known else f"no volume plugin matched name: {provisioner}")
    if ANN_MIGRATED_TO in annotations or "csi" in volume["spec"]:
        return False
    if "hostPath" not in volume["spec"]:
        known = _SOURCES & volume["spec"].keys()
        problem = _NOT_DELETABLE if known else "no volume plugin matched"
        raise PluginError(f'error getting deleter volume plugin for volume "{volume["metadata"]["name"]}": {problem}')
    path = volume["spec"]["hostPath"].get("path", "")
    if not _DELETABLE_PATH.search(path):
        raise PluginError(f"host_path deleter only supports /tmp/.+ but received provided {path}")
    return True


def is_recyclable(volume: Mapping[str, Any]) -> bool:
    """Reports whether there is a plugin that recycles the volume."""
    return "hostPath" in volume["spec"] or "nfs" in volume["spec"]


def has_plugin(volume: Mapping[str, Any]) -> bool:
    """Reports whether there is an in-tree plugin for the volume."""
    return not _SOURCES.isdisjoint(volume["spec"])


BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
#: The volumeBindingMode of classes whose claims are bound when a pod is scheduled.
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"


def get_class_name(obj: StoredObject) -> str:
    """Returns the storage class of a claim or a volume; "" if it has none (GetPersistentVolumeClaimClass)."""
    annotations = obj["metadata"].get("annotations") or {}
    return annotations.get(BETA_STORAGE_CLASS_ANNOTATION) or obj["spec"].get("storageClassName") or ""


def has_annotation(obj: StoredObject, name: str) -> bool:
    """Reports whether the object has the annotation, with any value."""
    return name in (obj["metadata"].get("annotations") or {})


def requested_storage(claim: StoredObject) -> Quantity:
    """Returns the storage that a claim requests."""
    return quantity(((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage", "0"))


def volume_capacity(volume: StoredObject) -> Quantity:
    """Returns the storage capacity of a volume."""
    return quantity((volume["spec"].get("capacity") or {}).get("storage", "0"))


def get_volume_mode(obj: StoredObject) -> str:
    """Returns the volume mode of a claim or a volume."""
    return obj["spec"].get("volumeMode") or "Filesystem"


def is_volume_bound_to_claim(volume: StoredObject, claim: StoredObject) -> bool:
    """Reports whether the volume is bound to or reserved for this claim (IsVolumeBoundToClaim)."""
    reference, metadata = volume["spec"].get("claimRef"), claim["metadata"]
    if reference is None or (reference.get("name"), reference.get("namespace")) != (metadata["name"], metadata["namespace"]):
        return False
    return reference.get("uid", "") in ("", metadata["uid"])


def check_volume_satisfies_claim(volume: StoredObject, claim: StoredObject) -> str:
    """Returns why a volume cannot be bound to a claim with its name; "" if it can (checkVolumeSatisfyClaim)."""
    if "deletionTimestamp" in volume["metadata"]:
        return f'the volume is marked for deletion "{volume["metadata"]["name"]}"'
    if volume_capacity(volume).value() < requested_storage(claim).value():
        return "requested PV is too small"
    if get_class_name(volume) != get_class_name(claim):
        return "storageClassName does not match"
    if _attributes_class(volume) != _attributes_class(claim):
        return "volumeAttributesClassName does not match"
    if get_volume_mode(volume) != get_volume_mode(claim):
        return "incompatible volumeMode"
    return "" if check_access_modes(volume, claim) else "incompatible accessMode"


def uses_claim(pod: StoredObject, claim: str) -> bool:
    """Reports whether a pod has a volume of the claim with this name."""
    return claim in claim_names(pod["spec"], pod["metadata"]["name"])


def is_candidate(volume: StoredObject, claim: StoredObject) -> bool:
    """Reports whether the volume is large enough, has the right mode and attributes class, and is not being deleted."""
    return (
        not volume_capacity(volume) < requested_storage(claim)
        and get_volume_mode(volume) == get_volume_mode(claim)
        and _attributes_class(volume) == _attributes_class(claim)
        and "deletionTimestamp" not in volume["metadata"]
    )


def check_access_modes(volume: StoredObject, claim: StoredObject) -> bool:
    """Reports whether the volume has all access modes that the claim requests (CheckAccessModes)."""
    return set(claim["spec"].get("accessModes") or ()) <= set(volume["spec"].get("accessModes") or ())


def find_matching_volume(claim: StoredObject, volumes: Iterable[StoredObject], *, delayed: bool) -> Any:
    """Returns the volume for a claim without volumeName; None if there is none.

    Args:
        claim: the claim.
        volumes: the volumes to choose from.
        delayed: only a volume that is reserved for the claim is returned; among others the scheduler chooses.
    """
    by_modes: dict[tuple[str, ...], list[StoredObject]] = {}
    for volume in volumes:
        if check_access_modes(volume, claim):
            by_modes.setdefault(tuple(sorted(volume["spec"].get("accessModes") or ())), []).append(volume)
    for _, group in sorted(by_modes.items(), key=lambda item: (len(item[0]), item[0])):
        found = _find_smallest_volume(claim, group, delayed)
        if found is not None:
            return found
    return None


def _find_smallest_volume(claim: StoredObject, volumes: Iterable[StoredObject], delayed: bool) -> StoredObject | None:
    best: StoredObject | None = None
    selector = claim["spec"].get("selector")
    matches = from_label_selector(selector).matches if selector is not None else None
    for volume in volumes:
        reference = volume["spec"].get("claimRef")
        if (reference is not None and not is_volume_bound_to_claim(volume, claim)) or not is_candidate(volume, claim):
            continue
        if reference is not None:
            return volume
        if delayed or (volume.get("status") or {}).get("phase") != "Available":
            continue
        if get_class_name(volume) != get_class_name(claim):
            continue
        if matches is not None and not matches(volume["metadata"].get("labels") or {}):
            continue
        if best is None or volume_capacity(volume) < volume_capacity(best):
            best = volume
    return best


def _attributes_class(obj: StoredObject) -> str:
    return obj["spec"].get("volumeAttributesClassName") or ""


PRE_RESIZE_CAPACITY: Final = "volume.alpha.kubernetes.io/pre-resize-capacity"


def phase_of(obj: StoredObject) -> str:
    """Returns the phase of a claim or a volume; "" if it has none."""
    phase: str = (obj.get("status") or {}).get("phase", "")
    return phase


def with_annotations(obj: Object, more: Mapping[str, str]) -> Object:
    """Returns the object with additional annotations."""
    metadata = obj["metadata"]
    return {**obj, "metadata": {**metadata, "annotations": {**(metadata.get("annotations") or {}), **more}}}


class Binding:
    """Writes bindings for one controller.

    Args:
        client: the client of the controller.
        recorder: the recorder of the controller.
    """

    def __init__(self, client: Client, recorder: Recorder) -> None:
        self._client = client
        self._recorder = recorder

    def bind(self, volume: Object, claim: Object) -> None:
        """Binds a volume and a claim to each other. Raises ApiError."""
        volume = self.set_volume_phase(self._bind_volume(volume, claim), "Bound")
        claim = self._bind_claim(claim, volume)
        self.set_claim_status(claim, "Bound", volume)

    def unbind(self, volume: Object) -> None:
        """Unbinds a volume. If a user has set its claimRef, it remains reserved for the claim. Raises ApiError."""
        if has_annotation(volume, BOUND_BY_CONTROLLER):
            metadata = volume["metadata"]
            annotations = {name: value for name, value in metadata["annotations"].items() if name != BOUND_BY_CONTROLLER}
            spec = {name: value for name, value in volume["spec"].items() if name != "claimRef"}
            volume = {**volume, "metadata": {**metadata, "annotations": annotations}, "spec": spec}
        else:
            claim = {name: value for name, value in volume["spec"]["claimRef"].items() if name != "uid"}
            volume = {**volume, "spec": {**volume["spec"], "claimRef": claim}}
        self.set_volume_phase(self._client.update(volume), "Available")

    def set_volume_phase(self, volume: Object, phase: str, message: str = "") -> Object:
        """Writes the phase, if it has changed. Returns the updated volume. Raises ApiError."""
        if phase_of(volume) == phase:
            return volume
        status = {name: value for name, value in (volume.get("status") or {}).items() if name != "message"}
        status |= {"phase": phase, **({"message": message} if message else {})}
        return self._client.update({**volume, "status": status}, subresource="status")

    def set_volume_failed(self, volume: Object, reason: str, message: str) -> Object:
        """Sets the phase Failed; the first time with an event. Returns the updated volume. Raises ApiError."""
        if phase_of(volume) == "Failed":
            return volume
        failed = self.set_volume_phase(volume, "Failed", message)
        self._recorder.event(failed, "Warning", reason, message)
        return failed

    def set_claim_status(self, claim: Object, phase: str, volume: Object | None = None) -> Object:
        """Writes the phase, and the fields that depend on the volume. Returns the updated claim. Raises ApiError."""
        old = claim.get("status") or {}
        status = {**old, "phase": phase}
        if volume is None:
            for name in ("accessModes", "capacity", "currentVolumeAttributesClassName"):
                status.pop(name, None)
        else:
            status["accessModes"] = volume["spec"].get("accessModes")
            if old.get("phase") != phase:
                status["capacity"] = _claim_capacity(old.get("capacity") or {}, volume)
            attributes = volume["spec"].get("volumeAttributesClassName")
            if old.get("phase") == "Pending" and phase == "Bound" and attributes:
                status["currentVolumeAttributesClassName"] = attributes
        return claim if status == old else self._client.update({**claim, "status": status}, subresource="status")

    def set_claim_lost(self, claim: Object, reason: str, message: str) -> None:
        """Sets the phase Lost; the first time with an event. Raises ApiError."""
        if phase_of(claim) != "Lost":
            self._recorder.event(self.set_claim_status(claim, "Lost"), "Warning", reason, message)

    def _bind_volume(self, volume: Object, claim: Object) -> Object:
        fields, known = ("namespace", "name", "uid"), volume["spec"].get("claimRef") or {}
        changed = volume
        if [known.get(field) for field in fields] != [claim["metadata"][field] for field in fields]:
            changed = {**changed, "spec": {**changed["spec"], "claimRef": get_reference(claim)}}
        if not is_volume_bound_to_claim(volume, claim) and not has_annotation(volume, BOUND_BY_CONTROLLER):
            changed = with_annotations(changed, {BOUND_BY_CONTROLLER: "yes"})
        return volume if changed is volume else self._client.update(changed)

    def _bind_claim(self, claim: Object, volume: Object) -> Object:
        name, changed = volume["metadata"]["name"], claim
        if claim["spec"].get("volumeName") != name:
            changed = {**changed, "spec": {**changed["spec"], "volumeName": name}}
            if not has_annotation(claim, BOUND_BY_CONTROLLER):
                changed = with_annotations(changed, {BOUND_BY_CONTROLLER: "yes"})
        if not has_annotation(claim, BIND_COMPLETED):
            changed = with_annotations(changed, {BIND_COMPLETED: "yes"})
        return claim if changed is claim else self._client.update(changed)


def _claim_capacity(known: Object, volume: Object) -> Object:
    """Returns the capacity in the status of a claim that becomes bound."""
    before = (volume["metadata"].get("annotations") or {}).get(PRE_RESIZE_CAPACITY)
    capacity: Object = volume["spec"].get("capacity") or {}
    if before is not None:
        return {**known, "storage": before}
    same = "storage" in known and quantity(known["storage"]) == quantity(capacity.get("storage", "0"))
    return known if same else capacity


def not_created_for_pod(claim: StoredObject, pod: StoredObject) -> str:
    """Returns the message for a claim with the name of one that a pod owns (VolumeIsForPod, resourceclaim.IsForPod)."""
    namespace = claim["metadata"]["namespace"]
    claim_name, pod_name = claim["metadata"]["name"], pod["metadata"]["name"]
    kind = "ResourceClaim" if claim["kind"] == "ResourceClaim" else "PVC"
    return f"{kind} {namespace}/{claim_name} was not created for pod {namespace}/{pod_name} (pod is not owner)"
