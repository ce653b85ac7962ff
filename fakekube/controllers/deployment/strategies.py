"""The strategies of Deployments: RollingUpdate, Recreate and rollback.

RollingUpdate scales the new ReplicaSet up within maxSurge, and the old ones down within maxUnavailable; unhealthy old pods are
removed first. Recreate creates no new pod before all old ones have terminated. A rollback writes a former template into the
Deployment, which is then rolled out as after any other change.

Specified by: pkg/controller/deployment/{rolling,recreate,rollback}.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from fakekube.base.golang.quoting import go_quote
from fakekube.controllers.controller_utils import is_pod_terminal
from fakekube.controllers.deployment.annotations import (
    ROLLBACK_TO,
    annotations_of,
    last_revision,
    revision_of,
    rollback_annotations,
)
from fakekube.controllers.deployment.replica_counts import (
    deployment_complete,
    get_replica_count,
    max_unavailable,
    new_rs_new_replicas,
    replicas_of,
    sum_status,
)
from fakekube.controllers.deployment.replica_sets import Rollout, by_creation, equal_ignore_hash, without_hash
from fakekube.controllers.deployment.status import sync_rollout_status
from fakekube.controllers.objects import Object
from fakekube.controllers.reconciler import Key

__all__ = ["get_rollback_to", "rollback", "rollout_recreate", "rollout_rolling"]


def _active(replica_sets: Iterable[Object]) -> list[Object]:
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
    active = sorted(_active(old), key=by_creation)
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
        rollout: The sync of the Deployment.
        pods: The pods of each ReplicaSet, by its uid.
        key: The key of the Deployment.
    """
    new, old = rollout.get_all_and_sync_revision(create=False)
    scaled = [rollout.scale_replica_set(one, 0)[0] for one in _active(old)]
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


# ---------------------------------------------------------------- rollback


def get_rollback_to(deployment: Object) -> int | None:
    """Returns the revision in the rollback annotation (0: the previous revision); None if there is none (getRollbackTo)."""
    text = annotations_of(deployment).get(ROLLBACK_TO, "")
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
        _refuse(rollout, "DeploymentRollbackRevisionNotFound", "Unable to find last revision.")
        return
    found = next((one for one in replica_sets if revision_of(one) == revision), None)
    if found is None:
        _refuse(rollout, "DeploymentRollbackRevisionNotFound", "Unable to find the revision to rollback to.")
        return
    name = rollout.deployment["metadata"]["name"]
    if equal_ignore_hash(rollout.deployment["spec"]["template"], found["spec"]["template"]):
        text = f"The rollback revision contains the same template as current deployment {go_quote(name)}"
        _refuse(rollout, "DeploymentRollbackTemplateUnchanged", text)
        return
    spec = {**rollout.deployment["spec"], "template": without_hash(found["spec"]["template"])}
    _update_and_clear_rollback(rollout, {**rollout.deployment, "spec": spec}, rollback_annotations(rollout.deployment, found))
    text = f"Rolled back deployment {go_quote(name)} to revision {revision}"
    rollout.controller.recorder.event(rollout.deployment, "Normal", "DeploymentRollback", text)


def _refuse(rollout: Rollout, reason: str, message: str) -> None:
    rollout.controller.recorder.event(rollout.deployment, "Warning", reason, message)
    _update_and_clear_rollback(rollout, rollout.deployment, annotations_of(rollout.deployment))


def _update_and_clear_rollback(rollout: Rollout, deployment: Object, annotations: dict[str, str]) -> None:
    kept = {name: value for name, value in annotations.items() if name != ROLLBACK_TO}
    rollout.controller.client.update({**deployment, "metadata": {**deployment["metadata"], "annotations": kept}})
