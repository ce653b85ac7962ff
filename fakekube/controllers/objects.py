"""Objects as controllers handle them, and their references to controllers.

This module imports no other of the room, so that the cache of the informers can use it.

Specified by: k8s.io/apimachinery/pkg/apis/meta/v1/controller_ref.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fakekube.base.objects import Object


def get_controller_of(obj: Mapping[str, Any]) -> Object | None:
    """Returns the owner reference with `controller: true`, or None (metav1.GetControllerOf)."""
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            return reference  # type: ignore[no-any-return]
    return None


def is_controlled_by(obj: Mapping[str, Any], owner: Mapping[str, Any]) -> bool:
    """Reports whether the owner is the controller of the object (metav1.IsControlledBy)."""
    reference = get_controller_of(obj)
    return reference is not None and reference["uid"] == owner["metadata"]["uid"]


def new_controller_ref(owner: Object) -> Object:
    """Returns an owner reference that makes the owner the controller of an object (metav1.NewControllerRef)."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
