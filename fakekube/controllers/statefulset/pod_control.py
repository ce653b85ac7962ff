"""Creates, updates and deletes the pods of a StatefulSet with their claims, and records the events.

Invariant: a pod is created only when all of its claims exist and none of them is being deleted.

Specified by: pkg/controller/statefulset/stateful_pod_control.go.
"""

from __future__ import annotations

from fakekube.controllers.client import ApiError
from fakekube.controllers.objects import Object
from fakekube.controllers.reconciler import Reconciler
from fakekube.controllers.statefulset.utils import (
    get_ordinal,
    get_persistent_volume_claim_retention_policy,
    get_persistent_volume_claims,
    has_stale_owner_ref,
    has_unexpected_controller,
    identity_matches,
    is_claim_owner_up_to_date,
    pod_in_ordinal_range,
    storage_matches,
    update_claim_owner_refs,
    update_identity,
    update_storage,
)

__all__ = ["StatefulPodControl"]


class StatefulPodControl:
    """Writes the pods and claims of one StatefulSet.

    Args:
        controller: provides the client, the cache and the recorder.
        stateful_set: the owner of the pods, and the subject of the events.
    """

    def __init__(self, controller: Reconciler, stateful_set: Object) -> None:
        self._controller = controller
        self._set = stateful_set

    # ---- pods

    def create(self, pod: Object) -> Object:
        """Creates a pod and its claims. Raises ApiError, after an event unless the pod exists already."""
        try:
            self._create_claims(pod)
            try:
                created = self._controller.client.create(pod)
            except ApiError as error:
                if error.reason == "AlreadyExists":
                    raise _PodExists(error) from error
                raise
        except _PodExists as exists:
            raise exists.error from None
        except ApiError as error:
            self._record_pod_event("create", pod, error)
            raise
        self.update_claim_owners(created)
        self._record_pod_event("create", pod)
        return created

    def update(self, pod: Object) -> None:
        """Restores the identity, the volumes and the claims of a pod. Raises ApiError."""
        updated = pod
        if not identity_matches(updated, self._set):
            updated = update_identity(updated)
        try:
            if not storage_matches(updated, self._set):
                updated = update_storage(updated, self._set)
                self._create_claims(updated)
            changed = updated is not pod
            if not self.claims_match_retention_policy(updated):
                self.update_claim_owners(updated)
                changed = True
            if not changed:
                return
            self._controller.client.update(updated)
        except ApiError as error:
            self._record_pod_event("update", pod, error)
            raise
        self._record_pod_event("update", pod)

    def delete(self, pod: Object) -> None:
        """Deletes a pod. Raises ApiError, after an event."""
        metadata = pod["metadata"]
        try:
            self._controller.client.delete("pods", metadata["name"], namespace=metadata["namespace"])
        except ApiError as error:
            if error.code != 404:
                self._record_pod_event("delete", pod, error)
                raise
        self._record_pod_event("delete", pod)

    # ---- claims

    def create_missing_claims(self, pod: Object) -> None:
        """Creates the missing claims of a pending pod. Raises ApiError."""
        self._create_claims(pod)
        self.update_claim_owners(pod)

    def claims_match_retention_policy(self, pod: Object) -> bool:
        """Reports whether the owner references of the pod's claims follow the retention policy."""
        scaled_down = not pod_in_ordinal_range(pod, self._set)
        return all(is_claim_owner_up_to_date(claim, self._set, pod, scaled_down) for claim in self._existing_claims(pod))

    def update_claim_owners(self, pod: Object) -> None:
        """Sets the owner references of the pod's claims by the retention policy. Raises ApiError."""
        scaled_down = not pod_in_ordinal_range(pod, self._set)
        for claim in self._existing_claims(pod):
            if has_unexpected_controller(claim, self._set, pod):
                text = (
                    f"PersistentVolumeClaim {claim['metadata']['name']} has a conflicting OwnerReference that acts as a "
                    "manging controller, the retention policy is ignored for this claim"
                )
                self._record_event("Warning", "ConflictingController", text)
            if not is_claim_owner_up_to_date(claim, self._set, pod, scaled_down):
                self._controller.client.update(update_claim_owner_refs(claim, self._set, pod, scaled_down))

    def pod_claim_is_stale(self, pod: Object) -> bool:
        """Reports whether a former pod of this name still owns a claim, which is therefore about to be deleted."""
        if not get_persistent_volume_claim_retention_policy(self._set)[1]:
            return False
        return any(has_stale_owner_ref(claim, pod) for claim in self._existing_claims(pod))

    def _existing_claims(self, pod: Object) -> list[Object]:
        found = (self._get_claim(claim) for claim in get_persistent_volume_claims(self._set, get_ordinal(pod)))
        return [claim for claim in found if claim is not None]

    def _get_claim(self, claim: Object) -> Object | None:
        metadata = claim["metadata"]
        return self._controller.cache.get("persistentvolumeclaims", metadata["namespace"], metadata["name"])

    def _create_claims(self, pod: Object) -> None:
        failures = []
        for claim in get_persistent_volume_claims(self._set, get_ordinal(pod)):
            name, existing = claim["metadata"]["name"], self._get_claim(claim)
            if existing is not None:
                if "deletionTimestamp" in existing["metadata"]:
                    failures.append(f"pvc {name} is being deleted")
                continue
            try:
                self._controller.client.create(claim)
            except ApiError as error:
                failures.append(f"failed to create PVC {name}: {error}")
                if error.reason != "AlreadyExists":
                    self._record_claim(name, pod, error)
            else:
                self._record_claim(name, pod)
        if failures:
            text = failures[0] if len(failures) == 1 else f"[{', '.join(dict.fromkeys(failures))}]"
            raise ApiError({"code": 500, "reason": "InternalError", "message": text})

    # ---- events

    def _record_event(self, type_: str, reason: str, message: str) -> None:
        self._controller.recorder.event(self._set, type_, reason, message)

    def _record_pod_event(self, verb: str, pod: Object, error: ApiError | None = None) -> None:
        title = verb.title()
        subject = f"{title} Pod {pod['metadata']['name']} in StatefulSet {self._set['metadata']['name']}"
        if error is None:
            self._record_event("Normal", f"Successful{title}", f"{subject} successful")
        else:
            self._record_event("Warning", f"Failed{title}", f"{subject} failed error: {error}")

    def _record_claim(self, claim: str, pod: Object, error: ApiError | None = None) -> None:
        of_set = f"Pod {pod['metadata']['name']} in StatefulSet {self._set['metadata']['name']}"
        if error is None:
            self._record_event("Normal", "SuccessfulCreate", f"Create Claim {claim} {of_set} success")
        else:
            self._record_event("Warning", "FailedCreate", f"Create Claim {claim} for {of_set} failed error: {error}")


class _PodExists(Exception):
    """A pod of that name exists already; no event is recorded for this error."""

    def __init__(self, error: ApiError) -> None:
        super().__init__(str(error))
        self.error = error
