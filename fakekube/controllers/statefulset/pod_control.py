"""Makes, mends and deletes the pods of a StatefulSet, with their claims and the events that say so.

Invariant: a pod is created only when all of its claims are there, and none of them is being deleted.

Specified by: pkg/controller/statefulset/stateful_pod_control.go.
"""

from __future__ import annotations

from typing import Any

from fakekube.client import ApiError
from fakekube.controllers.reconciler import Reconciler
from fakekube.controllers.statefulset.claims import (
    has_stale_owner,
    has_unexpected_controller,
    made_claims,
    owner_is_up_to_date,
    retention_policy,
    with_owner,
)
from fakekube.controllers.statefulset.identity import (
    identity_matches,
    in_range,
    ordinal_of,
    storage_matches,
    with_identity,
    with_storage,
)

__all__ = ["StatefulPodControl"]

Object = dict[str, Any]


class StatefulPodControl:
    """Writes pods and claims for one StatefulSet.

    Args:
        controller: whose client, cache and recorder are used.
        stateful_set: whom the pods belong to, and the events are about.
    """

    def __init__(self, controller: Reconciler, stateful_set: Object) -> None:
        self._controller = controller
        self._set = stateful_set

    # ---- pods

    def create(self, pod: Object) -> Object:
        """Create a pod and its claims. Raises ApiError, after an event unless the pod is there already."""
        try:
            self._create_claims(pod)
            try:
                created = self._controller.client.create(pod)
            except ApiError as error:
                if error.reason == "AlreadyExists":
                    raise _Present(error) from error
                raise
        except _Present as present:
            raise present.error from None
        except ApiError as error:
            self._record("create", pod, error)
            raise
        self.update_claims(created)
        self._record("create", pod)
        return created

    def update(self, pod: Object) -> None:
        """Give a pod its identity, volumes and claims again, if they are not as they are to be. Raises ApiError."""
        wanted = pod
        if not identity_matches(wanted, self._set):
            wanted = with_identity(wanted)
        try:
            if not storage_matches(wanted, self._set):
                wanted = with_storage(wanted, self._set)
                self._create_claims(wanted)
            changed = wanted is not pod
            if not self.claims_match(wanted):
                self.update_claims(wanted)
                changed = True
            if not changed:
                return
            self._controller.client.update(wanted)
        except ApiError as error:
            self._record("update", pod, error)
            raise
        self._record("update", pod)

    def delete(self, pod: Object) -> None:
        """Delete a pod. Raises ApiError, after an event."""
        metadata = pod["metadata"]
        try:
            self._controller.client.delete("pods", metadata["name"], namespace=metadata["namespace"])
        except ApiError as error:
            if error.code != 404:
                self._record("delete", pod, error)
                raise
        self._record("delete", pod)

    # ---- claims

    def create_missing_claims(self, pod: Object) -> None:
        """Create what is missing for a pod that waits. Raises ApiError."""
        self._create_claims(pod)
        self.update_claims(pod)

    def claims_match(self, pod: Object) -> bool:
        """Do the owners of the pod's claims follow the retention policy?"""
        scaled_down = not in_range(pod, self._set)
        return all(owner_is_up_to_date(claim, self._set, pod, scaled_down) for claim in self._present_claims(pod))

    def update_claims(self, pod: Object) -> None:
        """Make the owners of the pod's claims follow the retention policy. Raises ApiError, after an event."""
        scaled_down = not in_range(pod, self._set)
        for claim in self._present_claims(pod):
            if has_unexpected_controller(claim, self._set, pod):
                text = (
                    f"PersistentVolumeClaim {claim['metadata']['name']} has a conflicting OwnerReference that acts as a "
                    "manging controller, the retention policy is ignored for this claim"
                )
                self._event("Warning", "ConflictingController", text)
            if not owner_is_up_to_date(claim, self._set, pod, scaled_down):
                self._controller.client.update(with_owner(claim, self._set, pod, scaled_down))

    def claim_is_stale(self, pod: Object) -> bool:
        """Is a claim still owned by a former pod of this name, and so about to go?"""
        if not retention_policy(self._set)[1]:
            return False
        return any(has_stale_owner(claim, pod) for claim in self._present_claims(pod))

    def _present_claims(self, pod: Object) -> list[Object]:
        found = (self._claim(wanted) for wanted in made_claims(self._set, ordinal_of(pod)))
        return [claim for claim in found if claim is not None]

    def _claim(self, wanted: Object) -> Object | None:
        metadata = wanted["metadata"]
        return self._controller.cache.get("persistentvolumeclaims", metadata["namespace"], metadata["name"])

    def _create_claims(self, pod: Object) -> None:
        failures = []
        for wanted in made_claims(self._set, ordinal_of(pod)):
            name, present = wanted["metadata"]["name"], self._claim(wanted)
            if present is not None:
                if "deletionTimestamp" in present["metadata"]:
                    failures.append(f"pvc {name} is being deleted")
                continue
            try:
                self._controller.client.create(wanted)
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

    def _event(self, type_: str, reason: str, message: str) -> None:
        self._controller.recorder.event(self._set, type_, reason, message)

    def _record(self, verb: str, pod: Object, error: ApiError | None = None) -> None:
        title = verb.title()
        subject = f"{title} Pod {pod['metadata']['name']} in StatefulSet {self._set['metadata']['name']}"
        if error is None:
            self._event("Normal", f"Successful{title}", f"{subject} successful")
        else:
            self._event("Warning", f"Failed{title}", f"{subject} failed error: {error}")

    def _record_claim(self, claim: str, pod: Object, error: ApiError | None = None) -> None:
        of_set = f"Pod {pod['metadata']['name']} in StatefulSet {self._set['metadata']['name']}"
        if error is None:
            self._event("Normal", "SuccessfulCreate", f"Create Claim {claim} {of_set} success")
        else:
            self._event("Warning", "FailedCreate", f"Create Claim {claim} for {of_set} failed error: {error}")


class _Present(Exception):
    """There is a pod of that name already: an error without an event."""

    def __init__(self, error: ApiError) -> None:
        super().__init__(str(error))
        self.error = error
