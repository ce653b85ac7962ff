"""Asks for CSI volumes to be attached to the nodes of the pods that use them, and tells the nodes what is attached.

This concerns nodes that leave it to the control plane (a kubelet says so by an annotation), and drivers whose CSIDriver
does not say that they need no attaching. Attaching itself is the business of the driver's attacher, which nobody plays here:
it answers by the status of the VolumeAttachment.

Specified by: pkg/controller/volume/attachdetach, pkg/volume/csi/csi_attacher.go.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from fakekube.apis.core.pods.references import claim_names
from fakekube.client import ApiError
from fakekube.controllers.controller_utils import is_pod_terminal
from fakekube.controllers.informers import DELETED
from fakekube.controllers.reconciler import Key, Object, Reconciler
from fakekube.controllers.volumes.matching import uses_claim

__all__ = ["AttachDetachController", "attachment_name"]

ATTACHMENTS, DRIVERS = "volumeattachments.storage.k8s.io", "csidrivers.storage.k8s.io"
MANAGED = "volumes.kubernetes.io/controller-managed-attach-detach"


def attachment_name(handle: str, driver: str, node: str) -> str:
    """The name of the VolumeAttachment of a volume to a node."""
    return f"csi-{hashlib.sha256((handle + driver + node).encode()).hexdigest()}"


class AttachDetachController(Reconciler):
    """Keys are nodes."""

    name = "persistentvolume-attach-detach-controller"
    client_name = "attachdetach-controller"
    component = "attachdetach-controller"
    watches = ("pods", "persistentvolumeclaims", ATTACHMENTS, "nodes")

    def __init__(self) -> None:
        self._told: set[tuple[str, str]] = set()
        """Pods (uids) and attachments of which an event has told."""

    @staticmethod
    def concerns(resource: str, obj: Object, old: Object | None) -> bool:
        if resource == "nodes":
            return old is None
        return resource != "pods" or bool(obj["spec"].get("nodeName") and obj["spec"].get("volumes"))

    def keys(self, resource: str, event_type: str, obj: Object, old: Object | None) -> Iterable[Key]:
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

    def reconcile(self, key: Key) -> None:
        node = self.cache.get("nodes", "", key.name)
        if node is None or MANAGED not in (node["metadata"].get("annotations") or {}):
            return
        wanted = {attachment_name(*_source(volume), key.name): (pod, volume) for pod, volume in self._used(key.name)}
        present = {one["metadata"]["name"]: one for one in self.cache.list(ATTACHMENTS) if one["spec"]["nodeName"] == key.name}
        for name, (_, volume) in wanted.items():
            if name not in present:
                self._attach(name, key.name, volume)
        for name, attachment in present.items():
            if name not in wanted and "deletionTimestamp" not in attachment["metadata"]:
                self.client.delete(ATTACHMENTS, name)
        self._report(wanted, present)
        self._tell_node(node, present)

    def _used(self, node: str) -> Iterator[tuple[Object, Object]]:
        """The pods of a node that have not ended, each with the CSI volumes that they use."""
        for pod in self.cache.list("pods"):
            if pod["spec"].get("nodeName") != node or is_pod_terminal(pod):
                continue
            for claim_name in claim_names(pod["spec"], pod["metadata"]["name"]):
                claim = self.cache.get("persistentvolumeclaims", pod["metadata"]["namespace"], claim_name)
                name = (claim or {"spec": {}})["spec"].get("volumeName")
                volume = self.cache.get("persistentvolumes", "", name) if name else None
                if volume is not None and "csi" in volume["spec"] and self._is_attached(volume["spec"]["csi"]["driver"]):
                    yield pod, volume

    def _is_attached(self, driver: str) -> bool:
        """Do volumes of this driver have to be attached?"""
        found = self.cache.get(DRIVERS, "", driver)
        return found is None or found["spec"].get("attachRequired") is not False

    def _attach(self, name: str, node: str, volume: Object) -> None:
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

    def _report(self, wanted: dict[str, tuple[Object, Object]], present: dict[str, Object]) -> None:
        """Say so, once, when a pod's volume is attached, or why it is not."""
        for name, (pod, volume) in wanted.items():
            status = (present.get(name) or {}).get("status") or {}
            about = f'for volume "{volume["metadata"]["name"]}" '
            if status.get("attached"):
                self._tell(pod, name, "Normal", "SuccessfulAttachVolume", f"AttachVolume.Attach succeeded {about}")
            elif status.get("attachError"):
                problem = f": {status['attachError'].get('message', '')}"
                self._tell(pod, name + problem, "Warning", "FailedAttachVolume", f"AttachVolume.Attach failed {about}{problem}")

    def _tell(self, pod: Object, what: str, event_type: str, reason: str, message: str) -> None:
        known = (pod["metadata"]["uid"], what)
        if known not in self._told:
            self._told.add(known)
            self.recorder.event(pod, event_type, reason, message)

    def _tell_node(self, node: Object, present: dict[str, Object]) -> None:
        """Bring the node's list of attached volumes up to date."""
        attached = []
        for attachment in present.values():
            volume = self.cache.get("persistentvolumes", "", attachment["spec"]["source"].get("persistentVolumeName", ""))
            if (attachment.get("status") or {}).get("attached") and volume is not None and "csi" in volume["spec"]:
                handle, driver = _source(volume)
                attached.append({"name": f"kubernetes.io/csi/{driver}^{handle}", "devicePath": ""})
        attached.sort(key=lambda one: one["name"])
        known = sorted((node.get("status") or {}).get("volumesAttached") or [], key=lambda one: str(one["name"]))
        if attached != known:
            patch = {"status": {"volumesAttached": attached or None}}
            self.client.patch("nodes", node["metadata"]["name"], patch, subresource="status")


def _source(volume: Object) -> tuple[str, str]:
    """The handle and the driver of a CSI volume."""
    return volume["spec"]["csi"]["volumeHandle"], volume["spec"]["csi"]["driver"]
