"""The DaemonSet controller: what wakes it, what a sync does, and the status.

A node that is deleted wakes nobody: its pod is counted until it is gone, as in the real cluster.

Specified by: pkg/controller/daemon/daemon_controller.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from fakekube.client import ApiError
from fakekube.controllers.daemon.placement import Backoff, Placement, by_age, should_run
from fakekube.controllers.daemon.revisions import Revisions
from fakekube.controllers.daemon.template import HASH_LABEL, is_updated, node_of, pod_template, template_generation
from fakekube.controllers.daemon.update import allows_surge, rolling_update
from fakekube.controllers.owners import ControllerRefManager, keys_of_controllers, selector_of
from fakekube.controllers.pods import PodControl, is_available, is_ready, is_terminal, next_availability, pod_from_template
from fakekube.controllers.reconciler import Key, Object, Reconciler
from fakekube.controllers.replicasets import create_in_batches

__all__ = ["DaemonSetController"]

BURST_REPLICAS = 250


class DaemonSetController(Reconciler):
    """Keeps the pods of DaemonSets."""

    name = "daemonset-controller"
    watches = ("daemonsets.apps", "pods", "nodes", "controllerrevisions.apps")

    def started(self) -> None:
        self._backoff = Backoff()

    # ---- what wakes it

    @staticmethod
    def concerns(resource: str, obj: Object, old: Object | None) -> bool:
        return resource != "nodes" or old is None or _shown(obj) != _shown(old)

    def keys(self, resource: str, event_type: str, obj: Object, old: Object | None = None) -> Iterable[Key]:
        metadata = obj["metadata"]
        if resource == "nodes":
            changed = event_type == "ADDED" or (old is not None and _shown(obj) != _shown(old))
            return self._keys_of_node(obj) if changed else ()
        if resource == "daemonsets.apps":
            return (Key(metadata["namespace"], metadata["name"]),)
        return keys_of_controllers(self.cache, obj, old, kind="DaemonSet", resource="daemonsets.apps")

    def _keys_of_node(self, node: Object) -> Iterable[Key]:
        """The DaemonSets that have a pod too many or too few on the node."""
        name = node["metadata"]["name"]
        for daemon_set in self.cache.list("daemonsets.apps"):
            metadata = daemon_set["metadata"]
            run, stay = should_run(node, daemon_set)
            pods = self.cache.owned_by("pods", metadata["uid"])
            scheduled = any(pod["spec"].get("nodeName") == name for pod in pods)
            misplaced = (daemon_set.get("status") or {}).get("numberMisscheduled", 0)
            if (run and not scheduled) or (scheduled and (not stay or misplaced)):
                yield Key(metadata["namespace"], metadata["name"])

    # ---- what it does

    def reconcile(self, key: Key) -> None:
        daemon_set = self.cache.get("daemonsets.apps", key.namespace, key.name)
        if daemon_set is None or "deletionTimestamp" in daemon_set["metadata"]:
            return
        if not any((daemon_set["spec"].get("selector") or {}).values()):
            text = "This daemon set is selecting all pods. A non-empty selector is required."
            self.recorder.event(daemon_set, "Warning", "SelectingAll", text)
            return
        revisions = Revisions(self, daemon_set)
        current, old = revisions.current_and_old(self._claimed(daemon_set))
        hash_ = current["metadata"]["labels"][HASH_LABEL]
        failure = None
        try:
            if not self._manage(key, daemon_set, hash_):
                self._update(daemon_set, hash_)
            revisions.clean_up(old, self._claimed(daemon_set))
        except ApiError as error:
            failure = error
        self._update_status(key, daemon_set, hash_)
        if failure is not None:
            raise failure

    def _claimed(self, daemon_set: Object) -> list[Object]:
        selector = selector_of(daemon_set)
        manager = ControllerRefManager(
            self.client, daemon_set, "daemonsets.apps", "pods", lambda pod: selector.matches(pod["metadata"].get("labels"))
        )
        return manager.claim_from(self.cache)

    def _pods_by_node(self, daemon_set: Object) -> dict[str, list[Object]]:
        """The pods by the node that they are made for; without those that have ended and are being deleted."""
        found: dict[str, list[Object]] = {}
        for pod in self._claimed(daemon_set):
            node = node_of(pod)
            if node is not None and not (is_terminal(pod) and "deletionTimestamp" in pod["metadata"]):
                found.setdefault(node, []).append(pod)
        return found

    def _manage(self, key: Key, daemon_set: Object, hash_: str) -> bool:
        """Make pods where they are missing, delete those that are wrong; was there anything to do?"""
        pods = self._pods_by_node(daemon_set)
        nodes = list(self.cache.list("nodes"))
        placement = Placement(daemon_set, hash_, allows_surge(daemon_set), self._backoff, self.clock.now())
        for node in nodes:
            placement.look_at(node, pods.get(node["metadata"]["name"]))
        known = {node["metadata"]["name"] for node in nodes}
        for name, found in pods.items():
            if name not in known:
                placement.delete += [pod for pod in found if not pod["spec"].get("nodeName")]
        for event in placement.events:
            self.recorder.event(daemon_set, *event)
        for wait in placement.look_again:
            self.requeue_after(key, wait)
        self._sync_nodes(daemon_set, placement.delete, placement.nodes, hash_)
        return bool(placement.delete or placement.nodes)

    def _update(self, daemon_set: Object, hash_: str) -> None:
        if (daemon_set["spec"].get("updateStrategy") or {}).get("type") != "RollingUpdate":
            return
        nodes, pods = list(self.cache.list("nodes")), self._pods_by_node(daemon_set)
        self._sync_nodes(daemon_set, *rolling_update(daemon_set, nodes, pods, hash_, self.clock.now()), hash_)

    def _sync_nodes(self, daemon_set: Object, delete: list[Object], nodes: list[str], hash_: str) -> None:
        """Make and delete pods. Raises the first ApiError when all is done."""
        control = PodControl(self.client, self.recorder)
        waiting = iter(nodes)

        def create() -> None:
            control.create(pod_from_template(pod_template(daemon_set, next(waiting), hash_), daemon_set), daemon_set)

        failure = create_in_batches(min(len(nodes), BURST_REPLICAS), create)
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
        """Write the status if it has changed."""
        old = daemon_set.get("status") or {}
        counts = self._counted(daemon_set, hash_)
        generation = daemon_set["metadata"].get("generation", 0)
        if any(old.get(name, 0) != count for name, count in counts.items()) or old.get("observedGeneration", 0) < generation:
            status = {**old, **counts, "observedGeneration": generation}
            self.client.update({**daemon_set, "status": status}, subresource="status")
        min_ready = daemon_set["spec"].get("minReadySeconds", 0)
        if min_ready and counts["numberReady"] != counts["numberAvailable"]:
            pods = self.cache.owned_by("pods", daemon_set["metadata"]["uid"])
            wait = next_availability(pods, min_ready, self.clock.now())
            if wait is not None:
                self.requeue_after(key, wait)

    def _counted(self, daemon_set: Object, hash_: str) -> dict[str, int]:
        pods, generation = self._pods_by_node(daemon_set), template_generation(daemon_set)
        min_ready, now = daemon_set["spec"].get("minReadySeconds", 0), self.clock.now()
        desired, shown, misplaced = 0, [], 0
        for node in self.cache.list("nodes"):
            found = pods.get(node["metadata"]["name"])
            if not should_run(node, daemon_set)[0]:
                misplaced += found is not None
                continue
            desired += 1
            if found:
                shown.append(min(found, key=by_age))
        available = sum(is_available(pod, min_ready, now) for pod in shown)
        return {
            "desiredNumberScheduled": desired,
            "currentNumberScheduled": len(shown),
            "numberMisscheduled": misplaced,
            "numberReady": sum(map(is_ready, shown)),
            "updatedNumberScheduled": sum(is_updated(pod, hash_, generation) for pod in shown),
            "numberAvailable": available,
            "numberUnavailable": desired - available,
        }


def _shown(node: Object) -> tuple[object, object]:
    """What of a node decides about daemons."""
    return node["metadata"].get("labels") or {}, (node.get("spec") or {}).get("taints") or []
