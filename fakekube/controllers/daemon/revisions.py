"""Manages the ControllerRevisions of a DaemonSet, whose names contain the hash of the template.

Specified by: pkg/controller/daemon/update.go (constructHistory, snapshot, cleanupHistory).
"""

from __future__ import annotations

from collections.abc import Iterable

from fakekube.apimachinery.schema.trees import in_order
from fakekube.controllers import history
from fakekube.controllers.client import ApiError
from fakekube.controllers.controller_ref_manager import ControllerRefManager, selector_of
from fakekube.controllers.daemon.template import HASH_LABEL
from fakekube.controllers.hashing import compute_hash
from fakekube.controllers.objects import Object, new_controller_ref
from fakekube.controllers.reconciler import Reconciler

__all__ = ["Revisions"]


class Revisions:
    """The revisions of one DaemonSet.

    Args:
        controller: Provides the client and the cache.
        daemon_set: The owner of the revisions.
    """

    def __init__(self, controller: Reconciler, daemon_set: Object) -> None:
        self._controller = controller
        self._set = daemon_set
        self._data = in_order(history.template_patch(daemon_set["spec"]["template"]))

    def construct_history(self, pods: Iterable[Object]) -> tuple[Object, list[Object]]:
        """Returns the revision of the present template, which it creates if it is missing, and the other revisions.

        Args:
            pods: The pods of the DaemonSet. If several revisions have the present template, one is kept, and the pods of
                the others get its label.

        Raises:
            ApiError: The API server rejected a request, or the name is taken; status.collisionCount has been incremented then.
        """
        found = history.sort_controller_revisions(self._controlled_histories())
        current = [one for one in found if one.get("data") == self._data]
        old = [one for one in found if one.get("data") != self._data]
        number = history.next_revision(old)
        if not current:
            return self._snapshot(number), old
        kept = current[-1]
        for one in current[:-1]:
            self._dedup(one, kept, pods)
        if kept.get("revision", 0) < number:
            history.update_controller_revision(self._controller.client, kept, number)
        return kept, old

    def _controlled_histories(self) -> list[Object]:
        """Returns the revisions of the DaemonSet, and adds the hash label where it is missing."""
        selector = selector_of(self._set)
        manager = ControllerRefManager(
            self._controller.client,
            self._set,
            "daemonsets.apps",
            history.RESOURCE,
            lambda one: selector.matches(one["metadata"].get("labels")),
        )
        return list(map(self._labelled, manager.claim_from(self._controller.cache)))

    def _labelled(self, revision: Object) -> Object:
        metadata = revision["metadata"]
        labels = metadata.get("labels") or {}
        if HASH_LABEL in labels:
            return revision
        labels = {**labels, HASH_LABEL: metadata["name"]}
        return self._controller.client.update({**revision, "metadata": {**metadata, "labels": labels}})

    def _snapshot(self, number: int) -> Object:
        client, metadata, status = self._controller.client, self._set["metadata"], self._set.get("status") or {}
        hash_ = compute_hash(self._set["spec"]["template"], status.get("collisionCount"))
        labels = (self._set["spec"]["template"].get("metadata") or {}).get("labels") or {}
        name = f"{metadata['name']}-{hash_}"
        revision = {
            "kind": "ControllerRevision",
            "apiVersion": "apps/v1",
            "metadata": {
                "name": name,
                "namespace": metadata["namespace"],
                "labels": {**labels, HASH_LABEL: hash_},
                "annotations": dict(metadata.get("annotations") or {}),
                "ownerReferences": [new_controller_ref(self._set)],
            },
            "data": self._data,
            "revision": number,
        }
        try:
            return client.create(revision)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            existing = client.get(history.RESOURCE, name, namespace=metadata["namespace"])
            if existing.get("data") == self._data:
                return existing
            collided = {**status, "collisionCount": (status.get("collisionCount") or 0) + 1}
            client.update({**self._set, "status": collided}, subresource="status")
            raise

    def _dedup(self, revision: Object, kept: Object, pods: Iterable[Object]) -> None:
        """Labels the pods of a duplicate revision with the hash of the kept one, and deletes the duplicate."""
        client, hash_ = self._controller.client, kept["metadata"]["labels"][HASH_LABEL]
        for pod in pods:
            metadata = pod["metadata"]
            if (metadata.get("labels") or {}).get(HASH_LABEL) == revision["metadata"]["labels"][HASH_LABEL] != hash_:
                patch = {"metadata": {"labels": {HASH_LABEL: hash_}}}
                client.patch("pods", metadata["name"], patch, namespace=metadata["namespace"])
        self._delete(revision)

    def _delete(self, revision: Object) -> None:
        metadata = revision["metadata"]
        self._controller.client.delete(history.RESOURCE, metadata["name"], namespace=metadata["namespace"])

    def cleanup_history(self, old: list[Object], pods: Iterable[Object]) -> None:
        """Deletes the oldest revisions without pods, until revisionHistoryLimit is kept."""
        surplus = len(old) - self._set["spec"].get("revisionHistoryLimit", 10)
        live = {(pod["metadata"].get("labels") or {}).get(HASH_LABEL) for pod in pods}
        unused = [one for one in old if one["metadata"]["labels"].get(HASH_LABEL) not in live]
        for one in unused[: max(surplus, 0)]:
            self._delete(one)
