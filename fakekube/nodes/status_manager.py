"""Writes the status of nodes and pods, records events about pods, and counts the terminations of containers.

Specified by: pkg/kubelet/status/status_manager.go.
"""

from __future__ import annotations

from typing import Any, Final

from fakekube.apimachinery.patch import STRATEGIC_MERGE_PATCH
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.reconciler import Reconciler
from fakekube.nodes.node_state import state_of
from fakekube.nodes.pod_status import status_of

#: Field of the status → the type of its containers in metrics.
_TYPES: Final = {
    "containerStatuses": "container",
    "initContainerStatuses": "init_container",
    "ephemeralContainerStatuses": "ephemeral_container",
}
#: The first minor whose kubelets count terminations.
_COUNTED_SINCE: Final = 36

#: The field manager of the status of pods without a plan: kwok, which writes the same.
DEFAULT_MANAGER: Final = "kwok"


class StatusManager(Reconciler):
    """Writes the status of nodes and pods, and records events about pods."""

    def record(self, pod: Object, type_: str, reason: str, message: str, field: str = "") -> None:
        """Records an event about a pod, or about the container with this field of its spec."""
        metadata = pod["metadata"]
        about = {"kind": "Pod", "apiVersion": "v1", "fieldPath": field} | {
            name: metadata[name] for name in ("namespace", "name", "uid", "resourceVersion")
        }
        about = about if field else {name: value for name, value in about.items() if value}
        self.recorder.event(about, type_, reason, message, host=pod["spec"].get("nodeName", ""))

    def patch_status(self, resource: str, obj: Object, status: dict[str, Any], *, manager: str = DEFAULT_MANAGER) -> Object:
        """Patches the status of a node or pod. Returns the updated object. Raises ApiError.

        Args:
            resource: nodes or pods.
            obj: the object; its uid must still be the same.
            status: a strategic merge patch of the status.
            manager: the field manager.
        """
        metadata = obj["metadata"]
        path = self.client.path(self.client.resource(resource), metadata.get("namespace"), metadata["name"], "status")
        body = {"metadata": {"uid": metadata["uid"]}, "status": status}
        written = self.client.call("PATCH", path, body, {"fieldManager": manager}, content_type=STRATEGIC_MERGE_PATCH)
        if resource == "pods":
            self._count_terminations(obj, status)
        return written

    def _count_terminations(self, pod: Object, status: StoredObject) -> None:
        """Counts the containers that a new status shows terminated for the first time."""
        for field, type_ in _TYPES.items():
            for one in status.get(field) or ():
                ended = (one.get("state") or {}).get("terminated")
                if ended is None or self.context.emulation.minor < _COUNTED_SINCE:
                    continue
                known = status_of(pod, one["name"])
                if known is None or "terminated" not in (known.get("state") or {}):
                    numbers = state_of(self.context).terminations
                    kind = (pod["spec"].get("nodeName", ""), type_, ended.get("exitCode", 0), ended.get("reason", ""))
                    numbers[kind] = numbers.get(kind, 0) + 1
