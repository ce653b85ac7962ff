"""The strategy Recreate of a Deployment, which creates no new pod before all old ones have terminated.

Specified by: pkg/controller/deployment/recreate.go.
"""

from __future__ import annotations

from fakekube.base.objects import Object
from fakekube.controllers.controller_utils import is_pod_terminal
from fakekube.controllers.deployment.progress import sync_rollout_status
from fakekube.controllers.deployment.utils import (
    Rollout,
    deployment_complete,
    filter_active_replica_sets,
    replicas_of,
    sum_status,
)
from fakekube.controllers.reconciler import Key


def rollout_recreate(rollout: Rollout, pods: dict[str, list[Object]], key: Key) -> None:
    """Does one step of Recreate (rolloutRecreate).

    Args:
        rollout: the sync of the Deployment.
        pods: the pods of each ReplicaSet, by its uid.
        key: the key of the Deployment.
    """
    new, old = rollout.get_all_and_sync_revision(create=False)
    scaled = [rollout.scale_replica_set(one, 0)[0] for one in filter_active_replica_sets(old)]
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
