"""The PersistentVolume controller: binds claims to volumes, releases volumes of deleted claims, and requests provisioning.

The real controller syncs all objects every fifteen seconds. This one syncs unbound claims when a volume or a class changes.

Specified by: pkg/controller/volume/persistentvolume/pv_controller{,_base}.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from fakekube.controllers.informers import ADDED, DELETED
from fakekube.controllers.objects import Object
from fakekube.controllers.reconciler import Key, Reconciler
from fakekube.controllers.volumes.binding import Binding
from fakekube.controllers.volumes.claims import ClaimSync
from fakekube.controllers.volumes.matching import BIND_COMPLETED, has_annotation
from fakekube.controllers.volumes.plugins import CLAIMS, CLASSES, VOLUMES
from fakekube.controllers.volumes.volumes import VolumeSync

__all__ = ["PersistentVolumeController"]


class PersistentVolumeController(Reconciler):
    """Syncs claims and volumes. Keys are claims, and (without a namespace) volumes."""

    name = "persistentvolume-binder-controller"
    client_name = "persistent-volume-binder"
    component = "persistentvolume-controller"
    watches = (CLAIMS, VOLUMES, CLASSES)

    def __init__(self) -> None:
        self._unbound: dict[Key, None] = {}
        """The claims that are not bound, in the order of their creation."""
        self._by_volume: dict[str, dict[Key, None]] = {}
        """Volume → the claims with its name in volumeName."""

    def started(self) -> None:
        binding = Binding(self.client, self.recorder)
        self._claims = ClaimSync(self, binding)
        self._volumes = VolumeSync(self, binding)

    @staticmethod
    def concerns(resource: str, obj: Object, old: Object | None) -> bool:
        return resource != CLASSES or old is None or obj is old

    def keys(self, resource: str, event_type: str, obj: Object, old: Object | None) -> Iterable[Key]:
        if resource == CLAIMS:
            return self._keys_of_claim(event_type, obj)
        if resource == CLASSES:
            return list(self._unbound) if event_type != DELETED else ()
        name = obj["metadata"]["name"]
        keys = [Key("", name)] if event_type != DELETED else []
        references = [one["spec"].get("claimRef") for one in (obj, old) if one is not None]
        keys += [Key(claim.get("namespace", ""), claim.get("name", "")) for claim in references if claim is not None]
        keys += self._by_volume.get(name, ())
        return keys + list(self._unbound) if _became_bindable(event_type, obj, old) else keys

    def _keys_of_claim(self, event_type: str, claim: Object) -> list[Key]:
        """Updates the indexes, and returns the keys of the claim and of its volume."""
        key = Key(claim["metadata"]["namespace"], claim["metadata"]["name"])
        volume = claim["spec"].get("volumeName")
        if volume:
            self._by_volume.setdefault(volume, {})[key] = None
        if event_type == DELETED:
            self._unbound.pop(key, None)
            self._by_volume.get(volume or "", {}).pop(key, None)
        elif has_annotation(claim, BIND_COMPLETED):
            self._unbound.pop(key, None)
        else:
            self._unbound[key] = None
        keys = [key] if event_type != DELETED else []
        return [*keys, Key("", volume)] if volume else keys

    def reconcile(self, key: Key) -> None:
        if key.namespace:
            claim = self.cache.get(CLAIMS, key.namespace, key.name)
            if claim is not None:
                self._claims.sync(claim)
        else:
            volume = self.cache.get(VOLUMES, "", key.name)
            if volume is not None:
                self._volumes.sync(volume)


def _became_bindable(event_type: str, volume: Object, old: Object | None) -> bool:
    """Whether an unbound claim may be bound to the volume because of this change."""
    if event_type == DELETED:
        return False
    free = (volume.get("status") or {}).get("phase") == "Available"
    if event_type == ADDED or old is None:
        return free
    was_free = (old.get("status") or {}).get("phase") == "Available"
    relabelled = volume["metadata"].get("labels") != old["metadata"].get("labels")
    return free and (not was_free or relabelled or volume["spec"] != old["spec"])
