"""Binds the claims of a scheduled pod to volumes that the node can access, or starts their provisioning.

The PersistentVolume controller completes the bindings.

Specified by: pkg/scheduler/framework/plugins/volumebinding/binder.go (BindPodVolumes, bindAPIUpdate, checkBindings).
"""

from __future__ import annotations

from typing import Any

from fakekube.controllers.client import Client
from fakekube.controllers.objects import StoredObject
from fakekube.controllers.scheduler.algorithm import Filters
from fakekube.controllers.scheduler.cycle import Lister
from fakekube.controllers.scheduler.plugins.volume_binding import VolumeBinding
from fakekube.controllers.scheduler.volumes import BOUND_BY_CONTROLLER, SELECTED_NODE, claim_names, is_pvc_fully_bound

__all__ = ["VolumeBinder"]


class VolumeBinder:
    """Writes bindings for the scheduler."""

    def __init__(self, client: Client, lister: Lister) -> None:
        self._client, self._lister = client, lister

    def bind(self, filters: Filters, node: str) -> bool:
        """Starts to bind the claims of the cycle's pod. Returns whether all are bound already. Raises ApiError."""
        plugin = next((one for one in filters.plugins if isinstance(one, VolumeBinding)), None)
        found = plugin.volumes.get(node) if plugin is not None else None
        if found is None or not (found.static or found.provisions):
            return True
        for claim, volume in found.static:
            self._bind_volume(claim, volume)
        for claim in found.provisions:
            annotations = {SELECTED_NODE: node}
            metadata = claim["metadata"]
            self._client.patch(
                "persistentvolumeclaims",
                metadata["name"],
                {"metadata": {"annotations": annotations}},
                namespace=metadata["namespace"],
            )
        return False

    def _bind_volume(self, claim: StoredObject, volume: StoredObject) -> None:
        metadata = claim["metadata"]
        reference = {
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"],
        }
        patch: dict[str, Any] = {
            "metadata": {"resourceVersion": volume["metadata"]["resourceVersion"]},
            "spec": {"claimRef": reference},
        }
        if volume["spec"].get("claimRef") is None:
            patch["metadata"]["annotations"] = {BOUND_BY_CONTROLLER: "yes"}
        self._client.patch("persistentvolumes", volume["metadata"]["name"], patch)

    def is_bound(self, pod: StoredObject) -> bool:
        """Whether all claims of a pod are bound."""
        for name, _ in claim_names(pod):
            claim = self._lister.get("persistentvolumeclaims", pod["metadata"]["namespace"], name)
            if claim is None or not is_pvc_fully_bound(claim):
                return False
        return True
