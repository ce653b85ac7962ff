"""Printers of volumes, claims, storage classes and CSI objects.

Specified by: k8s.io/kubernetes/pkg/printers/internalversion (printers.go), pkg/apis/core/helper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fakekube.apimachinery.printers.texts import NONE, UNSET, Ages, Cells, Object, age, name, quantity

_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_ANNOTATIONS: Final = (
    "storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class",
)  # fmt: skip
_MODES: Final = {
    "ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP",
}  # fmt: skip


def _annotations(obj: Object) -> Mapping[str, str]:
    return obj["metadata"].get("annotations") or {}


def _access_modes(modes: Sequence[str] | None) -> str:
    return ",".join(short for mode, short in _MODES.items() if mode in (modes or ()))


def _phase(obj: Object) -> str:
    deleted = obj["metadata"].get("deletionTimestamp")
    return "Terminating" if deleted else obj.get("status", {}).get("phase", "")


def _storage_class_of(obj: Object) -> str:
    return _annotations(obj).get(_CLASS_ANNOTATION, obj.get("spec", {}).get("storageClassName", ""))


def _volume(obj: Object, ages: Ages) -> list[Any]:
    spec = obj.get("spec", {})
    claim = spec.get("claimRef")
    return [
        name(obj), quantity(spec.get("capacity"), "storage"), _access_modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""), _phase(obj),
        "" if claim is None else f"{claim.get('namespace', '')}/{claim.get('name', '')}",
        _storage_class_of(obj), spec.get("volumeAttributesClassName", UNSET),
        obj.get("status", {}).get("reason", ""), age(obj, ages), spec.get("volumeMode", UNSET),
    ]  # fmt: skip


def _claim(obj: Object, ages: Ages) -> list[Any]:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    volume = spec.get("volumeName", "")
    capacity = modes = ""
    if volume:
        capacity = quantity(status.get("capacity"), "storage")
        modes = _access_modes(status.get("accessModes"))
    return [
        name(obj), _phase(obj), volume, capacity, modes, _storage_class_of(obj),
        spec.get("volumeAttributesClassName", UNSET), age(obj, ages), spec.get("volumeMode", UNSET),
    ]  # fmt: skip


def _storage_class(obj: Object, ages: Ages) -> list[Any]:
    default = any(_annotations(obj).get(key) == "true" for key in _DEFAULT_ANNOTATIONS)
    return [
        f"{name(obj)} (default)" if default else name(obj), obj.get("provisioner", ""),
        obj.get("reclaimPolicy", "Delete"), obj.get("volumeBindingMode", "Immediate"),
        obj.get("allowVolumeExpansion", False), age(obj, ages),
    ]  # fmt: skip


def _attributes_class(obj: Object, ages: Ages) -> list[Any]:
    return [name(obj), obj.get("driverName", ""), age(obj, ages)]


def _attachment(obj: Object, ages: Ages) -> list[Any]:
    spec = obj.get("spec", {})
    volume = spec.get("source", {}).get("persistentVolumeName", "")
    attached = obj.get("status", {}).get("attached", False)
    return [name(obj), spec.get("attacher", ""), volume, spec.get("nodeName", ""), attached, age(obj, ages)]


def _csi_node(obj: Object, ages: Ages) -> list[Any]:
    return [name(obj), len(obj.get("spec", {}).get("drivers") or ()), age(obj, ages)]


def _csi_driver(obj: Object, ages: Ages) -> list[Any]:
    spec = obj.get("spec", {})
    requests = spec.get("tokenRequests")
    audiences = UNSET if requests is None else ",".join(request.get("audience", "") for request in requests)
    modes = ",".join(spec.get("volumeLifecycleModes") or ()) or NONE
    return [
        name(obj), spec.get("attachRequired", True), spec.get("podInfoOnMount", False),
        spec.get("storageCapacity", False), audiences, spec.get("requiresRepublish", False), modes,
        age(obj, ages),
    ]  # fmt: skip


CELLS: Final[Mapping[tuple[str, str], Cells]] = {
    ("", "persistentvolumeclaims"): _claim,
    ("", "persistentvolumes"): _volume,
    ("storage.k8s.io", "csidrivers"): _csi_driver,
    ("storage.k8s.io", "csinodes"): _csi_node,
    ("storage.k8s.io", "storageclasses"): _storage_class,
    ("storage.k8s.io", "volumeattachments"): _attachment,
    ("storage.k8s.io", "volumeattributesclasses"): _attributes_class,
}
