"""The ControllerRevisions of a DaemonSet, and the pods that a rolling update replaces next.

The name of a revision contains the hash of the template.

Without surge an old pod is deleted first, and `manage` creates the new one: unavailable old pods at once, others as far as
maxUnavailable allows. With surge the new pod is created first, and the old one is deleted when the new one is available.

Specified by: pkg/controller/daemon/update.go (constructHistory, snapshot, cleanupHistory, rollingUpdate).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from fakekube.apimachinery.schema.trees import in_order
from fakekube.apis.well_known import CONTROLLER_REVISION_HASH_LABEL
from fakekube.controllers import history
from fakekube.controllers.client import ApiError
from fakekube.controllers.controller_ref_manager import ControllerRefManager, selector_of
from fakekube.controllers.controller_utils import get_scaled_value, is_pod_available
from fakekube.controllers.daemon.utils import get_template_generation, is_pod_updated, node_should_run_daemon_pod
from fakekube.controllers.hashing import compute_hash
from fakekube.controllers.objects import Object, new_controller_ref
from fakekube.controllers.reconciler import Reconciler

__all__ = ["Revisions", "allows_surge", "rolling_update"]


class Revisions:
    """The revisions of one DaemonSet.

    Args:
        controller: provides the client and the cache.
        daemon_set: the owner of the revisions.
    """

    def __init__(self, controller: Reconciler, daemon_set: Object) -> None:
        self._controller = controller
        self._set = daemon_set
        self._data = in_order(history.template_patch(daemon_set["spec"]["template"]))

    def construct_history(self, pods: Iterable[Object]) -> tuple[Object, list[Object]]:
        """Returns the revision of the present template, which it creates if it is missing, and the other revisions.

        Args:
            pods: the pods of the DaemonSet. If several revisions have the present template, one is kept, and the pods of
                the others get its label.

        Raises:
            ApiError: the API server rejected a request, or the name is taken; status.collisionCount has been incremented then.
        """
        found = history.sort_controller_revisions(self._controlled_histories())
        current = [one for one in found if one.get("data") == self._data]
        old = [one for one in found if one.get("data") != self._data]
        number = history.next_revision(old)
        if not current:
            return self._create_snapshot(number), old
        kept = current[-1]
        for one in current[:-1]:
            self._dedup_revisions(one, kept, pods)
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
        return list(map(self._label_revision, manager.claim_from(self._controller.cache)))

    def _label_revision(self, revision: Object) -> Object:
        metadata = revision["metadata"]
        labels = metadata.get("labels") or {}
        if CONTROLLER_REVISION_HASH_LABEL in labels:
            return revision
        labels = {**labels, CONTROLLER_REVISION_HASH_LABEL: metadata["name"]}
        return self._controller.client.update({**revision, "metadata": {**metadata, "labels": labels}})

    def _create_snapshot(self, number: int) -> Object:
        client, metadata, status = self._controller.client, self._set["metadata"], self._set.get("status") or {}
        hash_ = compute_hash(self._set["spec"]["template"], status.get("collisionCount"), self._controller.context.version)
        labels = (self._set["spec"]["template"].get("metadata") or {}).get("labels") or {}
        name = f"{metadata['name']}-{hash_}"
        revision = {
            "kind": "ControllerRevision",
            "apiVersion": "apps/v1",
            "metadata": {
                "name": name,
                "namespace": metadata["namespace"],
                "labels": {**labels, CONTROLLER_REVISION_HASH_LABEL: hash_},
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

    def _dedup_revisions(self, revision: Object, kept: Object, pods: Iterable[Object]) -> None:
        """Labels the pods of a duplicate revision with the hash of the kept one, and deletes the duplicate."""
        client, hash_ = self._controller.client, kept["metadata"]["labels"][CONTROLLER_REVISION_HASH_LABEL]
        for pod in pods:
            metadata = pod["metadata"]
            if (
                (metadata.get("labels") or {}).get(CONTROLLER_REVISION_HASH_LABEL)
                == revision["metadata"]["labels"][CONTROLLER_REVISION_HASH_LABEL]
                != hash_
            ):
                patch = {"metadata": {"labels": {CONTROLLER_REVISION_HASH_LABEL: hash_}}}
                client.patch("pods", metadata["name"], patch, namespace=metadata["namespace"])
        self._delete_revision(revision)

    def _delete_revision(self, revision: Object) -> None:
        metadata = revision["metadata"]
        self._controller.client.delete(history.RESOURCE, metadata["name"], namespace=metadata["namespace"])

    def cleanup_history(self, old: list[Object], pods: Iterable[Object]) -> None:
        """Deletes the oldest revisions without pods, until revisionHistoryLimit is kept."""
        surplus = len(old) - self._set["spec"].get("revisionHistoryLimit", 10)
        live = {(pod["metadata"].get("labels") or {}).get(CONTROLLER_REVISION_HASH_LABEL) for pod in pods}
        unused = [one for one in old if one["metadata"]["labels"].get(CONTROLLER_REVISION_HASH_LABEL) not in live]
        for one in unused[: max(surplus, 0)]:
            self._delete_revision(one)


def _rolling_update_strategy(daemon_set: Object) -> Object | None:
    strategy = daemon_set["spec"].get("updateStrategy") or {}
    return strategy.get("rollingUpdate") or {} if strategy.get("type") == "RollingUpdate" else None


def allows_surge(daemon_set: Object) -> bool:
    """Reports whether an update may run two pods on a node."""
    rolling = _rolling_update_strategy(daemon_set)
    return rolling is not None and get_scaled_value(rolling.get("maxSurge"), 1, round_up=True) > 0


@dataclass(slots=True)
class _Plan:
    """Pods to delete, and nodes to create pods for."""

    delete: list[Object] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)


def rolling_update(
    daemon_set: Object, nodes: Sequence[Object], pods_of: Mapping[str, list[Object]], hash_: str, now: datetime
) -> tuple[list[Object], list[str]]:
    """Returns the pods to delete next, and the names of the nodes to create pods for.

    Args:
        daemon_set: the DaemonSet.
        nodes: all nodes.
        pods_of: the pods by their target node.
        hash_: the hash of the present template.
        now: the time from which availability is calculated.
    """
    desired = [node["metadata"]["name"] for node in nodes if node_should_run_daemon_pod(node, daemon_set)[0]]
    rolling = _rolling_update_strategy(daemon_set) or {}
    surge = get_scaled_value(rolling.get("maxSurge"), len(desired), round_up=True)
    unavailable = get_scaled_value(rolling.get("maxUnavailable"), len(desired), round_up=True)
    if desired and not surge and not unavailable:
        unavailable = 1
    pods_by_node = {**{name: [] for name in desired}, **pods_of}
    update = _Update(daemon_set, hash_, now, {node["metadata"]["name"]: node for node in nodes})
    if surge:
        return update.with_surge(pods_by_node, surge, len(desired))
    return update.without_surge(pods_by_node, unavailable), []


@dataclass(slots=True)
class _Update:
    daemon_set: Object
    hash_: str
    now: datetime
    nodes: Mapping[str, Object]

    def _is_pod_available(self, pod: Object) -> bool:
        return is_pod_available(pod, self.daemon_set["spec"].get("minReadySeconds", 0), self.now)

    def _find_updated_pods(self, pods: Sequence[Object]) -> tuple[Object | None, Object | None] | None:
        """Returns the new and the old pod of a node; None if there are several new or several old ones."""
        generation = get_template_generation(self.daemon_set)
        alive = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        new = [pod for pod in alive if is_pod_updated(pod, self.hash_, generation)]
        old = [pod for pod in alive if not is_pod_updated(pod, self.hash_, generation)]
        if len(new) > 1 or len(old) > 1:
            return None
        return new[0] if new else None, old[0] if old else None

    def without_surge(self, pods_by_node: Mapping[str, list[Object]], limit: int) -> list[Object]:
        """Returns the old pods to delete."""
        at_once, candidates, unavailable = [], [], 0
        for pods in pods_by_node.values():
            new, old = self._find_updated_pods(pods) or (None, None)
            if (new is None) == (old is None):
                unavailable += 1
            elif new is not None:
                unavailable += not self._is_pod_available(new)
            elif old is not None and not self._is_pod_available(old):
                at_once.append(old)
                unavailable += 1
            elif old is not None and unavailable < limit:
                candidates.append(old)
        return at_once + candidates[: max(limit - unavailable, 0)]

    def with_surge(self, pods_by_node: Mapping[str, list[Object]], limit: int, desired: int) -> tuple[list[Object], list[str]]:
        """Returns the old pods to delete, and the names of the nodes to create new ones for."""
        plan, candidates, misplaced = _Plan(), _Plan(), []
        surging = available = 0
        for name, pods in pods_by_node.items():
            pair = self._find_updated_pods(pods)
            if pair is None:
                surging += 1
                continue
            new, old = pair
            oldest = old or new
            available += oldest is not None and self._is_pod_available(oldest)
            if old is None:
                continue
            if new is not None:
                if self._is_pod_available(new):
                    plan.delete.append(old)
                else:
                    surging += 1
                continue
            runs = name in self.nodes and node_should_run_daemon_pod(self.nodes[name], self.daemon_set)[0]
            if not self._is_pod_available(old):
                if runs:
                    plan.nodes.append(name)
                else:
                    plan.delete.append(old)
            elif not runs:
                misplaced.append(old)
            elif surging < limit:
                candidates.nodes.append(name)
        plan.delete += misplaced[: max(available - desired, 0)]
        return plan.delete, plan.nodes + candidates.nodes[: max(limit - surging, 0)]
