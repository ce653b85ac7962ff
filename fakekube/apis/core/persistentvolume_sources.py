"""The source of a PersistentVolume: exactly one of many types, most of which pods support as well.

Sources of volumes may refer to secrets of any namespace, and some have more fields than in a pod.

Specified by: ValidatePersistentVolumeSpec of pkg/apis/core/validation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import forbidden, invalid, required
from fakekube.apis.core.pods import volumes
from fakekube.apis.core.pods.volumes import needs
from fakekube.apis.rest.strategy import Object
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import invalid_each, secret_reference
from fakekube.apis.validation.paths import no_backsteps

__all__ = ["SOURCES", "volume_source"]

Part = Mapping[str, Any]


def _glusterfs(source: Part, path: str) -> list[FieldError]:
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


def _iscsi(source: Part, path: str, name: str) -> list[FieldError]:
    errors = [_without_hint(error) for error in volumes.iscsi(source, path)]
    portal = source.get("targetPortal", "")
    if source.get("initiatorName") is not None and not names.fits(f"{name}:{portal}", 64):
        limit = "must be under 64 characters if iscsi.initiatorName is specified."
        text = f"Total length of <volume name>:<iscsi.targetPortal> {limit}"
        errors.insert(0 if portal else 1, invalid(f"{path}.targetportal", portal, text))
    reference = source.get("secretRef")
    if reference is not None and not reference.get("name"):
        position = len(errors) - sum(error.path == f"{path}.initiatorname" for error in errors)
        errors.insert(position, required(f"{path}.secretRef.name"))
    return errors


def _with_secret(check: Callable[[Part, str], list[FieldError]]) -> Callable[[Part, str], list[FieldError]]:
    """Returns the check of a source that refers to a secret of any namespace."""

    def both(source: Part, path: str) -> list[FieldError]:
        reference = source.get("secretRef")
        wrong = [] if reference is None else secret_reference(reference, f"{path}.secretRef")
        return check(source, path) + wrong

    return both


def _storage_os(source: Part, path: str) -> list[FieldError]:
    return volumes.storage_os({key: value for key, value in source.items() if key != "secretRef"}, path)


def _flex_volume(source: Part, path: str) -> list[FieldError]:
    return volumes.flex_volume({key: value for key, value in source.items() if key != "secretRef"}, path)


def _azure_file(source: Part, path: str) -> list[FieldError]:
    errors = needs("secretName", "shareName")(source, path)
    if source.get("secretNamespace") == "":
        errors.append(required(f"{path}.secretNamespace"))
    return errors


def _local(source: Part, path: str) -> list[FieldError]:
    target = source.get("path", "")
    return no_backsteps(target, f"{path}.path") if target else [required(f"{path}.path")]


CSI_SECRETS = ("controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef")


def _csi(source: Part, path: str) -> list[FieldError]:
    errors = volumes.csi_driver_name(source.get("driver", ""), f"{path}.driver")
    if not source.get("volumeHandle"):
        errors.append(required(f"{path}.volumeHandle"))
    for field in CSI_SECRETS:
        if source.get(field) is not None:
            errors += _csi_secret(source[field], f"{path}.{field}")
    return errors


def _csi_secret(reference: Part, path: str) -> list[FieldError]:
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
    "hostPath": _Source(volumes.host_path),
    "gcePersistentDisk": _Source(volumes.gce_persistent_disk, shown="persistentDisk"),
    "awsElasticBlockStore": _Source(volumes.aws_elastic_block_store),
    "glusterfs": _Source(_glusterfs),
    "flocker": _Source(volumes.flocker),
    "nfs": _Source(volumes.nfs),
    "rbd": _Source(needs("monitors", "image")),
    "quobyte": _Source(volumes.quobyte),
    "cephfs": _Source(needs("monitors"), surplus="cephFS"),
    "iscsi": _Source(_iscsi),
    "cinder": _Source(_with_secret(needs("volumeID"))),
    "fc": _Source(volumes.fibre_channel),
    "flexVolume": _Source(_flex_volume),
    "azureFile": _Source(_azure_file),
    "vsphereVolume": _Source(needs("volumePath")),
    "photonPersistentDisk": _Source(needs("pdID")),
    "portworxVolume": _Source(needs("volumeID")),
    "azureDisk": _Source(volumes.azure_disk),
    "scaleIO": _Source(needs("gateway", "system", "volumeName")),
    "local": _Source(_local),
    "storageos": _Source(_with_secret(_storage_os)),
    "csi": _Source(_csi),
}

#: Sources that do not count towards the limit of one.
UNCOUNTED = "flexVolume"


def volume_source(spec: Object, name: str, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    found = False
    for field, source in SOURCES.items():
        if spec.get(field) is None:
            continue
        if found and field != UNCOUNTED:
            errors.append(forbidden(f"{path}.{source.surplus or field}", "may not specify more than 1 volume type"))
            continue
        found = True
        where = f"{path}.{source.shown or field}"
        errors += source.check(spec[field], where, name) if field == "iscsi" else source.check(spec[field], where)
        if field == "local" and spec.get("nodeAffinity") is None:
            errors.append(required(f"{path}.nodeAffinity", "Local volume requires node affinity"))
    return errors if found else [*errors, required(path, "must specify a volume type")]
