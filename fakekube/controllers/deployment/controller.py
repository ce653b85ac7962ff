"""The deployment controller: what a sync of a Deployment does, and what wakes it.

Specified by: pkg/controller/deployment/deployment_controller.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from fakekube.controllers.deployment.conditions import condition_of, has_progress_deadline, made_condition, with_condition
from fakekube.controllers.deployment.replica_sets import Rollout
from fakekube.controllers.deployment.status import sync_status
from fakekube.controllers.deployment.strategies import recreate, roll_back, roll_out, rollback_revision
from fakekube.controllers.owners import ControllerRefManager, controller_of, keys_of_controllers, selector_of
from fakekube.controllers.reconciler import Key, Object, Reconciler

__all__ = ["DeploymentController"]


class DeploymentController(Reconciler):
    """Rolls Deployments out."""

    name = "deployment-controller"
    watches = ("deployments.apps", "replicasets.apps", "pods")

    def keys(self, resource: str, event_type: str, obj: Object, old: Object | None = None) -> Iterable[Key]:
        metadata = obj["metadata"]
        if resource == "deployments.apps":
            return (Key(metadata["namespace"], metadata["name"]),)
        if resource == "pods":
            return self._keys_of_pod(obj) if event_type == "DELETED" else ()
        return keys_of_controllers(self.cache, obj, old, kind="Deployment", resource="deployments.apps")

    def _keys_of_pod(self, pod: Object) -> Iterable[Key]:
        """A Deployment that recreates its pods waits for the last old one."""
        owner, namespace = controller_of(pod), pod["metadata"]["namespace"]
        if owner is None or owner["kind"] != "ReplicaSet":
            return
        replica_set = self.cache.get("replicasets.apps", namespace, owner["name"])
        if replica_set is None or (found := controller_of(replica_set)) is None:
            return
        deployment = self.cache.get("deployments.apps", namespace, found["name"])
        if deployment is not None and deployment["spec"]["strategy"].get("type") == "Recreate":
            yield Key(namespace, found["name"])

    def reconcile(self, key: Key) -> None:
        deployment = self.cache.get("deployments.apps", key.namespace, key.name)
        if deployment is None:
            return
        if not any((deployment["spec"].get("selector") or {}).values()):
            self._refuse_everything(deployment)
            return
        rollout = Rollout(self, deployment, self._claimed(deployment))
        if "deletionTimestamp" in deployment["metadata"]:
            sync_status(rollout, *rollout.synced(create=False))
            return
        self._check_paused(rollout)
        if deployment["spec"].get("paused"):
            self._sync(rollout)
        elif rollback_revision(rollout.deployment) is not None:
            roll_back(rollout)
        elif rollout.is_scaling():
            self._sync(rollout)
        elif deployment["spec"]["strategy"].get("type") == "Recreate":
            uids = [one["metadata"]["uid"] for one in rollout.replica_sets]
            recreate(rollout, {uid: list(self.cache.owned_by("pods", uid)) for uid in uids}, key)
        else:
            roll_out(rollout, key)

    def _refuse_everything(self, deployment: Object) -> None:
        """A selector that matches all pods is not acted upon."""
        text = "This deployment is selecting all pods. A non-empty selector is required."
        self.recorder.event(deployment, "Warning", "SelectingAll", text)
        status, generation = deployment.get("status") or {}, deployment["metadata"].get("generation", 0)
        if status.get("observedGeneration", 0) < generation:
            changed = {**deployment, "status": {**status, "observedGeneration": generation}}
            self.client.update(changed, subresource="status")

    def _claimed(self, deployment: Object) -> list[Object]:
        """The ReplicaSets of the Deployment."""
        selector = selector_of(deployment)
        manager = ControllerRefManager(
            self.client,
            deployment,
            "deployments.apps",
            "replicasets.apps",
            lambda replica_set: selector.matches(replica_set["metadata"].get("labels")),
        )
        return manager.claim_from(self.cache)

    def _check_paused(self, rollout: Rollout) -> None:
        """Say that the Deployment is paused, or no longer: the time until the progress deadline begins anew then."""
        if not has_progress_deadline(rollout.deployment):
            return
        condition = condition_of(rollout.status, "Progressing")
        reason = condition.get("reason") if condition is not None else None
        paused = bool(rollout.deployment["spec"].get("paused"))
        if reason == "ProgressDeadlineExceeded" or paused == (reason == "DeploymentPaused"):
            return
        word = "paused" if paused else "resumed"
        made = made_condition("Progressing", "Unknown", f"Deployment{word.title()}", f"Deployment is {word}", self.client.now())
        rollout.write_status(with_condition(rollout.status, made))

    def _sync(self, rollout: Rollout) -> None:
        """Scale without rolling out."""
        new, old = rollout.synced(create=False)
        rollout.scale(new, old)
        if rollout.deployment["spec"].get("paused") and rollback_revision(rollout.deployment) is None:
            rollout.clean_up(old)
        sync_status(rollout, new, old)
