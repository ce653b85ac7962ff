"""PersistentVolumes: a size and exactly one source, of many types, most of which pods support as well.

Sources of volumes may refer to secrets of any namespace, and some have more fields than in a pod.

Specified by: ValidatePersistentVolume… in pkg/apis/core/validation, pkg/volume/validation, pkg/api/persistentvolume,
pkg/registry/core/persistentvolume.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from fakekube.apimachinery import features
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import IMMUTABLE, forbidden, invalid, not_supported, required
from fakekube.apis.core.nodes import RENAMED_LABELS, node_selector_term_warnings
from fakekube.apis.core.persistentvolumeclaims import (
    USE_STORAGE_CLASS_NAME,
    VOLUME_MODES,
    validate_access_modes,
    validate_basic_resource,
)
from fakekube.apis.core.pods import volumes
from fakekube.apis.core.pods.volumes import needs
from fakekube.apis.core.pods.warnings import VOLUMES as DEPRECATED_VOLUMES
from fakekube.apis.rest.strategy import StatusStrategy, Strategy, WriteContext
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import immutable_field, invalid_each, no_backsteps, one_of, secret_reference
from fakekube.apis.validation.differences import diff
from fakekube.apis.validation.resource_lists import positive_quantity
from fakekube.apis.validation.selectors import node_selector
from fakekube.apis.validation.to_internal import semantic_deep_equal_as, to_internal
from fakekube.apis.well_known import BETA_STORAGE_CLASS_ANNOTATION
from fakekube.base.objects import Object, Part

_RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")
_MOUNT_OPTIONS = "volume.beta.kubernetes.io/mount-options"
_DEPRECATED_ANNOTATIONS = {
    BETA_STORAGE_CLASS_ANNOTATION: USE_STORAGE_CLASS_NAME,
    _MOUNT_OPTIONS: 'deprecated since v1.31; use "mountOptions" attribute instead',
}
_DEPRECATED_SOURCES = {
    source: DEPRECATED_VOLUMES[source]
    for source in ("cephfs", "photonPersistentDisk", "scaleIO", "storageos", "glusterfs", "rbd")
}
_INLINE = "in the context of inline volumes"
_NOT_INLINE = f"may not be specified {_INLINE}"
_SPEC = "k8s.io/api/core/v1.PersistentVolumeSpec"
_AFFINITY = "k8s.io/api/core/v1.VolumeNodeAffinity"

#: Sources whose mount options an annotation may set.
_WITH_MOUNT_OPTIONS = frozenset(
    {
        "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "nfs", "rbd", "quobyte", "iscsi", "cinder", "cephfs",
        "azureFile", "vsphereVolume", "azureDisk", "photonPersistentDisk",
    }
)  # fmt: skip


# --- The spec ---------------------------------------------------------------------------------------------------------


def validate_volume_spec(
    spec: Object, path: str, *, name: str = "", inline: bool = False, allow_invalid_values: bool = False
) -> list[FieldError]:
    """Validates the spec of a volume (`name`), or of an inline volume of a VolumeAttachment (`inline`).

    With `allow_invalid_values`, the node affinity may have invalid label values, as the stored object has.
    """
    errors = _validate_inline_volume(spec, path) if inline else []
    modes = spec.get("accessModes") or ()
    if not modes:
        errors.append(required(f"{path}.accessModes"))
    errors += validate_access_modes(modes, f"{path}.accessModes")
    if not inline:
        errors += _validate_capacity(spec.get("capacity"), f"{path}.capacity")
    policy = spec.get("persistentVolumeReclaimPolicy", "")
    errors += _validate_reclaim_policy(policy, f"{path}.persistentVolumeReclaimPolicy", inline)
    affinity = spec.get("nodeAffinity")
    if affinity is not None:
        errors += _validate_node_affinity(affinity, f"{path}.nodeAffinity", inline, allow_invalid_values)
    errors += _validate_volume_source(spec, name, path)
    errors += _forbid_recycled_root(spec, path)
    errors += _validate_class_and_mode(spec, path, inline)
    return errors if inline else errors + _validate_attributes_class(spec, path)


def _validate_inline_volume(spec: Object, path: str) -> list[FieldError]:
    unwanted = {"claimRef": "claimRef" in spec, "capacity": bool(spec.get("capacity"))}
    errors = [forbidden(f"{path}.{field}", _NOT_INLINE) for field, new in unwanted.items() if new]
    if spec.get("csi") is None:
        errors.append(required(f"{path}.csi", f"has to be specified {_INLINE}"))
    return errors


def _validate_capacity(capacity: Mapping[str, str] | None, path: str) -> list[FieldError]:
    if not capacity:
        return [required(path), not_supported(path, capacity, ("storage",))]
    errors: list[FieldError] = []
    if "storage" not in capacity or len(capacity) > 1:
        errors.append(not_supported(path, capacity, ("storage",)))
    for name, amount in capacity.items():
        errors += validate_basic_resource(amount, f"{path}[{name}]") + positive_quantity(amount, f"{path}[{name}]")
    return errors


def _validate_reclaim_policy(policy: str, path: str, inline: bool) -> list[FieldError]:
    if not policy:
        return []
    if inline:
        return [] if policy == "Retain" else [forbidden(path, f"may only be Retain {_INLINE}")]
    return one_of(policy, path, _RECLAIM_POLICIES)


def _validate_node_affinity(affinity: Object, path: str, inline: bool, allow_invalid_values: bool) -> list[FieldError]:
    if inline:
        return [forbidden(path, _NOT_INLINE)]
    selector = affinity.get("required")
    if selector is None:
        return [required(f"{path}.required", "must specify required node constraints")]
    return node_selector(selector, f"{path}.required", allow_invalid_values=allow_invalid_values)


def _forbid_recycled_root(spec: Object, path: str) -> list[FieldError]:
    target = (spec.get("hostPath") or {}).get("path", "")
    if posixpath.normpath(target) in ("/", "//") and spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        where = f"{path}.persistentVolumeReclaimPolicy"
        return [forbidden(where, "may not be 'recycle' for a hostPath mount of '/'")]
    return []


def _validate_class_and_mode(spec: Object, path: str, inline: bool) -> list[FieldError]:
    name, mode = spec.get("storageClassName", ""), spec.get("volumeMode")
    errors: list[FieldError] = []
    if name and inline:
        errors.append(forbidden(f"{path}.storageClassName", _NOT_INLINE))
    elif name:
        errors += invalid_each(f"{path}.storageClassName", name, names.dns_subdomain(name))
    if mode is None:
        return errors
    if not inline:
        return errors + one_of(mode, f"{path}.volumeMode", VOLUME_MODES)
    text = f"may not specify volumeMode other than Filesystem {_INLINE}"
    return errors if mode == "Filesystem" else [*errors, forbidden(f"{path}.volumeMode", text)]


def _validate_attributes_class(spec: Object, path: str) -> list[FieldError]:
    name, where = spec.get("volumeAttributesClassName"), f"{path}.volumeAttributesClassName"
    if name is None:
        return []
    errors = invalid_each(where, name, names.dns_subdomain(name)) if name else [required(where, "an empty string is disallowed")]
    if spec.get("csi") is None:
        errors.append(required(f"{path}.csi", "has to be specified when using volumeAttributesClassName"))
    return errors


# --- The kind ---------------------------------------------------------------------------------------------------------


class PersistentVolumeStrategy(Strategy):
    """The strategy of persistentvolumes.

    The source is immutable, and the node affinity can be set once. An update is validated twice, like in the real
    server.
    """

    delete_returns_object = True
    has_status = True
    checks_metadata_update = False

    def prepare_for_create(self, context: WriteContext, obj: Object) -> None:
        obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": context.now()}

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return self._validate_spec(obj, allow_invalid_values=False) + _validate_mount_options(obj)

    def _validate_spec(self, obj: Object, *, allow_invalid_values: bool) -> list[FieldError]:
        name = obj["metadata"].get("name", "")
        return validate_volume_spec(obj["spec"], "spec", name=name, allow_invalid_values=allow_invalid_values)

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        selector = (old["spec"].get("nodeAffinity") or {}).get("required")
        allow_invalid_values = selector is not None and bool(node_selector(selector, ""))
        whole = self.validate_metadata(context, obj["metadata"])
        whole += self._validate_spec(obj, allow_invalid_values=allow_invalid_values)
        return whole + _validate_mount_options(obj) + whole + _validate_volume_change(obj["spec"], old["spec"])

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        return _warnings(obj["spec"], obj["metadata"].get("annotations") or {})


def _validate_mount_options(obj: Object) -> list[FieldError]:
    if _WITH_MOUNT_OPTIONS.isdisjoint(obj["spec"]) and _MOUNT_OPTIONS in (obj["metadata"].get("annotations") or {}):
        path = f"metadata.annotations.{_MOUNT_OPTIONS}"
        return [forbidden(path, "may not specify mount options for this volume type")]
    return []


def _validate_volume_change(spec: Object, old_spec: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    source = {field: spec[field] for field in SOURCES if spec.get(field) is not None}
    old_source = {field: old_spec[field] for field in SOURCES if old_spec.get(field) is not None}
    if "csi" in source and (old_source.get("csi") or {"controllerExpandSecretRef": 1}).get("controllerExpandSecretRef") is None:
        source["csi"] = {key: value for key, value in source["csi"].items() if key != "controllerExpandSecretRef"}
    if not semantic_deep_equal_as(features.current().types.type_of(_SPEC), source, old_source):
        lines = diff("PersistentVolumeSource", old_source, source)
        text = f"spec.persistentvolumesource is immutable after creation\n{lines}"
        errors.append(forbidden("spec.persistentvolumesource", text))
    errors += immutable_field(spec.get("volumeMode"), old_spec.get("volumeMode"), "volumeMode")
    if old_spec.get("nodeAffinity") is not None and not features.current().enabled("MutablePVNodeAffinity"):
        errors += _validate_node_affinity_update(spec.get("nodeAffinity"), old_spec["nodeAffinity"])
    path = "spec.volumeAttributesClassName"
    if old_spec.get("volumeAttributesClassName") is not None and spec.get("volumeAttributesClassName") is None:
        errors.append(forbidden(path, "update from non-nil value to nil is forbidden"))
    return errors


def _validate_node_affinity_update(new: Object | None, old: Object) -> list[FieldError]:
    """Validates an update of node affinity, which can only replace deprecated labels by the new ones."""
    if new is not None and semantic_deep_equal_as(
        features.current().types.type_of(_AFFINITY), _with_deprecated_labels(new, old), old
    ):
        return []
    shown = None if new is None else to_internal("VolumeNodeAffinity", new)
    return [invalid("nodeAffinity", shown, f"{IMMUTABLE}, except for updating from beta label to GA")]


def _with_deprecated_labels(new: Object, old: Object) -> Object:
    """Returns the new affinity with deprecated labels where the old one has them."""
    terms = (new.get("required") or {}).get("nodeSelectorTerms") or []
    old_terms = (old.get("required") or {}).get("nodeSelectorTerms") or []
    if len(terms) != len(old_terms):
        return new
    changed = [_renamed_term(term, before) for term, before in zip(terms, old_terms, strict=True)]
    return {**new, "required": {**new["required"], "nodeSelectorTerms": changed}} if terms else new


def _renamed_term(term: Object, old: Object) -> Object:
    items, old_items = term.get("matchExpressions") or [], old.get("matchExpressions") or []
    if len(items) != len(old_items):
        return term
    changed = [
        {**item, "key": before["key"]} if RENAMED_LABELS.get(before["key"], ("", ""))[1] == item["key"] else item
        for item, before in zip(items, old_items, strict=True)
    ]
    return {**term, "matchExpressions": changed}


def _warnings(spec: Object, annotations: Object) -> list[str]:
    warnings = [f"metadata.annotations[{key}]: {text}" for key, text in _DEPRECATED_ANNOTATIONS.items() if key in annotations]
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        advice = "Instead, the recommended approach is to use dynamic provisioning."
        text = f"The Recycle reclaim policy is deprecated. {advice}"
        warnings.append(f"spec.persistentVolumeReclaimPolicy: {text}")
    terms = ((spec.get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms") or ()
    for index, term in enumerate(terms):
        warnings += node_selector_term_warnings(term, f"spec.nodeAffinity.required.nodeSelectorTerms[{index}]")
    return warnings + [
        f"spec.{shown}: {text}" for field, (shown, text) in _DEPRECATED_SOURCES.items() if spec.get(field) is not None
    ]


class _VolumeStatusStrategy(StatusStrategy):
    """The strategy of /status; the server sets lastPhaseTransitionTime unless the client changes it."""

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        super().prepare_for_update(context, obj, old)
        status, old_status = obj.setdefault("status", {}), old.get("status") or {}
        field = "lastPhaseTransitionTime"
        new, current = status.get(field), old_status.get(field)
        if status.get("phase", "") == old_status.get("phase", ""):
            if field not in status and current is not None:
                status[field] = current
        elif field not in status or new == current:
            status[field] = context.now()


STATUS = _VolumeStatusStrategy()


def _validate_glusterfs(source: Part, path: str) -> list[FieldError]:
    errors = needs("endpoints", "path")(source, path)
    namespace = source.get("endpointsNamespace")
    if namespace is None:
        return errors
    where = f"{path}.endpointsNamespace"
    if not namespace:
        text = "if the endpointnamespace is set, it must be a valid namespace name"
        return [*errors, invalid(where, namespace, text)]
    return errors + invalid_each(where, namespace, names.dns_label(namespace))


def _without_hint(error: FieldError) -> FieldError:
    """Returns the error without the hint about the prefixes of iSCSI names, which persistent volumes lack."""
    return replace(error, detail=error.detail.removesuffix(" starting with iqn, eui, or naa"))


def _validate_iscsi(source: Part, path: str, name: str) -> list[FieldError]:
    errors = [_without_hint(error) for error in volumes.validate_iscsi(source, path)]
    portal = source.get("targetPortal", "")
    if source.get("initiatorName") is not None and not names.fits(f"{name}:{portal}", 64):
        errors.insert(0 if portal else 1, invalid(f"{path}.targetportal", portal, volumes.ISCSI_NAMES_TOO_LONG))
    reference = source.get("secretRef")
    if reference is not None and not reference.get("name"):
        position = len(errors) - sum(error.path == f"{path}.initiatorname" for error in errors)
        errors.insert(position, required(f"{path}.secretRef.name"))
    return errors


def _with_secret(check: Callable[[Part, str], list[FieldError]]) -> Callable[[Part, str], list[FieldError]]:
    """Returns the check of a source that refers to a secret of any namespace."""

    def check_with_secret(source: Part, path: str) -> list[FieldError]:
        reference = source.get("secretRef")
        wrong = [] if reference is None else secret_reference(reference, f"{path}.secretRef")
        return check(source, path) + wrong

    return check_with_secret


def _validate_storage_os(source: Part, path: str) -> list[FieldError]:
    return volumes.validate_storage_os({key: value for key, value in source.items() if key != "secretRef"}, path)


def _validate_flex_volume(source: Part, path: str) -> list[FieldError]:
    return volumes.validate_flex_volume({key: value for key, value in source.items() if key != "secretRef"}, path)


def _validate_azure_file(source: Part, path: str) -> list[FieldError]:
    errors = needs("secretName", "shareName")(source, path)
    if source.get("secretNamespace") == "":
        errors.append(required(f"{path}.secretNamespace"))
    return errors


def _validate_local(source: Part, path: str) -> list[FieldError]:
    target = source.get("path", "")
    return no_backsteps(target, f"{path}.path") if target else [required(f"{path}.path")]


_CSI_SECRETS = ("controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef")


def _validate_csi(source: Part, path: str) -> list[FieldError]:
    errors = volumes.validate_csi_driver_name(source.get("driver", ""), f"{path}.driver")
    if not source.get("volumeHandle"):
        errors.append(required(f"{path}.volumeHandle"))
    for field in _CSI_SECRETS:
        if source.get(field) is not None:
            errors += _validate_csi_secret(source[field], f"{path}.{field}")
    return errors


def _validate_csi_secret(reference: Part, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for field, check in (("name", names.dns_subdomain), ("namespace", names.dns_label)):
        value, where = reference.get(field, ""), f"{path}.{field}"
        errors += invalid_each(where, value, check(value)) if value else [required(where)]
    return errors


class _Source(NamedTuple):
    check: Callable[..., list[FieldError]]
    shown: str = ""
    """The name in paths, if it differs."""
    surplus: str = ""
    """The name in the path of the error about a second source, if it differs."""


#: In the order in which the real server validates them.
SOURCES: Mapping[str, _Source] = {
    "hostPath": _Source(volumes.validate_host_path),
    "gcePersistentDisk": _Source(volumes.validate_gce_persistent_disk, shown="persistentDisk"),
    "awsElasticBlockStore": _Source(volumes.validate_aws_elastic_block_store),
    "glusterfs": _Source(_validate_glusterfs),
    "flocker": _Source(volumes.validate_flocker),
    "nfs": _Source(volumes.validate_nfs),
    "rbd": _Source(needs("monitors", "image")),
    "quobyte": _Source(volumes.validate_quobyte),
    "cephfs": _Source(needs("monitors"), surplus="cephFS"),
    "iscsi": _Source(_validate_iscsi),
    "cinder": _Source(_with_secret(needs("volumeID"))),
    "fc": _Source(volumes.validate_fibre_channel),
    "flexVolume": _Source(_validate_flex_volume),
    "azureFile": _Source(_validate_azure_file),
    "vsphereVolume": _Source(needs("volumePath")),
    "photonPersistentDisk": _Source(needs("pdID")),
    "portworxVolume": _Source(needs("volumeID")),
    "azureDisk": _Source(volumes.validate_azure_disk),
    "scaleIO": _Source(needs("gateway", "system", "volumeName")),
    "local": _Source(_validate_local),
    "storageos": _Source(_with_secret(_validate_storage_os)),
    "csi": _Source(_validate_csi),
}

#: Sources that do not count towards the limit of one.
_UNCOUNTED = "flexVolume"


def _validate_volume_source(spec: Object, name: str, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    found = False
    for field, source in SOURCES.items():
        if spec.get(field) is None:
            continue
        if found and field != _UNCOUNTED:
            errors.append(forbidden(f"{path}.{source.surplus or field}", volumes.MANY_TYPES))
            continue
        found = True
        where = f"{path}.{source.shown or field}"
        errors += source.check(spec[field], where, name) if field == "iscsi" else source.check(spec[field], where)
        if field == "local" and spec.get("nodeAffinity") is None:
            errors.append(required(f"{path}.nodeAffinity", "Local volume requires node affinity"))
    return errors if found else [*errors, required(path, volumes.NO_TYPE)]
