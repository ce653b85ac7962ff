"""The attach-detach controller: creates VolumeAttachments for the CSI volumes of pods, and reports attached volumes in nodes.

It handles nodes whose kubelet leaves attaching to the control plane (an annotation), and drivers whose CSIDriver does not set
`attachRequired: false`. The attacher of the driver, which fakekube does not have, attaches the volume and writes the status of
the VolumeAttachment.

Invariant: an event about a result is recorded once for each pod.

Specified by: pkg/controller/volume/attachdetach, pkg/volume/csi/csi_attacher.go.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Final

from fakekube.apis.core.pods.visitor import claim_names
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.client import ApiError
from fakekube.controllers.controller_utils import is_pod_terminal
from fakekube.controllers.informers import DELETED
from fakekube.controllers.reconciler import Key, Reconciler
from fakekube.controllers.volumes.binding import uses_claim

ATTACHMENTS, DRIVERS = "volumeattachments.storage.k8s.io", "csidrivers.storage.k8s.io"
MANAGED: Final = "volumes.kubernetes.io/controller-managed-attach-detach"


def attachment_name(handle: str, driver: str, node: str) -> str:
    """Returns the name of the VolumeAttachment of a volume and a node (getAttachmentName)."""
    return f"csi-{hashlib.sha256((handle + driver + node).encode()).hexdigest()}"


class AttachDetachController(Reconciler):
    """Creates and deletes VolumeAttachments; keys are nodes."""

    name = "persistentvolume-attach-detach-controller"
    client_name = "attachdetach-controller"
    component = "attachdetach-controller"
    watches = ("pods", "persistentvolumeclaims", ATTACHMENTS, "nodes")

    def __init__(self) -> None:
        self._recorded: set[tuple[str, str]] = set()
        """(uid of a pod, attachment or error) for which an event was recorded."""

    @staticmethod
    def concerns(resource: str, obj: StoredObject, old: StoredObject | None) -> bool:
        if resource == "nodes":
            return old is None
        return resource != "pods" or bool(obj["spec"].get("nodeName") and obj["spec"].get("volumes"))

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        if resource == "nodes":
            return () if event_type == DELETED else (Key("", obj["metadata"]["name"]),)
        if resource == "pods":
            node = obj["spec"].get("nodeName")
            return (Key("", node),) if node else ()
        if resource == ATTACHMENTS:
            return (Key("", obj["spec"]["nodeName"]),)
        pods = self.cache.list("pods", obj["metadata"]["namespace"])
        nodes = {pod["spec"].get("nodeName") for pod in pods if uses_claim(pod, obj["metadata"]["name"])}
        return [Key("", node) for node in nodes if node]

    def forget(self, obj: StoredObject) -> None:
        super().forget(obj)
        uid = obj["metadata"]["uid"]
        self._recorded = {known for known in self._recorded if known[0] != uid}

    def reconcile(self, key: Key) -> None:
        node = self.cache.get("nodes", "", key.name)
        if node is None or MANAGED not in (node["metadata"].get("annotations") or {}):
            return
        desired = {
            attachment_name(*_csi_source(volume), key.name): (pod, volume) for pod, volume in self._volumes_in_use(key.name)
        }
        actual = {one["metadata"]["name"]: one for one in self.cache.list(ATTACHMENTS) if one["spec"]["nodeName"] == key.name}
        for name, (_, volume) in desired.items():
            if name not in actual:
                self._attach_volume(name, key.name, volume)
        for name, attachment in actual.items():
            if name not in desired and "deletionTimestamp" not in attachment["metadata"]:
                self.client.delete(ATTACHMENTS, name)
        self._record_results(desired, actual)
        self._update_node_status(node, actual)

    def _volumes_in_use(self, node: str) -> Iterator[tuple[Object, Object]]:
        """Yields the pods on a node that have not terminated, with each of their attachable CSI volumes."""
        for pod in self.cache.list("pods"):
            if pod["spec"].get("nodeName") != node or is_pod_terminal(pod):
                continue
            for claim_name in claim_names(pod["spec"], pod["metadata"]["name"]):
                claim = self.cache.get("persistentvolumeclaims", pod["metadata"]["namespace"], claim_name)
                name = (claim or {"spec": {}})["spec"].get("volumeName")
                volume = self.cache.get("persistentvolumes", "", name) if name else None
                if volume is not None and "csi" in volume["spec"] and self._is_attachable(volume["spec"]["csi"]["driver"]):
                    yield pod, volume

    def _is_attachable(self, driver: str) -> bool:
        """Reports whether volumes of this driver have to be attached."""
        found = self.cache.get(DRIVERS, "", driver)
        return found is None or found["spec"].get("attachRequired") is not False

    def _attach_volume(self, name: str, node: str, volume: Object) -> None:
        source = {"persistentVolumeName": volume["metadata"]["name"]}
        attachment = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "VolumeAttachment",
            "metadata": {"name": name},
            "spec": {"attacher": volume["spec"]["csi"]["driver"], "nodeName": node, "source": source},
        }
        try:
            self.client.create(attachment)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise

    def _record_results(self, desired: dict[str, tuple[Object, Object]], actual: dict[str, Object]) -> None:
        """Records an event, once, when a pod's volume was attached or could not be attached."""
        for name, (pod, volume) in desired.items():
            status = (actual.get(name) or {}).get("status") or {}
            about = f'for volume "{volume["metadata"]["name"]}" '
            if status.get("attached"):
                self._record_once(pod, name, "Normal", "SuccessfulAttachVolume", f"AttachVolume.Attach succeeded {about}")
            elif status.get("attachError"):
                problem = f": {status['attachError'].get('message', '')}"
                text = f"AttachVolume.Attach failed {about}{problem}"
                self._record_once(pod, name + problem, "Warning", "FailedAttachVolume", text)

    def _record_once(self, pod: Object, what: str, event_type: str, reason: str, message: str) -> None:
        known = (pod["metadata"]["uid"], what)
        if known not in self._recorded:
            self._recorded.add(known)
            self.recorder.event(pod, event_type, reason, message)

    def _update_node_status(self, node: Object, actual: dict[str, Object]) -> None:
        """Writes status.volumesAttached of the node, if it has changed."""
        attached = []
        for attachment in actual.values():
            volume = self.cache.get("persistentvolumes", "", attachment["spec"]["source"].get("persistentVolumeName", ""))
            if (attachment.get("status") or {}).get("attached") and volume is not None and "csi" in volume["spec"]:
                handle, driver = _csi_source(volume)
                attached.append({"name": f"kubernetes.io/csi/{driver}^{handle}", "devicePath": ""})
        attached.sort(key=lambda one: one["name"])
        known = sorted((node.get("status") or {}).get("volumesAttached") or [], key=lambda one: str(one["name"]))
        if attached != known:
            patch = {"status": {"volumesAttached": attached or None}}
            self.client.patch("nodes", node["metadata"]["name"], patch, subresource="status")


def _csi_source(volume: Object) -> tuple[str, str]:
    """Returns the handle and the driver of a CSI volume."""
    return volume["spec"]["csi"]["volumeHandle"], volume["spec"]["csi"]["driver"]
