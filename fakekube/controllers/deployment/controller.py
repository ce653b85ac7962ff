"""The Deployment controller: events, the strategies RollingUpdate, Recreate and rollback, and the status.

RollingUpdate scales the new ReplicaSet up within maxSurge, and the old ones down within maxUnavailable; unhealthy old pods are
removed first. Recreate creates no new pod before all old ones have terminated. A rollback writes a former template into the
Deployment, which is then rolled out as after any other change.

The status has counts, and the conditions Available, Progressing and ReplicaFailure.

Specified by: pkg/controller/deployment/{deployment_controller,rolling,recreate,rollback,sync,progress}.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from fakekube.apis.validation.objectmeta import find_condition
from fakekube.apis.well_known import DEPRECATED_ROLLBACK_TO
from fakekube.base.golang.strconv import go_quote
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.controller_ref_manager import ControllerRefManager, keys_of_controllers, selector_of
from fakekube.controllers.controller_utils import is_pod_terminal, parse_time
from fakekube.controllers.deployment.utils import (
    Rollout,
    annotations_of,
    by_creation,
    deployment_complete,
    equal_ignore_hash,
    get_replica_count,
    has_progress_deadline,
    last_revision,
    max_unavailable,
    new_deployment_condition,
    new_rs_new_replicas,
    remove_condition,
    replicas_of,
    revision_of,
    rollback_annotations,
    set_condition,
    sum_status,
    without_hash,
)
from fakekube.controllers.informers import get_controller_of
from fakekube.controllers.reconciler import Key, Reconciler

#: Fields that are pointers in Go: 0 is written.
_POINTERS: Final = frozenset({"terminatingReplicas", "collisionCount"})


def sync_deployment_status(rollout: Rollout, new: Object | None, old: list[Object]) -> None:
    """Writes the counts and the condition Available, if they have changed (syncDeploymentStatus)."""
    status = _calculate_status(rollout, new, [*old, *_as_list(new)])
    if status != rollout.status:
        rollout.write_status(status)


def sync_rollout_status(rollout: Rollout, new: Object | None, old: list[Object], key: Key) -> None:
    """Writes the status with the conditions Progressing and ReplicaFailure, if it has changed (syncRolloutStatus).

    If it has not, the key is requeued for the progress deadline.
    """
    deployment, replica_sets = rollout.deployment, [*old, *_as_list(new)]
    status = _calculate_status(rollout, new, replica_sets)
    if has_progress_deadline(deployment):
        status = _set_progressing(rollout, status, new)
    else:
        status = remove_condition(status, "Progressing")
    failure = _get_replica_failure(new, replica_sets)
    status = set_condition(status, failure) if failure else remove_condition(status, "ReplicaFailure")
    if status != rollout.status:
        rollout.write_status(status)
    else:
        _requeue_stuck_deployment(rollout, status, key)


def _as_list(replica_set: Object | None) -> list[Object]:
    return [] if replica_set is None else [replica_set]


def _calculate_status(rollout: Rollout, new: Object | None, replica_sets: list[Object]) -> Object:
    deployment = rollout.deployment
    available = sum_status(replica_sets, "availableReplicas")
    counts_terminating = rollout.controller.context.emulation.enabled("DeploymentReplicaSetTerminatingReplicas")
    counts = {
        "observedGeneration": deployment["metadata"].get("generation", 0),
        "replicas": sum_status(replica_sets, "replicas"),
        "updatedReplicas": sum_status(_as_list(new), "replicas"),
        "readyReplicas": sum_status(replica_sets, "readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(get_replica_count(replica_sets) - available, 0),
        "terminatingReplicas": _get_terminating_replicas(replica_sets) if counts_terminating else None,
        "collisionCount": rollout.status.get("collisionCount"),
        "conditions": rollout.status.get("conditions"),
    }
    status = {name: value for name, value in counts.items() if value or (value == 0 and name in _POINTERS)}
    enough = available >= replicas_of(deployment) - max_unavailable(deployment)
    reason, text = ("MinimumReplicasAvailable", "has") if enough else ("MinimumReplicasUnavailable", "does not have")
    message, now = f"Deployment {text} minimum availability.", rollout.controller.client.now()
    return set_condition(status, new_deployment_condition("Available", "True" if enough else "False", reason, message, now))


def _get_terminating_replicas(replica_sets: list[Object]) -> int | None:
    """Returns the sum of terminatingReplicas; None if the status of a ReplicaSet lacks it though it was observed."""
    total = 0
    for one in replica_sets:
        status = one.get("status") or {}
        count = status.get("terminatingReplicas")
        if count is None and status.get("observedGeneration"):
            return None
        total += count or 0
    return total


def _set_progressing(rollout: Rollout, status: Object, new: Object | None) -> Object:
    deployment = rollout.deployment
    current = find_condition(rollout.status, "Progressing")
    done = current is not None and current.get("reason") == "NewReplicaSetAvailable"
    if done and status.get("replicas", 0) == status.get("updatedReplicas", 0):
        return status
    subject = f"Deployment {go_quote(deployment['metadata']['name'])}"
    if new is not None:
        subject = f"ReplicaSet {go_quote(new['metadata']['name'])}"
    now = rollout.controller.client.now()
    if deployment_complete(deployment, status):
        text = f"{subject} has successfully progressed."
        return set_condition(status, new_deployment_condition("Progressing", "True", "NewReplicaSetAvailable", text, now))
    if _deployment_progressing(rollout.status, status):
        made = new_deployment_condition("Progressing", "True", "ReplicaSetUpdated", f"{subject} is progressing.", now)
        if current is not None and current["status"] == "True":
            made["lastTransitionTime"] = current["lastTransitionTime"]
        return set_condition(remove_condition(status, "Progressing"), made)
    if _deployment_timed_out(rollout, status):
        text = f"{subject} has timed out progressing."
        return set_condition(status, new_deployment_condition("Progressing", "False", "ProgressDeadlineExceeded", text, now))
    return status


def _deployment_progressing(old: Object, new: Object) -> bool:
    """Reports whether there are more updated, ready or available pods than before, or fewer old ones."""

    def outdated_replicas(status: Object) -> int:
        return status.get("replicas", 0) - status.get("updatedReplicas", 0)  # type: ignore[no-any-return]

    more = any(new.get(name, 0) > old.get(name, 0) for name in ("updatedReplicas", "readyReplicas", "availableReplicas"))
    return more or outdated_replicas(new) < outdated_replicas(old)


def _seconds_to_deadline(rollout: Rollout, condition: Object) -> float:
    """Returns the seconds until the progress deadline, which are negative after it."""
    seconds = rollout.deployment["spec"]["progressDeadlineSeconds"]
    end = parse_time(condition["lastUpdateTime"]) + timedelta(seconds=seconds)
    return (end - rollout.controller.clock.now()).total_seconds()


def _deployment_timed_out(rollout: Rollout, status: Object) -> bool:
    condition = find_condition(status, "Progressing")
    if condition is None or condition.get("reason") == "NewReplicaSetAvailable":
        return False
    return condition.get("reason") == "ProgressDeadlineExceeded" or _seconds_to_deadline(rollout, condition) < 0


def _requeue_stuck_deployment(rollout: Rollout, status: Object, key: Key) -> None:
    """Requeues the key for one second after the progress deadline, so that the condition is updated then."""
    condition = find_condition(status, "Progressing")
    if not has_progress_deadline(rollout.deployment) or condition is None:
        return
    if deployment_complete(rollout.deployment, status) or condition.get("reason") == "ProgressDeadlineExceeded":
        return
    rollout.controller.requeue_after(key, max(_seconds_to_deadline(rollout, condition), 0.0) + 1.0)


def _get_replica_failure(new: Object | None, replica_sets: list[Object]) -> Object | None:
    """Returns the condition ReplicaFailure of the new ReplicaSet, or else of another one."""
    for one in [*_as_list(new), *replica_sets]:
        condition = find_condition(one.get("status") or {}, "ReplicaFailure")
        if condition is not None:
            return {**condition, "lastUpdateTime": condition["lastTransitionTime"]}
    return None


def _filter_active_replica_sets(replica_sets: Iterable[Object]) -> list[Object]:
    return [one for one in replica_sets if replicas_of(one)]


def rollout_rolling(rollout: Rollout, key: Key) -> None:
    """Does one step of a RollingUpdate (rolloutRolling)."""
    new, old = rollout.get_all_and_sync_revision(create=True)
    assert new is not None
    scaled = _reconcile_new_replica_set(rollout, new, old) or _reconcile_old_replica_sets(rollout, new, old)
    if not scaled and deployment_complete(rollout.deployment, rollout.status):
        rollout.cleanup(old)
    sync_rollout_status(rollout, new, old, key)


def _reconcile_new_replica_set(rollout: Rollout, new: Object, old: list[Object]) -> bool:
    """Scales the new ReplicaSet. Returns whether its size has changed."""
    desired = replicas_of(rollout.deployment)
    if replicas_of(new) == desired:
        return False
    size = desired if replicas_of(new) > desired else new_rs_new_replicas(rollout.deployment, [*old, new], new)
    return rollout.scale_replica_set(new, size)[0]


def _reconcile_old_replica_sets(rollout: Rollout, new: Object, old: list[Object]) -> bool:
    """Scales old ReplicaSets down, as far as maxUnavailable allows. Returns whether a size has changed."""
    active = sorted(_filter_active_replica_sets(old), key=by_creation)
    min_available = replicas_of(rollout.deployment) - max_unavailable(rollout.deployment)
    new_unavailable = replicas_of(new) - sum_status([new], "availableReplicas")
    max_scaled_down = get_replica_count(active) + replicas_of(new) - min_available - new_unavailable
    if not active or max_scaled_down <= 0:
        return False
    if any(sum_status([one], "availableReplicas") > replicas_of(one) for one in active):
        return False  # a ReplicaSet was scaled down, and its status does not show it yet
    active, cleaned = _cleanup_unhealthy_replicas(rollout, active, max_scaled_down)
    surplus = sum_status([*active, new], "availableReplicas") - min_available
    return cleaned + _scale_down_old_replica_sets(rollout, active, surplus) > 0


def _cleanup_unhealthy_replicas(rollout: Rollout, active: list[Object], surplus: int) -> tuple[list[Object], int]:
    """Removes unavailable pods. Returns the updated ReplicaSets and the number of removed pods."""
    removed, result = 0, []
    for one in active:
        count = min(surplus - removed, replicas_of(one) - sum_status([one], "availableReplicas"))
        if count > 0:
            removed += count
        result.append(rollout.scale_replica_set(one, replicas_of(one) - max(count, 0))[1])
    return result, removed


def _scale_down_old_replica_sets(rollout: Rollout, active: list[Object], surplus: int) -> int:
    removed = 0
    for one in active:
        count = min(replicas_of(one), surplus - removed)
        if count > 0:
            rollout.scale_replica_set(one, replicas_of(one) - count)
            removed += count
    return removed


def rollout_recreate(rollout: Rollout, pods: dict[str, list[Object]], key: Key) -> None:
    """Does one step of Recreate (rolloutRecreate).

    Args:
        rollout: the sync of the Deployment.
        pods: the pods of each ReplicaSet, by its uid.
        key: the key of the Deployment.
    """
    new, old = rollout.get_all_and_sync_revision(create=False)
    scaled = [rollout.scale_replica_set(one, 0)[0] for one in _filter_active_replica_sets(old)]
    if any(scaled) or _old_pods_running(new, old, pods):
        sync_rollout_status(rollout, new, old, key)
        return
    if new is None:
        new, old = rollout.get_all_and_sync_revision(create=True)
        assert new is not None
    rollout.scale_replica_set(new, replicas_of(rollout.deployment))
    if deployment_complete(rollout.deployment, rollout.status):
        rollout.cleanup(old)
    sync_rollout_status(rollout, new, old, key)


def _old_pods_running(new: Object | None, old: list[Object], pods: dict[str, list[Object]]) -> bool:
    if sum_status(old, "replicas"):
        return True
    kept = new["metadata"]["uid"] if new is not None else None
    return any(not is_pod_terminal(pod) for uid, found in pods.items() if uid != kept for pod in found)


def get_rollback_to(deployment: Object) -> int | None:
    """Returns the revision in the rollback annotation (0: the previous revision); None if there is none (getRollbackTo)."""
    text = annotations_of(deployment).get(DEPRECATED_ROLLBACK_TO, "")
    try:
        return int(text) if text else None
    except ValueError:
        return None


def rollback(rollout: Rollout) -> None:
    """Writes the template of the requested revision into the Deployment, and removes the rollback annotation."""
    new, old = rollout.get_all_and_sync_revision(create=True)
    assert new is not None
    replica_sets = [*old, new]
    revision = get_rollback_to(rollout.deployment) or last_revision(replica_sets)
    if not revision:
        _refuse_rollback(rollout, "DeploymentRollbackRevisionNotFound", "Unable to find last revision.")
        return
    found = next((one for one in replica_sets if revision_of(one) == revision), None)
    if found is None:
        _refuse_rollback(rollout, "DeploymentRollbackRevisionNotFound", "Unable to find the revision to rollback to.")
        return
    name = rollout.deployment["metadata"]["name"]
    if equal_ignore_hash(rollout.deployment["spec"]["template"], found["spec"]["template"]):
        text = f"The rollback revision contains the same template as current deployment {go_quote(name)}"
        _refuse_rollback(rollout, "DeploymentRollbackTemplateUnchanged", text)
        return
    spec = {**rollout.deployment["spec"], "template": without_hash(found["spec"]["template"])}
    _update_and_clear_rollback(rollout, {**rollout.deployment, "spec": spec}, rollback_annotations(rollout.deployment, found))
    text = f"Rolled back deployment {go_quote(name)} to revision {revision}"
    rollout.controller.recorder.event(rollout.deployment, "Normal", "DeploymentRollback", text)


def _refuse_rollback(rollout: Rollout, reason: str, message: str) -> None:
    rollout.controller.recorder.event(rollout.deployment, "Warning", reason, message)
    _update_and_clear_rollback(rollout, rollout.deployment, annotations_of(rollout.deployment))


def _update_and_clear_rollback(rollout: Rollout, deployment: Object, annotations: dict[str, str]) -> None:
    kept = {name: value for name, value in annotations.items() if name != DEPRECATED_ROLLBACK_TO}
    rollout.controller.client.update({**deployment, "metadata": {**deployment["metadata"], "annotations": kept}})


class DeploymentController(Reconciler):
    """Creates and scales the ReplicaSets of Deployments."""

    name = "deployment-controller"
    watches = ("deployments.apps", "replicasets.apps", "pods")

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None = None) -> Iterable[Key]:
        metadata = obj["metadata"]
        if resource == "deployments.apps":
            return (Key(metadata["namespace"], metadata["name"]),)
        if resource == "pods":
            return self._keys_of_pod(obj) if event_type == "DELETED" else ()
        return keys_of_controllers(self.cache, obj, old, kind="Deployment", resource="deployments.apps")

    def _keys_of_pod(self, pod: StoredObject) -> Iterable[Key]:
        """Yields the key of a Deployment with the strategy Recreate, which waits for the deletion of its old pods."""
        owner, namespace = get_controller_of(pod), pod["metadata"]["namespace"]
        if owner is None or owner["kind"] != "ReplicaSet":
            return
        replica_set = self.cache.get("replicasets.apps", namespace, owner["name"])
        if replica_set is None or (found := get_controller_of(replica_set)) is None:
            return
        deployment = self.cache.get("deployments.apps", namespace, found["name"])
        if deployment is not None and deployment["spec"]["strategy"].get("type") == "Recreate":
            yield Key(namespace, found["name"])

    def reconcile(self, key: Key) -> None:
        deployment = self.cache.get("deployments.apps", key.namespace, key.name)
        if deployment is None:
            return
        if not any((deployment["spec"].get("selector") or {}).values()):
            self._report_empty_selector(deployment)
            return
        rollout = Rollout(self, deployment, self._claim_replica_sets(deployment))
        if "deletionTimestamp" in deployment["metadata"]:
            sync_deployment_status(rollout, *rollout.get_all_and_sync_revision(create=False))
            return
        self._check_paused_conditions(rollout)
        if deployment["spec"].get("paused"):
            self._sync_scale(rollout)
        elif get_rollback_to(rollout.deployment) is not None:
            rollback(rollout)
        elif rollout.is_scaling_event():
            self._sync_scale(rollout)
        elif deployment["spec"]["strategy"].get("type") == "Recreate":
            uids = [one["metadata"]["uid"] for one in rollout.replica_sets]
            rollout_recreate(rollout, {uid: list(self.cache.dependents_of("pods", uid)) for uid in uids}, key)
        else:
            rollout_rolling(rollout, key)

    def _report_empty_selector(self, deployment: Object) -> None:
        """Records an event and the generation for a Deployment whose selector matches all pods; it is not rolled out."""
        text = "This deployment is selecting all pods. A non-empty selector is required."
        self.recorder.event(deployment, "Warning", "SelectingAll", text)
        status, generation = deployment.get("status") or {}, deployment["metadata"].get("generation", 0)
        if status.get("observedGeneration", 0) < generation:
            changed = {**deployment, "status": {**status, "observedGeneration": generation}}
            self.client.update(changed, subresource="status")

    def _claim_replica_sets(self, deployment: Object) -> list[Object]:
        """Returns the ReplicaSets of the Deployment, after adoption and release."""
        selector = selector_of(deployment)
        manager = ControllerRefManager(
            self.client,
            deployment,
            "deployments.apps",
            "replicasets.apps",
            lambda replica_set: selector.matches(replica_set["metadata"].get("labels")),
        )
        return manager.claim_from(self.cache)

    def _check_paused_conditions(self, rollout: Rollout) -> None:
        """Writes the condition for a Deployment that was paused or resumed, which restarts the progress deadline."""
        if not has_progress_deadline(rollout.deployment):
            return
        condition = find_condition(rollout.status, "Progressing")
        reason = condition.get("reason") if condition is not None else None
        paused = bool(rollout.deployment["spec"].get("paused"))
        if reason == "ProgressDeadlineExceeded" or paused == (reason == "DeploymentPaused"):
            return
        word = "paused" if paused else "resumed"
        reason = f"Deployment{word.title()}"
        made = new_deployment_condition("Progressing", "Unknown", reason, f"Deployment is {word}", self.client.now())
        rollout.write_status(set_condition(rollout.status, made))

    def _sync_scale(self, rollout: Rollout) -> None:
        """Scales the ReplicaSets without a rollout."""
        new, old = rollout.get_all_and_sync_revision(create=False)
        rollout.scale(new, old)
        if rollout.deployment["spec"].get("paused") and get_rollback_to(rollout.deployment) is None:
            rollout.cleanup(old)
        sync_deployment_status(rollout, new, old)
