"""What a Deployment's status says: counts, and the conditions Available, Progressing and ReplicaFailure.

Specified by: pkg/controller/deployment/{sync,progress}.go.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from fakekube.controllers.deployment.arithmetic import is_complete, max_unavailable, replicas_of, specified, status_sum
from fakekube.controllers.deployment.conditions import (
    condition_of,
    has_progress_deadline,
    made_condition,
    with_condition,
    without_condition,
)
from fakekube.controllers.deployment.replica_sets import Rollout
from fakekube.controllers.pods import moment
from fakekube.controllers.reconciler import Key
from fakekube.golang.quoting import go_quote

__all__ = ["sync_rollout_status", "sync_status"]

Object = dict[str, Any]

_ALWAYS_THERE = frozenset({"terminatingReplicas", "collisionCount"})
"""Pointers in Go: they are kept though they are 0."""


def sync_status(rollout: Rollout, new: Object | None, old: list[Object]) -> None:
    """Write counts and the condition Available, if they have changed."""
    status = _calculated(rollout, new, [*old, *_present(new)])
    if status != rollout.status:
        rollout.write_status(status)


def sync_rollout_status(rollout: Rollout, new: Object | None, old: list[Object], key: Key) -> None:
    """The same with the conditions Progressing and ReplicaFailure; else look again when the progress deadline is over."""
    deployment, replica_sets = rollout.deployment, [*old, *_present(new)]
    status = _calculated(rollout, new, replica_sets)
    if has_progress_deadline(deployment):
        status = _with_progress(rollout, status, new)
    else:
        status = without_condition(status, "Progressing")
    failure = _replica_failure(new, replica_sets)
    status = with_condition(status, failure) if failure else without_condition(status, "ReplicaFailure")
    if status != rollout.status:
        rollout.write_status(status)
    else:
        _requeue_at_deadline(rollout, status, key)


def _present(replica_set: Object | None) -> list[Object]:
    return [] if replica_set is None else [replica_set]


def _calculated(rollout: Rollout, new: Object | None, replica_sets: list[Object]) -> Object:
    deployment = rollout.deployment
    available = status_sum(replica_sets, "availableReplicas")
    counts = {
        "observedGeneration": deployment["metadata"].get("generation", 0),
        "replicas": status_sum(replica_sets, "replicas"),
        "updatedReplicas": status_sum(_present(new), "replicas"),
        "readyReplicas": status_sum(replica_sets, "readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(specified(replica_sets) - available, 0),
        "terminatingReplicas": _terminating(replica_sets),
        "collisionCount": rollout.status.get("collisionCount"),
        "conditions": rollout.status.get("conditions"),
    }
    status = {name: value for name, value in counts.items() if value or (value == 0 and name in _ALWAYS_THERE)}
    enough = available >= replicas_of(deployment) - max_unavailable(deployment)
    reason, text = ("MinimumReplicasAvailable", "has") if enough else ("MinimumReplicasUnavailable", "does not have")
    verdict, message = ("True" if enough else "False"), f"Deployment {text} minimum availability."
    return with_condition(status, made_condition("Available", verdict, reason, message, rollout.controller.client.now()))


def _terminating(replica_sets: list[Object]) -> int | None:
    """The sum of terminatingReplicas; None if a ReplicaSet that was observed does not tell it."""
    total = 0
    for one in replica_sets:
        status = one.get("status") or {}
        count = status.get("terminatingReplicas")
        if count is None and status.get("observedGeneration"):
            return None
        total += count or 0
    return total


def _with_progress(rollout: Rollout, status: Object, new: Object | None) -> Object:
    deployment = rollout.deployment
    current = condition_of(rollout.status, "Progressing")
    done = current is not None and current.get("reason") == "NewReplicaSetAvailable"
    if done and status.get("replicas", 0) == status.get("updatedReplicas", 0):
        return status
    subject = f"Deployment {go_quote(deployment['metadata']['name'])}"
    if new is not None:
        subject = f"ReplicaSet {go_quote(new['metadata']['name'])}"
    now = rollout.controller.client.now()
    if is_complete(deployment, status):
        text = f"{subject} has successfully progressed."
        return with_condition(status, made_condition("Progressing", "True", "NewReplicaSetAvailable", text, now))
    if _has_progressed(rollout.status, status):
        made = made_condition("Progressing", "True", "ReplicaSetUpdated", f"{subject} is progressing.", now)
        if current is not None and current["status"] == "True":
            made["lastTransitionTime"] = current["lastTransitionTime"]
        return with_condition(without_condition(status, "Progressing"), made)
    if _has_timed_out(rollout, status):
        text = f"{subject} has timed out progressing."
        return with_condition(status, made_condition("Progressing", "False", "ProgressDeadlineExceeded", text, now))
    return status


def _has_progressed(old: Object, new: Object) -> bool:
    """More pods of the present template, fewer of others, more ready or available ones."""

    def outdated(status: Object) -> int:
        return status.get("replicas", 0) - status.get("updatedReplicas", 0)  # type: ignore[no-any-return]

    more = any(new.get(name, 0) > old.get(name, 0) for name in ("updatedReplicas", "readyReplicas", "availableReplicas"))
    return more or outdated(new) < outdated(old)


def _deadline_in(rollout: Rollout, condition: Object) -> float:
    """Seconds until the progress deadline, negative after it."""
    seconds = rollout.deployment["spec"]["progressDeadlineSeconds"]
    end = moment(condition["lastUpdateTime"]) + timedelta(seconds=seconds)
    return (end - rollout.controller.clock.now()).total_seconds()


def _has_timed_out(rollout: Rollout, status: Object) -> bool:
    condition = condition_of(status, "Progressing")
    if condition is None or condition.get("reason") == "NewReplicaSetAvailable":
        return False
    return condition.get("reason") == "ProgressDeadlineExceeded" or _deadline_in(rollout, condition) < 0


def _requeue_at_deadline(rollout: Rollout, status: Object, key: Key) -> None:
    """Look again a second after the progress deadline, when the condition tells that it was missed."""
    condition = condition_of(status, "Progressing")
    if not has_progress_deadline(rollout.deployment) or condition is None:
        return
    if is_complete(rollout.deployment, status) or condition.get("reason") == "ProgressDeadlineExceeded":
        return
    rollout.controller.requeue_after(key, max(_deadline_in(rollout, condition), 0.0) + 1.0)


def _replica_failure(new: Object | None, replica_sets: list[Object]) -> Object | None:
    """The condition ReplicaFailure of the new ReplicaSet, or else of another one."""
    for one in [*_present(new), *replica_sets]:
        condition = condition_of(one.get("status") or {}, "ReplicaFailure")
        if condition is not None:
            return {**condition, "lastUpdateTime": condition["lastTransitionTime"]}
    return None
