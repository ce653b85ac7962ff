"""Controller references: adopts and releases the dependents of a controller.

Invariant: an object has at most one controller. A controller adopts only objects of its own namespace that have no controller
and match its selector, and only while neither of the two is being deleted. It releases objects that its selector no longer
matches.

Specified by: pkg/controller/controller_ref_manager.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fakekube.apimachinery.selectors import LabelSelector, from_label_selector
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.client import ApiError, Client
from fakekube.controllers.informers import get_controller_of, new_controller_ref
from fakekube.controllers.reconciler import Key

if TYPE_CHECKING:
    from fakekube.controllers.informers import Cache


def selector_of(owner: StoredObject) -> LabelSelector:
    """Returns the label selector in the spec of a workload."""
    return from_label_selector(owner["spec"].get("selector"))


def keys_of_controllers(
    cache: Cache,
    obj: StoredObject,
    old: StoredObject | None,
    *,
    kind: str,
    resource: str,
    selects: Callable[[Object], LabelSelector] = selector_of,
) -> Iterator[Key]:
    """Returns the keys of the controllers that a change of a dependent object concerns.

    These are the present and the former controller of the object. If it has no controller, they are those whose selector
    matches it, because they may adopt it.

    Args:
        cache: contains the controllers.
        obj: the object, after a deletion its last state.
        old: the object before a modification, else None.
        kind: the kind of the controllers.
        resource: the resource of the controllers.
        selects: returns the selector of a controller.
    """
    metadata = obj["metadata"]
    owner, former = get_controller_of(obj), None if old is None else get_controller_of(old)
    for name in dict.fromkeys(one["name"] for one in (former, owner) if one is not None and one["kind"] == kind):
        yield Key(metadata["namespace"], name)
    labels = metadata.get("labels")
    if owner is not None or not labels or "deletionTimestamp" in metadata:
        return
    if old is not None and former is None and old["metadata"].get("labels") == labels:
        return
    for candidate in cache.list(resource, metadata["namespace"]):
        selector = selects(candidate)
        if not selector.empty and selector.matches(labels):
            yield Key(metadata["namespace"], candidate["metadata"]["name"])


@dataclass(slots=True)
class ControllerRefManager:
    """Finds the objects that a controller owns, and adopts and releases objects accordingly.

    Args:
        client: writes the owner references.
        owner: the controller, with kind and apiVersion.
        owner_resource: the resource of the controller ("replicasets.apps").
        resource: the resource of the objects ("pods").
        matches: whether the controller's selector matches an object.
        finalizers: added to adopted objects, and removed from released ones.
    """

    client: Client
    owner: Object
    owner_resource: str
    resource: str
    matches: Callable[[Object], bool]
    finalizers: Sequence[str] = ()
    _may_adopt: bool = False

    def claim_from(self, cache: Cache) -> list[Object]:
        """Claims objects of those that the controller owns and those without a controller. Raises ApiError, as `claim`."""
        metadata = self.owner["metadata"]
        owned = cache.dependents_of(self.resource, metadata["uid"])
        return self.claim([*owned, *cache.orphans(self.resource, metadata["namespace"])])

    def claim(self, objects: Iterable[Object]) -> list[Object]:
        """Adopts matching objects without a controller, releases owned objects that do not match, and returns the owned ones.

        Raises:
            ApiError: the first error of a patch. The other objects were claimed nevertheless.
        """
        claimed, failure = [], None
        for obj in list(objects):
            try:
                if self._claim_object(obj):
                    claimed.append(obj)
            except ApiError as error:
                failure = failure or error
        if failure is not None:
            raise failure
        return claimed

    def _claim_object(self, obj: Object) -> bool:
        reference = get_controller_of(obj)
        deleted = "deletionTimestamp" in self.owner["metadata"]
        if reference is not None:
            if reference["uid"] != self.owner["metadata"]["uid"]:
                return False
            if self.matches(obj):
                return True
            if not deleted:
                self._release_object(obj)
            return False
        if deleted or "deletionTimestamp" in obj["metadata"] or not self.matches(obj):
            return False
        return self._adopt_object(obj)

    def _adopt_object(self, obj: Object) -> bool:
        self._check_adoption()
        metadata = {"ownerReferences": [new_controller_ref(self.owner)], "uid": obj["metadata"]["uid"]}
        if self.finalizers:
            metadata["finalizers"] = list(self.finalizers)
        return self._patch_object(obj, {"metadata": metadata}, ignored=(404,))

    def _check_adoption(self) -> None:
        """Before the first adoption, checks with the API that the controller exists and is not being deleted. Raises ApiError."""
        if self._may_adopt:
            return
        metadata = self.owner["metadata"]
        fresh = self.client.get(self.owner_resource, metadata["name"], namespace=metadata["namespace"])["metadata"]
        if fresh["uid"] != metadata["uid"] or "deletionTimestamp" in fresh:
            text = f"{self.owner['kind']} {metadata['namespace']}/{metadata['name']} has just been deleted"
            raise ApiError({"code": 409, "reason": "Conflict", "message": text})
        self._may_adopt = True

    def _release_object(self, obj: Object) -> None:
        metadata: Object = {
            "uid": obj["metadata"]["uid"],
            "ownerReferences": [{"$patch": "delete", "uid": self.owner["metadata"]["uid"]}],
        }
        if self.finalizers:
            metadata["$deleteFromPrimitiveList/finalizers"] = list(self.finalizers)
        self._patch_object(obj, {"metadata": metadata}, ignored=(404, 422))

    def _patch_object(self, obj: Object, patch: Object, ignored: tuple[int, ...]) -> bool:
        """Patches the object. Returns False if the status code is an ignored one, which means that the object is gone."""
        metadata = obj["metadata"]
        try:
            self.client.strategic_patch(self.resource, metadata["name"], patch, namespace=metadata["namespace"])
        except ApiError as error:
            if error.code not in ignored:
                raise
            return False
        return True
