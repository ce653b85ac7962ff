"""The StatefulSet controller: events, revisions, the order of creations, updates and deletions of pods, and the status.

With podManagementPolicy OrderedReady, processing ends at the first pod that is not ready or was just created or deleted. Hence
pods are created one by one from the lowest ordinal up, and deleted from the highest down. With Parallel it continues. In both
cases outdated pods are replaced one by one, from the highest ordinal down to the partition, each when all above it are available;
with the gate MaxUnavailableStatefulSet as many at a time as maxUnavailable allows.

Invariant: a pod is created only when all of its claims exist and none of them is being deleted.

Specified by: pkg/controller/statefulset/{stateful_set,stateful_set_control}.go (updateStatefulSet);
pkg/controller/statefulset/stateful_pod_control.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from fakekube.apimachinery.features import Emulation
from fakekube.apimachinery.schema.trees import in_order
from fakekube.apis.apps.statefulsets import RECREATE
from fakekube.apis.validation.objectmeta import set_status_condition
from fakekube.base.golang.strings import aggregate_errors
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers import history
from fakekube.controllers.client import ApiError
from fakekube.controllers.controller_ref_manager import ControllerRefManager, keys_of_controllers, selector_of
from fakekube.controllers.controller_utils import (
    find_min_next_pod_availability_check,
    get_scaled_value,
    is_pod_available,
    phase_of,
)
from fakekube.controllers.informers import get_controller_of
from fakekube.controllers.reconciler import Key, Reconciler
from fakekube.controllers.statefulset.utils import (
    get_ordinal,
    get_persistent_volume_claim_retention_policy,
    get_persistent_volume_claims,
    get_pod_revision,
    get_start_ordinal,
    has_stale_owner_ref,
    has_unexpected_controller,
    identity_matches,
    is_claim_owner_up_to_date,
    is_created,
    is_member_of,
    is_running_and_ready,
    is_unavailable,
    new_versioned_pod,
    pod_in_ordinal_range,
    storage_matches,
    update_claim_owner_refs,
    update_identity,
    update_storage,
)

#: The first minor whose messages of events begin with a capital letter.
_TITLES_SINCE: Final = 35
#: The first minor that replaces the outdated pods of parallel sets that are not available first, keeps the conditions of the
#: status, and completes updates of the strategy OnDelete, too.
_PARALLEL_SINCE: Final = 37
_PROGRESSING: Final = "Progressing"


class StatefulPodControl:
    """Writes the pods and claims of one StatefulSet.

    Args:
        controller: provides the client, the cache and the recorder.
        stateful_set: the owner of the pods, and the subject of the events.
    """

    def __init__(self, controller: Reconciler, stateful_set: Object) -> None:
        self._controller = controller
        self._set = stateful_set
        self.client = controller.client

    # --- Pods ---------------------------------------------------------------------------------------------------------

    def create(self, pod: Object) -> Object:
        """Creates a pod and its claims. Raises ApiError, after an event unless the pod exists already."""
        try:
            self._create_claims(pod)
            try:
                created = self._controller.client.create(pod)
            except ApiError as error:
                if error.reason == "AlreadyExists":
                    raise _PodExists(error) from error
                raise
        except _PodExists as exists:
            raise exists.error from None
        except ApiError as error:
            self._record_pod_event("create", pod, error)
            raise
        self.update_claim_owners(created)
        self._record_pod_event("create", pod)
        return created

    def update(self, pod: Object) -> None:
        """Restores the identity, the volumes and the claims of a pod. Raises ApiError."""
        updated = pod
        if not identity_matches(updated, self._set):
            updated = update_identity(updated)
        try:
            if not storage_matches(updated, self._set):
                updated = update_storage(updated, self._set)
                self._create_claims(updated)
            changed = updated is not pod
            if not self.claims_match_retention_policy(updated):
                self.update_claim_owners(updated)
                changed = True
            if not changed:
                return
            self._controller.client.update(updated)
        except ApiError as error:
            self._record_pod_event("update", pod, error)
            raise
        self._record_pod_event("update", pod)

    def delete(self, pod: Object) -> None:
        """Deletes a pod. Raises ApiError, after an event."""
        metadata = pod["metadata"]
        try:
            self._controller.client.delete("pods", metadata["name"], namespace=metadata["namespace"])
        except ApiError as error:
            if error.code != 404:
                self._record_pod_event("delete", pod, error)
                raise
        self._record_pod_event("delete", pod)

    # --- Claims -------------------------------------------------------------------------------------------------------

    def create_missing_claims(self, pod: Object) -> None:
        """Creates the missing claims of a pending pod. Raises ApiError."""
        self._create_claims(pod)
        self.update_claim_owners(pod)

    def claims_match_retention_policy(self, pod: Object) -> bool:
        """Reports whether the owner references of the pod's claims follow the retention policy."""
        scaled_down = not pod_in_ordinal_range(pod, self._set)
        return all(is_claim_owner_up_to_date(claim, self._set, pod, scaled_down) for claim in self._existing_claims(pod))

    def update_claim_owners(self, pod: Object) -> None:
        """Sets the owner references of the pod's claims by the retention policy. Raises ApiError."""
        scaled_down = not pod_in_ordinal_range(pod, self._set)
        for claim in self._existing_claims(pod):
            if has_unexpected_controller(claim, self._set, pod):
                text = (
                    f"PersistentVolumeClaim {claim['metadata']['name']} has a conflicting OwnerReference that acts as a "
                    "manging controller, the retention policy is ignored for this claim"
                )
                self._record_event("Warning", "ConflictingController", text)
            if not is_claim_owner_up_to_date(claim, self._set, pod, scaled_down):
                self._controller.client.update(update_claim_owner_refs(claim, self._set, pod, scaled_down))

    def pod_claim_is_stale(self, pod: Object) -> bool:
        """Reports whether a former pod of this name still owns a claim, which is therefore about to be deleted."""
        if not get_persistent_volume_claim_retention_policy(self._set)[1]:
            return False
        return any(has_stale_owner_ref(claim, pod) for claim in self._existing_claims(pod))

    def _existing_claims(self, pod: Object) -> list[Object]:
        found = (self._get_claim(claim) for claim in get_persistent_volume_claims(self._set, get_ordinal(pod)))
        return [claim for claim in found if claim is not None]

    def _get_claim(self, claim: Object) -> Object | None:
        metadata = claim["metadata"]
        return self._controller.cache.get("persistentvolumeclaims", metadata["namespace"], metadata["name"])

    def _create_claims(self, pod: Object) -> None:
        failures = []
        for claim in get_persistent_volume_claims(self._set, get_ordinal(pod)):
            name, existing = claim["metadata"]["name"], self._get_claim(claim)
            if existing is not None:
                if "deletionTimestamp" in existing["metadata"]:
                    failures.append(f"pvc {name} is being deleted")
                continue
            try:
                self._controller.client.create(claim)
            except ApiError as error:
                failures.append(f"failed to create PVC {name}: {error}")
                if error.reason != "AlreadyExists":
                    self._record_claim(name, pod, error)
            else:
                self._record_claim(name, pod)
        if failures:
            raise ApiError({"code": 500, "reason": "InternalError", "message": aggregate_errors(failures)})

    # --- Events -------------------------------------------------------------------------------------------------------

    def _record_event(self, type_: str, reason: str, message: str) -> None:
        self._controller.recorder.event(self._set, type_, reason, message)

    def _record_pod_event(self, verb: str, pod: Object, error: ApiError | None = None) -> None:
        title = verb.title()
        word = title if self._controller.context.emulation.minor >= _TITLES_SINCE else verb
        subject = f"{word} Pod {pod['metadata']['name']} in StatefulSet {self._set['metadata']['name']}"
        if error is None:
            self._record_event("Normal", f"Successful{title}", f"{subject} successful")
        else:
            self._record_event("Warning", f"Failed{title}", f"{subject} failed error: {error}")

    def _record_claim(self, claim: str, pod: Object, error: ApiError | None = None) -> None:
        of_set = f"Pod {pod['metadata']['name']} in StatefulSet {self._set['metadata']['name']}"
        word = "Create" if self._controller.context.emulation.minor >= _TITLES_SINCE else "create"
        if error is None:
            self._record_event("Normal", "SuccessfulCreate", f"{word} Claim {claim} {of_set} success")
        else:
            self._record_event("Warning", "FailedCreate", f"{word} Claim {claim} for {of_set} failed error: {error}")


class _PodExists(Exception):
    """A pod of that name exists already; no event is recorded for this error."""

    def __init__(self, error: ApiError) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(slots=True)
class StatefulSetUpdate:
    """One update of the pods of a StatefulSet.

    Args:
        control: writes pods and claims.
        stateful_set: the StatefulSet.
        current: the current ControllerRevision, which pods below the partition have.
        update: the ControllerRevision of the present template.
        now: the time from which availability is calculated.
        emulation: the minor and the gates.
    """

    control: StatefulPodControl
    stateful_set: Object
    current: Object
    update: Object
    now: datetime
    emulation: Emulation
    deleted_outdated: int = 0
    conditions: list[Object] = field(default_factory=list)
    """Those of the new status."""

    @property
    def _is_ordered(self) -> bool:
        return bool(self.stateful_set["spec"].get("podManagementPolicy") != "Parallel")

    @property
    def _min_ready_seconds(self) -> int:
        return self.stateful_set["spec"].get("minReadySeconds", 0)  # type: ignore[no-any-return]

    def run(self, pods: Iterable[Object]) -> tuple[Object, ApiError | None]:
        """Processes all pods of the StatefulSet.

        Returns:
            the counts of the status, and the error that ended the processing.
        """
        replicas, condemned = self._replicas_and_condemned(pods)
        present = [pod for pod in replicas if is_created(pod)]
        if "deletionTimestamp" in self.stateful_set["metadata"]:
            return self._compute_replica_status([*present, *condemned]), None
        failure = None
        try:
            if self._is_recreated(replicas, condemned):
                return self._compute_replica_status([*replicas, *condemned]), None
            if not self._process_replicas(replicas) and not self._process_condemned(replicas, condemned):
                self._replace_outdated(replicas)
        except ApiError as error:
            failure = error
        counts = self._compute_replica_status([*replicas, *condemned])
        counts["currentReplicas"] -= self.deleted_outdated
        return counts, failure

    def _replicas_and_condemned(self, pods: Iterable[Object]) -> tuple[list[Object], list[Object]]:
        """Returns the replicas by ordinal, with new pods for missing ones, and the pods beyond them, the highest first."""
        pods = list(pods)
        by_ordinal = {get_ordinal(pod): pod for pod in pods if pod_in_ordinal_range(pod, self.stateful_set)}
        condemned = [pod for pod in pods if get_ordinal(pod) >= 0 and not pod_in_ordinal_range(pod, self.stateful_set)]
        start = get_start_ordinal(self.stateful_set)
        ordinals = range(start, start + self.stateful_set["spec"].get("replicas", 0))
        replicas = [by_ordinal.get(ordinal) or self._new_pod(ordinal) for ordinal in ordinals]
        return replicas, sorted(condemned, key=get_ordinal, reverse=True)

    def _new_pod(self, ordinal: int) -> Object:
        """Returns a new pod of the update revision or, below the partition, of the current one."""
        strategy = self.stateful_set["spec"].get("updateStrategy") or {}
        rolling = strategy.get("rollingUpdate")
        if rolling is not None:
            partition = rolling.get("partition", 0)
        elif strategy.get("type") == "RollingUpdate":
            partition = (self.stateful_set.get("status") or {}).get("currentReplicas", 0)
        else:
            partition = 0
        below = ordinal < get_start_ordinal(self.stateful_set) + partition
        revision = self.current if below else self.update
        template = {name: part for name, part in revision["data"]["spec"]["template"].items() if name != "$patch"}
        versioned = {**self.stateful_set, "spec": {**self.stateful_set["spec"], "template": template}}
        return new_versioned_pod(versioned, ordinal, revision["metadata"]["name"])

    # --- Steps --------------------------------------------------------------------------------------------------------

    def _run_for_all(self, pods: list[Object], step: Callable[[int], bool]) -> bool:
        """Runs a step for the index of each pod (runForAll).

        If pods are ordered, the first step that returns True ends processing. Else only an error does, after its batch.
        """
        if self._is_ordered:
            return any(step(index) for index in range(len(pods)))
        start, size = 0, 1
        while start < len(pods):
            failure = None
            for index in range(start, min(start + size, len(pods))):
                try:
                    step(index)
                except ApiError as error:
                    failure = failure or error
            if failure is not None:
                raise failure
            start, size = start + size, size * 2
        return False

    def _process_replicas(self, replicas: list[Object]) -> bool:
        """Creates and updates the replicas. Returns whether processing ends here."""
        return self._run_for_all(replicas, lambda index: self._process_replica(replicas, index))

    def _process_replica(self, replicas: list[Object], index: int) -> bool:
        pod, ordered = replicas[index], self._is_ordered
        if phase_of(pod) in ("Failed", "Succeeded"):
            if "deletionTimestamp" not in pod["metadata"]:
                self.control.delete(pod)
            return True
        if not is_created(pod):
            if self.control.pod_claim_is_stale(pod):
                return True
            created = self.control.create(pod)
            if ordered:
                return True
            pod = replicas[index] = {**created, "status": {}}  # counts are of the state before this pass
        if phase_of(pod) == "Pending":
            self.control.create_missing_claims(pod)
        if ordered:
            available = is_pod_available(pod, self._min_ready_seconds, self.now)
            if "deletionTimestamp" in pod["metadata"] or not is_running_and_ready(pod) or not available:
                return True
        matching = identity_matches(pod, self.stateful_set) and storage_matches(pod, self.stateful_set)
        if not matching or not self.control.claims_match_retention_policy(pod):
            self.control.update(pod)
        return False

    def _process_condemned(self, replicas: list[Object], condemned: list[Object]) -> bool:
        """Deletes the condemned pods. Returns whether processing ends here."""
        first = self._first_unavailable(replicas, condemned)
        self._run_for_all(condemned, lambda index: self._fix_pod_claim(condemned[index]))
        return self._run_for_all(condemned, lambda index: self._process_condemned_pod(condemned[index], first))

    def _first_unavailable(self, replicas: list[Object], condemned: list[Object]) -> Object | None:
        lowest_first = [*replicas, *reversed(condemned)]
        return next(filter(self._is_unavailable, lowest_first), None)

    def _fix_pod_claim(self, pod: Object) -> bool:
        if not self.control.claims_match_retention_policy(pod):
            self.control.update_claim_owners(pod)
        return False

    def _process_condemned_pod(self, pod: Object, first_unavailable: Object | None) -> bool:
        if "deletionTimestamp" in pod["metadata"]:
            return self._is_ordered
        available = is_running_and_ready(pod) and is_pod_available(pod, self._min_ready_seconds, self.now)
        if self._is_ordered and not available and pod is not first_unavailable:
            return True
        self.control.delete(pod)
        return True

    def _replace_outdated(self, replicas: list[Object]) -> None:
        """Deletes outdated pods as the strategy says."""
        strategy = self.stateful_set["spec"].get("updateStrategy") or {}
        if strategy.get("type") in ("OnDelete", RECREATE):
            return
        rolling = strategy.get("rollingUpdate") or {}
        candidates = replicas[rolling.get("partition", 0) :][::-1]
        if self.emulation.enabled("MaxUnavailableStatefulSet"):
            most = max(get_scaled_value(rolling.get("maxUnavailable", 1), len(replicas), round_up=False), 1)
            self._replace_up_to(most, replicas, candidates)
            return
        for pod in candidates:
            if self._is_outdated(pod):
                self._delete_outdated(pod)
                return
            if self._is_unavailable(pod):
                return

    def _replace_up_to(self, most: int, replicas: list[Object], candidates: list[Object]) -> None:
        """Deletes the highest outdated pods, so that at most `most` pods are unavailable.

        Of a parallel set those that are not available go first, whatever the limit (updateStatefulSetAfterInvariantEstablished).
        """
        left = most - sum(map(self._is_unavailable, replicas))
        if not self._is_ordered and self.emulation.minor >= _PARALLEL_SINCE:
            broken = [pod for pod in candidates if self._is_outdated(pod) and self._is_unavailable(pod)]
            sound = [pod for pod in candidates if self._is_outdated(pod) and not self._is_unavailable(pod)]
            candidates = [*broken, *sound[: max(left, 0)]]
        else:
            candidates = [pod for pod in candidates if self._is_outdated(pod)][: max(left, 0)]
        for pod in candidates:
            self._delete_outdated(pod)

    def _is_recreated(self, replicas: list[Object], condemned: list[Object]) -> bool:
        """Deletes all outdated pods of the strategy Recreate. Returns whether some are left (recreateDeleteAndWait)."""
        if (self.stateful_set["spec"].get("updateStrategy") or {}).get("type") != RECREATE:
            return False
        outdated = [
            pod for pod in (*replicas, *condemned) if is_created(pod) and get_pod_revision(pod) != self.update["metadata"]["name"]
        ]
        for pod in outdated:
            if self._is_outdated(pod):
                self.control.delete(pod)
        if outdated:
            self._set_progressing("True", "RecreateInProgress", "Deleting old revision pods")
        elif self.current["metadata"]["name"] != self.update["metadata"]["name"]:
            self._set_progressing("True", "RecreateInProgress", "Waiting for new-revision pods to be created")
        return bool(outdated)

    def _set_progressing(self, status: str, reason: str, message: str) -> None:
        condition = {"type": _PROGRESSING, "status": status, "reason": reason, "message": message}
        condition["lastTransitionTime"] = self.control.client.now()
        self.conditions = set_status_condition(self.conditions, condition)

    def complete_recreation(self) -> None:
        """Sets the condition of an update by the strategy Recreate that is complete."""
        recreates = (self.stateful_set["spec"].get("updateStrategy") or {}).get("type") == RECREATE
        if recreates and any(condition["type"] == _PROGRESSING for condition in self.conditions):
            self._set_progressing("False", "RecreateCompleted", "All pods recreated successfully")

    def _is_outdated(self, pod: Object) -> bool:
        return get_pod_revision(pod) != self.update["metadata"]["name"] and "deletionTimestamp" not in pod["metadata"]

    def _is_unavailable(self, pod: Object) -> bool:
        return is_unavailable(pod, self._min_ready_seconds, self.now)

    def _delete_outdated(self, pod: Object) -> None:
        self.control.delete(pod)
        self.deleted_outdated += 1

    # --- Status -------------------------------------------------------------------------------------------------------

    def _compute_replica_status(self, pods: Iterable[Object]) -> Object:
        """Returns the counts of the status (computeReplicaStatus)."""
        created = [pod for pod in pods if is_created(pod)]
        ready = [pod for pod in created if is_running_and_ready(pod)]
        revisions = [get_pod_revision(pod) for pod in created if "deletionTimestamp" not in pod["metadata"]]
        return {
            "replicas": len(created),
            "readyReplicas": len(ready),
            "availableReplicas": sum(is_pod_available(pod, self._min_ready_seconds, self.now) for pod in ready),
            "currentReplicas": revisions.count(self.current["metadata"]["name"]),
            "updatedReplicas": revisions.count(self.update["metadata"]["name"]),
        }


_COMPARED_STATUS_FIELDS: Final = (
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

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None = None) -> Iterable[Key]:
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
        revisions = self._list_revisions(stateful_set)
        if any(get_controller_of(one) is None for one in revisions):
            history.adopt_controller_revisions(self.client, stateful_set, revisions)
            revisions = self._list_revisions(stateful_set)
        pods = self._claim_pods(stateful_set)
        current, update, collisions = self._get_stateful_set_revisions(stateful_set, revisions)
        emulation, control = self.context.emulation, StatefulPodControl(self, stateful_set)
        if self._is_unknown_strategy(stateful_set):
            return
        conditions = (stateful_set.get("status") or {}).get("conditions") or []
        set_update = StatefulSetUpdate(control, stateful_set, current, update, self.clock.now(), emulation, conditions=conditions)
        counts, failure = set_update.run(pods)
        status = self._update_status(set_update, counts, collisions)
        self._truncate_history(stateful_set, pods, revisions, current, update)
        if failure is not None:
            raise failure
        min_ready = stateful_set["spec"].get("minReadySeconds", 0)
        if min_ready and status["readyReplicas"] != status["availableReplicas"]:
            wait = find_min_next_pod_availability_check(pods, min_ready, self.clock.now())
            if wait is not None:
                self.requeue_after(key, wait)

    def _is_unknown_strategy(self, stateful_set: Object) -> bool:
        """Reports whether the strategy is Recreate and its gate is off, and says so in an event."""
        gate, metadata = "StatefulSetRecreateStrategy", stateful_set["metadata"]
        strategy = (stateful_set["spec"].get("updateStrategy") or {}).get("type")
        if strategy != RECREATE or self.context.emulation.enabled(gate):
            return False
        name = f"{metadata['namespace']}/{metadata['name']}"
        text = f"statefulset {name} uses Recreate strategy but feature gate {gate} is disabled"
        self.recorder.event(stateful_set, "Warning", "UnknownStrategy", text)
        return True

    def _claim_pods(self, stateful_set: Object) -> list[Object]:
        selector = selector_of(stateful_set)

        def matches(pod: Object) -> bool:
            return selector.matches(pod["metadata"].get("labels")) and is_member_of(pod, stateful_set)

        manager = ControllerRefManager(self.client, stateful_set, "statefulsets.apps", "pods", matches)
        return manager.claim_from(self.cache)

    # --- Revisions ----------------------------------------------------------------------------------------------------

    def _list_revisions(self, stateful_set: Object) -> list[Object]:
        return history.list_controller_revisions(self.cache, stateful_set, selector_of(stateful_set))

    def _get_stateful_set_revisions(self, stateful_set: Object, revisions: list[Object]) -> tuple[Object, Object, int]:
        """Returns the current revision, the update revision, which it creates if it is missing, and status.collisionCount."""
        status = stateful_set.get("status") or {}
        collisions = status.get("collisionCount") or 0
        data = in_order(history.template_patch(stateful_set["spec"]["template"]))
        number = history.next_revision(revisions)
        equal = [one for one in revisions if history.has_data(one, data)]
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

    # --- Status -------------------------------------------------------------------------------------------------------

    def _update_status(self, set_update: StatefulSetUpdate, counts: Object, collisions: int) -> Object:
        """Writes the status if it has changed. Returns the new one."""
        stateful_set, current, update = set_update.stateful_set, set_update.current, set_update.update
        spec, old = stateful_set["spec"], stateful_set.get("status") or {}
        keeps_conditions = self.context.emulation.minor >= _PARALLEL_SINCE
        status = {
            "observedGeneration": stateful_set["metadata"].get("generation", 0),
            **counts,
            "currentRevision": current["metadata"]["name"],
            "updateRevision": update["metadata"]["name"],
            "collisionCount": collisions,
        }
        desired = spec.get("replicas", 0)
        completes = keeps_conditions or (spec.get("updateStrategy") or {}).get("type") == "RollingUpdate"
        if completes and all(status[name] == desired for name in ("updatedReplicas", "readyReplicas", "replicas")):
            status["currentReplicas"] = status["updatedReplicas"]
            status["currentRevision"] = status["updateRevision"]
            set_update.complete_recreation()
        if keeps_conditions and set_update.conditions:
            status["conditions"] = set_update.conditions
        observed = status["observedGeneration"] <= old.get("observedGeneration", 0)
        changed = keeps_conditions and (old.get("conditions") or []) != set_update.conditions
        if not observed or changed or any((old.get(name) or 0) != (status[name] or 0) for name in _COMPARED_STATUS_FIELDS):
            self.client.update({**stateful_set, "status": status}, subresource="status")
        return status
