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

    def __init__(self) -> None:
        self._waiting: dict[Key, None] = {}
        """The claims that are not bound, in the order in which they came."""
        self._naming: dict[str, dict[Key, None]] = {}
        """The claims that name a volume, by its name."""

    def started(self) -> None:
        binding = Binding(self.client, self.recorder)
        self._claims = ClaimSync(self, binding)
        self._volumes = VolumeSync(self, binding)

    @staticmethod
    def concerns(resource: str, obj: Object, old: Object | None) -> bool:
        return resource != CLASSES or old is None or obj is old

    def keys(self, resource: str, event_type: str, obj: Object, old: Object | None) -> Iterable[Key]:
        if resource == CLAIMS:
            return self._of_claim(event_type, obj)
        if resource == CLASSES:
            return list(self._waiting) if event_type != DELETED else ()
        name = obj["metadata"]["name"]
        keys = [Key("", name)] if event_type != DELETED else []
        references = [one["spec"].get("claimRef") for one in (obj, old) if one is not None]
        keys += [Key(claim.get("namespace", ""), claim.get("name", "")) for claim in references if claim is not None]
        keys += self._naming.get(name, ())
        return keys + list(self._waiting) if _offers_more(event_type, obj, old) else keys

    def _of_claim(self, event_type: str, claim: Object) -> list[Key]:
        """The claim and the volume that it names; remembers what it waits for."""
        key = Key(claim["metadata"]["namespace"], claim["metadata"]["name"])
        volume = claim["spec"].get("volumeName")
        if volume:
            self._naming.setdefault(volume, {})[key] = None
        if event_type == DELETED:
            self._waiting.pop(key, None)
            self._naming.get(volume or "", {}).pop(key, None)
        elif has_annotation(claim, BIND_COMPLETED):
            self._waiting.pop(key, None)
        else:
            self._waiting[key] = None
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
