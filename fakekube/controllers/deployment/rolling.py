"""The strategy RollingUpdate of a Deployment.

It scales the new ReplicaSet up within maxSurge, and the old ones down within maxUnavailable, by removing unhealthy pods first.

Specified by: pkg/controller/deployment/rolling.go.
"""

from __future__ import annotations

from fakekube.base.objects import Object
from fakekube.controllers.deployment.progress import sync_rollout_status
from fakekube.controllers.deployment.utils import (
    Rollout,
    by_creation,
    deployment_complete,
    filter_active_replica_sets,
    get_replica_count,
    max_unavailable,
    new_rs_new_replicas,
    replicas_of,
    sum_status,
)
from fakekube.controllers.reconciler import Key


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
    active = sorted(filter_active_replica_sets(old), key=by_creation)
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
