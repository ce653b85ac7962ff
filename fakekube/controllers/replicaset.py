"""The controllers of ReplicaSets and ReplicationControllers: keep `spec.replicas` pods running, and write the status.

A controller claims the active pods that its selector matches, creates missing ones in batches of 1, 2, 4, … (so that a
rejection costs few requests), and deletes surplus ones in the order of `sort_for_deletion`. The first error is reported in
the condition ReplicaFailure.

Invariant: the status is written after the pods, and only if it changes.

Specified by: pkg/controller/replicaset/{replica_set,replica_set_utils}.go, pkg/controller/replication.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Final

from fakekube.apimachinery.selectors import LabelSelector, from_label_selector
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.client import ApiError
from fakekube.controllers.controller_ref_manager import ControllerRefManager, keys_of_controllers, selector_of
from fakekube.controllers.controller_utils import (
    PodControl,
    count_ready,
    find_min_next_pod_availability_check,
    get_pod_from_template,
    is_namespace_terminating,
    is_pod_active,
    is_pod_terminating,
    sort_for_deletion,
)
from fakekube.controllers.informers import get_controller_of
from fakekube.controllers.reconciler import Key, Reconciler

#: The maximum number of pods that a sync creates or deletes.
BURST_REPLICAS: Final = 500


class ReplicaSetController(Reconciler):
    """Creates and deletes the pods of ReplicaSets."""

    name = "replicaset-controller"
    kind: ClassVar[str] = "ReplicaSet"
    resource: ClassVar[str] = "replicasets.apps"
    counts_terminating: ClassVar[bool] = True
    """Whether the status has the field terminatingReplicas."""
    watches = ("replicasets.apps", "pods")

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None = None) -> Iterable[Key]:
        metadata = obj["metadata"]
        if resource == self.resource:
            return (Key(metadata["namespace"], metadata["name"]),)
        return keys_of_controllers(self.cache, obj, old, kind=self.kind, resource=self.resource, selects=self.selector_of)

    def reconcile(self, key: Key) -> None:
        replica_set = self.cache.get(self.resource, key.namespace, key.name)
        if replica_set is None:
            return
        uid = replica_set["metadata"]["uid"]
        selector = self.selector_of(replica_set)
        owned = list(self.cache.dependents_of("pods", uid))
        active = self._claim_pods(replica_set, selector, owned)
        terminating = [pod for pod in owned if is_pod_terminating(pod) and selector.matches(pod["metadata"].get("labels"))]
        failure = None
        if "deletionTimestamp" not in replica_set["metadata"]:
            failure = self._manage_replicas(replica_set, active)
        status = self._update_status(replica_set, active, len(terminating), failure)
        if failure is not None:
            raise failure
        min_ready = replica_set["spec"].get("minReadySeconds", 0)
        if min_ready and status.get("readyReplicas", 0) != status.get("availableReplicas", 0):
            wait = find_min_next_pod_availability_check(active, min_ready, self.clock.now())
            if wait is not None:
                self.requeue_after(key, wait)

    def selector_of(self, replica_set: Object) -> LabelSelector:
        """Returns the selector for the pods."""
        return selector_of(replica_set)

    # --- Pods ---------------------------------------------------------------------------------------------------------

    def _claim_pods(self, replica_set: Object, selector: LabelSelector, owned: list[Object]) -> list[Object]:
        namespace = replica_set["metadata"]["namespace"]
        manager = ControllerRefManager(
            self.client, replica_set, self.resource, "pods", lambda pod: selector.matches(pod["metadata"].get("labels"))
        )
        candidates = [*owned, *self.cache.orphans("pods", namespace)]
        return manager.claim([pod for pod in candidates if is_pod_active(pod)])

    def _manage_replicas(self, replica_set: Object, active: list[Object]) -> ApiError | None:
        """Creates or deletes pods. Returns the first error."""
        surplus = len(active) - replica_set["spec"].get("replicas", 0)
        control = PodControl(self.client, self.recorder)
        if surplus < 0:
            template = get_pod_from_template(replica_set["spec"]["template"], replica_set)
            return slow_start_batch(min(-surplus, BURST_REPLICAS), lambda: control.create(template, replica_set))
        failure = None
        for pod in self._get_pods_to_delete(replica_set, active, min(surplus, BURST_REPLICAS)):
            try:
                control.delete(pod, replica_set)
            except ApiError as error:
                if error.code != 404:
                    failure = failure or error
        return failure

    def _get_pods_to_delete(self, replica_set: Object, active: list[Object], count: int) -> list[Object]:
        if not 0 < count < len(active):
            return active[:count]
        related_pods = self._get_indirectly_related_pods(replica_set)
        related = Counter(pod["spec"].get("nodeName", "") for pod in related_pods if is_pod_active(pod))
        ranks = [related[pod["spec"].get("nodeName", "")] for pod in active]
        return sort_for_deletion(active, ranks, self.clock.now())[:count]

    def _get_indirectly_related_pods(self, replica_set: Object) -> Iterable[Object]:
        """Yields the pods of all ReplicaSets of the same Deployment."""
        owner = get_controller_of(replica_set)
        if owner is None:
            return
        seen = set()
        for sibling in self.cache.dependents_of(self.resource, owner["uid"]):
            selector = self.selector_of(sibling)
            for pod in self.cache.list("pods", replica_set["metadata"]["namespace"]):
                uid = pod["metadata"]["uid"]
                if uid not in seen and selector.matches(pod["metadata"].get("labels")):
                    seen.add(uid)
                    yield pod

    # --- Status -------------------------------------------------------------------------------------------------------

    def _update_status(self, replica_set: Object, active: list[Object], terminating: int, failure: ApiError | None) -> Object:
        """Writes the status if it has changed. Returns the new one."""
        old = replica_set.get("status") or {}
        new = self._calculate_status(replica_set, active, terminating, failure)
        new["observedGeneration"] = replica_set["metadata"].get("generation", 0)
        if new != {name: value for name, value in old.items() if value or name in ("replicas", "terminatingReplicas")}:
            self.client.update({**replica_set, "status": new}, subresource="status")
        return new

    def _calculate_status(self, replica_set: Object, active: list[Object], terminating: int, failure: ApiError | None) -> Object:
        spec = replica_set["spec"]
        template_labels = ((spec["template"].get("metadata") or {}).get("labels") or {}).items()
        labelled = sum(template_labels <= (pod["metadata"].get("labels") or {}).items() for pod in active)
        ready, available = count_ready(active, spec.get("minReadySeconds", 0), self.clock.now())
        counts = {"fullyLabeledReplicas": labelled, "readyReplicas": ready, "availableReplicas": available}
        status: Object = {"replicas": len(active), **{name: count for name, count in counts.items() if count}}
        if self.counts_terminating and self.context.emulation.enabled("DeploymentReplicaSetTerminatingReplicas"):
            status["terminatingReplicas"] = terminating
        conditions = self._status_conditions(replica_set, len(active), failure)
        if conditions:
            status["conditions"] = conditions
        return status

    def _status_conditions(self, replica_set: Object, active: int, failure: ApiError | None) -> list[Any]:
        conditions = list((replica_set.get("status") or {}).get("conditions") or ())
        has_failure = any(condition["type"] == "ReplicaFailure" for condition in conditions)
        if failure is None:
            return [condition for condition in conditions if condition["type"] != "ReplicaFailure"]
        if not has_failure:
            missing = active < replica_set["spec"].get("replicas", 0)
            conditions.append(
                {
                    "type": "ReplicaFailure",
                    "status": "True",
                    "lastTransitionTime": self.client.now(),
                    "reason": "FailedCreate" if missing else "FailedDelete",
                    "message": str(failure),
                }
            )
        return conditions


class ReplicationController(ReplicaSetController):
    """Creates and deletes the pods of ReplicationControllers, whose selector is a map of labels."""

    name = "replicationcontroller-controller"
    component = "replication-controller"
    kind = "ReplicationController"
    resource = "replicationcontrollers"
    counts_terminating = False
    watches = ("replicationcontrollers", "pods")

    def selector_of(self, replica_set: Object) -> LabelSelector:
        selector = replica_set["spec"].get("selector")
        return from_label_selector({"matchLabels": selector} if selector else None)


def slow_start_batch(count: int, create: Callable[[], Any]) -> ApiError | None:
    """Calls `create` so many times, in batches of 1, 2, 4, …; stops after the first batch with an error (slowStartBatch).

    Returns:
        the first error of that batch. Rejections because of a terminating namespace are ignored.
    """
    batch = 1
    while count > 0:
        batch = min(batch, count)
        failure = None
        for _ in range(batch):
            try:
                create()
            except ApiError as error:
                if not is_namespace_terminating(error):
                    failure = failure or error
        if failure is not None:
            return failure
        count -= batch
        batch *= 2
    return None
