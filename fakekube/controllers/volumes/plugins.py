"""What the control plane knows of kinds of volumes: who provisions, deletes and recycles them.

Specified by: pkg/volume/plugins.go and the plugins below pkg/volume; k8s.io/csi-translation-lib for drivers that have
taken the place of plugins.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from fakekube.controllers.volumes.matching import PROVISIONED_BY

__all__ = ["MIGRATED", "PluginError", "check_provisioner", "deleter_of", "has_plugin", "is_recyclable"]

MIGRATED: Final[Mapping[str, str]] = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/azure-file": "file.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
}
"""Plugins of old, and the CSI drivers that serve their volumes."""

_IN_TREE: Final = "kubernetes.io/"
_MIGRATED_TO: Final = "pv.kubernetes.io/migrated-to"
#: The plugins that kube-controller-manager still has; none of them provisions.
_KNOWN: Final = frozenset({
    "kubernetes.io/csi", "kubernetes.io/fc", "kubernetes.io/host-path", "kubernetes.io/iscsi", "kubernetes.io/local-volume",
    "kubernetes.io/nfs",
})  # fmt: skip
_SOURCES: Final = frozenset({"csi", "fc", "hostPath", "iscsi", "local", "nfs"})
_NOT_DELETABLE: Final = "no deletable volume plugin matched"
_DELETABLE_PATH: Final = re.compile(r"/tmp/.+")


class PluginError(Exception):
    """What a plugin, or the search for one, says that is wrong."""


def check_provisioner(name: str) -> None:
    """Raises PluginError for a provisioner that ought to be a plugin, and is none that provisions."""
    if not name.startswith(_IN_TREE) or name in MIGRATED:
        return
    if name in _KNOWN:
        raise PluginError("no provisionable volume plugin matched")
    raise PluginError(f"no volume plugin matched name: {name}")


def deleter_of(volume: Mapping[str, Any]) -> bool:
    """Does the control plane delete what is behind a volume? If not, an external deleter does.

    Raises PluginError if nobody can, or if it fails.
    """
    annotations = volume["metadata"].get("annotations") or {}
    provisioner = annotations.get(PROVISIONED_BY)
    if provisioner:
        if not provisioner.startswith(_IN_TREE) or provisioner in MIGRATED:
            return False
        if provisioner != "kubernetes.io/host-path":
            known = provisioner in _KNOWN
            raise PluginError(_NOT_DELETABLE if known else f"no volume plugin matched name: {provisioner}")
    if _MIGRATED_TO in annotations or "csi" in volume["spec"]:
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
    """Is there a plugin that scrubs such a volume for its next claim?"""
    return "hostPath" in volume["spec"] or "nfs" in volume["spec"]


def has_plugin(volume: Mapping[str, Any]) -> bool:
    """Does the control plane know this kind of volume?"""
    return not _SOURCES.isdisjoint(volume["spec"])
