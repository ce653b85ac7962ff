"""ControllerRevisions: what StatefulSets and DaemonSets keep of former pod templates.

A revision's data is a strategic merge patch that puts the template back: `{"spec": {"template": {…, "$patch": "replace"}}}`.

Invariant: of one owner no two revisions have the same data; a template that returns takes its old revision up again, under
the highest number.

Specified by: pkg/controller/history/controller_history.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fakekube.client import ApiError, Client
from fakekube.codecs import json
from fakekube.controllers.hashing import hash_controller_revision
from fakekube.controllers.owners import STRATEGIC_MERGE_PATCH, controller_of, controller_reference
from fakekube.schema.trees import in_order
from fakekube.selectors import LabelSelector

__all__ = ["adopt", "create_revision", "list_revisions", "next_revision", "sort_revisions", "template_patch", "with_number"]

Object = dict[str, Any]

HASH_LABEL = "controller.kubernetes.io/hash"
RESOURCE = "controllerrevisions.apps"
_MAX_PREFIX = 223


def template_patch(template: Object) -> Object:
    """The data of the revision of a pod template."""
    return {"spec": {"template": {**template, "$patch": "replace"}}}


def list_revisions(cache: Any, owner: Object, selector: LabelSelector) -> list[Object]:
    """The revisions that the owner controls, and those without a controller that its selector matches, by number."""
    metadata = owner["metadata"]
    found = [*cache.owned_by(RESOURCE, metadata["uid"]), *cache.orphans(RESOURCE, metadata["namespace"])]
    return sort_revisions(one for one in found if selector.matches(one["metadata"].get("labels")))


def sort_revisions(revisions: Iterable[Object]) -> list[Object]:
    """By number, then the older first, then by name."""

    def rank(revision: Object) -> tuple[int, str, str]:
        metadata = revision["metadata"]
        return revision.get("revision", 0), metadata["creationTimestamp"], metadata["name"]

    return sorted(revisions, key=rank)


def next_revision(revisions: Sequence[Object]) -> int:
    """The number after the highest of the sorted revisions."""
    return revisions[-1].get("revision", 0) + 1 if revisions else 1


def create_revision(client: Client, owner: Object, data: Object, number: int, collisions: int) -> tuple[Object, int]:
    """Make the revision of a StatefulSet's template, under a name made of the hash of its data.

    Args:
        client: creates it.
        owner: the StatefulSet; its annotations and its template's labels are copied.
        data: see `template_patch`.
        number: of the revision.
        collisions: status.collisionCount.

    Returns:
        The revision, and the number of collisions: it grows with each name that another one's data has already.

    Raises:
        ApiError: the API refused.
    """
    raw = json.dumps(in_order(data))
    metadata = owner["metadata"]
    labels = (owner["spec"]["template"].get("metadata") or {}).get("labels") or {}
    wanted: Object = {
        "kind": "ControllerRevision",
        "apiVersion": "apps/v1",
        "metadata": {
            "namespace": metadata["namespace"],
            "annotations": dict(metadata.get("annotations") or {}),
            "labels": {**labels, HASH_LABEL: hash_controller_revision(raw, collisions)},
            "ownerReferences": [controller_reference(owner)],
        },
        "data": data,
        "revision": number,
    }
    while True:
        hash_ = hash_controller_revision(raw, collisions)
        wanted["metadata"]["name"] = f"{metadata['name'][:_MAX_PREFIX]}-{hash_}"
        try:
            return client.create(wanted), collisions
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
        present = client.get(RESOURCE, wanted["metadata"]["name"], namespace=metadata["namespace"])
        if present.get("data") == data:
            return present, collisions
        collisions += 1


def with_number(client: Client, revision: Object, number: int) -> Object:
    """The revision with another number, written if it is a new one."""
    return revision if revision.get("revision") == number else client.update({**revision, "revision": number})


def adopt(client: Client, owner: Object, revisions: Iterable[Object]) -> None:
    """Take control of the revisions that nobody controls. Raises ApiError."""
    for revision in revisions:
        if controller_of(revision) is not None:
            continue
        metadata = revision["metadata"]
        path = client.path(client.resource(RESOURCE), metadata["namespace"], metadata["name"])
        patch = {"metadata": {"uid": metadata["uid"], "ownerReferences": [controller_reference(owner)]}}
        client.call("PATCH", path, patch, content_type=STRATEGIC_MERGE_PATCH)
