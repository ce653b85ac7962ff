"""The status of a Deployment: the counts, and the conditions Available, Progressing and ReplicaFailure.

Specified by: pkg/controller/deployment/{progress,sync}.go.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from fakekube.apis.validation.objectmeta import find_condition
from fakekube.base.golang.strconv import go_quote
from fakekube.base.objects import Object
from fakekube.controllers.controller_utils import parse_time
from fakekube.controllers.deployment.utils import (
    Rollout,
    deployment_complete,
    get_replica_count,
    has_progress_deadline,
    max_unavailable,
    new_deployment_condition,
    remove_condition,
    replicas_of,
    set_condition,
    sum_status,
)
from fakekube.controllers.reconciler import Key

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
