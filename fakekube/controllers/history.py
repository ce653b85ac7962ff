"""ControllerRevisions: the present and the former pod templates of StatefulSets and DaemonSets.

The data of a revision is a strategic merge patch that restores the template:
`{"spec": {"template": {…, "$patch": "replace"}}}`. Its name contains the hash of the data (`hash`).

Invariant: no two revisions of one owner have the same data. If a former template is used again, its revision gets the highest
number.

Specified by: pkg/controller/history/controller_history.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from fakekube.apimachinery.codecs import json
from fakekube.apimachinery.schema.trees import in_order
from fakekube.apimachinery.selectors import LabelSelector
from fakekube.base.objects import Object
from fakekube.controllers.client import ApiError, Client
from fakekube.controllers.hash import hash_controller_revision
from fakekube.controllers.informers import get_controller_of, new_controller_ref

if TYPE_CHECKING:
    from fakekube.controllers.informers import Cache

HASH_LABEL: Final = "controller.kubernetes.io/hash"
RESOURCE: Final = "controllerrevisions.apps"
#: The maximum length of the owner's name in that of a revision (ControllerRevisionName).
_MAX_PREFIX: Final = 223


def template_patch(template: Object) -> Object:
    """Returns the data of the revision of a pod template."""
    return {"spec": {"template": {**template, "$patch": "replace"}}}


def list_controller_revisions(cache: Cache, owner: Object, selector: LabelSelector) -> list[Object]:
    """Returns the revisions that the owner controls or may adopt and that its selector matches, sorted by number."""
    metadata = owner["metadata"]
    found = [*cache.dependents_of(RESOURCE, metadata["uid"]), *cache.orphans(RESOURCE, metadata["namespace"])]
    return sort_controller_revisions(one for one in found if selector.matches(one["metadata"].get("labels")))


def sort_controller_revisions(revisions: Iterable[Object]) -> list[Object]:
    """Sorts by number, then by age (the oldest first), then by name."""

    def rank(revision: Object) -> tuple[int, str, str]:
        metadata = revision["metadata"]
        return revision.get("revision", 0), metadata["creationTimestamp"], metadata["name"]

    return sorted(revisions, key=rank)


def next_revision(revisions: Sequence[Object]) -> int:
    """Returns the number after the highest one of sorted revisions."""
    return revisions[-1].get("revision", 0) + 1 if revisions else 1


def create_controller_revision(client: Client, owner: Object, data: Object, number: int, collisions: int) -> tuple[Object, int]:
    """Creates the revision of a StatefulSet's template, with the hash of its data in the name.

    Args:
        client: creates the revision.
        owner: the StatefulSet. Its annotations and the labels of its template are copied.
        data: see `template_patch`.
        number: the number of the revision.
        collisions: status.collisionCount.

    Returns:
        the revision, and the number of collisions, which grows by one for each name that a revision with other data has.

    Raises:
        ApiError: the API server rejected a request.
    """
    raw = json.dumps(in_order(data))
    metadata = owner["metadata"]
    labels = (owner["spec"]["template"].get("metadata") or {}).get("labels") or {}
    revision: Object = {
        "kind": "ControllerRevision",
        "apiVersion": "apps/v1",
        "metadata": {
            "namespace": metadata["namespace"],
            "annotations": dict(metadata.get("annotations") or {}),
            "labels": {**labels, HASH_LABEL: hash_controller_revision(raw, collisions)},
            "ownerReferences": [new_controller_ref(owner)],
        },
        "data": data,
        "revision": number,
    }
    while True:
        hash_ = hash_controller_revision(raw, collisions)
        revision["metadata"]["name"] = f"{metadata['name'][:_MAX_PREFIX]}-{hash_}"
        try:
            return client.create(revision), collisions
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
        existing = client.get(RESOURCE, revision["metadata"]["name"], namespace=metadata["namespace"])
        if has_data(existing, data):
            return existing, collisions
        collisions += 1


def has_data(revision: Object, data: Object) -> bool:
    """Reports whether the data of a revision say the same as `data`; in the store they may be kept as the text that was sent."""
    return dict(revision.get("data") or {}) == data


def update_controller_revision(client: Client, revision: Object, number: int) -> Object:
    """Sets the number of a revision, if it differs, and returns the revision. Raises ApiError."""
    return revision if revision.get("revision") == number else client.update({**revision, "revision": number})


def adopt_controller_revisions(client: Client, owner: Object, revisions: Iterable[Object]) -> None:
    """Makes the owner the controller of the revisions that have none. Raises ApiError."""
    for revision in revisions:
        if get_controller_of(revision) is not None:
            continue
        metadata = revision["metadata"]
        patch = {"metadata": {"uid": metadata["uid"], "ownerReferences": [new_controller_ref(owner)]}}
        client.strategic_patch(RESOURCE, metadata["name"], patch, namespace=metadata["namespace"])
