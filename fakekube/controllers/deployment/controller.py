"""The Deployment controller: which step a Deployment needs, and its events.

A step is a rollback, a change of scale, or one of the strategies RollingUpdate and Recreate.

Specified by: pkg/controller/deployment/{deployment_controller,sync}.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from fakekube.apis.validation.objectmeta import find_condition
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.controller_ref_manager import ControllerRefManager, keys_of_controllers, selector_of
from fakekube.controllers.deployment.progress import sync_deployment_status
from fakekube.controllers.deployment.recreate import rollout_recreate
from fakekube.controllers.deployment.rollback import get_rollback_to, rollback
from fakekube.controllers.deployment.rolling import rollout_rolling
from fakekube.controllers.deployment.utils import Rollout, has_progress_deadline, new_deployment_condition, set_condition
from fakekube.controllers.informers import get_controller_of
from fakekube.controllers.reconciler import Key, Reconciler


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
