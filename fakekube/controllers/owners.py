"""Controller references: who controls an object, and how a controller adopts and releases objects.

Invariant: an object has at most one controller. A controller adopts only objects without one, in its own namespace, that
its selector matches, and only while neither of the two is being deleted; it releases what its selector no longer matches.

Specified by: pkg/controller/controller_ref_manager.go, k8s.io/apimachinery/pkg/apis/meta/v1/controller_ref.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fakekube.client import ApiError, Client
from fakekube.controllers.reconciler import Key
from fakekube.selectors import LabelSelector, from_label_selector

if TYPE_CHECKING:
    from fakekube.controllers.informers import Cache

__all__ = [
    "STRATEGIC_MERGE_PATCH",
    "ControllerRefManager",
    "controller_of",
    "controller_reference",
    "is_controlled_by",
    "keys_of_controllers",
    "selector_of",
]

Object = dict[str, Any]

STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"


def controller_of(obj: Object) -> Object | None:
    """The owner reference that says `controller: true`, if there is one."""
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            return reference  # type: ignore[no-any-return]
    return None


def is_controlled_by(obj: Object, owner: Object) -> bool:
    """Is this the controller of the object?"""
    reference = controller_of(obj)
    return reference is not None and reference["uid"] == owner["metadata"]["uid"]


def controller_reference(owner: Object) -> Object:
    """The owner reference that makes an object the controller of another one."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def selector_of(owner: Object) -> LabelSelector:
    """The selector of a workload."""
    return from_label_selector(owner["spec"].get("selector"))


def keys_of_controllers(
    cache: Cache,
    obj: Object,
    old: Object | None,
    *,
    kind: str,
    resource: str,
    selects: Callable[[Object], LabelSelector] = selector_of,
) -> Iterator[Key]:
    """Whom a change of a dependent object wakes: its controllers, now and before; if it has none, those that may adopt it.

    Args:
        cache: knows the controllers.
        obj: the object, after a deletion its last state.
        old: the object before a modification.
        kind: of the controllers.
        resource: of the controllers.
        selects: the selector of a controller.
    """
    metadata = obj["metadata"]
    owner, former = controller_of(obj), None if old is None else controller_of(old)
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
    """Decides which objects a controller owns, and adopts and releases objects so that it is true.

    Args:
        client: writes the owner references.
        owner: the controller, with kind and apiVersion.
        owner_resource: the resource of the controller ("replicasets.apps").
        resource: the resource of the objects ("pods").
        matches: does the controller's selector match an object?
        finalizers: given to adopted objects, and taken from released ones.
    """

    client: Client
    owner: Object
    owner_resource: str
    resource: str
    matches: Callable[[Object], bool]
    finalizers: Sequence[str] = ()
    _may_adopt: bool = False

    def claim_from(self, cache: Cache) -> list[Object]:
        """The objects that the controller owns now, of those that it owned before and those of nobody. Raises ApiError."""
        metadata = self.owner["metadata"]
        owned = cache.owned_by(self.resource, metadata["uid"])
        return self.claim([*owned, *cache.orphans(self.resource, metadata["namespace"])])

    def claim(self, objects: Iterable[Object]) -> list[Object]:
        """Those of the objects that the controller owns now.

        Raises:
            ApiError: the first one that a patch was answered with; the other objects were claimed nevertheless.
        """
        claimed, failure = [], None
        for obj in list(objects):
            try:
                if self._claims(obj):
                    claimed.append(obj)
            except ApiError as error:
                failure = failure or error
        if failure is not None:
            raise failure
        return claimed

    def _claims(self, obj: Object) -> bool:
        reference = controller_of(obj)
        deleted = "deletionTimestamp" in self.owner["metadata"]
        if reference is not None:
            if reference["uid"] != self.owner["metadata"]["uid"]:
                return False
            if self.matches(obj):
                return True
            if not deleted:
                self._release(obj)
            return False
        if deleted or "deletionTimestamp" in obj["metadata"] or not self.matches(obj):
            return False
        return self._adopt(obj)

    def _adopt(self, obj: Object) -> bool:
        self._check_adoption()
        metadata = {"ownerReferences": [controller_reference(self.owner)], "uid": obj["metadata"]["uid"]}
        if self.finalizers:
            metadata["finalizers"] = list(self.finalizers)
        return self._patch(obj, {"metadata": metadata}, ignored=(404,))

    def _check_adoption(self) -> None:
        """The first adoption asks the API whether the controller is still there. Raises ApiError."""
        if self._may_adopt:
            return
        metadata = self.owner["metadata"]
        fresh = self.client.get(self.owner_resource, metadata["name"], namespace=metadata["namespace"])["metadata"]
        if fresh["uid"] != metadata["uid"] or "deletionTimestamp" in fresh:
            text = f"{self.owner['kind']} {metadata['namespace']}/{metadata['name']} has just been deleted"
            raise ApiError({"code": 409, "reason": "Conflict", "message": text})
        self._may_adopt = True

    def _release(self, obj: Object) -> None:
        metadata: Object = {
            "uid": obj["metadata"]["uid"],
            "ownerReferences": [{"$patch": "delete", "uid": self.owner["metadata"]["uid"]}],
        }
        if self.finalizers:
            metadata["$deleteFromPrimitiveList/finalizers"] = list(self.finalizers)
        self._patch(obj, {"metadata": metadata}, ignored=(404, 422))

    def _patch(self, obj: Object, patch: Object, ignored: tuple[int, ...]) -> bool:
        """Patch the object; False if the answer was one of those that mean that it is gone."""
        metadata = obj["metadata"]
        path = self.client.path(self.client.resource(self.resource), metadata["namespace"], metadata["name"])
        try:
            self.client.call("PATCH", path, patch, content_type=STRATEGIC_MERGE_PATCH)
        except ApiError as error:
            if error.code not in ignored:
                raise
            return False
        return True
