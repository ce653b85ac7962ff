"""The rollback of a Deployment: a former template is written into it, and rolled out as any other change.

Specified by: pkg/controller/deployment/rollback.go.
"""

from __future__ import annotations

from fakekube.apis.well_known import DEPRECATED_ROLLBACK_TO
from fakekube.base.golang.strconv import go_quote
from fakekube.base.objects import Object
from fakekube.controllers.deployment.utils import (
    Rollout,
    annotations_of,
    equal_ignore_hash,
    last_revision,
    parse_revision,
    revision_of,
    rollback_annotations,
    without_hash,
)


def get_rollback_to(deployment: Object) -> int | None:
    """Returns the revision in the rollback annotation (0: the previous revision); None if there is none (getRollbackTo)."""
    text = annotations_of(deployment).get(DEPRECATED_ROLLBACK_TO, "")
    return parse_revision(text) if text else None


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
