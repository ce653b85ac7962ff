"""The writes that bind volumes and claims to each other, and unbind them.

A binding consists of four writes, each only if it changes something: the volume's claimRef, its phase, the claim's volumeName,
its status. After an error, the next sync of either object continues.

Specified by: pkg/controller/volume/persistentvolume/pv_controller.go (bind, unbindVolume, updateVolumePhase, updateClaimStatus).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fakekube.apis.validation.resource_lists import quantity
from fakekube.controllers.objects import Object
from fakekube.controllers.recorder import get_reference
from fakekube.controllers.volumes.matching import BIND_COMPLETED, BOUND_BY_CONTROLLER, has_annotation, is_volume_bound_to_claim

if TYPE_CHECKING:
    from fakekube.controllers.client import Client
    from fakekube.controllers.recorder import Recorder

__all__ = ["Binding", "phase_of", "with_annotations"]


PRE_RESIZE_CAPACITY = "volume.alpha.kubernetes.io/pre-resize-capacity"


def phase_of(obj: Object) -> str:
    """Returns the phase of a claim or a volume; "" if it has none."""
    phase: str = (obj.get("status") or {}).get("phase", "")
    return phase


def with_annotations(obj: Object, more: Mapping[str, str]) -> Object:
    """Returns the object with additional annotations."""
    metadata = obj["metadata"]
    return {**obj, "metadata": {**metadata, "annotations": {**(metadata.get("annotations") or {}), **more}}}


class Binding:
    """Writes bindings for one controller.

    Args:
        client: The client of the controller.
        recorder: The recorder of the controller.
    """

    def __init__(self, client: Client, recorder: Recorder) -> None:
        self._client = client
        self._recorder = recorder

    def bind(self, volume: Object, claim: Object) -> None:
        """Binds a volume and a claim to each other. Raises ApiError."""
        volume = self.set_volume_phase(self._bind_volume(volume, claim), "Bound")
        claim = self._bind_claim(claim, volume)
        self.set_claim_status(claim, "Bound", volume)

    def unbind(self, volume: Object) -> None:
        """Unbinds a volume. If a user has set its claimRef, it remains reserved for the claim. Raises ApiError."""
        if has_annotation(volume, BOUND_BY_CONTROLLER):
            metadata = volume["metadata"]
            annotations = {name: value for name, value in metadata["annotations"].items() if name != BOUND_BY_CONTROLLER}
            spec = {name: value for name, value in volume["spec"].items() if name != "claimRef"}
            volume = {**volume, "metadata": {**metadata, "annotations": annotations}, "spec": spec}
        else:
            claim = {name: value for name, value in volume["spec"]["claimRef"].items() if name != "uid"}
            volume = {**volume, "spec": {**volume["spec"], "claimRef": claim}}
        self.set_volume_phase(self._client.update(volume), "Available")

    def set_volume_phase(self, volume: Object, phase: str, message: str = "") -> Object:
        """Writes the phase, if it has changed. Returns the updated volume. Raises ApiError."""
        if phase_of(volume) == phase:
            return volume
        status = {name: value for name, value in (volume.get("status") or {}).items() if name != "message"}
        status |= {"phase": phase, **({"message": message} if message else {})}
        return self._client.update({**volume, "status": status}, subresource="status")

    def set_volume_failed(self, volume: Object, reason: str, message: str) -> Object:
        """Sets the phase Failed; the first time with an event. Returns the updated volume. Raises ApiError."""
        if phase_of(volume) == "Failed":
            return volume
        failed = self.set_volume_phase(volume, "Failed", message)
        self._recorder.event(failed, "Warning", reason, message)
        return failed

    def set_claim_status(self, claim: Object, phase: str, volume: Object | None = None) -> Object:
        """Writes the phase, and the fields that depend on the volume. Returns the updated claim. Raises ApiError."""
        old = claim.get("status") or {}
        status = {**old, "phase": phase}
        if volume is None:
            for name in ("accessModes", "capacity", "currentVolumeAttributesClassName"):
                status.pop(name, None)
        else:
            status["accessModes"] = volume["spec"].get("accessModes")
            if old.get("phase") != phase:
                status["capacity"] = _capacity(old.get("capacity") or {}, volume)
            attributes = volume["spec"].get("volumeAttributesClassName")
            if old.get("phase") == "Pending" and phase == "Bound" and attributes:
                status["currentVolumeAttributesClassName"] = attributes
        return claim if status == old else self._client.update({**claim, "status": status}, subresource="status")

    def set_claim_lost(self, claim: Object, reason: str, message: str) -> None:
        """Sets the phase Lost; the first time with an event. Raises ApiError."""
        if phase_of(claim) != "Lost":
            self._recorder.event(self.set_claim_status(claim, "Lost"), "Warning", reason, message)

    def _bind_volume(self, volume: Object, claim: Object) -> Object:
        fields, known = ("namespace", "name", "uid"), volume["spec"].get("claimRef") or {}
        changed = volume
        if [known.get(field) for field in fields] != [claim["metadata"][field] for field in fields]:
            changed = {**changed, "spec": {**changed["spec"], "claimRef": get_reference(claim)}}
        if not is_volume_bound_to_claim(volume, claim) and not has_annotation(volume, BOUND_BY_CONTROLLER):
            changed = with_annotations(changed, {BOUND_BY_CONTROLLER: "yes"})
        return volume if changed is volume else self._client.update(changed)

    def _bind_claim(self, claim: Object, volume: Object) -> Object:
        name, changed = volume["metadata"]["name"], claim
        if claim["spec"].get("volumeName") != name:
            changed = {**changed, "spec": {**changed["spec"], "volumeName": name}}
            if not has_annotation(claim, BOUND_BY_CONTROLLER):
                changed = with_annotations(changed, {BOUND_BY_CONTROLLER: "yes"})
        if not has_annotation(claim, BIND_COMPLETED):
            changed = with_annotations(changed, {BIND_COMPLETED: "yes"})
        return claim if changed is claim else self._client.update(changed)


def _capacity(known: Object, volume: Object) -> Object:
    """Returns the capacity in the status of a claim that becomes bound."""
    before = (volume["metadata"].get("annotations") or {}).get(PRE_RESIZE_CAPACITY)
    capacity: Object = volume["spec"].get("capacity") or {}
    if before is not None:
        return {**known, "storage": before}
    same = "storage" in known and quantity(known["storage"]) == quantity(capacity.get("storage", "0"))
    return known if same else capacity
