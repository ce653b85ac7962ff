"""Claims and volumes that are deleted go when nobody uses them any more.

Admission gives each of them a finalizer; here it is taken off: of a claim when no pod on a node names it, of a volume
when it is not bound.

Specified by: pkg/controller/volume/pvcprotection/pvc_protection_controller.go (podUsesPVCForDeletion),
pkg/controller/volume/pvprotection/pv_protection_controller.go, pkg/controller/volume/vacprotection.
"""

from __future__ import annotations

from collections.abc import Iterable

from fakekube.controllers.reconciler import Key, Object, Reconciler

__all__ = ["AttributesClassProtection", "ClaimProtection", "VolumeProtection"]

CLAIM_FINALIZER = "kubernetes.io/pvc-protection"
VOLUME_FINALIZER = "kubernetes.io/pv-protection"
CLASS_FINALIZER = "kubernetes.io/vac-protection"
ATTRIBUTES_CLASSES = "volumeattributesclasses.storage.k8s.io"


class ClaimProtection(Reconciler):
    """Lets go of the claims that no pod uses. Keys are claims."""

    name = "persistentvolumeclaim-protection-controller"
    client_name = "pvc-protection-controller"
    watches = ("persistentvolumeclaims",)

    def __init__(self) -> None:
        self._in_use: set[Key] = set()
        """The claims that are to go, and wait for pods."""

    @staticmethod
    def concerns(resource: str, obj: Object, old: Object | None) -> bool:
        if resource == "pods":
            return obj is old or "deletionTimestamp" in obj["metadata"]
        return obj is not old and (_waits(obj, CLAIM_FINALIZER) or _is_bare(obj, CLAIM_FINALIZER))

    def keys(self, resource: str, event_type: str, obj: Object, old: Object | None) -> Iterable[Key]:
        if resource == "pods":
            return [key for key in self._in_use if key.namespace == obj["metadata"]["namespace"]]
        key = _key(obj)
        if event_type == "DELETED":
            self._in_use.discard(key)
            return ()
        return (key,) if _waits(obj, CLAIM_FINALIZER) or _is_bare(obj, CLAIM_FINALIZER) else ()

    def reconcile(self, key: Key) -> None:
        claim = self.cache.get("persistentvolumeclaims", key.namespace, key.name)
        if claim is None:
            return
        if _is_bare(claim, CLAIM_FINALIZER):
            self.client.update(_with(claim, CLAIM_FINALIZER))
        elif _waits(claim, CLAIM_FINALIZER):
            self.also_watch("pods")  # only now: most clusters have more pods than dying claims
            if any(_uses(pod, claim) for pod in self.cache.list("pods", key.namespace)):
                self._in_use.add(key)
            else:
                self.client.update(_without(claim, CLAIM_FINALIZER))


class VolumeProtection(Reconciler):
    """Lets go of the volumes that are not bound. Keys are volumes."""

    name = "persistentvolume-protection-controller"
    client_name = "pv-protection-controller"
    watches = ("persistentvolumes",)

    @staticmethod
    def concerns(resource: str, obj: Object, old: Object | None) -> bool:
        return obj is not old and (_waits(obj, VOLUME_FINALIZER) or _is_bare(obj, VOLUME_FINALIZER))

    def keys(self, resource: str, event_type: str, obj: Object, old: Object | None) -> Iterable[Key]:
        return (_key(obj),) if event_type != "DELETED" and self.concerns(resource, obj, old) else ()

    def reconcile(self, key: Key) -> None:
        volume = self.cache.get("persistentvolumes", "", key.name)
        if volume is None:
            return
        if _is_bare(volume, VOLUME_FINALIZER):
            self.client.update(_with(volume, VOLUME_FINALIZER))
        elif _waits(volume, VOLUME_FINALIZER) and volume.get("status", {}).get("phase") != "Bound":
            self.client.update(_without(volume, VOLUME_FINALIZER))


class AttributesClassProtection(Reconciler):
    """Lets go of the VolumeAttributesClasses that no claim and no volume names. Keys are classes."""

    name = "volumeattributesclass-protection-controller"
    watches = (ATTRIBUTES_CLASSES, "persistentvolumeclaims", "persistentvolumes")

    @staticmethod
    def concerns(resource: str, obj: Object, old: Object | None) -> bool:
        if resource != ATTRIBUTES_CLASSES:
            return old is not None and (obj is old or _attributes_classes(obj) != _attributes_classes(old))
        return obj is not old and (_waits(obj, CLASS_FINALIZER) or _is_bare(obj, CLASS_FINALIZER))

    def keys(self, resource: str, event_type: str, obj: Object, old: Object | None) -> Iterable[Key]:
        if resource == ATTRIBUTES_CLASSES:
            return (_key(obj),) if event_type != "DELETED" and self.concerns(resource, obj, old) else ()
        if event_type == "DELETED":
            return [Key("", name) for name in _attributes_classes(obj)]
        return [Key("", name) for name in (_attributes_classes(old) if old is not None else set()) - _attributes_classes(obj)]

    def reconcile(self, key: Key) -> None:
        found = self.cache.get(ATTRIBUTES_CLASSES, "", key.name)
        if found is None:
            return
        if _is_bare(found, CLASS_FINALIZER):
            self.client.update(_with(found, CLASS_FINALIZER))
        elif _waits(found, CLASS_FINALIZER):
            users = (*self.cache.list("persistentvolumes"), *self.cache.list("persistentvolumeclaims"))
            if not any(key.name in _attributes_classes(user) for user in users):
                self.client.update(_without(found, CLASS_FINALIZER))


def _attributes_classes(obj: Object) -> set[str]:
    """The names of the VolumeAttributesClasses that a claim or a volume has, had or is to have."""
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


def _key(obj: Object) -> Key:
    return Key(obj["metadata"].get("namespace", ""), obj["metadata"]["name"])


def _waits(obj: Object, finalizer: str) -> bool:
    """Is it to go, and held by a finalizer?"""
    metadata = obj["metadata"]
    return "deletionTimestamp" in metadata and finalizer in metadata.get("finalizers", ())


def _is_bare(obj: Object, finalizer: str) -> bool:
    """Has it, while it is not to go, no finalizer of this name?"""
    metadata = obj["metadata"]
    return "deletionTimestamp" not in metadata and finalizer not in metadata.get("finalizers", ())


def _with(obj: Object, finalizer: str) -> Object:
    metadata = obj["metadata"]
    return {**obj, "metadata": {**metadata, "finalizers": [*metadata.get("finalizers", ()), finalizer]}}


def _without(obj: Object, finalizer: str) -> Object:
    metadata = obj["metadata"]
    return {**obj, "metadata": {**metadata, "finalizers": [one for one in metadata["finalizers"] if one != finalizer]}}


def _uses(pod: Object, claim: Object) -> bool:
    """Does a pod that is on a node have the claim among its volumes, by name or as one that was made for it?"""
    if not pod["spec"].get("nodeName"):
        return False
    name = claim["metadata"]["name"]
    return any(
        (volume.get("persistentVolumeClaim") or {}).get("claimName") == name
        or ("ephemeral" in volume and f"{pod['metadata']['name']}-{volume['name']}" == name and _was_made_for(claim, pod))
        for volume in pod["spec"].get("volumes") or ()
    )


def _was_made_for(claim: Object, pod: Object) -> bool:
    """Is the pod the claim's controller, and not shut down yet?"""
    metadata = pod["metadata"]
    shut_down = "deletionTimestamp" in metadata and metadata.get("deletionGracePeriodSeconds") == 0
    owners = claim["metadata"].get("ownerReferences") or ()
    return not shut_down and any(one.get("controller") and one["uid"] == metadata["uid"] for one in owners)
