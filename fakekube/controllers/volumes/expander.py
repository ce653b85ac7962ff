"""The expand controller: records that an enlarged claim waits for an external controller.

Specified by: pkg/controller/volume/expand/expand_controller.go. None of the in-tree plugins of kube-controller-manager can expand
volumes.
"""

from __future__ import annotations

from collections.abc import Iterable

from fakekube.apis.validation.resource_lists import quantity
from fakekube.controllers.objects import Object
from fakekube.controllers.reconciler import Key, Reconciler
from fakekube.controllers.volumes.binding import PRE_RESIZE_CAPACITY, phase_of
from fakekube.controllers.volumes.matching import has_annotation, is_volume_bound_to_claim, requested_storage
from fakekube.controllers.volumes.plugins import CLAIMS, has_plugin

__all__ = ["ExpandController", "is_expansion_requested"]

_WAITS = "waiting for an external controller to expand this PVC"


class ExpandController(Reconciler):
    """Records events; keys are claims."""

    name = "persistentvolume-expander-controller"
    component = "volume_expand"
    watches = (CLAIMS,)

    @staticmethod
    def concerns(resource: str, obj: Object, old: Object | None) -> bool:
        expands = is_expansion_requested(obj)
        return obj is not old and expands and (old is None or requested_storage(obj) != requested_storage(old))

    def keys(self, resource: str, event_type: str, obj: Object, old: Object | None) -> Iterable[Key]:
        if event_type == "DELETED" or not is_expansion_requested(obj):
            return ()
        if old is not None and not requested_storage(obj) > requested_storage(old):
            return ()
        return (Key(obj["metadata"]["namespace"], obj["metadata"]["name"]),)

    def reconcile(self, key: Key) -> None:
        claim = self.cache.get(CLAIMS, key.namespace, key.name)
        if claim is None:
            return
        volume = self.cache.get("persistentvolumes", "", claim["spec"].get("volumeName", ""))
        if volume is None or not is_volume_bound_to_claim(volume, claim):
            return
        if is_expansion_requested(claim) or has_annotation(volume, PRE_RESIZE_CAPACITY):
            self.recorder.event(claim, "Normal" if has_plugin(volume) else "Warning", "ExternalExpanding", _WAITS)


def is_expansion_requested(claim: Object) -> bool:
    """Whether the claim is bound and requests more than its capacity."""
    capacity = ((claim.get("status") or {}).get("capacity") or {}).get("storage", "0")
    return phase_of(claim) == "Bound" and requested_storage(claim) > quantity(capacity)
