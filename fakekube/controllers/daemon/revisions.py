"""The ControllerRevisions of a DaemonSet, named by the hash of the template.

Specified by: pkg/controller/daemon/update.go (constructHistory, snapshot, cleanupHistory).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fakekube.client import ApiError
from fakekube.controllers import history
from fakekube.controllers.daemon.template import HASH_LABEL
from fakekube.controllers.hashing import compute_hash
from fakekube.controllers.owners import ControllerRefManager, controller_reference, selector_of
from fakekube.controllers.reconciler import Reconciler
from fakekube.schema.trees import in_order

__all__ = ["Revisions"]

Object = dict[str, Any]


class Revisions:
    """The revisions of one DaemonSet.

    Args:
        controller: whose client and cache are used.
        daemon_set: whom they belong to.
    """

    def __init__(self, controller: Reconciler, daemon_set: Object) -> None:
        self._controller = controller
        self._set = daemon_set
        self._data = in_order(history.template_patch(daemon_set["spec"]["template"]))

    def current_and_old(self, pods: Iterable[Object]) -> tuple[Object, list[Object]]:
        """The revision of the present template, made if need be, and the others.

        Args:
            pods: of the DaemonSet; relabelled if two revisions have the same data, of which one is kept.

        Raises:
            ApiError: the API refused, or the name is taken (status.collisionCount has been raised then).
        """
        found = history.sort_revisions(self._claimed())
        current = [one for one in found if one.get("data") == self._data]
        old = [one for one in found if one.get("data") != self._data]
        number = history.next_revision(old)
        if not current:
            return self._snapshot(number), old
        kept = current[-1]
        for one in current[:-1]:
            self._drop(one, kept, pods)
        if kept.get("revision", 0) < number:
            history.with_number(self._controller.client, kept, number)
        return kept, old

    def _claimed(self) -> list[Object]:
        """The revisions of the DaemonSet, each with a label that tells its hash."""
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
        wanted = {
            "kind": "ControllerRevision",
            "apiVersion": "apps/v1",
            "metadata": {
                "name": name,
                "namespace": metadata["namespace"],
                "labels": {**labels, HASH_LABEL: hash_},
                "annotations": dict(metadata.get("annotations") or {}),
                "ownerReferences": [controller_reference(self._set)],
            },
            "data": self._data,
            "revision": number,
        }
        try:
            return client.create(wanted)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            present = client.get(history.RESOURCE, name, namespace=metadata["namespace"])
            if present.get("data") == self._data:
                return present
            collided = {**status, "collisionCount": (status.get("collisionCount") or 0) + 1}
            client.update({**self._set, "status": collided}, subresource="status")
            raise

    def _drop(self, revision: Object, kept: Object, pods: Iterable[Object]) -> None:
        """Delete a revision that is like the one that is kept, after its pods have got that one's label."""
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

    def clean_up(self, old: list[Object], pods: Iterable[Object]) -> None:
        """Delete the oldest revisions without pods, as far as there are more than revisionHistoryLimit."""
        surplus = len(old) - self._set["spec"].get("revisionHistoryLimit", 10)
        live = {(pod["metadata"].get("labels") or {}).get(HASH_LABEL) for pod in pods}
        unused = [one for one in old if one["metadata"]["labels"].get(HASH_LABEL) not in live]
        for one in unused[: max(surplus, 0)]:
            self._delete(one)
