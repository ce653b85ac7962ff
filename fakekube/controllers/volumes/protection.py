"""The controllers that keep the claims of pods: those that protect them, and the one of ephemeral volumes.

The protection controllers remove the finalizers of deleted claims, volumes and VolumeAttributesClasses that are not in use.

Admission adds the finalizers. That of a claim is removed when no pod on a node uses it, that of a volume when it is not bound.
With the gate PersistentVolumeClaimUnusedSinceTime the condition Unused of a bound claim says whether a pod refers to it.

The ephemeral volume controller creates the claims of pods' ephemeral volumes, and restores them while the pod exists.

Specified by: pkg/controller/volume/pvcprotection/pvc_protection_controller.go (podUsesPVC),
pkg/controller/volume/pvprotection/pv_protection_controller.go, pkg/controller/volume/vacprotection;
pkg/controller/volume/ephemeral/controller.go, k8s.io/component-helpers/storage/ephemeral.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fakekube.apis.core.pods.visitor import claim_names
from fakekube.apis.validation.objectmeta import find_condition, set_status_condition
from fakekube.apis.well_known import PV_PROTECTION_FINALIZER, PVC_PROTECTION_FINALIZER, VAC_PROTECTION_FINALIZER
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.client import ApiError
from fakekube.controllers.controller_utils import (
    add_finalizer,
    is_deletion_candidate,
    is_pod_terminal,
    needs_finalizer,
    needs_protection_sync,
    remove_finalizer,
)
from fakekube.controllers.informers import is_controlled_by, new_controller_ref
from fakekube.controllers.reconciler import Key, Reconciler
from fakekube.controllers.volumes.binding import CLAIMS, not_created_for_pod


class EphemeralVolumeController(Reconciler):
    """Creates claims; keys are pods."""

    name = "ephemeral-volume-controller"
    component = "ephemeral_volume"
    watches = ("pods", CLAIMS)

    @staticmethod
    def concerns(resource: str, obj: StoredObject, old: StoredObject | None) -> bool:
        return obj is old if resource == CLAIMS else old is None and _has_ephemeral_volumes(obj)

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        metadata = obj["metadata"]
        if resource == "pods":
            added = event_type == "ADDED" and "deletionTimestamp" not in metadata and _has_ephemeral_volumes(obj)
            return (Key(metadata["namespace"], metadata["name"]),) if added else ()
        if event_type != "DELETED":
            return ()
        owners = [one["name"] for one in metadata.get("ownerReferences") or () if one["kind"] == "Pod"]
        return [Key(metadata["namespace"], name) for name in owners]

    def reconcile(self, key: Key) -> None:
        pod = self.cache.get("pods", key.namespace, key.name)
        if pod is None or "deletionTimestamp" in pod["metadata"]:
            return
        for volume in pod["spec"].get("volumes") or ():
            if "ephemeral" in volume:
                self._handle_volume(pod, volume)

    def _handle_volume(self, pod: Object, volume: Object) -> None:
        metadata = pod["metadata"]
        name = f"{metadata['name']}-{volume['name']}"
        claim = self.cache.get(CLAIMS, metadata["namespace"], name)
        if claim is None:
            try:
                self.client.create(_new_claim(pod, volume, name))
                return
            except ApiError as error:
                self._record_failure(pod, volume, f"create PVC {name}: {error}")
                raise
        if not is_controlled_by(claim, pod):
            namespace, pod_name = metadata["namespace"], metadata["name"]
            self._record_failure(pod, volume, not_created_for_pod(claim, pod))
            self.requeue_rate_limited(Key(namespace, pod_name))

    def _record_failure(self, pod: Object, volume: Object, problem: str) -> None:
        self.recorder.event(pod, "Warning", "FailedBinding", f"ephemeral volume {volume['name']}: {problem}")


def _has_ephemeral_volumes(pod: StoredObject) -> bool:
    return any("ephemeral" in volume for volume in pod["spec"].get("volumes") or ())


def _new_claim(pod: Object, volume: Object, name: str) -> Object:
    template = volume["ephemeral"]["volumeClaimTemplate"]
    metadata, template_metadata = pod["metadata"], template.get("metadata") or {}
    kept = {field: template_metadata[field] for field in ("labels", "annotations") if field in template_metadata}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "spec": template["spec"],
        "metadata": {"name": name, "namespace": metadata["namespace"], "ownerReferences": [new_controller_ref(pod)], **kept},
    }


_UNUSED: Final = "Unused"
#: The reasons and messages of the condition.
_USED_TEXT: Final = ("PodUsingPVC", "A pod is currently referencing this PVC")
_UNUSED_TEXT: Final = ("NoPodsUsingPVC", "No pods are currently referencing this PVC")
ATTRIBUTES_CLASSES: Final = "volumeattributesclasses.storage.k8s.io"


class ClaimProtection(Reconciler):
    """Removes the finalizers of claims that no pod uses, and sets their condition Unused; keys are claims."""

    name = "persistentvolumeclaim-protection-controller"
    client_name = "pvc-protection-controller"
    watches = ("persistentvolumeclaims",)

    def __init__(self) -> None:
        self._in_use: set[Key] = set()
        """The deleted claims that pods use."""

    def on_start(self) -> None:
        self._tells_unused = self.context.emulation.enabled("PersistentVolumeClaimUnusedSinceTime")
        for claim in self.cache.list("persistentvolumeclaims"):
            if is_deletion_candidate(claim, PVC_PROTECTION_FINALIZER):
                self._in_use.add(_object_key(claim))

    @staticmethod
    def concerns(resource: str, obj: StoredObject, old: StoredObject | None) -> bool:
        if resource == "pods":
            if old is None or obj is old or "deletionTimestamp" in obj["metadata"]:
                return True
            return is_pod_terminal(obj) and not is_pod_terminal(old)
        return obj is not old and (needs_protection_sync(obj, PVC_PROTECTION_FINALIZER) or _lacks_unused_condition(obj))

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        if resource == "pods":
            namespace, name = obj["metadata"]["namespace"], obj["metadata"]["name"]
            claims = claim_names(obj["spec"], name) if self._tells_unused else ()
            return {*(key for key in self._in_use if key.namespace == namespace), *(Key(namespace, claim) for claim in claims)}
        key = _object_key(obj)
        if event_type == "DELETED":
            self._in_use.discard(key)
            return ()
        is_told = self._tells_unused and _lacks_unused_condition(obj)
        return (key,) if is_told or needs_protection_sync(obj, PVC_PROTECTION_FINALIZER) else ()

    def reconcile(self, key: Key) -> None:
        claim = self.cache.get("persistentvolumeclaims", key.namespace, key.name)
        if claim is None:
            return
        if self._tells_unused and _is_bound(claim):
            claim = self._update_unused_condition(key, claim)
        if needs_finalizer(claim, PVC_PROTECTION_FINALIZER):
            self.client.update(add_finalizer(claim, PVC_PROTECTION_FINALIZER))
        elif is_deletion_candidate(claim, PVC_PROTECTION_FINALIZER):
            self.also_watch("pods")  # not earlier, because most clusters have many pods and no such claim
            if any(_pod_uses_claim(pod, claim) for pod in self.cache.list("pods", key.namespace)):
                self._in_use.add(key)
            else:
                self.client.update(remove_finalizer(claim, PVC_PROTECTION_FINALIZER))

    def _update_unused_condition(self, key: Key, claim: Object) -> Object:
        """Says in the condition Unused whether a pod that has not terminated refers to the claim; returns the claim."""
        self.also_watch("pods")
        pods = self.cache.list("pods", key.namespace)
        is_used = any(not is_pod_terminal(pod) and _pod_refers_to_claim(pod, claim) for pod in pods)
        known = find_condition(claim["status"], _UNUSED)
        status = "False" if is_used else "True"
        if known is not None and known["status"] == status:
            return claim
        reason, message = _USED_TEXT if is_used else _UNUSED_TEXT
        condition = {"type": _UNUSED, "status": status, "reason": reason, "message": message}
        condition["lastTransitionTime"] = self.client.now()
        conditions = set_status_condition(claim["status"].get("conditions"), condition)
        return self.client.update({**claim, "status": {**claim["status"], "conditions": conditions}}, subresource="status")


class VolumeProtection(Reconciler):
    """Removes the finalizers of volumes that are not bound; keys are volumes."""

    name = "persistentvolume-protection-controller"
    client_name = "pv-protection-controller"
    watches = ("persistentvolumes",)

    @staticmethod
    def concerns(resource: str, obj: StoredObject, old: StoredObject | None) -> bool:
        return obj is not old and needs_protection_sync(obj, PV_PROTECTION_FINALIZER)

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        return (_object_key(obj),) if event_type != "DELETED" and self.concerns(resource, obj, old) else ()

    def reconcile(self, key: Key) -> None:
        volume = self.cache.get("persistentvolumes", "", key.name)
        if volume is None:
            return
        if needs_finalizer(volume, PV_PROTECTION_FINALIZER):
            self.client.update(add_finalizer(volume, PV_PROTECTION_FINALIZER))
        elif is_deletion_candidate(volume, PV_PROTECTION_FINALIZER) and volume.get("status", {}).get("phase") != "Bound":
            self.client.update(remove_finalizer(volume, PV_PROTECTION_FINALIZER))


class AttributesClassProtection(Reconciler):
    """Removes the finalizers of VolumeAttributesClasses that no claim and no volume uses; keys are classes."""

    name = "volumeattributesclass-protection-controller"
    watches = (ATTRIBUTES_CLASSES, "persistentvolumeclaims", "persistentvolumes")

    @staticmethod
    def concerns(resource: str, obj: StoredObject, old: StoredObject | None) -> bool:
        if resource != ATTRIBUTES_CLASSES:
            return old is not None and (obj is old or _attributes_classes(obj) != _attributes_classes(old))
        return obj is not old and needs_protection_sync(obj, VAC_PROTECTION_FINALIZER)

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        if resource == ATTRIBUTES_CLASSES:
            return (_object_key(obj),) if event_type != "DELETED" and self.concerns(resource, obj, old) else ()
        if event_type == "DELETED":
            return [Key("", name) for name in _attributes_classes(obj)]
        return [Key("", name) for name in (_attributes_classes(old) if old is not None else set()) - _attributes_classes(obj)]

    def reconcile(self, key: Key) -> None:
        found = self.cache.get(ATTRIBUTES_CLASSES, "", key.name)
        if found is None:
            return
        if needs_finalizer(found, VAC_PROTECTION_FINALIZER):
            self.client.update(add_finalizer(found, VAC_PROTECTION_FINALIZER))
        elif is_deletion_candidate(found, VAC_PROTECTION_FINALIZER):
            users = (*self.cache.list("persistentvolumes"), *self.cache.list("persistentvolumeclaims"))
            if not any(key.name in _attributes_classes(user) for user in users):
                self.client.update(remove_finalizer(found, VAC_PROTECTION_FINALIZER))


def _attributes_classes(obj: StoredObject) -> set[str]:
    """Returns the VolumeAttributesClasses of a claim or a volume: those in spec, in effect, and to be applied."""
    status = obj.get("status") or {}
    return {
        name
        for name in (
            obj["spec"].get("volumeAttributesClassName"),
            status.get("currentVolumeAttributesClassName"),
            (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName"),
        )
        if name
    }


def _object_key(obj: StoredObject) -> Key:
    return Key(obj["metadata"].get("namespace", ""), obj["metadata"]["name"])


def _pod_uses_claim(pod: Object, claim: Object) -> bool:
    """Reports whether a pod on a node uses the claim (podUsesPVC)."""
    return bool(pod["spec"].get("nodeName")) and _pod_refers_to_claim(pod, claim)


def _is_bound(claim: StoredObject) -> bool:
    return "deletionTimestamp" not in claim["metadata"] and (claim.get("status") or {}).get("phase") == "Bound"


def _lacks_unused_condition(claim: StoredObject) -> bool:
    return _is_bound(claim) and find_condition(claim["status"], _UNUSED) is None


def _pod_refers_to_claim(pod: Object, claim: Object) -> bool:
    """Reports whether a pod has a volume of the claim, by its name or as the claim of an ephemeral volume."""
    name = claim["metadata"]["name"]
    return any(
        (volume.get("persistentVolumeClaim") or {}).get("claimName") == name
        or ("ephemeral" in volume and f"{pod['metadata']['name']}-{volume['name']}" == name and _is_for_running_pod(claim, pod))
        for volume in pod["spec"].get("volumes") or ()
    )


def _is_for_running_pod(claim: Object, pod: Object) -> bool:
    """Reports whether the pod controls the claim and is not being deleted without a grace period."""
    metadata = pod["metadata"]
    shut_down = "deletionTimestamp" in metadata and metadata.get("deletionGracePeriodSeconds") == 0
    return not shut_down and is_controlled_by(claim, pod)
