"""ReplicaSets and ReplicationControllers: as many pods as `spec.replicas` says, and a status that counts them.

A controller claims the active pods in its namespace that its selector matches, creates missing ones in batches of 1, 2,
4, … (so that a refusal costs few calls) and deletes surplus ones in the order of `pods.deletion_order`. What stops it
stands in the condition ReplicaFailure.

Invariant: a status is written only if something in it changes, after the pods have been taken care of.

Specified by: pkg/controller/replicaset/{replica_set,replica_set_utils}.go, pkg/controller/replication.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, ClassVar

from fakekube.client import ApiError
from fakekube.controllers.owners import ControllerRefManager, controller_of, keys_of_controllers, selector_of
from fakekube.controllers.pods import (
    PodControl,
    count_ready,
    deletion_order,
    is_active,
    is_terminating,
    namespace_is_terminating,
    next_availability,
    pod_from_template,
)
from fakekube.controllers.reconciler import Key, Object, Reconciler
from fakekube.selectors import LabelSelector, from_label_selector

__all__ = ["ReplicaSetController", "ReplicationController", "create_in_batches"]

BURST_REPLICAS = 500


class ReplicaSetController(Reconciler):
    """Keeps the pods of ReplicaSets."""

    name = "replicaset-controller"
    kind: ClassVar[str] = "ReplicaSet"
    resource: ClassVar[str] = "replicasets.apps"
    counts_terminating: ClassVar[bool] = True
    """The status has terminatingReplicas."""
    watches = ("replicasets.apps", "pods")

    def keys(self, resource: str, event_type: str, obj: Object, old: Object | None = None) -> Iterable[Key]:
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
        owned = list(self.cache.owned_by("pods", uid))
        active = self._claim_pods(replica_set, selector, owned)
        terminating = [pod for pod in owned if is_terminating(pod) and selector.matches(pod["metadata"].get("labels"))]
        failure = None
        if "deletionTimestamp" not in replica_set["metadata"]:
            failure = self._manage_replicas(replica_set, active)
        status = self._update_status(replica_set, active, len(terminating), failure)
        if failure is not None:
            raise failure
        min_ready = replica_set["spec"].get("minReadySeconds", 0)
        if min_ready and status.get("readyReplicas", 0) != status.get("availableReplicas", 0):
            wait = next_availability(active, min_ready, self.clock.now())
            if wait is not None:
                self.requeue_after(key, wait)

    def selector_of(self, replica_set: Object) -> LabelSelector:
        """The selector of its pods."""
        return selector_of(replica_set)

    # ---- pods

    def _claim_pods(self, replica_set: Object, selector: LabelSelector, owned: list[Object]) -> list[Object]:
        namespace = replica_set["metadata"]["namespace"]
        manager = ControllerRefManager(
            self.client, replica_set, self.resource, "pods", lambda pod: selector.matches(pod["metadata"].get("labels"))
        )
        candidates = [*owned, *self.cache.orphans("pods", namespace)]
        return manager.claim([pod for pod in candidates if is_active(pod)])

    def _manage_replicas(self, replica_set: Object, active: list[Object]) -> ApiError | None:
        """Create or delete pods; the error that stopped it."""
        surplus = len(active) - replica_set["spec"].get("replicas", 0)
        control = PodControl(self.client, self.recorder)
        if surplus < 0:
            template = pod_from_template(replica_set["spec"]["template"], replica_set)
            return create_in_batches(min(-surplus, BURST_REPLICAS), lambda: control.create(template, replica_set))
        failure = None
        for pod in self._to_delete(replica_set, active, min(surplus, BURST_REPLICAS)):
            try:
                control.delete(pod, replica_set)
            except ApiError as error:
                if error.code != 404:
                    failure = failure or error
        return failure

    def _to_delete(self, replica_set: Object, active: list[Object], count: int) -> list[Object]:
        if not 0 < count < len(active):
            return active[:count]
        related = Counter(pod["spec"].get("nodeName", "") for pod in self._related_pods(replica_set) if is_active(pod))
        ranks = [related[pod["spec"].get("nodeName", "")] for pod in active]
        return deletion_order(active, ranks, self.clock.now())[:count]

    def _related_pods(self, replica_set: Object) -> Iterable[Object]:
        """The pods of all ReplicaSets of the same Deployment."""
        owner = controller_of(replica_set)
        if owner is None:
            return
        seen = set()
        for sibling in self.cache.owned_by(self.resource, owner["uid"]):
            selector = self.selector_of(sibling)
            for pod in self.cache.list("pods", replica_set["metadata"]["namespace"]):
                uid = pod["metadata"]["uid"]
                if uid not in seen and selector.matches(pod["metadata"].get("labels")):
                    seen.add(uid)
                    yield pod

    # ---- status

    def _update_status(self, replica_set: Object, active: list[Object], terminating: int, failure: ApiError | None) -> Object:
        """Write the status if it has changed; gives the new one."""
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
        if self.counts_terminating:
            status["terminatingReplicas"] = terminating
        conditions = self._conditions(replica_set, len(active), failure)
        if conditions:
            status["conditions"] = conditions
        return status

    def _conditions(self, replica_set: Object, active: int, failure: ApiError | None) -> list[Any]:
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
    """The same for ReplicationControllers, whose selector is a map."""

    name = "replicationcontroller-controller"
    component = "replication-controller"
    kind = "ReplicationController"
    resource = "replicationcontrollers"
    counts_terminating = False
    watches = ("replicationcontrollers", "pods")

    def selector_of(self, replica_set: Object) -> LabelSelector:
        selector = replica_set["spec"].get("selector")
        return from_label_selector({"matchLabels": selector} if selector else None)


def create_in_batches(count: int, create: Any) -> ApiError | None:
    """Call `create` so many times, in batches of 1, 2, 4, …; after a batch with a failure no further one is begun.

    Returns:
        The first error of that batch; that a namespace is being deleted is none.
    """
    batch = 1
    while count > 0:
        batch = min(batch, count)
        failure = None
        for _ in range(batch):
            try:
                create()
            except ApiError as error:
                if not namespace_is_terminating(error):
                    failure = failure or error
        if failure is not None:
            return failure
        count -= batch
        batch *= 2
    return None
