"""Changes that other clients make to the objects of a copy and to its children, while the client runs."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from fakekube.checker.reaction import Copy, children_of
from fakekube.checker.sample import new_token
from fakekube.controllers.client import ApiError

if TYPE_CHECKING:
    from fakekube.base.objects import Object
    from fakekube.checker.trial import Trial

#: The annotation that the simulated other editor writes.
EDITOR = "check.fakekube.dev/editor"
#: A label that another client has set.
OTHERS_LABEL = "check.fakekube.dev/other"
#: The annotation that another client changes so that the object is delivered again.
TOUCHED = "check.fakekube.dev/touched"


def own_objects(trial: Trial, copy: Copy) -> list[tuple[str, Object]]:
    """Returns the present state of the objects of a copy, with their resources; deleted objects are left out."""
    found = []
    for resource, obj in zip(copy.resources, copy.objects, strict=True):
        metadata = obj["metadata"]
        try:
            found.append((resource, trial.cluster.get(resource, metadata["name"], namespace=metadata.get("namespace"))))
        except ApiError as error:
            if error.code != 404:
                raise
    return found


def own_object(trial: Trial, copy: Copy, number: int) -> Object | None:
    """Returns the present state of one object of a copy; None if it is deleted, or another one has its name."""
    metadata = copy.objects[number]["metadata"]
    found = [one for _, one in own_objects(trial, copy) if one["metadata"]["uid"] == metadata["uid"]]
    return found[0] if found else None


def set_editor(obj: Object, value: str) -> Object:
    """Sets the annotation of another editor in an object, and returns the object."""
    annotations = obj.setdefault("metadata", {}).setdefault("annotations", {})
    annotations[EDITOR] = value
    return obj


def touch_objects(trial: Trial, copy: Copy) -> list[tuple[str, Object]]:
    """Sets an annotation of another client in the objects of a copy; returns the new states with their resources."""
    found = []
    change = {"metadata": {"annotations": {TOUCHED: new_token(trial.random)}}}
    for resource, obj in own_objects(trial, copy):
        metadata = obj["metadata"]
        with suppress(ApiError):
            found.append((resource, trial.cluster.patch(resource, metadata["name"], change, namespace=metadata.get("namespace"))))
    return found


def drop_finalizers(trial: Trial, resource: str, obj: Object) -> None:
    """Removes all finalizers of an object; does nothing if the object does not exist."""
    metadata = obj["metadata"]
    try:
        trial.cluster.patch(resource, metadata["name"], {"metadata": {"finalizers": None}}, namespace=metadata.get("namespace"))
    except ApiError as error:
        if error.code != 404:
            raise


def remove(trial: Trial, resource: str, obj: Object) -> None:
    """Deletes an object immediately, together with its finalizers. Raises ApiError."""
    metadata = obj["metadata"]
    drop_finalizers(trial, resource, obj)
    trial.cluster.delete(resource, metadata["name"], namespace=metadata.get("namespace"), gracePeriodSeconds=0)


def delete_children(trial: Trial, copy: Copy, resource: str) -> int:
    """Deletes the children of a resource that the client has created for a copy, at once, and returns their number.

    With a grace period, pods would still exist while they terminate, and count as children.
    """
    children = children_of(trial.cluster, copy, resource)
    for child in children:
        metadata = child["metadata"]
        trial.cluster.delete(resource, metadata["name"], namespace=metadata.get("namespace"), gracePeriodSeconds=0)
    return len(children)
