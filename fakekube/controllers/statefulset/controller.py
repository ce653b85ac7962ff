"""The StatefulSet controller: events, revisions and status.

Specified by: pkg/controller/statefulset/{stateful_set,stateful_set_control}.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from fakekube.apimachinery.schema.trees import in_order
from fakekube.controllers import history
from fakekube.controllers.client import ApiError
from fakekube.controllers.controller_ref_manager import ControllerRefManager, keys_of_controllers, selector_of
from fakekube.controllers.controller_utils import find_min_next_pod_availability_check
from fakekube.controllers.objects import Object, get_controller_of
from fakekube.controllers.reconciler import Key, Reconciler
from fakekube.controllers.statefulset.identity import get_pod_revision, is_member_of
from fakekube.controllers.statefulset.pod_control import StatefulPodControl
from fakekube.controllers.statefulset.update import StatefulSetUpdate

__all__ = ["StatefulSetController"]

_COMPARED_STATUS_FIELDS = (
    "replicas",
    "currentReplicas",
    "readyReplicas",
    "updatedReplicas",
    "currentRevision",
    "availableReplicas",
    "updateRevision",
)


class StatefulSetController(Reconciler):
    """Creates, updates and deletes the pods of StatefulSets."""

    name = "statefulset-controller"
    watches = ("statefulsets.apps", "pods", "persistentvolumeclaims", "controllerrevisions.apps")

    def keys(self, resource: str, event_type: str, obj: Object, old: Object | None = None) -> Iterable[Key]:
        metadata = obj["metadata"]
        if resource == "statefulsets.apps":
            return (Key(metadata["namespace"], metadata["name"]),)
        if resource != "pods":
            return ()
        return keys_of_controllers(self.cache, obj, old, kind="StatefulSet", resource="statefulsets.apps")

    def reconcile(self, key: Key) -> None:
        stateful_set = self.cache.get("statefulsets.apps", key.namespace, key.name)
        if stateful_set is None:
            return
        revisions = self._revisions(stateful_set)
        if any(get_controller_of(one) is None for one in revisions):
            history.adopt_controller_revisions(self.client, stateful_set, revisions)
            revisions = self._revisions(stateful_set)
        pods = self._claim_pods(stateful_set)
        current, update, collisions = self._get_stateful_set_revisions(stateful_set, revisions)
        set_update = StatefulSetUpdate(StatefulPodControl(self, stateful_set), stateful_set, current, update, self.clock.now())
        counts, failure = set_update.run(pods)
        status = self._update_status(stateful_set, counts, current, update, collisions)
        self._truncate_history(stateful_set, pods, revisions, current, update)
        if failure is not None:
            raise failure
        min_ready = stateful_set["spec"].get("minReadySeconds", 0)
        if min_ready and status["readyReplicas"] != status["availableReplicas"]:
            wait = find_min_next_pod_availability_check(pods, min_ready, self.clock.now())
            if wait is not None:
                self.requeue_after(key, wait)

    def _claim_pods(self, stateful_set: Object) -> list[Object]:
        selector = selector_of(stateful_set)

        def matches(pod: Object) -> bool:
            return selector.matches(pod["metadata"].get("labels")) and is_member_of(pod, stateful_set)

        manager = ControllerRefManager(self.client, stateful_set, "statefulsets.apps", "pods", matches)
        return manager.claim_from(self.cache)

    # ---- revisions

    def _revisions(self, stateful_set: Object) -> list[Object]:
        return history.list_controller_revisions(self.cache, stateful_set, selector_of(stateful_set))

    def _get_stateful_set_revisions(self, stateful_set: Object, revisions: list[Object]) -> tuple[Object, Object, int]:
        """Returns the current revision, the update revision, which it creates if it is missing, and status.collisionCount."""
        status = stateful_set.get("status") or {}
        collisions = status.get("collisionCount") or 0
        data = in_order(history.template_patch(stateful_set["spec"]["template"]))
        number = history.next_revision(revisions)
        equal = [one for one in revisions if one.get("data") == data]
        if equal and equal[-1] is revisions[-1]:
            update = revisions[-1]
        elif equal:
            update = history.update_controller_revision(self.client, equal[-1], number)
        else:
            update, collisions = history.create_controller_revision(self.client, stateful_set, data, number, collisions)
        known = {one["metadata"]["name"]: one for one in revisions}
        return known.get(status.get("currentRevision", ""), update), update, collisions

    def _truncate_history(
        self, stateful_set: Object, pods: list[Object], revisions: list[Object], current: Object, update: Object
    ) -> None:
        """Deletes the oldest revisions that are not in use, until revisionHistoryLimit is kept."""
        live = {current["metadata"]["name"], update["metadata"]["name"], *map(get_pod_revision, pods)}
        unused = [one for one in revisions if one["metadata"]["name"] not in live]
        limit = stateful_set["spec"].get("revisionHistoryLimit", 10)
        for one in unused[: max(len(unused) - limit, 0)]:
            metadata = one["metadata"]
            try:
                self.client.delete(history.RESOURCE, metadata["name"], namespace=metadata["namespace"])
            except ApiError as error:
                if error.code != 404:
                    raise

    # ---- status

    def _update_status(self, stateful_set: Object, counts: Object, current: Object, update: Object, collisions: int) -> Object:
        """Writes the status if it has changed. Returns the new one."""
        spec, old = stateful_set["spec"], stateful_set.get("status") or {}
        status = {
            "observedGeneration": stateful_set["metadata"].get("generation", 0),
            **counts,
            "currentRevision": current["metadata"]["name"],
            "updateRevision": update["metadata"]["name"],
            "collisionCount": collisions,
        }
        desired = spec.get("replicas", 0)
        rolling = (spec.get("updateStrategy") or {}).get("type") == "RollingUpdate"
        if rolling and all(status[name] == desired for name in ("updatedReplicas", "readyReplicas", "replicas")):
            status["currentReplicas"] = status["updatedReplicas"]
            status["currentRevision"] = status["updateRevision"]
        observed = status["observedGeneration"] <= old.get("observedGeneration", 0)
        if not observed or any((old.get(name) or 0) != (status[name] or 0) for name in _COMPARED_STATUS_FIELDS):
            self.client.update({**stateful_set, "status": status}, subresource="status")
        return status
