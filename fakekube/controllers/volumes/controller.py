"""Binds claims to volumes, releases volumes whose claims have gone, and asks for volumes that are not there.

Where the real controller looks at everything every fifteen seconds, this one looks at the claims that wait when a volume
or a class changes.

Specified by: pkg/controller/volume/persistentvolume/pv_controller{,_base}.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from fakekube.controllers.informers import ADDED, DELETED
from fakekube.controllers.reconciler import Key, Object, Reconciler
from fakekube.controllers.volumes.binding import Binding
from fakekube.controllers.volumes.claims import ClaimSync
from fakekube.controllers.volumes.matching import BIND_COMPLETED, has_annotation
from fakekube.controllers.volumes.volumes import VolumeSync

__all__ = ["PersistentVolumeController"]

CLAIMS, VOLUMES, CLASSES = "persistentvolumeclaims", "persistentvolumes", "storageclasses.storage.k8s.io"


class PersistentVolumeController(Reconciler):
    """Keys are claims, and (without a namespace) volumes."""

    name = "persistentvolume-binder-controller"
    client_name = "persistent-volume-binder"
    component = "persistentvolume-controller"
    watches = (CLAIMS, VOLUMES, CLASSES)

    def started(self) -> None:
        binding = Binding(self.client, self.recorder)
        self._claims = ClaimSync(self, binding)
        self._volumes = VolumeSync(self, binding)

    @staticmethod
    def concerns(resource: str, obj: Object, old: Object | None) -> bool:
        return resource != CLASSES or old is None or obj is old

    def keys(self, resource: str, event_type: str, obj: Object, old: Object | None) -> Iterable[Key]:
        name = obj["metadata"]["name"]
        if resource == CLAIMS:
            volume = obj["spec"].get("volumeName")
            keys = [Key(obj["metadata"]["namespace"], name)] if event_type != DELETED else []
            return [*keys, Key("", volume)] if volume else keys
        if resource == CLASSES:
            return self._waiting() if event_type != DELETED else ()
        claim = obj["spec"].get("claimRef")
        keys = [Key("", name)] if event_type != DELETED else []
        if claim is not None:
            keys.append(Key(claim.get("namespace", ""), claim.get("name", "")))
        if _offers_more(event_type, obj, old):
            keys += self._waiting()
        return keys

    def _waiting(self) -> list[Key]:
        """The claims that have no volume."""
        return [
            Key(claim["metadata"]["namespace"], claim["metadata"]["name"]) for claim in self.cache.list(CLAIMS)
            if not has_annotation(claim, BIND_COMPLETED)
        ]

    def reconcile(self, key: Key) -> None:
        if key.namespace:
            claim = self.cache.get(CLAIMS, key.namespace, key.name)
            if claim is not None:
                self._claims.sync(claim)
        else:
            volume = self.cache.get(VOLUMES, "", key.name)
            if volume is not None:
                self._volumes.sync(volume)


def _offers_more(event_type: str, volume: Object, old: Object | None) -> bool:
    """May a claim that waits have use for a volume that it had none for before?"""
    if event_type == DELETED:
        return False
    free = (volume.get("status") or {}).get("phase") == "Available"
    if event_type == ADDED or old is None:
        return free
    was_free = (old.get("status") or {}).get("phase") == "Available"
    relabelled = volume["metadata"].get("labels") != old["metadata"].get("labels")
    return free and (not was_free or relabelled or volume["spec"] != old["spec"])
