"""Facts about in-tree volume plugins: which of them provision, delete and recycle volumes.

Specified by: pkg/volume/plugins.go and the plugins in pkg/volume; k8s.io/csi-translation-lib for migrated plugins.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from fakekube.controllers.volumes.matching import PROVISIONED_BY

CLAIMS: Final = "persistentvolumeclaims"
VOLUMES: Final = "persistentvolumes"
CLASSES: Final = "storageclasses.storage.k8s.io"

__all__ = ["MIGRATED", "PluginError", "check_provisioner", "has_plugin", "is_deleted_in_tree", "is_recyclable"]

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
_MIGRATED_TO: Final = "pv.kubernetes.io/migrated-to"
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
    """Whether an in-tree plugin deletes the volume's storage; if not, an external deleter does.

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
    """Whether there is a plugin that recycles the volume."""
    return "hostPath" in volume["spec"] or "nfs" in volume["spec"]


def has_plugin(volume: Mapping[str, Any]) -> bool:
    """Whether there is an in-tree plugin for the volume."""
    return not _SOURCES.isdisjoint(volume["spec"])
