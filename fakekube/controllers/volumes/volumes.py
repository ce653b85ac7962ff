"""The sync of volumes: sets the phase Available or Bound, or releases and reclaims a volume.

Specified by: pkg/controller/volume/persistentvolume/pv_controller.go (syncVolume, reclaimVolume).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakekube.controllers.client import ApiError
from fakekube.controllers.controller_utils import is_pod_terminal
from fakekube.controllers.volumes.binding import Binding, phase_of
from fakekube.controllers.volumes.matching import PROVISIONED_BY, get_volume_mode, has_annotation, uses_claim
from fakekube.controllers.volumes.plugins import CLAIMS, PluginError, is_deleted_in_tree, is_recyclable

if TYPE_CHECKING:
    from fakekube.controllers.objects import Object
    from fakekube.controllers.reconciler import Reconciler

__all__ = ["VolumeSync"]

IN_TREE_FINALIZER = "kubernetes.io/pv-controller"
MIGRATED_TO = "pv.kubernetes.io/migrated-to"


class VolumeSync:
    """Syncs volumes for the PersistentVolume controller."""

    def __init__(self, controller: Reconciler, binding: Binding) -> None:
        self._controller = controller
        self._binding = binding

    def sync(self, volume: Object) -> None:
        """Syncs one volume. Raises ApiError."""
        reference = volume["spec"].get("claimRef")
        if reference is None or not reference.get("uid"):  # unused, or reserved for a claim that does not exist yet
            self._binding.set_volume_phase(volume, "Available")
            return
        claim = self._controller.cache.get(CLAIMS, reference["namespace"], reference["name"])
        if claim is None or claim["metadata"]["uid"] != reference["uid"]:
            self._release(volume)
            return
        bound_to = claim["spec"].get("volumeName")
        if not bound_to:
            self._check_volume_mode(volume, claim)
        elif bound_to == volume["metadata"]["name"]:
            self._binding.set_volume_phase(volume, "Bound")
        elif has_annotation(volume, PROVISIONED_BY) and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
            self._release(volume)
        else:
            self._binding.unbind(volume)

    def _check_volume_mode(self, volume: Object, claim: Object) -> None:
        """Records an event if the claim, whose sync would bind it to the volume, has another volume mode."""
        if get_volume_mode(volume) == get_volume_mode(claim):
            return
        record, claim_name, name = self._controller.recorder.event, claim["metadata"]["name"], volume["metadata"]["name"]
        why = "due to incompatible volumeMode."
        record(
            volume,
            "Warning",
            "VolumeMismatch",
            f'Cannot bind PersistentVolume to requested PersistentVolumeClaim "{claim_name}" {why}',
        )
        record(
            claim, "Warning", "VolumeMismatch", f'Cannot bind PersistentVolume "{name}" to requested PersistentVolumeClaim {why}'
        )

    # ------------------------------------------------------------ release

    def _release(self, volume: Object) -> None:
        if phase_of(volume) not in ("Released", "Failed"):
            volume = self._binding.set_volume_phase(volume, "Released")
        if has_annotation(volume, MIGRATED_TO):
            return
        policy = volume["spec"].get("persistentVolumeReclaimPolicy")
        if policy == "Delete":
            self._delete(volume)
        elif policy == "Recycle":
            self._recycle(volume)
        elif policy != "Retain":
            message = "Volume has unrecognized PersistentVolumeReclaimPolicy"
            self._binding.set_volume_failed(volume, "VolumeUnknownReclaimPolicy", message)

    def _delete(self, volume: Object) -> None:
        try:
            if not is_deleted_in_tree(volume):
                return
        except PluginError as problem:
            self._binding.set_volume_failed(volume, "VolumeFailedDelete", str(problem))
            return
        metadata = volume["metadata"]
        finalizers = metadata.get("finalizers") or []
        if IN_TREE_FINALIZER in finalizers:
            kept = [name for name in finalizers if name != IN_TREE_FINALIZER]
            self._controller.client.update({**volume, "metadata": {**metadata, "finalizers": kept}})
        if "deletionTimestamp" not in metadata:
            self._controller.client.delete("persistentvolumes", metadata["name"])

    def _recycle(self, volume: Object) -> None:
        """Makes the volume available again. Scrubbing takes no time, because it has no storage."""
        reference = volume["spec"]["claimRef"]
        recreated = self._controller.cache.get(CLAIMS, reference["namespace"], reference["name"]) is not None
        users = [] if recreated else self._pods_using_claim(reference["namespace"], reference["name"])
        if users:
            message = f"Volume is used by pods: {','.join(users)}"
            self._controller.recorder.event(volume, "Normal", "VolumeFailedRecycle", message)
        elif not is_recyclable(volume):
            self._binding.set_volume_failed(volume, "VolumeFailedRecycle", "No recycler plugin found for the volume!")
        else:
            self._controller.recorder.event(volume, "Normal", "VolumeRecycled", "Volume recycled")
            try:
                self._binding.unbind(volume)
            except ApiError as error:
                if error.reason != "Conflict":
                    raise

    def _pods_using_claim(self, namespace: str, claim: str) -> list[str]:
        """Returns the pods that use a claim and have not terminated, as namespace/name."""
        return sorted(
            f"{namespace}/{pod['metadata']['name']}"
            for pod in self._controller.cache.list("pods", namespace)
            if not is_pod_terminal(pod) and uses_claim(pod, claim)
        )
