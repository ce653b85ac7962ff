"""Says that a claim which asks for more than it has waits for whoever can make its volume larger.

Specified by: pkg/controller/volume/expand/expand_controller.go, of which no more is left: none of the plugins that are in
kube-controller-manager expands.
"""

from __future__ import annotations

from collections.abc import Iterable

from fakekube.controllers.reconciler import Key, Object, Reconciler
from fakekube.controllers.volumes.binding import PRE_RESIZE_CAPACITY, phase_of
from fakekube.controllers.volumes.matching import has_annotation, is_bound_to, requested
from fakekube.controllers.volumes.plugins import has_plugin
from fakekube.validation.resource_lists import quantity

__all__ = ["ExpandController", "asks_for_more"]

CLAIMS = "persistentvolumeclaims"
_WAITS = "waiting for an external controller to expand this PVC"


class ExpandController(Reconciler):
    """Keys are claims."""

    name = "persistentvolume-expander-controller"
    component = "volume_expand"
    watches = (CLAIMS,)

    @staticmethod
    def concerns(resource: str, obj: Object, old: Object | None) -> bool:
        return obj is not old and asks_for_more(obj) and (old is None or requested(obj) != requested(old))

    def keys(self, resource: str, event_type: str, obj: Object, old: Object | None) -> Iterable[Key]:
        if event_type == "DELETED" or not asks_for_more(obj) or (old is not None and not requested(obj) > requested(old)):
            return ()
        return (Key(obj["metadata"]["namespace"], obj["metadata"]["name"]),)

    def reconcile(self, key: Key) -> None:
        claim = self.cache.get(CLAIMS, key.namespace, key.name)
        if claim is None:
            return
        volume = self.cache.get("persistentvolumes", "", claim["spec"].get("volumeName", ""))
        if volume is None or not is_bound_to(volume, claim):
            return
        if asks_for_more(claim) or has_annotation(volume, PRE_RESIZE_CAPACITY):
            self.recorder.event(claim, "Normal" if has_plugin(volume) else "Warning", "ExternalExpanding", _WAITS)


def asks_for_more(claim: Object) -> bool:
    """Is the claim bound, and larger than what it has?"""
    capacity = ((claim.get("status") or {}).get("capacity") or {}).get("storage", "0")
    return phase_of(claim) == "Bound" and requested(claim) > quantity(capacity)
