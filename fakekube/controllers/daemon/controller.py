"""The DaemonSet controller: events, sync and status.

The deletion of a node does not trigger a sync, so that its pod is counted until the pod is deleted, as in a real cluster.

Specified by: pkg/controller/daemon/daemon_controller.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fakekube.apis.well_known import CONTROLLER_REVISION_HASH_LABEL
from fakekube.controllers.client import ApiError
from fakekube.controllers.controller_ref_manager import ControllerRefManager, keys_of_controllers, selector_of
from fakekube.controllers.controller_utils import (
    PodControl,
    find_min_next_pod_availability_check,
    get_pod_from_template,
    is_pod_available,
    is_pod_ready,
    is_pod_terminal,
)
from fakekube.controllers.daemon.update import Revisions, allows_surge, rolling_update
from fakekube.controllers.daemon.utils import (
    Backoff,
    Placement,
    by_creation,
    create_pod_template,
    get_target_node_name,
    get_template_generation,
    is_pod_updated,
    node_should_run_daemon_pod,
)
from fakekube.controllers.objects import Object, StoredObject, get_controller_of
from fakekube.controllers.reconciler import Key, Reconciler
from fakekube.controllers.replicaset import slow_start_batch

__all__ = ["DaemonSetController"]

BURST_REPLICAS: Final = 250


class DaemonSetController(Reconciler):
    """Creates and deletes the pods of DaemonSets."""

    name = "daemonset-controller"
    watches = ("daemonsets.apps", "pods", "nodes", "controllerrevisions.apps")

    def on_start(self) -> None:
        self._backoff = Backoff()

    # ---- events

    @staticmethod
    def concerns(resource: str, obj: StoredObject, old: StoredObject | None) -> bool:
        return resource != "nodes" or old is None or _scheduling_fields(obj) != _scheduling_fields(old)

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None = None) -> Iterable[Key]:
        metadata = obj["metadata"]
        if resource == "nodes":
            changed = event_type == "ADDED" or (old is not None and _scheduling_fields(obj) != _scheduling_fields(old))
            return self._keys_of_node(obj) if changed else ()
        if resource == "daemonsets.apps":
            return (Key(metadata["namespace"], metadata["name"]),)
        if resource == "controllerrevisions.apps" and event_type == "ADDED" and get_controller_of(obj) is not None:
            return ()  # addHistory only logs it: two equal revisions are merged by the next sync
        return keys_of_controllers(self.cache, obj, old, kind="DaemonSet", resource="daemonsets.apps")

    def _keys_of_node(self, node: StoredObject) -> Iterable[Key]:
        """Yields the keys of the DaemonSets that lack a pod on the node, or have one that may not run there."""
        name = node["metadata"]["name"]
        for daemon_set in self.cache.list("daemonsets.apps"):
            metadata = daemon_set["metadata"]
            run, stay = node_should_run_daemon_pod(node, daemon_set)
            pods = self.cache.owned_by("pods", metadata["uid"])
            scheduled = any(pod["spec"].get("nodeName") == name for pod in pods)
            misplaced = (daemon_set.get("status") or {}).get("numberMisscheduled", 0)
            if (run and not scheduled) or (scheduled and (not stay or misplaced)):
                yield Key(metadata["namespace"], metadata["name"])

    # ---- sync

    def reconcile(self, key: Key) -> None:
        daemon_set = self.cache.get("daemonsets.apps", key.namespace, key.name)
        if daemon_set is None or "deletionTimestamp" in daemon_set["metadata"]:
            return
        if not any((daemon_set["spec"].get("selector") or {}).values()):
            text = "This daemon set is selecting all pods. A non-empty selector is required."
            self.recorder.event(daemon_set, "Warning", "SelectingAll", text)
            return
        revisions = Revisions(self, daemon_set)
        current, old = revisions.construct_history(self._claim_pods(daemon_set))
        hash_ = current["metadata"]["labels"][CONTROLLER_REVISION_HASH_LABEL]
        failure = None
        try:
            if not self._manage_pods(key, daemon_set, hash_):
                self._rolling_update(daemon_set, hash_)
            revisions.cleanup_history(old, self._claim_pods(daemon_set))
        except ApiError as error:
            failure = error
        self._update_status(key, daemon_set, hash_)
        if failure is not None:
            raise failure

    def _claim_pods(self, daemon_set: Object) -> list[Object]:
        selector = selector_of(daemon_set)
        manager = ControllerRefManager(
            self.client, daemon_set, "daemonsets.apps", "pods", lambda pod: selector.matches(pod["metadata"].get("labels"))
        )
        return manager.claim_from(self.cache)

    def _get_nodes_to_daemon_pods(self, daemon_set: Object) -> dict[str, list[Object]]:
        """Returns the pods by their target node, without terminated pods that are being deleted."""
        found: dict[str, list[Object]] = {}
        for pod in self._claim_pods(daemon_set):
            node = get_target_node_name(pod)
            if node is not None and not (is_pod_terminal(pod) and "deletionTimestamp" in pod["metadata"]):
                found.setdefault(node, []).append(pod)
        return found

    def _manage_pods(self, key: Key, daemon_set: Object, hash_: str) -> bool:
        """Creates missing pods and deletes superfluous ones. Returns whether there were any."""
        pods = self._get_nodes_to_daemon_pods(daemon_set)
        nodes = list(self.cache.list("nodes"))
        placement = Placement(daemon_set, hash_, allows_surge(daemon_set), self._backoff, self.clock.now())
        for node in nodes:
            placement.pods_should_be_on_node(node, pods.get(node["metadata"]["name"]))
        known = {node["metadata"]["name"] for node in nodes}
        for name, found in pods.items():
            if name not in known:
                placement.delete += [pod for pod in found if not pod["spec"].get("nodeName")]
        for event in placement.events:
            self.recorder.event(daemon_set, *event)
        for wait in placement.retry_after:
            self.requeue_after(key, wait)
        self._sync_nodes(daemon_set, placement.delete, placement.nodes, hash_)
        return bool(placement.delete or placement.nodes)

    def _rolling_update(self, daemon_set: Object, hash_: str) -> None:
        if (daemon_set["spec"].get("updateStrategy") or {}).get("type") != "RollingUpdate":
            return
        nodes, pods = list(self.cache.list("nodes")), self._get_nodes_to_daemon_pods(daemon_set)
        self._sync_nodes(daemon_set, *rolling_update(daemon_set, nodes, pods, hash_, self.clock.now()), hash_)

    def _sync_nodes(self, daemon_set: Object, delete: list[Object], nodes: list[str], hash_: str) -> None:
        """Creates pods for nodes, and deletes pods. Raises the first ApiError after all requests."""
        control = PodControl(self.client, self.recorder)
        waiting = iter(nodes)

        def create() -> None:
            control.create(get_pod_from_template(create_pod_template(daemon_set, next(waiting), hash_), daemon_set), daemon_set)

        failure = slow_start_batch(min(len(nodes), BURST_REPLICAS), create)
        for pod in delete[:BURST_REPLICAS]:
            try:
                control.delete(pod, daemon_set)
            except ApiError as error:
                if error.code != 404:
                    failure = failure or error
        if failure is not None:
            raise failure

    # ---- status

    def _update_status(self, key: Key, daemon_set: Object, hash_: str) -> None:
        """Writes the status if it has changed, and requeues the key for the time at which a pod becomes available."""
        old = daemon_set.get("status") or {}
        counts = self._count_pods(daemon_set, hash_)
        generation = daemon_set["metadata"].get("generation", 0)
        if any(old.get(name, 0) != count for name, count in counts.items()) or old.get("observedGeneration", 0) < generation:
            status = {**old, **counts, "observedGeneration": generation}
            self.client.update({**daemon_set, "status": status}, subresource="status")
        min_ready = daemon_set["spec"].get("minReadySeconds", 0)
        if min_ready and counts["numberReady"] != counts["numberAvailable"]:
            pods = self.cache.owned_by("pods", daemon_set["metadata"]["uid"])
            wait = find_min_next_pod_availability_check(pods, min_ready, self.clock.now())
            if wait is not None:
                self.requeue_after(key, wait)

    def _count_pods(self, daemon_set: Object, hash_: str) -> dict[str, int]:
        pods, generation = self._get_nodes_to_daemon_pods(daemon_set), get_template_generation(daemon_set)
        min_ready, now = daemon_set["spec"].get("minReadySeconds", 0), self.clock.now()
        desired, scheduled, misplaced = 0, [], 0
        for node in self.cache.list("nodes"):
            found = pods.get(node["metadata"]["name"])
            if not node_should_run_daemon_pod(node, daemon_set)[0]:
                misplaced += found is not None
                continue
            desired += 1
            if found:
                scheduled.append(min(found, key=by_creation))
        available = sum(is_pod_available(pod, min_ready, now) for pod in scheduled)
        return {
            "desiredNumberScheduled": desired,
            "currentNumberScheduled": len(scheduled),
            "numberMisscheduled": misplaced,
            "numberReady": sum(map(is_pod_ready, scheduled)),
            "updatedNumberScheduled": sum(is_pod_updated(pod, hash_, generation) for pod in scheduled),
            "numberAvailable": available,
            "numberUnavailable": desired - available,
        }


def _scheduling_fields(node: StoredObject) -> tuple[object, object]:
    """Returns the labels and taints of a node, which decide whether it runs daemon pods."""
    return node["metadata"].get("labels") or {}, (node.get("spec") or {}).get("taints") or []
