"""The PersistentVolume controller: binds claims to volumes, releases volumes of deleted claims, and requests provisioning.

The sync of a claim binds it to a volume, waits for one or provisions one, or sets the phase Lost. The sync of a volume sets the
phase Available or Bound, or releases and reclaims the volume.

The real controller syncs all objects every fifteen seconds. This one syncs unbound claims when a volume or a class changes.

The expand controller records that an enlarged claim waits for an external controller; none of the in-tree plugins of
kube-controller-manager can expand volumes.

The provisioner creates the volumes of claims, and deletes released ones. It corresponds to the host path provisioners of minikube
and kind. A fresh cluster has the default class `standard`, with this provisioner. A volume has the size and the access modes of
its claim, and no storage. The provisioner serves any class that has its name, or that of those two, also with
WaitForFirstConsumer.

Specified by: pkg/controller/volume/persistentvolume/pv_controller{,_base}.go (syncUnboundClaim, syncBoundClaim, provisionClaim,
syncVolume, reclaimVolume); pkg/controller/volume/expand/expand_controller.go; sigs.k8s.io/sig-storage-lib-external-provisioner
(controller/controller.go), for objects and events.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from fakekube.apis.validation.resource_lists import quantity
from fakekube.apis.well_known import ANN_MIGRATED_TO
from fakekube.apiserver.admission.storage import DEFAULT_STORAGE_CLASS_ANNOTATIONS, newest_default
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.client import ApiError
from fakekube.controllers.controller_utils import is_pod_terminal
from fakekube.controllers.informers import ADDED, DELETED
from fakekube.controllers.reconciler import Key, Reconciler
from fakekube.controllers.recorder import get_reference
from fakekube.controllers.volumes.binding import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    CLAIMS,
    CLASSES,
    MIGRATED,
    PRE_RESIZE_CAPACITY,
    PROVISIONED_BY,
    SELECTED_NODE,
    VOLUMES,
    WAIT_FOR_FIRST_CONSUMER,
    Binding,
    PluginError,
    check_provisioner,
    check_volume_satisfies_claim,
    find_matching_volume,
    get_class_name,
    get_volume_mode,
    has_annotation,
    has_plugin,
    is_deleted_in_tree,
    is_recyclable,
    is_volume_bound_to_claim,
    phase_of,
    requested_storage,
    uses_claim,
    volume_capacity,
    with_annotations,
)

_WAITS_FOR_PROVISIONER: Final = "waiting for an external controller to expand this PVC"


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
            self.recorder.event(claim, "Normal" if has_plugin(volume) else "Warning", "ExternalExpanding", _WAITS_FOR_PROVISIONER)


def is_expansion_requested(claim: StoredObject) -> bool:
    """Reports whether the claim is bound and requests more than its capacity."""
    capacity = ((claim.get("status") or {}).get("capacity") or {}).get("storage", "0")
    return phase_of(claim) == "Bound" and requested_storage(claim) > quantity(capacity)


PROVISIONER: Final = "fakekube.dev/host-path"
#: Whose classes are served: manifests that are written for kind and minikube name the provisioners of those.
SERVED_PROVISIONERS: Final = frozenset({PROVISIONER, "rancher.io/local-path", "k8s.io/minikube-hostpath"})

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
        return _is_managed(obj) if resource == VOLUMES else _should_provision(obj) or is_expansion_requested(obj)

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        metadata = obj["metadata"]
        if event_type == "DELETED" or not self.concerns(resource, obj, old):
            return ()
        return (Key(metadata.get("namespace", ""), metadata["name"]),)

    def reconcile(self, key: Key) -> None:
        if not key.namespace:
            volume = self.cache.get(VOLUMES, "", key.name)
            if volume is not None and _is_managed(volume):
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
        if volume is None or not _is_managed(volume):
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
    return provisioner in SERVED_PROVISIONERS and not claim["spec"].get("volumeName") and "deletionTimestamp" not in metadata


def is_provisioned_here(volume: StoredObject) -> bool:
    """Reports whether a PersistentVolume was made by the provisioner of this cluster."""
    return (volume["metadata"].get("annotations") or {}).get(PROVISIONED_BY) in SERVED_PROVISIONERS


def _is_managed(volume: StoredObject) -> bool:
    """Reports whether the provisioner resizes and deletes a volume."""
    return is_provisioned_here(volume) and "deletionTimestamp" not in volume["metadata"]


def _new_volume(name: str, claim: Object, found: Object) -> Object:
    spec = claim["spec"]
    node = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE)
    affinity = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: found["provisioner"]}},
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


IN_TREE_FINALIZER: Final = "kubernetes.io/pv-controller"


class VolumeSync:
    """Syncs volumes for the PersistentVolume controller."""

    def __init__(self, controller: Reconciler, binding: Binding) -> None:
        self._controller = controller
        self._binding = binding

    def sync(self, volume: Object) -> None:
        """Syncs one volume. Raises ApiError."""
        reference = volume["spec"].get("claimRef")
        if reference is None or not reference.get("uid"):  # unused, or reserved for a claim that does not exist yet
            self._binding.set_volume_phase(volume, "Available")
            return
        claim = self._controller.cache.get(CLAIMS, reference["namespace"], reference["name"])
        if claim is None or claim["metadata"]["uid"] != reference["uid"]:
            self._release_volume(volume)
            return
        bound_to = claim["spec"].get("volumeName")
        if not bound_to:
            self._check_volume_mode(volume, claim)
        elif bound_to == volume["metadata"]["name"]:
            self._binding.set_volume_phase(volume, "Bound")
        elif has_annotation(volume, PROVISIONED_BY) and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
            self._release_volume(volume)
        else:
            self._binding.unbind(volume)

    def _check_volume_mode(self, volume: Object, claim: Object) -> None:
        """Records an event if the claim, whose sync would bind it to the volume, has another volume mode."""
        if get_volume_mode(volume) == get_volume_mode(claim):
            return
        record, claim_name, name = self._controller.recorder.event, claim["metadata"]["name"], volume["metadata"]["name"]
        why = "due to incompatible volumeMode."
        record(
            volume,
            "Warning",
            "VolumeMismatch",
            f'Cannot bind PersistentVolume to requested PersistentVolumeClaim "{claim_name}" {why}',
        )
        record(
            claim, "Warning", "VolumeMismatch", f'Cannot bind PersistentVolume "{name}" to requested PersistentVolumeClaim {why}'
        )

    # --- Release ------------------------------------------------------------------------------------------------------

    def _release_volume(self, volume: Object) -> None:
        if phase_of(volume) not in ("Released", "Failed"):
            volume = self._binding.set_volume_phase(volume, "Released")
        if has_annotation(volume, ANN_MIGRATED_TO):
            return
        policy = volume["spec"].get("persistentVolumeReclaimPolicy")
        if policy == "Delete":
            self._delete_volume(volume)
        elif policy == "Recycle":
            self._recycle_volume(volume)
        elif policy != "Retain":
            message = "Volume has unrecognized PersistentVolumeReclaimPolicy"
            self._binding.set_volume_failed(volume, "VolumeUnknownReclaimPolicy", message)

    def _delete_volume(self, volume: Object) -> None:
        try:
            if not is_deleted_in_tree(volume):
                return
        except PluginError as problem:
            self._binding.set_volume_failed(volume, "VolumeFailedDelete", str(problem))
            return
        metadata = volume["metadata"]
        finalizers = metadata.get("finalizers") or []
        if IN_TREE_FINALIZER in finalizers:
            kept = [name for name in finalizers if name != IN_TREE_FINALIZER]
            self._controller.client.update({**volume, "metadata": {**metadata, "finalizers": kept}})
        if "deletionTimestamp" not in metadata:
            self._controller.client.delete("persistentvolumes", metadata["name"])

    def _recycle_volume(self, volume: Object) -> None:
        """Makes the volume available again. Scrubbing takes no time, because it has no storage."""
        reference = volume["spec"]["claimRef"]
        recreated = self._controller.cache.get(CLAIMS, reference["namespace"], reference["name"]) is not None
        users = [] if recreated else self._pods_using_claim(reference["namespace"], reference["name"])
        if users:
            message = f"Volume is used by pods: {','.join(users)}"
            self._controller.recorder.event(volume, "Normal", "VolumeFailedRecycle", message)
        elif not is_recyclable(volume):
            self._binding.set_volume_failed(volume, "VolumeFailedRecycle", "No recycler plugin found for the volume!")
        else:
            self._controller.recorder.event(volume, "Normal", "VolumeRecycled", "Volume recycled")
            try:
                self._binding.unbind(volume)
            except ApiError as error:
                if error.reason != "Conflict":
                    raise

    def _pods_using_claim(self, namespace: str, claim: str) -> list[str]:
        """Returns the pods that use a claim and have not terminated, as namespace/name."""
        return sorted(
            f"{namespace}/{pod['metadata']['name']}"
            for pod in self._controller.cache.list("pods", namespace)
            if not is_pod_terminal(pod) and uses_claim(pod, claim)
        )


PROVISIONER_ANNOTATION: Final = "volume.kubernetes.io/storage-provisioner"
BETA_PROVISIONER: Final = "volume.beta.kubernetes.io/storage-provisioner"

_LOST: Final = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
_LOST_REFERENCE: Final = "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"
_MISBOUND: Final = "Two claims are bound to the same volume, this one is bound incorrectly"
_WAITS: Final = "waiting for first consumer to be created before binding"
_NOTHING: Final = "no persistent volumes available for this claim and no storage class is set"


class ClaimSync:
    """Syncs claims for the PersistentVolume controller."""

    def __init__(self, controller: Reconciler, binding: Binding) -> None:
        self._controller = controller
        self._binding = binding

    def sync(self, claim: Object) -> None:
        """Syncs one claim. Raises ApiError."""
        if has_annotation(claim, BIND_COMPLETED):
            self._sync_bound(claim)
        elif claim["spec"].get("volumeName"):
            self._sync_prebound(claim)
        else:
            self._sync_unbound(claim)

    # --- Without a volumeName -----------------------------------------------------------------------------------------

    def _sync_unbound(self, claim: Object) -> None:
        cache = self._controller.cache
        name = get_class_name(claim)
        found = cache.get(CLASSES, "", name) if name else None
        delayed = found is not None and found.get("volumeBindingMode") == WAIT_FOR_FIRST_CONSUMER
        volumes = sorted(cache.list(VOLUMES), key=lambda volume: str(volume["metadata"]["name"]))
        volume = find_matching_volume(claim, volumes, delayed=delayed)
        if volume is not None:
            self._binding.bind(volume, claim)
        elif not self._assign_default_class(claim):
            self._provision_or_wait(claim, name, delayed)

    def _provision_or_wait(self, claim: Object, name: str, delayed: bool) -> None:
        """Provisions a volume, or records what the claim waits for."""
        if delayed and not has_annotation(claim, SELECTED_NODE):
            self._record_delay(claim)
        elif name:
            self._provision_claim(claim, name)
            return
        else:
            self._controller.recorder.event(claim, "Normal", "FailedBinding", _NOTHING)
        self._binding.set_claim_status(claim, "Pending")

    def _record_delay(self, claim: Object) -> None:
        pods = sorted(self._unscheduled_pods(claim))
        reason, message = "WaitForFirstConsumer", _WAITS
        if pods:
            reason = "WaitForPodScheduled"
            message = f"waiting for pod{'s' if len(pods) > 1 else ''} {','.join(pods)} to be scheduled"
        self._controller.recorder.event(claim, "Normal", reason, message)

    def _unscheduled_pods(self, claim: Object) -> list[str]:
        """Returns the names of the pods without a node that use the claim."""
        metadata = claim["metadata"]
        return [
            pod["metadata"]["name"]
            for pod in self._controller.cache.list("pods", metadata["namespace"])
            if not pod["spec"].get("nodeName") and not is_pod_terminal(pod) and uses_claim(pod, metadata["name"])
        ]

    def _assign_default_class(self, claim: Object) -> bool:
        """Sets the default class of a claim without storageClassName. Returns whether there is a default class."""
        if get_class_name(claim) or "storageClassName" in claim["spec"]:
            return False
        found = newest_default(self._controller.cache.list(CLASSES), DEFAULT_STORAGE_CLASS_ANNOTATIONS)
        if found is None:
            return False
        spec = {**claim["spec"], "storageClassName": found["metadata"]["name"]}
        self._controller.client.update({**claim, "spec": spec})
        return True

    def _provision_claim(self, claim: Object, name: str) -> None:
        """Requests a volume from the external provisioner of the class."""
        record = self._controller.recorder.event
        found = self._controller.cache.get(CLASSES, "", name)
        if found is None:
            record(claim, "Warning", "ProvisioningFailed", f'storageclass.storage.k8s.io "{name}" not found')
            return
        provisioner = found["provisioner"]
        try:
            check_provisioner(provisioner)
        except PluginError as problem:
            record(claim, "Warning", "ProvisioningFailed", str(problem))
            return
        driver = MIGRATED.get(provisioner, provisioner)
        if (claim["metadata"].get("annotations") or {}).get(PROVISIONER_ANNOTATION) != driver:
            names = {BETA_PROVISIONER: driver, PROVISIONER_ANNOTATION: driver}
            claim = self._controller.client.update(with_annotations(claim, names))
        record(
            claim,
            "Normal",
            "ExternalProvisioning",
            f"Waiting for a volume to be created either by the external provisioner '{driver}' or manually by the system "
            "administrator. If volume creation is delayed, please verify that the provisioner is running and correctly "
            "registered.",
        )

    # --- With a volumeName --------------------------------------------------------------------------------------------

    def _sync_prebound(self, claim: Object) -> None:
        """Syncs a claim that has a volumeName, but is not bound yet."""
        record, name = self._controller.recorder.event, claim["spec"]["volumeName"]
        volume = self._controller.cache.get(VOLUMES, "", name)
        if volume is None:
            self._binding.set_claim_status(claim, "Pending")
        elif volume["spec"].get("claimRef") is None:
            problem = check_volume_satisfies_claim(volume, claim)
            if problem:
                record(claim, "Warning", "VolumeMismatch", f'Cannot bind to requested volume "{name}": {problem}')
                self._binding.set_claim_status(claim, "Pending")
            else:
                self._binding.bind(volume, claim)
        elif is_volume_bound_to_claim(volume, claim):
            self._binding.bind(volume, claim)
        else:
            record(claim, "Warning", "FailedBinding", f'volume "{name}" already bound to a different claim.')
            if not has_annotation(claim, BOUND_BY_CONTROLLER):
                self._binding.set_claim_status(claim, "Pending")

    def _sync_bound(self, claim: Object) -> None:
        name = claim["spec"].get("volumeName")
        volume = self._controller.cache.get(VOLUMES, "", name) if name else None
        if volume is None:
            self._binding.set_claim_lost(claim, "ClaimLost", _LOST if name else _LOST_REFERENCE)
            return
        reference = volume["spec"].get("claimRef")
        if reference is None or reference.get("uid") == claim["metadata"]["uid"]:
            self._binding.bind(volume, claim)
        else:
            self._binding.set_claim_lost(claim, "ClaimMisbound", _MISBOUND)


class PersistentVolumeController(Reconciler):
    """Syncs claims and volumes. Keys are claims, and (without a namespace) volumes."""

    name = "persistentvolume-binder-controller"
    client_name = "persistent-volume-binder"
    component = "persistentvolume-controller"
    watches = (CLAIMS, VOLUMES, CLASSES)

    def __init__(self) -> None:
        self._unbound: dict[Key, None] = {}
        """The claims that are not bound, in the order of their creation."""
        self._by_volume: dict[str, dict[Key, None]] = {}
        """Volume → the claims with its name in volumeName."""

    def on_start(self) -> None:
        binding = Binding(self.client, self.recorder)
        self._claims = ClaimSync(self, binding)
        self._volumes = VolumeSync(self, binding)

    @staticmethod
    def concerns(resource: str, obj: StoredObject, old: StoredObject | None) -> bool:
        return resource != CLASSES or old is None or obj is old

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        if resource == CLAIMS:
            return self._keys_of_claim(event_type, obj)
        if resource == CLASSES:
            return list(self._unbound) if event_type != DELETED else ()
        name = obj["metadata"]["name"]
        keys = [Key("", name)] if event_type != DELETED else []
        references = [one["spec"].get("claimRef") for one in (obj, old) if one is not None]
        keys += [Key(claim.get("namespace", ""), claim.get("name", "")) for claim in references if claim is not None]
        keys += self._by_volume.get(name, ())
        return keys + list(self._unbound) if _became_bindable(event_type, obj, old) else keys

    def _keys_of_claim(self, event_type: str, claim: StoredObject) -> list[Key]:
        """Updates the indexes, and returns the keys of the claim and of its volume."""
        key = Key(claim["metadata"]["namespace"], claim["metadata"]["name"])
        volume = claim["spec"].get("volumeName")
        if volume:
            self._by_volume.setdefault(volume, {})[key] = None
        if event_type == DELETED:
            self._unbound.pop(key, None)
            self._by_volume.get(volume or "", {}).pop(key, None)
        elif has_annotation(claim, BIND_COMPLETED):
            self._unbound.pop(key, None)
        else:
            self._unbound[key] = None
        keys = [key] if event_type != DELETED else []
        return [*keys, Key("", volume)] if volume else keys

    def reconcile(self, key: Key) -> None:
        if key.namespace:
            claim = self.cache.get(CLAIMS, key.namespace, key.name)
            if claim is not None:
                self._claims.sync(claim)
        else:
            volume = self.cache.get(VOLUMES, "", key.name)
            if volume is not None:
                self._volumes.sync(volume)


def _became_bindable(event_type: str, volume: StoredObject, old: StoredObject | None) -> bool:
    """Reports whether an unbound claim may be bound to the volume because of this change."""
    if event_type == DELETED:
        return False
    free = (volume.get("status") or {}).get("phase") == "Available"
    if event_type == ADDED or old is None:
        return free
    was_free = (old.get("status") or {}).get("phase") == "Available"
    relabelled = volume["metadata"].get("labels") != old["metadata"].get("labels")
    return free and (not was_free or relabelled or volume["spec"] != old["spec"])
