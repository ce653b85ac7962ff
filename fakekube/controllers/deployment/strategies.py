"""How replicas move from the old ReplicaSets to the new one, and back to a former template.

RollingUpdate: as many new pods as maxSurge allows, as few available ones as maxUnavailable allows, and of the old ones
those that are not healthy go first. Recreate: no new pod before the last old one has ended. A rollback writes a former
template into the Deployment, which then rolls as after any other change.

Specified by: pkg/controller/deployment/{rolling,recreate,rollback}.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fakekube.controllers.deployment.annotations import (
    ROLLBACK_TO,
    annotations_of,
    last_revision,
    restored_annotations,
    revision_of,
)
from fakekube.controllers.deployment.arithmetic import (
    is_complete,
    max_unavailable,
    new_replicas,
    replicas_of,
    specified,
    status_sum,
)
from fakekube.controllers.deployment.replica_sets import HASH_LABEL, Rollout, by_creation, same_template
from fakekube.controllers.deployment.status import sync_rollout_status
from fakekube.controllers.pods import is_terminal
from fakekube.controllers.reconciler import Key
from fakekube.golang.quoting import go_quote

__all__ = ["recreate", "roll_back", "roll_out", "rollback_revision"]

Object = dict[str, Any]


def _active(replica_sets: Iterable[Object]) -> list[Object]:
    return [one for one in replica_sets if replicas_of(one)]


def roll_out(rollout: Rollout, key: Key) -> None:
    """One step of a RollingUpdate."""
    new, old = rollout.synced(create=True)
    assert new is not None
    if not _grow(rollout, new, old) and not _shrink(rollout, new, old) and is_complete(rollout.deployment, rollout.status):
        rollout.clean_up(old)
    sync_rollout_status(rollout, new, old, key)


def _grow(rollout: Rollout, new: Object, old: list[Object]) -> bool:
    """Scale the new ReplicaSet; was there anything to scale?"""
    desired = replicas_of(rollout.deployment)
    if replicas_of(new) == desired:
        return False
    size = desired if replicas_of(new) > desired else new_replicas(rollout.deployment, [*old, new], new)
    return rollout.scale_replica_set(new, size)[0]


def _shrink(rollout: Rollout, new: Object, old: list[Object]) -> bool:
    """Scale old ReplicaSets down, as far as enough pods stay available; was there anything to scale?"""
    active = sorted(_active(old), key=by_creation)
    least = replicas_of(rollout.deployment) - max_unavailable(rollout.deployment)
    unavailable = replicas_of(new) - status_sum([new], "availableReplicas")
    surplus = specified(active) + replicas_of(new) - least - unavailable
    if not active or surplus <= 0:
        return False
    if any(status_sum([one], "availableReplicas") > replicas_of(one) for one in active):
        return False  # it was scaled, and has not followed yet
    active, cleaned = _remove_unhealthy(rollout, active, surplus)
    surplus = status_sum([*active, new], "availableReplicas") - least
    return cleaned + _remove_healthy(rollout, active, surplus) > 0


def _remove_unhealthy(rollout: Rollout, active: list[Object], surplus: int) -> tuple[list[Object], int]:
    """Take away the pods that are not available; gives the ReplicaSets as they are then, and the number of pods."""
    removed, result = 0, []
    for one in active:
        count = min(surplus - removed, replicas_of(one) - status_sum([one], "availableReplicas"))
        if count > 0:
            removed += count
        result.append(rollout.scale_replica_set(one, replicas_of(one) - max(count, 0))[1])
    return result, removed


def _remove_healthy(rollout: Rollout, active: list[Object], surplus: int) -> int:
    removed = 0
    for one in active:
        count = min(replicas_of(one), surplus - removed)
        if count > 0:
            rollout.scale_replica_set(one, replicas_of(one) - count)
            removed += count
    return removed


def recreate(rollout: Rollout, pods: dict[str, list[Object]], key: Key) -> None:
    """One step of Recreate.

    Args:
        rollout: to move on.
        pods: those of each ReplicaSet, by its uid.
        key: of the Deployment.
    """
    new, old = rollout.synced(create=False)
    scaled = [rollout.scale_replica_set(one, 0)[0] for one in _active(old)]
    if any(scaled) or _old_pods_run(new, old, pods):
        sync_rollout_status(rollout, new, old, key)
        return
    if new is None:
        new, old = rollout.synced(create=True)
        assert new is not None
    rollout.scale_replica_set(new, replicas_of(rollout.deployment))
    if is_complete(rollout.deployment, rollout.status):
        rollout.clean_up(old)
    sync_rollout_status(rollout, new, old, key)


def _old_pods_run(new: Object | None, old: list[Object], pods: dict[str, list[Object]]) -> bool:
    if status_sum(old, "replicas"):
        return True
    kept = new["metadata"]["uid"] if new is not None else None
    return any(not is_terminal(pod) for uid, found in pods.items() if uid != kept for pod in found)


# ---------------------------------------------------------------- rollback


def rollback_revision(deployment: Object) -> int | None:
    """The revision that an annotation asks to go back to (0: the last one); None if nothing is asked."""
    text = annotations_of(deployment).get(ROLLBACK_TO, "")
    try:
        return int(text) if text else None
    except ValueError:
        return None


def roll_back(rollout: Rollout) -> None:
    """Write the template of the revision that is asked for into the Deployment, and take the request away."""
    new, old = rollout.synced(create=True)
    assert new is not None
    replica_sets = [*old, new]
    revision = rollback_revision(rollout.deployment) or last_revision(replica_sets)
    if not revision:
        _refuse(rollout, "DeploymentRollbackRevisionNotFound", "Unable to find last revision.")
        return
    found = next((one for one in replica_sets if revision_of(one) == revision), None)
    if found is None:
        _refuse(rollout, "DeploymentRollbackRevisionNotFound", "Unable to find the revision to rollback to.")
        return
    name = rollout.deployment["metadata"]["name"]
    if same_template(rollout.deployment["spec"]["template"], found["spec"]["template"]):
        text = f"The rollback revision contains the same template as current deployment {go_quote(name)}"
        _refuse(rollout, "DeploymentRollbackTemplateUnchanged", text)
        return
    spec = {**rollout.deployment["spec"], "template": _plain_template(found)}
    _write(rollout, {**rollout.deployment, "spec": spec}, restored_annotations(rollout.deployment, found))
    text = f"Rolled back deployment {go_quote(name)} to revision {revision}"
    rollout.controller.recorder.event(rollout.deployment, "Normal", "DeploymentRollback", text)


def _refuse(rollout: Rollout, reason: str, message: str) -> None:
    rollout.controller.recorder.event(rollout.deployment, "Warning", reason, message)
    _write(rollout, rollout.deployment, annotations_of(rollout.deployment))


def _write(rollout: Rollout, deployment: Object, annotations: dict[str, str]) -> None:
    kept = {name: value for name, value in annotations.items() if name != ROLLBACK_TO}
    rollout.controller.client.update({**deployment, "metadata": {**deployment["metadata"], "annotations": kept}})


def _plain_template(replica_set: Object) -> Object:
    """The template of a ReplicaSet without the label with the hash."""
    template = replica_set["spec"]["template"]
    labels = {name: value for name, value in template["metadata"].get("labels", {}).items() if name != HASH_LABEL}
    return {**template, "metadata": {**template["metadata"], "labels": labels}}
